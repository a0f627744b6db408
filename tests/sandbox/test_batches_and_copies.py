"""Batches and exports of CRM records, and duplications of work management, simulated from their specs."""


async def test_batches_create_change_and_read_records_and_report_on_each(connect):
    crm = connect("crm-records")
    inputs = [{"properties": {"email": f"{name}@example.com", "lastname": name}} for name in ("ada", "bo", "cy")]

    made = (await crm.execute("objects", "batch_create", {"objectType": "contacts", "inputs": inputs})).decoded()
    ids = [each["id"] for each in made["results"]]
    changes = [{"id": ids[0], "properties": {"lastname": "Adler"}}, {"id": "1", "properties": {"lastname": "?"}}]
    changed = (await crm.execute("objects", "batch_update", {"objectType": "contacts", "inputs": changes})).decoded()
    asked = {"objectType": "contacts", "properties": ["lastname"], "inputs": [{"id": each} for each in (*ids, "1")]}
    known = (await crm.execute("objects", "batch_read", asked)).decoded()

    assert (made["message"], made["succeeded"]) == ("3 of 3 records created", 3)
    assert [each["record"]["properties"]["lastname"] for each in made["results"]] == ["ada", "bo", "cy"]
    assert [(each["id"], each["success"]) for each in changed["results"]] == [(ids[0], True), ("1", False)]
    assert [record["properties"]["lastname"] for record in known] == ["Adler", "bo", "cy"]


async def test_a_batch_larger_than_the_application_accepts_is_split(connect):
    inputs = [{"properties": {"email": f"{number}@example.com"}} for number in range(205)]

    made = await connect("crm-records").execute("objects", "batch_create", {"objectType": "contacts", "inputs": inputs})

    results = made.decoded()["results"]
    assert [each["record"]["properties"]["email"] for each in results] == [
        each["properties"]["email"] for each in inputs
    ]


async def test_an_export_is_written_and_its_file_read(connect):
    crm = connect("crm-records")
    params = {"objectType": "CONTACT", "exportName": "all", "objectProperties": ["email"]}

    export = (await crm.execute("exports", "create", params)).decoded()
    async with crm.download("exports", {"export_id": export["id"]}) as file:
        size = sum([len(chunk) async for chunk in file])

    assert export["status"] == "COMPLETE"
    assert size == 5000


async def test_a_task_and_a_project_are_duplicated(connect):
    work = connect("work-management")
    gid = "1203998745612345"

    tasks = await work.execute("tasks", "duplicate", {"task_gid": gid, "name": "Again", "include": "notes"})
    projects = await work.execute("projects", "duplicate", {"project_gid": gid, "name": "Next year"})
    copied = (await work.execute("tasks", "get", {"task_gid": tasks.decoded()["new_task"]["gid"]})).decoded()

    assert (tasks.decoded()["status"], copied["name"]) == ("succeeded", "Again")
    assert projects.decoded()["new_project"]["name"] == "Next year"
