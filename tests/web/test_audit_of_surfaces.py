"""Every surface leaves the same audit entry for the same action: the API, the console, and both kinds of MCP tools."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from gateway.kinds.find.entries import entry_of
from gateway.kinds.find.tools import tool_name
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.catalog import shipped_catalog
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import PATIENCE

FAIL = "UPDATE jobs SET status = 'failed', finished_at = now(), error = '{\"code\": \"upstream_error\"}' WHERE id = $1"
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@dataclass(frozen=True)
class Surfaces:
    """One client on every surface."""

    front: FrontEnd
    client_id: str
    api: Api
    browser: ConsoleBrowser
    csrf: str
    mcp: Raw
    flat: Raw
    desk: ConnectorApi

    async def queued_job(self) -> str:
        job_id: str = (await self.desk.submit("tickets", "list"))["id"]
        return job_id

    async def failed_job(self) -> str:
        job_id = await self.queued_job()
        async with self.front.services.database.system() as connection:
            await connection.execute(FAIL, UUID(job_id))
        return job_id

    async def form(self, path: str, **fields: str) -> None:
        answer = await self.browser.send(path, csrf=self.csrf, **fields)
        assert answer.status in (200, 303), answer.body

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = (await self.mcp("tools/call", {"name": name, "arguments": arguments})).result
        return result

    async def noted(self, what: str) -> list[dict[str, Any]]:
        """The entries with that name; waits for the first, because entries are written in batches."""
        async with asyncio.timeout(PATIENCE):
            while True:
                entries = (await self.api.get("/api/v1/audit")).json()["data"]
                if found := [entry for entry in entries if entry["what"] == what]:
                    return found


@pytest.fixture
async def surfaces(front: FrontEnd) -> AsyncIterator[Surfaces]:
    client_id, secret = await front.client(scopes=EVERY_SCOPE)
    async with (
        Api.of(front.base_url, client_id, secret) as api,
        signed_in(front, client_id, secret) as browser,
        aiohttp.ClientSession(headers=api.headers) as session,
    ):
        mcp, flat = Raw(session, f"{front.base_url}/mcp"), Raw(session, f"{front.base_url}/mcp/support-desk")
        desk = await api.connector()
        yield Surfaces(
            front=front,
            client_id=client_id,
            api=api,
            browser=browser,
            csrf=await browser.csrf(),
            mcp=mcp,
            flat=flat,
            desk=desk,
        )


async def canceled_by_api(on: Surfaces) -> str:
    job_id = await on.queued_job()
    assert (await on.api.post(f"/api/v1/jobs/{job_id}/cancel")).status == 202
    return job_id


async def canceled_in_console(on: Surfaces) -> str:
    job_id = await on.queued_job()
    await on.form(f"/console/jobs/{job_id}/cancel")
    return job_id


async def canceled_by_tool(on: Surfaces) -> str:
    job_id = await on.queued_job()
    assert not (await on.tool("job", job_id=job_id, do="cancel")).get("isError")
    return job_id


async def canceled_as_task(on: Surfaces) -> str:
    job_id = await on.queued_job()
    answer = await on.mcp("tasks/cancel", {"taskId": job_id}, capabilities=TASKS)
    assert answer.status == 200, answer.document
    return job_id


async def retried_by_api(on: Surfaces) -> str:
    job_id = await on.failed_job()
    assert (await on.api.post(f"/api/v1/jobs/{job_id}/retry")).status == 202
    return job_id


async def retried_in_console(on: Surfaces) -> str:
    job_id = await on.failed_job()
    await on.form(f"/console/jobs/{job_id}/retry")
    return job_id


async def retried_by_tool(on: Surfaces) -> str:
    job_id = await on.failed_job()
    assert not (await on.tool("job", job_id=job_id, do="retry")).get("isError")
    return job_id


async def linked_by_api(on: Surfaces) -> None:
    members = {"workspace_name": on.desk.record["workspace_name"], "connector_id": on.desk.record["id"]}
    assert (await on.api.post("/api/v1/connect/sessions", members)).status == 201


async def linked_in_console(on: Surfaces) -> None:
    await on.form(f"/console/connectors/{on.desk.record['id']}/renew")


async def linked_by_tool(on: Surfaces) -> None:
    assert "url" in str(await on.tool("connect", connector=on.desk.record["id"]))


async def read_by_api(on: Surfaces) -> str:
    await on.desk.execute("tickets", "get", {"ticket_id": 1})
    return "1"


async def read_in_console(on: Surfaces) -> str:
    fields = {"operation": "support-desk.tickets.get", "connector": on.desk.record["id"], "p.ticket_id": "1"}
    await on.form("/console/playground", **fields)
    return "1"


async def read_by_tool(on: Surfaces) -> None:
    arguments = {"operation": "support-desk.tickets.get", "params": {"ticket_id": 1}}
    assert not (await on.tool("read", connector=on.desk.record["id"], **arguments)).get("isError")


async def read_by_flat_tool(on: Surfaces) -> None:
    name = tool_name(entry_of(shipped_catalog(), "support-desk.tickets.get"))
    answer = await on.flat("tools/call", {"name": name, "arguments": {"ticket_id": 1}})
    assert not answer.result.get("isError"), answer.result


@pytest.mark.parametrize(
    ("act", "what", "outcome"),
    [
        (canceled_by_api, "job.cancel", "accepted"),
        (canceled_in_console, "job.cancel", "accepted"),
        (canceled_by_tool, "job.cancel", "accepted"),
        (canceled_as_task, "job.cancel", "accepted"),
        (retried_by_api, "job.retry", "accepted"),
        (retried_in_console, "job.retry", "accepted"),
        (retried_by_tool, "job.retry", "accepted"),
        (linked_by_api, "connect_session.create", "succeeded"),
        (linked_in_console, "connect_session.create", "succeeded"),
        (linked_by_tool, "connect_session.create", "succeeded"),
        (read_by_api, "tickets.get", "succeeded"),
        (read_in_console, "tickets.get", "succeeded"),
        (read_by_tool, "tickets.get", "succeeded"),
        (read_by_flat_tool, "tickets.get", "succeeded"),
    ],
)
async def test_an_action_leaves_one_entry_whatever_the_surface(
    surfaces: Surfaces, act: Callable[[Surfaces], Awaitable[str | None]], what: str, outcome: str
):
    target = await act(surfaces)

    (entry,) = await surfaces.noted(what)
    assert (entry["actor"]["id"], entry["outcome"]) == (surfaces.client_id, outcome)
    assert target in (None, entry["target"])
    assert entry["connector_id"] == surfaces.desk.record["id"]
    assert entry["request_id"]


async def test_a_refused_tool_call_is_recorded_with_its_error(surfaces: Surfaces):
    arguments = {"operation": "support-desk.tickets.get", "params": {"ticket_id": 10**9}}

    refused = await surfaces.tool("read", connector=surfaces.desk.record["id"], **arguments)

    (entry,) = await surfaces.noted("tickets.get")
    assert refused["isError"]
    assert entry["outcome"] == "upstream_not_found"


async def test_a_tool_call_without_the_scope_is_recorded(front: FrontEnd, surfaces: Surfaces):
    job_id = await surfaces.queued_job()
    organization_id = (await front.services.identity.client(UUID(surfaces.client_id))).client.organization_ids
    async with (
        front.api(*organization_id, scopes=["read"]) as reader,
        aiohttp.ClientSession(headers=reader.headers) as session,
    ):
        mcp = Raw(session, f"{front.base_url}/mcp")
        await mcp("tools/call", {"name": "job", "arguments": {"job_id": job_id, "do": "cancel"}})

    (entry,) = await surfaces.noted("job.cancel")
    assert (entry["target"], entry["outcome"]) == (job_id, "insufficient_scope")


async def test_messages_without_an_action_leave_no_entry(surfaces: Surfaces):
    await surfaces.mcp("tools/list")
    await surfaces.tool("find_operations", task="close a ticket")
    await read_by_tool(surfaces)

    await surfaces.noted("tickets.get")
    entries = (await surfaces.api.get("/api/v1/audit")).json()["data"]
    assert {entry["what"] for entry in entries} == {"console.sign_in", "connector.create", "tickets.get"}


@pytest.mark.parametrize(
    ("path", "fields", "what", "outcome"),
    [
        ("/console/settings/clients", {"name": "", "read": "on"}, "client.create", "invalid_params"),
        ("/console/settings/apps", {"kind": "support-desk"}, "oauth_app.put", "invalid_params"),
        ("/console/connectors/{connector}/delete", {"name": "other"}, "connector.delete", "invalid_params"),
        (
            "/console/playground",
            {"operation": "support-desk.tickets.get", "connector": "{connector}", "p.ticket_id": "x"},
            "execute",
            "invalid_params",
        ),
    ],
)
async def test_a_refused_console_form_is_not_recorded_as_succeeded(
    surfaces: Surfaces, path: str, fields: dict[str, str], what: str, outcome: str
):
    connector_id = surfaces.desk.record["id"]
    filled = {name: text.replace("{connector}", connector_id) for name, text in fields.items()}

    answer = await surfaces.browser.send(path.replace("{connector}", connector_id), csrf=surfaces.csrf, **filled)

    (entry,) = await surfaces.noted(what)
    assert (answer.status, entry["outcome"]) == (422, outcome)
