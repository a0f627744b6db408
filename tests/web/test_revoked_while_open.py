"""Streams, waits and transfers that are open while their token is revoked or their client loses a right: they end
within a second, and show nothing that happened since.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from aiohttp import web

from gateway.access.identity.tokens import hashed
from gateway.web.streaming import stream
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, headers_of
from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.sandbox import faults, received_requests
from tests.harness.waiting import PATIENCE, eventually
from tests.web.belongings import token_of
from tests.web.test_routes import noted

ACME = {"subdomain": "acme"}


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
        setting.revoked.session.get("/api/v1/events/stream", headers=setting.revoked.headers) as followed,
    ):
        await followed.content.readuntil(b"event: connector.created\n")
        await followed.content.readuntil(b"\n\n")
        await front.services.identity.disable_client(setting.revoked_id)
        await setting.other.connector()
        rest = await followed.content.read()

    assert b"connector.created" not in rest


async def test_an_agents_stream_of_events_ends_with_the_reason(front: FrontEnd, setting: Setting):
    params = {"name": "connector.created", "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 7, "method": "events/stream", "params": params}
    headers = {**setting.revoked.headers, **headers_of("events/stream", params)}

    async with (
        asyncio.timeout(PATIENCE),
        setting.revoked.session.post("/mcp", json=document, headers=headers) as followed,
    ):
        await followed.content.readuntil(b"notifications/events/active")
        await followed.content.readuntil(b"\n\n")
        await front.services.identity.disable_client(setting.revoked_id)
        await setting.other.connector()
        lines = (await followed.content.read()).decode().splitlines()

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
        setting.revoked.session.get(f"{path}/events", headers=setting.revoked.headers) as followed,
    ):
        await followed.content.readuntil(b"event: status\n")
        await followed.content.readuntil(b"\n\n")
        await front.services.identity.disable_client(setting.revoked_id)
        await setting.other.post(f"{path}/cancel")
        rest = await followed.content.read()

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


async def _disable(front: FrontEnd, setting: Setting) -> None:
    await front.services.identity.disable_client(setting.revoked_id)


async def _end_token(front: FrontEnd, setting: Setting) -> None:
    token = hashed(setting.revoked.headers["Authorization"].removeprefix("Bearer "))
    await front.services.identity.revoke_token(token, setting.revoked_id)


ENDS = [_disable, _end_token]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "path", ["/api/v1/events/stream", "/api/v1/jobs/{job}/events", "/api/v1/events?after={last}&wait=60"]
)
async def test_what_waits_ends_without_another_event(front: FrontEnd, setting: Setting, path: str, end):
    connector = await setting.other.connector()
    job = await connector.submit("tickets", "list", {})
    last = (await setting.other.get("/api/v1/events?limit=1000")).document()["next_cursor"]
    where = path.format(job=job["id"], last=last)

    async def read() -> bytes:
        async with setting.revoked.session.get(where, headers=setting.revoked.headers) as response:
            return await response.read()

    reading = asyncio.create_task(read())
    await eventually(lambda: front.services.standing.held_requests == 1)
    await end(front, setting)

    async with asyncio.timeout(1):
        await reading


@pytest.mark.parametrize("end", ENDS)
async def test_a_download_is_aborted(front: FrontEnd, setting: Setting, end):
    connector = await setting.other.connector()

    async with faults(front.sandbox_url, path_prefix="/attachments/") as fault:
        await fault(stall_after_bytes=100)
        path = f"{connector.path}/download/attachments?attachment_id=1"
        async with setting.revoked.session.get(path, headers=setting.revoked.headers) as response:
            await response.content.readexactly(100)
            await end(front, setting)
            with pytest.raises(aiohttp.ClientError):
                async with asyncio.timeout(1):
                    await response.content.read()

    assert (await noted(setting.other, "attachments.download"))["outcome"] == "unauthorized"


async def endless(request: web.Request) -> web.StreamResponse:
    """Lines without an end, as a long export has."""

    async def lines() -> AsyncIterator[bytes]:
        yield b"{}\n"
        await asyncio.Event().wait()

    return await stream(request, lines(), "application/x-ndjson")


async def test_a_stream_of_lines_is_aborted(tmp_path: Path, database_url: str, redis_url: str):
    async with front_end(tmp_path, database_url, redis_url, [web.get("/endless", endless)]) as front:
        client_id, secret = await front.client()
        async with (
            Api.of(front.base_url, client_id, secret) as api,
            api.session.get("/endless", headers=api.headers) as response,
        ):
            assert await response.content.readline() == b"{}\n"
            await front.services.identity.disable_client(UUID(client_id))
            with pytest.raises(aiohttp.ClientError):
                async with asyncio.timeout(1):
                    await response.content.read()


async def test_an_upload_ends_before_the_application_has_the_file(front: FrontEnd, setting: Setting):
    desk = await setting.other.connector("jira", {"username": "ada@example.com", "password": "t"}, environment=ACME)
    begun = asyncio.Event()

    async def file() -> AsyncIterator[bytes]:
        for number in range(10_000):
            yield b"x" * 1000
            await asyncio.sleep(0.01)  # a caller with a slow connection
            if number == 10:
                begun.set()

    path, query = f"{desk.path}/upload/issue_attachments", {"issueIdOrKey": "ACME-7", "filename": "x"}
    headers = {"Content-Length": str(10_000_000), "Content-Type": "text/plain"}
    uploading = asyncio.create_task(setting.revoked.call("POST", path, params=query, data=file(), headers=headers))
    await begun.wait()
    await _end_token(front, setting)
    async with asyncio.timeout(PATIENCE):
        refused = await uploading

    assert (refused.status, refused.json()["code"]) == (401, "unauthorized")
    assert not [each for each in await received_requests(front.sandbox_url) if each["path"].endswith("/attachments")]


@pytest.mark.parametrize(
    ("path", "media_type", "body"),
    [
        ("execute", "application/json", {"entity": "tickets", "action": "delete", "params": {"ticket_id": 1}}),
        ("batch", "application/json", {"operations": [{"entity": "users", "action": "list", "params": {}}]}),
        ("batch", "application/x-ndjson", {"entity": "users", "action": "list", "params": {}}),
    ],
)
async def test_a_request_whose_body_has_not_arrived_does_nothing(
    front: FrontEnd, setting: Setting, path: str, media_type: str, body: dict
):
    desk, sent = await setting.other.connector(), json.dumps(body).encode()
    begun, is_revoked = asyncio.Event(), asyncio.Event()

    async def late() -> AsyncIterator[bytes]:
        yield sent[:20]
        begun.set()
        await is_revoked.wait()
        yield sent[20:]

    headers = {"Content-Length": str(len(sent)), "Content-Type": media_type}
    sending = asyncio.create_task(setting.revoked.call("POST", f"{desk.path}/{path}", data=late(), headers=headers))
    await begun.wait()
    await eventually(lambda: front.limits.requests.in_use == 1)
    await _end_token(front, setting)
    if media_type == "application/x-ndjson":  # lines are checked when the last one has arrived
        is_revoked.set()
    async with asyncio.timeout(PATIENCE):
        refused = await sending

    deleted = [each for each in await received_requests(front.sandbox_url) if each["method"] == "DELETE"]
    assert refused.document(401)["code"] == "unauthorized"
    assert (await setting.other.get("/api/v1/jobs")).document()["data"] == []
    assert deleted == []


async def test_a_stream_of_events_ends_when_its_client_may_see_less(front: FrontEnd):
    organization_id = await front.organization()
    async with front.api(organization_id) as administrator:
        rights = {"scopes": ["read"], "workspaces": None}
        await administrator.call("PUT", "/api/v1/groups/support", json=rights)
        person = (await administrator.post("/api/v1/people", {"name": "Ada", "groups": ["support"]})).document(201)
        headers = {"Authorization": f"Bearer {await token_of(front, person)}"}
        async with (
            asyncio.timeout(PATIENCE),
            administrator.session.get("/api/v1/events/stream", headers=headers) as followed,
        ):
            await administrator.connector(name="First")
            await followed.content.readuntil(b"event: connector.created\n")
            await administrator.call("PUT", "/api/v1/groups/support", json={**rights, "scopes": ["read", "write"]})
            await administrator.connector(name="Second")
            await followed.content.readuntil(b'"Second"')
            await followed.content.readuntil(b"\n\n")
            await administrator.call("PUT", "/api/v1/groups/support", json={**rights, "workspaces": ["acme"]})
            await administrator.connector(name="Third")
            rest = await followed.content.read()

    assert b"connector.created" not in rest
