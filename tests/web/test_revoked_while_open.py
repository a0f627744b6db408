"""Streams and waits that are open while their token is revoked: they end, and show nothing that happened since."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from tests.agents.mcp.conftest import CAPABILITIES, VERSION, headers_of
from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import PATIENCE, eventually


@dataclass(frozen=True)
class Setting:
    """A client whose token will be revoked, and another of the same organization."""

    revoked: Api
    revoked_id: UUID
    other: Api


@pytest.fixture
async def setting(front: FrontEnd) -> AsyncIterator[Setting]:
    organization_id = await front.organization()
    client_id, secret = await front.client(organization_id)
    async with (
        Api.of(front.base_url, client_id, secret) as revoked,
        front.api(organization_id) as other,
    ):
        yield Setting(revoked, UUID(client_id), other)


async def test_a_stream_of_events_ends(front: FrontEnd, setting: Setting):
    await setting.other.connector()

    async with (
        asyncio.timeout(PATIENCE),
        setting.revoked.session.get("/api/v1/events/stream", headers=setting.revoked.headers) as stream,
    ):
        await stream.content.readuntil(b"event: connector.created\n")
        await stream.content.readuntil(b"\n\n")
        await front.services.identity.disable_client(setting.revoked_id)
        await setting.other.connector()
        rest = await stream.content.read()

    assert b"connector.created" not in rest


async def test_an_agents_stream_of_events_ends_with_the_reason(front: FrontEnd, setting: Setting):
    params = {"name": "connector.created", "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/stream", "params": params}
    headers = {**setting.revoked.headers, **headers_of("events/stream", params)}

    async with (
        asyncio.timeout(PATIENCE),
        setting.revoked.session.post("/mcp", json=document, headers=headers) as stream,
    ):
        await stream.content.readuntil(b"notifications/events/active")
        await stream.content.readuntil(b"\n\n")
        await front.services.identity.disable_client(setting.revoked_id)
        await setting.other.connector()
        lines = (await stream.content.read()).decode().splitlines()

    rest = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    ended = [each["params"]["error"] for each in rest if each.get("method") == "notifications/events/terminated"]
    assert [each["data"]["reason"] for each in ended] == ["the client was disabled"]
    assert not [each for each in rest if each.get("method") == "notifications/events/event"]


@pytest.mark.parametrize("is_agents", [False, True])
async def test_a_stream_of_events_ends_when_its_client_may_see_fewer_workspaces(
    front: FrontEnd, setting: Setting, sql: Callable[..., Any], is_agents: bool
):
    params = {"name": "connector.created", "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/stream", "params": params}
    headers = {**setting.revoked.headers, **(headers_of("events/stream", params) if is_agents else {})}
    method, path, body = ("POST", "/mcp", document) if is_agents else ("GET", "/api/v1/events/stream", None)

    async with (
        asyncio.timeout(PATIENCE),
        setting.revoked.session.request(method, path, json=body, headers=headers) as stream,
    ):
        await stream.content.readuntil(b"\n\n")
        await eventually(lambda: front.services.events.feed.waits.total == 1)
        await sql("UPDATE clients SET workspaces = '{one}' WHERE id = $1", setting.revoked_id)
        await setting.other.connector(workspace_name="two")
        rest = await stream.content.read()

    assert b"connector.created" not in rest
    assert b"terminated" not in rest
    assert (b'"result"' in rest) is is_agents


async def test_a_stream_of_a_job_ends(front: FrontEnd, setting: Setting):
    connector = await setting.other.connector()
    path = f"/api/v1/jobs/{(await connector.submit('tickets', 'list', {}))['id']}"

    async with (
        asyncio.timeout(PATIENCE),
        setting.revoked.session.get(f"{path}/events", headers=setting.revoked.headers) as stream,
    ):
        await stream.content.readuntil(b"event: status\n")
        await stream.content.readuntil(b"\n\n")
        await front.services.identity.disable_client(setting.revoked_id)
        await setting.other.post(f"{path}/cancel")
        rest = await stream.content.read()

    assert b"event:" not in rest


@pytest.mark.parametrize("end", ["", "/result"])
async def test_a_wait_for_a_job_is_refused(front: FrontEnd, setting: Setting, end: str):
    connector = await setting.other.connector()
    path = f"/api/v1/jobs/{(await connector.submit('tickets', 'list', {}))['id']}"
    waiting = asyncio.create_task(setting.revoked.get(f"{path}{end}?wait=60"))
    assert await eventually(lambda: front.services.jobs.waiters.waits.total == 1)

    await front.services.identity.disable_client(setting.revoked_id)
    await setting.other.post(f"{path}/cancel")

    async with asyncio.timeout(PATIENCE):
        refused = await waiting
    assert (refused.status, refused.json()["code"]) == (401, "unauthorized")
