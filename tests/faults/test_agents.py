"""Agents at three front ends behind a load balancer, while processes are killed; `make faults` runs it in full."""

import asyncio
import itertools
from typing import Any

import aiohttp

from tests.faults.agents import Agent, agents
from tests.faults.arena import Arena, arena, ticket
from tests.harness.round_robin import round_robin

TASKS, WRITES, KILLS = 40, 30, 5


async def test_tasks_outlive_the_front_ends_and_workers_that_began_them():
    report = await agents(TASKS, KILLS)

    assert report.is_clean, report.table()
    assert sum(report.ends.values()) == TASKS
    assert sum(report.kills.values()) == KILLS


async def test_a_write_under_its_key_is_sent_once_however_often_its_front_end_dies():
    async with arena(front_ends=3) as gateway:
        gateway.upstream.slowest = 0.5
        outcomes = await _written_under_kills(gateway)
        sent = [gateway.upstream.created[f"agent-{number}"] for number in range(WRITES)]

    unknown = [content for content in outcomes if content.get("error") == "outcome_unknown"]
    done = [content for content in outcomes if "result" in content]
    assert max(sent) == 1
    assert len(done) + len(unknown) == WRITES
    assert sum(sent) >= len(done)


async def _written_under_kills(gateway: Arena) -> list[dict[str, Any]]:
    """What agents were told, each of a ticket that it created; each kill strikes while some of them are created."""
    urls = [gateway.url_of(front_end) for front_end in gateway.front_ends]
    numbers, outcomes = iter(range(WRITES)), list[dict[str, Any]]()
    async with (
        gateway.desk() as desk,
        round_robin(urls) as balancer,
        aiohttp.ClientSession(headers=desk.api.headers) as session,
    ):
        agent = Agent(session, balancer.url)
        for front_end in itertools.islice(itertools.cycle(gateway.front_ends), KILLS):
            gateway.upstream.arrived.clear()
            writes = [
                asyncio.create_task(_created(agent, desk.record["id"], number))
                for number in itertools.islice(numbers, WRITES // KILLS)
            ]
            await gateway.upstream.arrived.wait()
            await front_end.kill()
            await front_end.start()
            outcomes += await asyncio.gather(*writes)
    return outcomes


async def _created(agent: Agent, connector: str, number: int) -> dict[str, Any]:
    arguments = {
        "operation": "support-desk.tickets.create",
        "params": ticket(f"agent-{number}"),
        "connector": connector,
        "idempotency_key": f"agent-{number}",
    }
    content: dict[str, Any] = (await agent.call("write", arguments))["structuredContent"]
    return content
