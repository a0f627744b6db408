"""Streams and tasks while PostgreSQL is unavailable: they continue or end, and never report a wrong state."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.agents.mcp.conftest import Raw
from tests.faults.arena import Arena, arena, ticket
from tests.faults.test_front_ends import AS_A_LIST, MILLION
from tests.harness.caller import ConnectorApi
from tests.harness.raw_http import STATUS_LINE, head_of, received, sent
from tests.harness.waiting import PATIENCE, eventually

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
#: seconds for which PostgreSQL is away: a waiter reads its job every five, so that one read fails
AWAY = 6.0
LAST_CHUNK = b"0\r\n\r\n"


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena() as opened:
        yield opened


@pytest.fixture
async def desk(gateway: Arena) -> AsyncIterator[ConnectorApi]:
    gateway.upstream.gate.clear()
    async with gateway.desk() as opened:
        yield opened
    gateway.upstream.gate.set()


async def test_an_event_stream_outlives_a_restart_of_postgres(gateway: Arena, desk: ConnectorApi):
    job = await desk.submit("tickets", "create", ticket("events"))
    await desk.api.running_job(job)
    async with asyncio.timeout(PATIENCE):
        request = head_of("GET", f"/api/v1/jobs/{job['id']}/events", desk.api.headers)
        reader, writer = await sent(gateway.url_of(gateway.front_ends[0]), request)
        begin = await reader.readuntil(b'"running"')

        await gateway.stores.restart(gateway.stores.postgres, down=AWAY)
        gateway.upstream.gate.set()
        rest, _ = await received(reader)
    writer.close()

    data = begin + rest
    numbers = [int(line[4:]) for line in data.splitlines() if line.startswith(b"id: ")]
    assert data.count(STATUS_LINE) == 1
    assert b"event: done" in rest
    assert data.endswith(LAST_CHUNK)
    assert numbers == sorted(set(numbers))


async def test_a_result_that_cannot_be_read_on_breaks_off_without_a_second_head(gateway: Arena, desk: ConnectorApi):
    gateway.upstream.gate.set()
    job = await desk.api.ended_job(await desk.submit("tickets", "list", {}))
    await gateway.stores.rows("DELETE FROM job_results WHERE job_id = $1", job["id"])
    await gateway.stores.rows(MILLION, job["id"], gateway.api_client.organization_id)
    await gateway.stores.rows(AS_A_LIST, job["id"])
    headers = {**desk.api.headers, "Accept": "application/x-ndjson"}
    async with asyncio.timeout(PATIENCE):
        request = head_of("GET", f"/api/v1/jobs/{job['id']}/result", headers)
        reader, writer = await sent(gateway.url_of(gateway.front_ends[0]), request)
        begin = await reader.readuntil(b'{"id"')

        await gateway.stores.restart(gateway.stores.postgres, down=1.0)
        rest, _ = await received(reader)
    writer.close()

    assert (begin + rest).count(STATUS_LINE) == 1
    assert not rest.endswith(LAST_CHUNK)


async def begun(mcp: Raw, desk: ConnectorApi, ids: str) -> str:
    """The id of a task that the application works at."""
    arguments = {
        "operation": "support-desk.ticket_bulk_updates.create",
        "params": {"ids": ids, "ticket": {"status": "solved"}},
        "connector": desk.record["id"],
    }
    created = await mcp("tools/call", {"name": "write", "arguments": arguments}, capabilities=TASKS)
    return str(created.result["taskId"])


def frames(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


async def test_a_task_is_not_denied_while_postgres_is_unavailable(gateway: Arena, desk: ConnectorApi):
    async with aiohttp.ClientSession(headers=desk.api.headers) as session:
        mcp = Raw(session, f"{gateway.url_of(gateway.front_ends[0])}/mcp")
        task_id = await begun(mcp, desk, "11,12")
        await eventually(lambda: gateway.upstream.open)
        await mcp("tasks/get", {"taskId": task_id}, capabilities=TASKS)
        await gateway.stores.kill_with_children(gateway.stores.postgres)
        # At once, while the front end still trusts the token: later the token itself cannot be looked up.
        replies = await asyncio.gather(
            mcp("tasks/get", {"taskId": task_id}, capabilities=TASKS),
            mcp("tasks/update", {"taskId": task_id, "inputResponses": {}}, capabilities=TASKS),
            mcp("tasks/cancel", {"taskId": task_id}, capabilities=TASKS),
            mcp("resources/read", {"uri": f"gateway://results/{task_id}"}),
        )

        await gateway.stores.in_servers(gateway.stores.postgres.stop)
        await gateway.stores.in_servers(gateway.stores.postgres.start)
        gateway.upstream.gate.set()
        await desk.api.ended_job({"id": task_id})
        task = (await mcp("tasks/get", {"taskId": task_id}, capabilities=TASKS)).result
        missing = [await mcp("tasks/get", {"taskId": each}, capabilities=TASKS) for each in ("7", desk.record["id"])]

    assert {(reply.status, "Retry-After" in reply.headers) for reply in replies} == {(503, True)}
    assert {(reply.code, reply.document["error"]["data"]["retryable"]) for reply in replies} == {(-32603, True)}
    assert task["status"] == "completed"
    assert [(reply.status, reply.code) for reply in missing] == [(400, -32602)] * 2


async def test_a_subscription_hears_of_the_end_of_its_tasks_after_a_restart_of_postgres(
    gateway: Arena, desk: ConnectorApi
):
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(headers=desk.api.headers) as session:
        mcp = Raw(session, f"{gateway.url_of(gateway.front_ends[0])}/mcp")
        task_ids = [await begun(mcp, desk, ids) for ids in ("21,22", "23,24")]
        await eventually(lambda: gateway.upstream.open == len(task_ids))
        wanted = {"notifications": {"taskIds": task_ids}}
        listening = asyncio.create_task(mcp("subscriptions/listen", wanted, capabilities=TASKS))

        await gateway.stores.restart(gateway.stores.postgres, down=AWAY)
        gateway.upstream.gate.set()
        told = frames((await listening).document)

    last = {each["params"]["taskId"]: each["params"]["status"] for each in told if "taskId" in each.get("params", {})}
    assert last == dict.fromkeys(task_ids, "completed")
    assert "result" in told[-1]


async def test_a_subscription_to_a_task_that_does_not_exist_is_an_error(gateway: Arena, desk: ConnectorApi):
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(headers=desk.api.headers) as session:
        mcp = Raw(session, f"{gateway.url_of(gateway.front_ends[0])}/mcp")
        wanted = {"notifications": {"taskIds": [desk.record["id"]]}}
        told = frames((await mcp("subscriptions/listen", wanted, capabilities=TASKS)).document)

    assert told[-1]["error"]["code"] == -32602


async def test_a_subscription_that_its_front_end_ends_ends_with_a_request_to_listen_again(
    gateway: Arena, desk: ConnectorApi
):
    front_end = await gateway.front_end_apart()
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(headers=desk.api.headers) as session:
        mcp = Raw(session, f"{gateway.url_of(front_end)}/mcp")
        task_id = await begun(mcp, desk, "31,32")
        wanted = {"notifications": {"taskIds": [task_id]}}
        listening = asyncio.create_task(mcp("subscriptions/listen", wanted, capabilities=TASKS))
        await eventually(lambda: gateway.upstream.open)

        await gateway.stop(front_end)
        told = frames((await listening).document)

    assert told[-1]["error"]["data"] == {"code": "unavailable", "retryable": True, "retry_after": 1}
