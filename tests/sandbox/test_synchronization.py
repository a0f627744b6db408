"""The lists of the sandbox that a synchronizer reads: all records, then the changes."""

import time

import pytest

from gateway.errors import UpstreamNotFound

AUTH = {"Authorization": "Bearer token", "Notion-Version": "2025-09-03"}


async def read(http, path, **params):
    async with http.get(path, params=params, headers=AUTH) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


@pytest.mark.parametrize(("table", "count"), [("tickets", 500), ("users", 240)])
async def test_an_export_by_cursor_has_every_record_once(http, table, count):
    path = f"/api/v2/incremental/{table}/cursor.json"
    pages = [await read(http, path, start_time=0, per_page=97)]
    while not pages[-1]["end_of_stream"]:
        pages.append(await read(http, path, cursor=pages[-1]["after_cursor"], per_page=97))

    ids = [record["id"] for page in pages for record in page[table]]

    assert len(ids) == len(set(ids)) == count


async def test_the_last_cursor_of_an_export_returns_later_changes(http):
    path = "/api/v2/incremental/tickets/cursor.json"
    whole = await read(http, path, start_time=0)
    ticket = {"ticket": {"subject": "Changed"}}

    nothing = await read(http, path, cursor=whole["after_cursor"])
    await (await http.put("/api/v2/tickets/3.json", json=ticket, headers=AUTH)).release()
    changed = await read(http, path, cursor=whole["after_cursor"])

    assert nothing["tickets"] == []
    assert [record["subject"] for record in changed["tickets"]] == ["Changed"]


@pytest.mark.parametrize(
    ("path", "name", "count"),
    [
        ("/api/v2/incremental/organizations.json", "organizations", 60),
        ("/api/v2/incremental/ticket_events.json", "ticket_events", 1500),
        ("/api/v2/help_center/incremental/articles.json", "articles", 80),
    ],
)
async def test_an_export_by_time_has_every_record(http, path, name, count):
    page = await read(http, path, start_time=0)
    ids = {record["id"] for record in page[name]}
    while not page["end_of_stream"]:
        page = await read(http, path, start_time=page["end_time"])
        ids |= {record["id"] for record in page[name]}

    assert len(ids) == count


async def test_ticket_events_have_comments_on_request(http):
    page = await read(http, "/api/v2/incremental/ticket_events.json", start_time=0, include="comment_events")

    event = page["ticket_events"][0]

    assert event["child_events"][0]["event_type"] == "Comment"
    assert event["child_events"][0]["body"]
    assert event["ticket_id"] >= 1


async def test_an_export_from_less_than_a_minute_ago_is_refused(http):
    params = {"start_time": int(time.time()) - 10}
    async with http.get("/api/v2/incremental/tickets/cursor.json", params=params, headers=AUTH) as answer:
        said = await answer.json()

    assert (answer.status, said["error"]) == (400, "StartTimeTooRecent")


async def test_audits_of_an_account_continue_with_older_and_with_newer_ones(http):
    path = "/api/v2/ticket_audits.json"
    pages = [await read(http, path, limit=700)]
    while pages[-1]["before_cursor"]:
        pages.append(await read(http, path, cursor=pages[-1]["before_cursor"], limit=700))
    nothing = await read(http, path, cursor=pages[0]["after_cursor"])
    body = {"ticket": {"comment": {"body": "Called back"}}}
    await (await http.put("/api/v2/tickets/3.json", json=body, headers=AUTH)).release()
    since = await read(http, path, cursor=pages[0]["after_cursor"])

    audits = [audit for page in pages for audit in page["audits"]]

    assert [len(page["audits"]) for page in pages] == [700, 700, 100]
    assert len({audit["id"] for audit in audits}) == 1500
    times = [audit["created_at"] for audit in audits]
    assert times == sorted(times, reverse=True)
    assert nothing["audits"] == []
    assert [audit["ticket_id"] for audit in since["audits"]] == [3]


async def test_a_list_of_the_desk_accepts_cursors_too(http):
    first = await read(http, "/api/v2/groups.json", **{"page[size]": 7})
    second = await read(http, "/api/v2/groups.json", **{"page[size]": 7, "page[after]": first["meta"]["after_cursor"]})

    assert (first["meta"]["has_more"], second["meta"]["has_more"]) == (True, False)
    assert "next_page" not in first
    assert len(first["groups"]) + len(second["groups"]) == 12


async def test_records_of_the_crm_are_found_by_their_last_change(connect):
    crm = connect("crm-records")
    everything = (await crm.execute("contacts", "api_search", {"limit": 200})).decoded()
    bound = sorted(record["properties"]["lastmodifieddate"] for record in everything)[100]

    found = await crm.execute(
        "contacts",
        "api_search",
        {
            "limit": 200,
            "filterGroups": [{"filters": [{"propertyName": "lastmodifieddate", "operator": "GTE", "value": bound}]}],
            "sorts": [{"propertyName": "lastmodifieddate", "direction": "ASCENDING"}],
        },
    )

    times = [record["properties"]["lastmodifieddate"] for record in found.decoded()]
    assert times == sorted(times)
    assert times[0] == bound


async def test_deleted_records_are_only_in_query_all(http):
    query = {"q": "SELECT Id, IsDeleted, SystemModstamp FROM Lead WHERE SystemModstamp >= 2025-01-01T00:00:00Z"}

    living = await read(http, "/services/data/v59.0/query", **query)
    everything = await read(http, "/services/data/v59.0/queryAll", **query)

    assert not any(record["IsDeleted"] for record in living["records"])
    assert living["totalSize"] < everything["totalSize"] == 320


async def test_a_smaller_batch_continues_by_its_locator(http):
    query = {"q": "SELECT Id FROM Lead"}
    headers = {**AUTH, "Sforce-Query-Options": "batchSize=200"}
    async with http.get("/services/data/v59.0/query", params=query, headers=headers) as answer:
        first = await answer.json()

    second = await read(http, first["nextRecordsUrl"])

    assert (len(first["records"]), first["done"]) == (200, False)
    assert second["done"] is True
    assert len(first["records"]) + len(second["records"]) == first["totalSize"]


async def test_pages_are_found_by_their_last_edit(connect):
    notes = connect("workspace-notes")

    newest = (await notes.execute("pages", "list", {"page_size": 100})).decoded()

    edits = [page["last_edited_time"] for page in newest]
    assert edits == sorted(edits, reverse=True)


async def test_messages_are_filtered_by_time(connect):
    chat = connect("team-chat")
    messages = (await chat.execute("channel_messages", "list", {"channel": "C00000001"})).decoded()
    bound = messages[3]["ts"]

    after = await chat.execute("channel_messages", "list", {"channel": "C00000001", "oldest": bound})
    with_it = await chat.execute(
        "channel_messages", "list", {"channel": "C00000001", "oldest": bound, "inclusive": True}
    )

    assert after.decoded() == messages[:3]
    assert with_it.decoded() == messages[:4]


async def test_tasks_are_found_by_their_last_change(connect):
    work = connect("work-management")
    project = (await work.execute("projects", "list", {"limit": 1})).decoded()[0]["gid"]
    asked = {"project": project, "opt_fields": "modified_at"}
    times = sorted(task["modified_at"] for task in (await work.execute("tasks", "list", asked)).decoded())

    found = await work.execute("tasks", "list", {**asked, "modified_since": times[5]})

    assert sorted(task["modified_at"] for task in found.decoded()) == times[5:]


async def test_incidents_are_found_by_their_last_change(http):
    everything = await read(http, "/v2/incidents", page_size=250)
    bound = sorted(incident["updated_at"] for incident in everything["incidents"])[50]

    found = await read(http, "/v2/incidents", page_size=250, **{"updated_at[gte]": bound})

    assert all(incident["updated_at"] >= bound for incident in found["incidents"])
    assert len(found["incidents"]) == len(everything["incidents"]) - 50 == 200


async def test_lists_include_incidents_and_users_that_the_application_omits_by_default(http, connect):
    incidents = connect("incident-management")

    modes = {each["mode"] for each in (await incidents.execute("incidents", "list", {"page_size": 250})).decoded()}
    users = (await incidents.execute("users", "list", {"page_size": 100})).decoded()

    assert modes == {"standard", "retrospective", "test", "tutorial"}
    assert len(users) == 60
    assert {each["mode"] for each in (await read(http, "/v2/incidents"))["incidents"]} == {"standard"}
    assert len((await read(http, "/v2/users", page_size=100))["users"]) == 57


async def test_a_record_can_be_changed_created_and_removed_as_by_users_of_the_application(http, connect):
    crm, address = connect("incident-management"), "/_sandbox/records/incident-management/incidents/new"

    async with http.put(address, json={"name": "Made"}) as made:
        assert made.status == 200
    created = (await crm.execute("incidents", "get", {"id": "new"})).decoded()["name"]
    await (await http.put(address, json={"name": "Changed"})).release()
    changed = (await crm.execute("incidents", "get", {"id": "new"})).decoded()["name"]
    await (await http.delete(address)).release()

    assert (created, changed) == ("Made", "Changed")
    with pytest.raises(UpstreamNotFound):
        await crm.execute("incidents", "get", {"id": "new"})


async def test_the_id_of_a_created_record_has_the_tables_type(http, connect):
    async with http.put("/_sandbox/records/support-desk/tickets/987654", json={"subject": "Made"}) as made:
        assert made.status == 200

    ticket = (await connect("support-desk").execute("tickets", "get", {"ticket_id": 987654})).decoded()

    assert (ticket["id"], ticket["subject"]) == (987654, "Made")


async def test_a_record_has_the_list_that_the_synchronizer_reads_in_it(connect):
    mailbox = connect("gmail")
    threads = (await mailbox.execute("threads", "list", {"maxResults": 1})).decoded()

    thread = (await mailbox.execute("threads", "get", {"threadId": threads[0]["id"]})).decoded()

    assert thread["id"] == threads[0]["id"]
    assert {"id", "threadId", "labelIds"} <= thread["messages"][0].keys()


async def test_a_query_member_with_the_name_of_an_object_filters_no_records(connect):
    found = await connect("jira").execute("issues", "api_search", {"jql": "key = A-1", "fields": "summary"})

    assert found.decoded()
