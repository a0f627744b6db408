"""Agents at three front ends behind a round robin, while front ends and workers are killed."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.faults.arena import PATIENCE, Arena, Part, arena, ticket
from tests.mcp.conftest import Raw, Reply

TASKS, WRITES, KILLS = 40, 30, 5
CAPABILITIES = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena(fronts=3, workers=2) as opened:
        yield opened


class RoundRobin:
    """Each request goes to the next front end; one that does not answer is passed over, as a load balancer does."""

    def __init__(self, gateway: Arena, session: aiohttp.ClientSession) -> None:
        self._fronts = itertools.cycle(gateway.url_of(front) for front in gateway.fronts)
        self._session = session

    async def __call__(self, method: str, params: dict[str, Any], **options: Any) -> Reply:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await Raw(self._session, f"{next(self._fronts)}/mcp")(method, params, **options)
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)

    async def call(self, name: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
        return (await self("tools/call", {"name": name, "arguments": arguments}, **options)).result

    async def ended(self, task_id: str) -> dict[str, Any]:
        """The task once it has ended, asked for at one front end after another."""
        async with asyncio.timeout(PATIENCE):
            while True:
                task = (await self("tasks/get", {"taskId": task_id}, capabilities=CAPABILITIES)).result
                if task["status"] != "working":
                    return task
                await asyncio.sleep(0.2)


async def kill_in_turn(gateway: Arena, parts: list[Part]) -> None:
    """kill -9 one process after another, each started again before the next dies."""
    for part in itertools.islice(itertools.cycle(parts), KILLS):
        await asyncio.sleep(0.5)
        await part.kill()
        await part.start()
        if part in gateway.fronts:
            await gateway.answering(part)


async def test_tasks_outlive_the_front_ends_and_workers_that_began_them(gateway: Arena):
    gateway.upstream.slowest = 0.5
    async with gateway.caller() as caller, aiohttp.ClientSession(headers=caller.headers) as session:
        connector = await caller.connect()
        agents = RoundRobin(gateway, session)
        killing = asyncio.create_task(kill_in_turn(gateway, [*gateway.workers, *gateway.fronts[1:]]))

        async def bulk(number: int) -> str:
            arguments = {
                "operation": "support-desk.ticket_bulk_updates.create",
                "params": {"ids": f"{number}1,{number}2", "ticket": {"status": "solved"}},
                "connector": connector,
                "idempotency_key": f"bulk-{number}",
            }
            return (await agents.call("write", arguments, capabilities=CAPABILITIES))["taskId"]

        task_ids = await asyncio.gather(*(bulk(number) for number in range(1, TASKS + 1)))
        tasks = await asyncio.gather(*map(agents.ended, task_ids))
        await killing

    assert len(set(task_ids)) == TASKS
    assert {task["status"] for task in tasks} == {"completed"}
    assert [task["result"]["structuredContent"]["result"]["succeeded"] for task in tasks] == [2] * TASKS
    assert len(gateway.upstream.updated) == TASKS


async def test_a_write_under_its_key_is_sent_once_however_often_its_front_end_dies(gateway: Arena):
    gateway.upstream.slowest = 0.5
    async with gateway.caller() as caller, aiohttp.ClientSession(headers=caller.headers) as session:
        connector = await caller.connect()
        agents = RoundRobin(gateway, session)
        killing = asyncio.create_task(kill_in_turn(gateway, gateway.fronts))

        async def create(number: int) -> dict[str, Any]:
            arguments = {
                "operation": "support-desk.tickets.create",
                "params": ticket(f"agent-{number}"),
                "connector": connector,
                "idempotency_key": f"agent-{number}",
            }
            async with asyncio.timeout(PATIENCE):
                while True:
                    content = (await agents.call("write", arguments))["structuredContent"]
                    if content.get("error") not in ("idempotency_in_flight", "unavailable"):
                        return content
                    await asyncio.sleep(0.2)

        outcomes = await asyncio.gather(*(create(number) for number in range(WRITES)))
        await killing

    sent = [gateway.upstream.created[f"agent-{number}"] for number in range(WRITES)]
    unknown = [content for content in outcomes if content.get("error") == "outcome_unknown"]
    done = [content for content in outcomes if "result" in content]
    assert max(sent) == 1
    assert len(done) + len(unknown) == WRITES
    assert sum(sent) >= len(done)


async def test_the_official_client_never_knows_which_front_end_it_talks_to(gateway: Arena):
    async with gateway.caller() as caller:
        connector = await caller.connect()
        fronts = itertools.cycle(gateway.url_of(front) for front in gateway.fronts)

        async def next_front(request: httpx2.Request) -> None:
            request.url = httpx2.URL(f"{next(fronts)}{request.url.path}")

        options = {"headers": caller.headers, "event_hooks": {"request": [next_front]}, "timeout": 30}
        async with httpx2.AsyncClient(**options) as http:
            url = f"{gateway.url_of(gateway.fronts[0])}/mcp"
            async with Client(streamable_http_client(url, http_client=http)) as client:
                read = {"operation": "support-desk.tickets.list", "connector": connector, "max_bytes": 500}
                results = [await client.call_tool("read", read) for _ in range(6)]

    assert [len(result.structured_content["result"]) for result in results] == [3] * 6
