"""What was lost goes on: at once, together, and without a mark against jobs that did nothing wrong."""

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest

from tests.faults.arena import Arena, Caller, arena, until
from tests.harness.waiting import PATIENCE

#: seconds from the death of a worker until its jobs have been started again
AGAIN = 15.0
STARTED_AGAIN = "SELECT count(*) FROM jobs WHERE status = 'running' AND attempt > $1"


@pytest.fixture
async def gateway() -> AsyncIterator[Arena]:
    """Room for three hundred jobs of one organization on a worker; each test starts the workers it wants."""
    async with arena(fronts=1, workers=0, GATEWAY_WORKER_JOBS="400") as opened:
        yield opened


async def running(gateway: Arena, caller: Caller, connectors: int, each: int) -> list[str]:
    """Ids of so many reads of so many connectors, all under way at the application, which does not answer."""
    gateway.upstream.gate.clear()
    ids = []
    for _ in range(connectors):
        await caller.connect()
        jobs = await asyncio.gather(*(caller.submit("tickets", "get", {"ticket_id": n}) for n in range(1, each + 1)))
        ids += [job["id"] for job in jobs]
    await until(lambda: _are_started(gateway, len(ids), 0))
    return ids


async def _are_started(gateway: Arena, jobs: int, attempt: int) -> bool:
    return await gateway.value(STARTED_AGAIN, attempt) == jobs


async def _has_arrived(gateway: Arena, requests: int) -> bool:
    return gateway.upstream.requests == requests


async def outcomes(gateway: Arena, caller: Caller, ids: list[str]) -> set[str]:
    gateway.upstream.gate.set()
    return {(await caller.ended(job_id))["status"] for job_id in ids}


async def test_all_two_hundred_jobs_of_a_killed_worker_go_on_at_once(gateway: Arena):
    first = await gateway.add_worker()
    async with gateway.caller() as caller:
        ids = await running(gateway, caller, connectors=10, each=20)
        await gateway.add_worker()

        await first.kill()
        took = await until(lambda: _are_started(gateway, len(ids), 1))
        ended = await outcomes(gateway, caller, ids)

    assert took <= AGAIN
    assert ended == {"succeeded"}


async def test_jobs_that_lost_two_workers_for_no_fault_of_theirs_go_on_in_a_group_and_succeed(gateway: Arena):
    worker = await gateway.add_worker()
    async with gateway.caller() as caller:
        ids = await running(gateway, caller, connectors=1, each=10)
        for attempt in (1, 2):
            await worker.kill()
            worker = await gateway.add_worker()
            took = await until(lambda attempt=attempt: _are_started(gateway, len(ids), attempt))
            assert took <= AGAIN + 5  # with the start of a worker
        ended = await outcomes(gateway, caller, ids)

    assert ended == {"succeeded"}


async def test_a_frozen_and_thawed_worker_goes_on_and_nothing_counts_against_its_jobs(gateway: Arena):
    worker = await gateway.add_worker()
    async with gateway.caller() as caller:
        ids = await running(gateway, caller, connectors=1, each=15)
        await until(lambda: _has_arrived(gateway, len(ids)))

        worker.send(signal.SIGSTOP)
        await until(lambda: gateway.value("SELECT max(lease_until) < now() FROM jobs"))
        worker.send(signal.SIGCONT)
        await gateway.swept()
        ended = await outcomes(gateway, caller, ids)
        counted = await gateway.value("SELECT max(crashes) FROM jobs")

    assert ended == {"succeeded"}
    assert counted == 0
    assert gateway.upstream.requests == len(ids)


async def test_a_job_that_kills_its_workers_by_itself_is_given_up_and_a_hundred_others_finish(gateway: Arena):
    """Twice among all, once in a small group, once alone: four workers, and nobody else pays for it."""
    upstream = gateway.upstream
    upstream.deadly, upstream.slowest = 666, 0.2
    async with gateway.caller() as caller:
        await caller.connect()
        deadly = await caller.submit("tickets", "get", {"ticket_id": 666})
        others = [await caller.submit("tickets", "get", {"ticket_id": number}) for number in range(1, 101)]
        for _ in range(4):
            worker = await gateway.add_worker()
            async with asyncio.timeout(PATIENCE):
                await upstream.fatal.wait()
            await worker.kill()
            upstream.fatal.clear()
        await gateway.add_worker()
        rest = {(await caller.ended(job["id"]))["status"] for job in others}
        ended = await caller.ended(deadly["id"])

    assert ended["error"]["code"] == "worker_crashed"
    assert rest == {"succeeded"}
