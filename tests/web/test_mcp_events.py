"""Events over the Model Context Protocol (SEP-3415): listed, polled and streamed from the organization's feed."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from gateway.access.identity.model import Scope
from gateway.contract.events import EventType
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, Raw, headers_of
from tests.harness.caller import Api
from tests.harness.waiting import eventually

EVENTS, SUBSCRIPTION = "io.modelcontextprotocol/events", "io.modelcontextprotocol/subscriptionId"
CREATED = {"name": "connector.created"}


@pytest.fixture
async def mcp(front, api) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(headers=api.headers) as session:
        yield Raw(session, f"{front.base_url}/mcp")


@pytest.fixture
async def cursor(mcp):
    """The position of the feed now."""
    return (await mcp("events/poll", CREATED)).result["cursor"]


async def streamed(api, url, count, **subscription):
    """The first notifications of a stream."""
    params = {**CREATED, **subscription, "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/stream", "params": params}
    headers = {**api.headers, **headers_of("events/stream", params)}
    found = []
    async with (
        asyncio.timeout(30),
        aiohttp.ClientSession() as session,
        session.post(url, json=document, headers=headers) as response,
    ):
        assert response.content_type == "text/event-stream"
        async for line in response.content:
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
            if len(found) == count:
                break
    return found


async def test_the_server_declares_the_extension_and_lists_its_event_types(mcp):
    discovered = (await mcp("server/discover")).result
    listed = (await mcp("events/list")).result

    assert discovered["capabilities"]["extensions"][EVENTS] == {}
    assert [each["name"] for each in listed["events"]] == list(EventType)
    assert listed["resultType"] == "complete"
    record = next(each for each in listed["events"] if each["name"] == "record.updated")
    assert record["delivery"] == ["poll", "push", "webhook"]
    assert set(record["inputSchema"]["properties"]) == {"connector_id", "entity"}
    assert set(record["payloadSchema"]["properties"]) == {"connector_id", "entity", "record_id"}


async def test_a_poll_without_a_cursor_begins_now_and_the_next_has_the_events_since(mcp, api, support_desk):
    first = (await mcp("events/poll", CREATED)).result
    connectors = [(await api.connector()).record["id"] for _ in range(3)]
    part = (await mcp("events/poll", {**CREATED, "cursor": first["cursor"], "maxEvents": 2})).result
    rest = (await mcp("events/poll", {**CREATED, "cursor": part["cursor"]})).result
    nothing = (await mcp("events/poll", {**CREATED, "cursor": rest["cursor"]})).result

    assert (first["events"], first["hasMore"], first["truncated"]) == ([], False, False)
    assert (part["hasMore"], rest["hasMore"], nothing["events"]) == (True, False, [])
    found = part["events"] + rest["events"]
    assert [each["data"]["connector_id"] for each in found] == connectors
    assert {
        (each["name"], set(each)) == ("connector.created", {"eventId", "name", "timestamp", "data"}) for each in found
    } == {True}
    assert nothing["cursor"] == rest["cursor"]


async def test_arguments_filter_the_events_of_a_poll(mcp, api, cursor):
    first, second = await api.connector(), await api.connector()
    wanted = {**CREATED, "cursor": cursor, "arguments": {"connector_id": second.record["id"]}}

    found = (await mcp("events/poll", wanted)).result["events"]

    assert [each["data"]["connector_id"] for each in found] == [second.record["id"]] != [first.record["id"]]


async def test_events_older_than_the_age_are_skipped_and_it_says_so(mcp, api, cursor):
    await api.connector()
    old = (await mcp("events/poll", {**CREATED, "cursor": cursor, "maxAgeMs": 0})).result
    new = (await mcp("events/poll", {**CREATED, "cursor": cursor, "maxAgeMs": 600_000})).result

    assert (old["events"], old["truncated"]) == ([], True)
    assert (len(new["events"]), new["truncated"]) == (1, False)


async def test_a_cursor_of_deleted_events_continues_at_the_oldest_event(front, mcp, api, cursor):
    await api.connector()
    kept = await api.connector()
    organization_id = (await front.services.identity.organizations())[-1].id
    newest = (await mcp("events/poll", CREATED)).result["cursor"]
    async with front.services.database.tenant(organization_id) as connection:
        await connection.execute("DELETE FROM events WHERE last_id < $1", int(newest))
        await connection.execute(
            "UPDATE event_feeds SET pruned_id = $2 WHERE organization_id = $1", organization_id, int(newest) - 1
        )

    polled = (await mcp("events/poll", {**CREATED, "cursor": cursor})).result
    active, event = await streamed(api, mcp.url, 2, cursor=cursor)

    assert [each["data"]["connector_id"] for each in polled["events"]] == [kept.record["id"]]
    assert polled["truncated"] is True
    assert (active["params"]["truncated"], event["params"]["data"]["connector_id"]) == (True, kept.record["id"])


async def test_a_cursor_beyond_the_newest_event_continues_at_it_and_says_so(mcp, api, cursor):
    polled = (await mcp("events/poll", {**CREATED, "cursor": "99999"})).result
    stream = asyncio.create_task(streamed(api, mcp.url, 2, cursor="99999"))
    connector = await api.connector()
    later = (await mcp("events/poll", {**CREATED, "cursor": polled["cursor"]})).result

    assert (polled["cursor"], polled["events"], polled["truncated"]) == (cursor, [], True)
    assert [each["data"]["connector_id"] for each in later["events"]] == [connector.record["id"]]
    assert (await stream)[0]["params"]["truncated"] is True


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "email.received"}, -32023),
        ({}, -32602),
        ({**CREATED, "arguments": {"folder": "inbox"}}, -32602),
        ({**CREATED, "arguments": {"connector_id": "x"}}, -32602),
        ({**CREATED, "arguments": []}, -32602),
        ({**CREATED, "cursor": "x"}, -32602),
        ({**CREATED, "cursor": 1}, -32602),
        ({**CREATED, "maxAgeMs": -1}, -32602),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["events/poll", "events/stream"])
async def test_a_subscription_that_is_not_valid_is_an_error_and_no_stream(mcp, method, params, code):
    assert (await mcp(method, params)).code == code


async def test_a_client_that_reads_no_stream_is_refused_instead_of_waiting(mcp):
    refused = await mcp("events/stream", CREATED, headers={"Accept": "application/json"})

    assert (refused.code, "text/event-stream" in refused.document["error"]["message"]) == (-32602, True)


async def test_a_client_without_the_scope_is_forbidden(front):
    client_id, secret = await front.client(scopes=[Scope.ADMIN])
    async with (
        Api.of(front.base_url, client_id, secret) as api,
        aiohttp.ClientSession(headers=api.headers) as session,
    ):
        answer = await Raw(session, f"{front.base_url}/mcp")("events/poll", CREATED)

    assert (answer.code, answer.status) == (-32024, 200)


async def test_events_of_another_organization_are_not_shown(front, mcp, cursor):
    async with front.api() as other:
        await other.connector()

    assert (await mcp("events/poll", {**CREATED, "cursor": cursor})).result["events"] == []


async def test_a_stream_begins_with_its_confirmation_followed_by_events(mcp, api, cursor):
    before = await api.connector()
    stream = asyncio.create_task(streamed(api, mcp.url, 3, cursor=cursor))
    after = await api.connector()

    active, *events = await stream

    assert (active["method"], active["params"]["cursor"]) == ("notifications/events/active", cursor)
    assert active["params"]["truncated"] is False
    assert [each["method"] for each in events] == ["notifications/events/event"] * 2
    assert [each["params"]["data"]["connector_id"] for each in events] == [before.record["id"], after.record["id"]]
    assert {each["params"]["_meta"][SUBSCRIPTION] for each in (active, *events)} == {7}
    assert events[-1]["params"]["cursor"] == events[-1]["params"]["eventId"]


async def test_a_stream_without_a_cursor_begins_now(mcp, api, support_desk):
    (active,) = await streamed(api, mcp.url, 1)

    assert active["params"]["cursor"] == (await mcp("events/poll", CREATED)).result["cursor"]


async def test_a_client_ends_its_stream_by_closing_the_connection(front, api, mcp):
    feed = front.services.events.feed
    params = {**CREATED, "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/stream", "params": params}
    async with (
        aiohttp.ClientSession(headers={**api.headers, **headers_of("events/stream", params)}) as session,
        session.post(mcp.url, json=document) as response,
    ):
        await response.content.readuntil(b"\n\n")
        await eventually(lambda: feed.waits.total == 1)

    await eventually(lambda: feed.waits.total == 0)
