"""Events and webhooks over HTTP."""

import asyncio
import json
from uuid import uuid4

import pytest

from tests.harness.in_process import front_end
from tests.harness.waiting import eventually

EVENTS, WEBHOOKS = "/api/v1/events", "/api/v1/webhooks"
WEBHOOK = {"url": "https://app.example.com/hooks", "types": ["record.*"], "description": "records"}


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url, redis_url, receiver):
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, webhook_origins=(receiver.url,)) as opened:
        yield opened


async def test_a_new_connector_is_an_event(api, support_desk):
    page = (await api.get(EVENTS)).document()

    (event,) = page["data"]
    assert (event["type"], event["connector_id"]) == ("connector.created", support_desk.record["id"])
    assert event["data"]["workspace_name"] == support_desk.record["workspace_name"]
    assert (page["next_cursor"], page["latest_id"]) == (str(event["id"]), event["id"])


async def test_the_feed_is_read_by_cursor_type_and_connector(api):
    first, second = await api.connector(), await api.connector()
    await api.call("DELETE", f"/api/v1/integrations/connectors/{first.record['id']}")

    page = (await api.get(EVENTS, params={"limit": "2"})).document()
    rest = (await api.get(EVENTS, params={"after": page["next_cursor"]})).document()
    created = (await api.get(EVENTS, params={"types": "connector.created,job.*"})).document()
    of_second = (await api.get(EVENTS, params={"connector_id": second.record["id"]})).document()

    assert [event["type"] for event in page["data"] + rest["data"]] == [
        "connector.created", "connector.created", "connector.deleted",
    ]  # fmt: skip
    assert [event["type"] for event in created["data"]] == ["connector.created", "connector.created"]
    assert [event["connector_id"] for event in of_second["data"]] == [second.record["id"]]


async def test_a_long_poll_ends_with_the_first_event(api, support_desk):
    latest = (await api.get(EVENTS)).document()["latest_id"]
    waiting = asyncio.create_task(api.get(EVENTS, params={"after": str(latest), "wait": "30"}))

    await api.connector()

    assert len((await asyncio.wait_for(waiting, 20)).document()["data"]) == 1


async def test_events_of_another_organization_are_not_shown(front, api, support_desk):
    async with front.api() as other:
        assert (await other.get(EVENTS)).document()["data"] == []


async def test_a_stream_resumes_after_the_last_event_id(api):
    await api.connector()
    await api.connector()

    first = await streamed(api, 1)
    rest = await streamed(api, 1, {"Last-Event-ID": str(first[0]["id"])})

    assert [event["type"] for event in first + rest] == ["connector.created"] * 2
    assert rest[0]["id"] > first[0]["id"]


async def test_idle_streams_and_polls_are_no_work_when_load_is_shed(front, api):
    """Otherwise the streams of one organization would make the calls of others 503."""
    first = (await api.get(EVENTS)).document()["next_cursor"]
    idle = front.services.events.feed
    polls = [asyncio.ensure_future(api.get(EVENTS, params={"wait": 60, "after": first})) for _ in range(3)]
    async with api.session.get(f"{EVENTS}/stream", headers=api.headers, params={"after": first}):
        await eventually(lambda: idle.waits.total == 4, within=20)
        assert front.limits.at_work == front.limits.in_progress - 4
        for poll in polls:
            poll.cancel()

    await eventually(lambda: idle.waits.total == 0, within=20)


async def test_an_empty_last_event_id_is_ignored(api):
    await api.connector()

    assert await streamed(api, 1, {"Last-Event-ID": ""}) == await streamed(api, 1)


async def streamed(api, count, headers=None):
    """The first events of the stream."""
    events = []
    async with (
        asyncio.timeout(20),
        api.session.get(f"{EVENTS}/stream", headers={**api.headers, **(headers or {})}) as response,
    ):
        assert response.headers["Content-Type"] == "text/event-stream"
        async for line in response.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line.removeprefix(b"data: ")))
            if len(events) == count:
                return events
    raise AssertionError("the stream ended")


@pytest.mark.parametrize("path", [EVENTS, f"{EVENTS}/stream"])
async def test_a_cursor_that_is_too_old_says_where_the_feed_begins(front, api, support_desk, path):
    await api.connector()
    organization_id = (await front.services.identity.organizations())[-1].id
    async with front.services.database.system() as connection:
        await connection.execute("UPDATE event_feeds SET pruned_id = 0")
    assert (await api.get(EVENTS)).status == 200
    async with front.services.database.tenant(organization_id) as connection:
        await connection.execute("DELETE FROM events WHERE last_id = 1")
        await connection.execute("UPDATE event_feeds SET pruned_id = 1 WHERE organization_id = $1", organization_id)

    refusal = await api.get(path, params={"after": "0"})

    assert (refusal.status, refusal.json()["code"], refusal.json()["begins_after"]) == (410, "cursor_expired", 1)


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"types": "job.ended"}, 422), ({"after": "99"}, 422), ({"after": "-1"}, 422), ({"wait": "301"}, 422),
        ({"limit": "0"}, 422), ({"connector_id": "x"}, 422), ({"since": "1"}, 422),
    ],
)  # fmt: skip
async def test_an_invalid_query_is_refused(api, params, status):
    assert (await api.get(EVENTS, params=params)).status == status


async def test_a_webhook_is_created_changed_and_deleted(api):
    created = (await api.post(WEBHOOKS, WEBHOOK)).document(201)
    path = f"{WEBHOOKS}/{created['id']}"

    assert created.pop("secret").startswith("whsec_")
    assert created["types"] == ["record.created", "record.updated", "record.deleted"]
    assert (await api.get(path)).document() == created
    assert (await api.get(WEBHOOKS)).document() == {"data": [created], "next_cursor": None}

    changed = (
        await api.call("PATCH", path, json={"types": ["job.*"], "description": None, "status": "disabled"})
    ).document()
    assert (changed["description"], changed["status"], changed["status_reason"]) == (
        None, "disabled", "disabled by its owner",
    )  # fmt: skip
    rotated = (await api.post(f"{path}/rotate")).document()
    assert rotated["secret"].startswith("whsec_")
    assert (await api.get(f"{path}/deliveries")).document() == {"data": [], "next_cursor": None}
    assert (await api.post(f"{path}/replay", {"after": 0})).status == 202

    assert (await api.call("DELETE", path)).status == 204
    assert (await api.get(path)).status == 404


async def test_a_test_event_returns_the_receivers_response(api):
    created = (await api.post(WEBHOOKS, {**WEBHOOK, "url": "https://receiver.invalid/"})).document(201)

    tried = (await api.post(f"{WEBHOOKS}/{created['id']}/test")).document()

    assert (tried["delivered"], tried["response_status"]) == (False, None)
    assert "receiver.invalid cannot be reached" in tried["error"]


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://app.example.com/"}, {"url": "https://127.0.0.1/"}, {"types": []}, {"types": ["jobs"]},
        {"types": None}, {"events": ["job.*"]}, {"connector_id": "x"}, {"include_record": "yes"},
    ],
)  # fmt: skip
async def test_an_invalid_webhook_is_refused(api, change):
    assert (await api.post(WEBHOOKS, {**WEBHOOK, **change})).status == 422


async def test_a_webhook_for_an_inaccessible_connector_is_refused(front, api, support_desk):
    created = (await api.post(WEBHOOKS, WEBHOOK)).document(201)
    async with front.api() as other:
        for_others = await other.post(WEBHOOKS, {**WEBHOOK, "connector_id": support_desk.record["id"]})
    for_none = await api.call("PATCH", f"{WEBHOOKS}/{created['id']}", json={"connector_id": str(uuid4())})

    assert [answer.status for answer in (for_others, for_none)] == [404, 404]


async def test_pages_of_webhooks_follow_the_cursor(api):
    ids = [(await api.post(WEBHOOKS, WEBHOOK)).document(201)["id"] for _ in range(3)]

    first = (await api.get(WEBHOOKS, params={"limit": "2"})).document()
    second = (await api.get(WEBHOOKS, params={"limit": "2", "cursor": first["next_cursor"]})).document()

    assert [each["id"] for each in first["data"] + second["data"]] == ids[::-1]


async def test_another_organization_s_webhook_does_not_exist(front, api):
    created = (await api.post(WEBHOOKS, WEBHOOK)).document(201)
    path = f"{WEBHOOKS}/{created['id']}"
    async with front.api() as other:
        nothing = (await other.get(f"{WEBHOOKS}/{uuid4()}")).json()
        for answer in (
            await other.get(path),
            await other.call("PATCH", path, json={"description": "mine"}),
            await other.post(f"{path}/rotate"),
            await other.post(f"{path}/test"),
            await other.get(f"{path}/deliveries"),
            await other.post(f"{path}/replay", {"after": 0}),
            await other.call("DELETE", path),
        ):
            assert (answer.status, answer.json()["detail"]) == (404, nothing["detail"])
    assert (await api.get(path)).status == 200


async def test_a_client_with_the_scope_read_cannot_create_a_webhook(front):
    async with front.api(scopes=["read"]) as reader:
        assert (await reader.post(WEBHOOKS, WEBHOOK)).status == 403
        assert (await reader.get(WEBHOOKS)).status == 200


async def test_only_an_administrator_changes_a_callback(front, receiver):
    organization_id = await front.organization()
    async with front.api(organization_id) as api, front.api(organization_id, ("read", "write")) as writer:
        await _assert_only_changed_by_an_administrator(api, writer, receiver)


async def _assert_only_changed_by_an_administrator(api, writer, receiver):
    client = (await api.get("/api/v1/clients")).document()["data"][0]
    await api.call("PATCH", f"/api/v1/clients/{client['id']}", json={"callback_urls": [f"{receiver.url}/jobs"]})
    [callback] = (await api.get(WEBHOOKS)).document()["data"]
    assert callback["is_callback"]
    at = f"{WEBHOOKS}/{callback['id']}"
    changes = [
        ("PATCH", at, {"url": f"{receiver.url}/elsewhere"}),
        ("PATCH", at, {"status": "disabled"}),
        ("POST", f"{at}/rotate", None),
        ("DELETE", at, None),
    ]

    refused = {(await writer.call(method, url, json=body)).status for method, url, body in changes}
    seen = (await writer.get(at)).status
    allowed = [(await api.call(method, url, json=body)).status for method, url, body in changes]

    assert (refused, seen) == ({403}, 200)
    assert allowed == [200, 200, 200, 204]


async def test_the_end_of_a_job_is_delivered_to_the_callback_url_of_its_call(
    front, api, support_desk, receiver, deliveries
):
    [client] = (await api.get("/api/v1/clients")).document()["data"]
    path, url = f"/api/v1/clients/{client['id']}", f"{receiver.url}/jobs"
    registered = (await api.call("PATCH", path, json={"callback_urls": [url]})).document()
    receiver.secrets["/jobs"] = registered["webhook_secret"]
    again = (await api.call("PATCH", path, json={"callback_urls": [url, f"{receiver.url}/more"]})).document()
    assert (again["callback_urls"], again["webhook_secret"]) == ([url, f"{receiver.url}/more"], None)

    execute = f"/api/v1/integrations/connectors/{support_desk.record['id']}/execute"
    call = {"entity": "tickets", "action": "list"}
    async_ = {"Prefer": "respond-async"}
    named = (await api.post(execute, {**call, "callback_url": url}, headers=async_)).document(202)["job"]
    batch = (await api.post(execute.replace("execute", "batch"), {"operations": [call], "callback_url": url})).document(
        202
    )["job"]
    other = (await api.post(execute, call, headers=async_)).document(202)["job"]
    for job in (named, batch, other):
        assert (await api.post(f"/api/v1/jobs/{job['id']}/cancel")).status == 202

    await eventually(lambda: len(receiver.received["/jobs"]) == 2, within=20)
    assert {event["data"]["job_id"] for event in receiver.received["/jobs"]} == {named["id"], batch["id"]}
    assert {event["type"] for event in receiver.received["/jobs"]} == {"job.canceled"}
    assert receiver.ids["/more"] == []


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("execute", {"entity": "tickets", "action": "list"}),
        ("batch", {"operations": [{"entity": "tickets", "action": "list"}]}),
    ],
)
async def test_a_repeated_call_with_another_callback_url_is_another_body(api, support_desk, receiver, path, call):
    [client] = (await api.get("/api/v1/clients")).document()["data"]
    named = {**call, "callback_url": f"{receiver.url}/jobs"}
    await api.call("PATCH", f"/api/v1/clients/{client['id']}", json={"callback_urls": [named["callback_url"]]})
    headers = {"Prefer": "respond-async", "Idempotency-Key": "k"}

    first, again, other = [
        await api.post(f"{support_desk.path}/{path}", body, headers=headers) for body in (named, named, call)
    ]

    assert first.document(202)["job"]["id"] == again.document(202)["job"]["id"]
    assert (other.status, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_a_callback_that_is_not_registered_is_refused(api, support_desk):
    execute = f"/api/v1/integrations/connectors/{support_desk.record['id']}/execute"
    call = {"entity": "tickets", "action": "list", "callback_url": "https://app.example.com/jobs"}

    refusal = await api.post(execute, call, headers={"Prefer": "respond-async"})

    assert (refusal.status, refusal.json()["errors"][0]["field"]) == (422, "callback_url")


@pytest.mark.parametrize("url", ["http://app.example.com/", "https://127.0.0.1/", "nonsense"])
async def test_a_callback_url_that_is_not_public_is_not_registered(api, url):
    [client] = (await api.get("/api/v1/clients")).document()["data"]

    assert (await api.call("PATCH", f"/api/v1/clients/{client['id']}", json={"callback_urls": [url]})).status == 422
