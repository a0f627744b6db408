"""Writes to the sandbox: later calls return the changes."""

import pytest

from gateway.errors import UpstreamNotFound, UpstreamRejected

TEXT = [{"type": "text", "text": {"content": "Hello"}}]


async def test_a_page_is_created_with_its_blocks_and_can_be_archived(connect):
    notes = connect("workspace-notes")
    parent = (await notes.execute("pages", "list", {"page_size": 1})).decoded()[0]["id"]
    page = (
        await notes.execute(
            "pages",
            "create",
            {
                "parent": {"page_id": parent},
                "properties": {"title": {"title": TEXT}},
                "children": [{"type": "paragraph", "paragraph": {"rich_text": TEXT}}],
            },
        )
    ).decoded()

    await notes.execute("pages", "update", {"page_id": page["id"], "archived": True})

    known = (await notes.execute("pages", "get", {"page_id": page["id"]})).decoded()
    blocks = (await notes.execute("blocks", "list", {"block_id": page["id"]})).decoded()
    assert (known["parent"]["page_id"], known["archived"]) == (parent, True)
    assert [block["paragraph"]["rich_text"] for block in blocks] == [TEXT]


async def test_blocks_are_appended_in_order_and_changed_in_place(connect):
    notes = connect("workspace-notes")
    page = (await notes.execute("pages", "list", {"page_size": 1})).decoded()[0]["id"]
    children = [
        {"type": "to_do", "to_do": {"rich_text": TEXT, "checked": False}},
        {"type": "quote", "quote": {"rich_text": TEXT}},
    ]

    added = (await notes.execute("blocks", "create", {"block_id": page, "children": children})).decoded()
    await notes.execute("blocks", "update", {"block_id": added[0]["id"], "to_do": {"checked": True}})

    blocks = (await notes.execute("blocks", "list", {"block_id": page})).decoded()
    assert [block["type"] for block in blocks[-2:]] == ["to_do", "quote"]
    assert blocks[-2]["to_do"]["checked"] is True


async def test_a_comment_can_be_answered_in_its_discussion(connect):
    notes = connect("workspace-notes")
    page = (await notes.execute("pages", "list", {"page_size": 1})).decoded()[0]["id"]
    first = (await notes.execute("comments", "create", {"parent": {"page_id": page}, "rich_text": TEXT})).decoded()

    answer = await notes.execute("comments", "create", {"discussion_id": first["discussion_id"], "rich_text": TEXT})

    listed = (await notes.execute("comments", "list", {"block_id": page})).decoded()
    assert [comment["id"] for comment in listed][-2:] == [first["id"], answer.decoded()["id"]]


async def test_without_its_version_header_the_application_refuses(http):
    async with http.get("/v1/users", headers={"Authorization": "Bearer token"}) as answer:
        said = await answer.json()

    assert (answer.status, said["code"]) == (400, "missing_version")


async def test_a_message_is_posted_edited_answered_and_deleted(connect):
    chat, channel = connect("team-chat"), "C00000002"
    posted = (await chat.execute("messages", "create", {"channel": channel, "text": "One"})).decoded()
    ts = posted["ts"]
    await chat.execute("messages", "create", {"channel": channel, "text": "Two", "thread_ts": ts})
    await chat.execute("messages", "update", {"channel": channel, "ts": ts, "text": "Changed"})
    await chat.execute("reactions", "create", {"channel": channel, "timestamp": ts, "name": "eyes"})

    thread = (await chat.execute("threads", "list", {"channel": channel, "ts": ts})).decoded()
    newest = (await chat.execute("channel_messages", "list", {"channel": channel, "limit": 1})).decoded()
    await chat.execute("messages", "delete", {"channel": channel, "ts": ts})

    assert [message["text"] for message in thread] == ["Changed", "Two"]
    assert (newest[0]["ts"], newest[0]["reply_count"]) == (ts, 1)
    assert newest[0]["reactions"][0]["name"] == "eyes"
    with pytest.raises(UpstreamNotFound, match="thread_not_found"):
        await chat.execute("threads", "list", {"channel": channel, "ts": ts})


async def test_a_channel_is_created_renamed_and_archived(connect):
    chat = connect("team-chat")
    channel = (await chat.execute("channels", "create", {"name": "fresh"})).decoded()["id"]
    await chat.execute("channels", "update", {"channel": channel, "name": "renamed"})
    await chat.execute("channel_topics", "create", {"channel": channel, "topic": "News"})
    await chat.execute("channel_archives", "create", {"channel": channel})

    known = (await chat.execute("channels", "get", {"channel": channel})).decoded()

    assert (known["name"], known["topic"]["value"], known["is_archived"]) == ("renamed", "News", True)
    with pytest.raises(UpstreamRejected, match="is_archived"):
        await chat.execute("messages", "create", {"channel": channel, "text": "Late"})


async def test_the_name_of_a_channel_is_unique(connect):
    with pytest.raises(UpstreamRejected, match="name_taken"):
        await connect("team-chat").execute("channels", "create", {"name": "general"})


async def test_methods_that_read_accept_forms_and_ignore_json(http):
    headers, told = {"Authorization": "Bearer token"}, []
    for body in ({"data": {"channel": "C00000001"}}, {"json": {"channel": "C00000001"}}):
        async with http.post("/api/conversations.info", headers=headers, **body) as answer:
            told.append((await answer.json())["ok"])

    assert told == [True, False]


async def test_a_task_is_created_moved_tagged_and_deleted(connect):
    work = connect("work-management")
    workspace, _ = (await work.execute("workspaces", "list", {})).decoded()
    project = (await work.execute("projects", "list", {"limit": 1})).decoded()[0]
    sections = (await work.execute("project_sections", "list", {"project_gid": project["gid"]})).decoded()
    tag = (await work.execute("workspace_tags", "list", {"workspace_gid": "1203998745612345"})).decoded()
    data = {"name": "Fresh", "workspace": workspace["gid"], "projects": [project["gid"]], "assignee": "me"}
    task = (await work.execute("tasks", "create", {"data": data})).decoded()["gid"]

    await work.execute("section_tasks", "create", {"section_gid": sections[1]["gid"], "data": {"task": task}})
    in_section = (await work.execute("section_tasks", "list", {"section_gid": sections[1]["gid"]})).decoded()
    known = (await work.execute("tasks", "get", {"task_gid": task})).decoded()
    await work.execute("tasks", "delete", {"task_gid": task})

    assert task in [one["gid"] for one in in_section]
    assert known["assignee"]["name"]
    assert [one["gid"] for one in known["projects"]] == [project["gid"]]
    assert tag == []
    with pytest.raises(UpstreamNotFound):
        await work.execute("tasks", "get", {"task_gid": task})


async def test_lists_of_work_are_compact_by_default(connect):
    work = connect("work-management")
    project = (await work.execute("projects", "list", {"limit": 1})).decoded()[0]["gid"]

    compact = (await work.execute("project_tasks", "list", {"project_gid": project})).decoded()[0]
    chosen = await work.execute("project_tasks", "list", {"project_gid": project, "opt_fields": "due_on,assignee"})

    assert set(compact) == {"gid", "name", "resource_type", "resource_subtype"}
    assert set(chosen.decoded()[0]) == {"gid", "due_on", "assignee"}


async def test_a_list_of_tasks_without_a_filter_is_refused(http):
    async with http.get("/api/1.0/tasks", headers={"Authorization": "Bearer token"}) as answer:
        said = await answer.json()

    assert answer.status == 400
    assert "project" in said["errors"][0]["message"]


async def test_relations_of_tasks_are_consistent_in_both_directions(connect):
    work = connect("work-management")
    project = (await work.execute("projects", "list", {"limit": 1})).decoded()[0]["gid"]
    tasks = (await work.execute("project_tasks", "list", {"project_gid": project})).decoded()

    waiting = (await work.execute("task_dependencies", "list", {"task_gid": tasks[9]["gid"]})).decoded()
    subtasks = (await work.execute("task_subtasks", "list", {"task_gid": tasks[5]["gid"]})).decoded()

    assert [task["gid"] for task in waiting] == [tasks[8]["gid"]]
    assert [task["gid"] for task in subtasks] == [tasks[6]["gid"]]


async def test_a_report_runs_and_ends(slow_http):
    reports, headers = "/services/data/v59.0/analytics/reports", {"Authorization": "Bearer token"}
    async with slow_http.get(reports, headers=headers) as answer:
        path = f"{(await answer.json())[0]['url']}/instances"
    async with slow_http.post(path, headers=headers) as answer:
        started = await answer.json()

    seen = [started["status"]]
    while seen[-1] != "Success":
        async with slow_http.get(f"{path}/{started['id']}", headers=headers) as answer:
            seen.append((await answer.json())["attributes"]["status"])

    assert list(dict.fromkeys(seen)) == ["New", "Running", "Success"]


async def test_a_record_deleted_by_a_mutation_is_not_found(connect):
    tracker = connect("linear")

    made = (await tracker.execute("issues", "create", {"teamId": "t", "title": "Login fails"})).decoded()
    await tracker.execute("issues", "delete", {"id": made["issue"]["id"]})

    assert (made["success"], made["issue"]["title"]) == (True, "Login fails")
    with pytest.raises(UpstreamNotFound):
        await tracker.execute("issues", "get", {"id": made["issue"]["id"]})


async def test_a_mutation_changes_the_record_that_its_global_id_names(connect):
    shop, product = connect("shopify"), {"id": "gid://shopify/Product/632910392", "title": "Winter coat"}

    changed = (await shop.execute("products", "update", {"product": product})).decoded()
    read = (await shop.execute("products", "get", {"product_id": 632910392})).decoded()

    assert changed["userErrors"] == []
    assert changed["product"]["title"] == read["title"] == "Winter coat"
    with pytest.raises(UpstreamNotFound):
        await shop.execute("products", "update", {"product": {**product, "id": "gid://shopify/Product/1"}})


async def test_records_found_by_a_number_have_different_ids(connect):
    issues = (await connect("gitlab").execute("issues", "list", {"project_id": "acme/shop"})).decoded()

    assert len({issue["id"] for issue in issues}) == len({issue["iid"] for issue in issues}) == len(issues)


async def test_a_record_with_a_global_id_is_changed_by_its_number(connect):
    hub, place = connect("github"), {"owner": "acme", "repo": "shop"}
    listed = (await hub.execute("releases", "list", {**place, "per_page": 3})).decoded()
    chosen = {**place, "release_id": listed[2]["databaseId"], "name": "Third"}

    changed = (await hub.execute("releases", "update", chosen)).decoded()

    assert (changed["name"], changed["id"]) == ("Third", listed[2]["id"])


async def test_a_contact_is_created_once_by_its_email_changed_and_archived(connect):
    crm = connect("crm-records")
    email = {"email": "ada@sandbox.example", "crm_owner_id": "7"}

    contact = (await crm.execute("contacts", "create", {"properties": email})).decoded()
    with pytest.raises(UpstreamRejected, match="already exists"):
        await crm.execute("contacts", "create", {"properties": email})
    await crm.execute(
        "contacts",
        "update",
        {"contactId": "ada@sandbox.example", "idProperty": "email", "properties": {"lastname": "Adler"}},
    )
    asked = {"contactId": contact["id"], "properties": "lastname,crm_owner_id"}
    changed = (await crm.execute("contacts", "get", asked)).decoded()
    archived = await crm.execute("contacts", "delete", {"contactId": contact["id"]})
    await crm.execute("contacts", "delete", {"contactId": contact["id"]})

    assert contact["properties"]["email"] == "ada@sandbox.example"
    assert (changed["properties"]["lastname"], changed["properties"]["crm_owner_id"]) == ("Adler", "7")
    assert archived.decoded() is None
    with pytest.raises(UpstreamNotFound):
        await crm.execute("contacts", "get", asked)
    kept = (await crm.execute("contacts", "get", {**asked, "archived": True})).decoded()
    assert kept["id"] == contact["id"]


@pytest.mark.parametrize(
    ("entity", "members"), [("opportunities", {}), ("sobjects", {"object": "Opportunity"})], ids=["named", "any object"]
)
async def test_a_record_is_created_changed_and_deleted(connect, entity, members):
    crm = connect("crm-query")
    query = {"q": "SELECT Id, StageName FROM Opportunity WHERE Name = 'Two engines'"}

    created = (
        await crm.execute(entity, "create", {**members, "fields": {"Name": "Two engines", "StageName": "New"}})
    ).decoded()
    record = {**members, "id": created["id"]}
    await crm.execute(entity, "update", {**record, "fields": {"StageName": "Closed Won"}})
    found = (await crm.execute("query", "list", query)).decoded()
    await crm.execute(entity, "delete", record)

    assert (created["success"], created["errors"]) == (True, [])
    assert [each["StageName"] for each in found if each["Id"] == created["id"]] == ["Closed Won"]
    assert created["id"] not in str((await crm.execute("query", "list", query)).decoded())
    with pytest.raises(UpstreamNotFound):
        await crm.execute(entity, "delete", record)
