"""The jobs of lost workers continue at once, and count no loss that they did not cause."""

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.jobs.maintenance import MAX_LOSSES, MAX_LOSSES_AMONG_OTHERS
from tests.faults.arena import Arena, arena, seconds_until
from tests.harness.caller import Api
from tests.harness.waiting import eventually

#: seconds from the death of a worker until its jobs have been started again
AGAIN = 15.0
STARTED_AGAIN = "SELECT count(*) FROM jobs WHERE status = 'running' AND attempt > $1"


@pytest.fixture
async def gateway() -> AsyncIterator[Arena]:
    """Room for three hundred jobs of one organization on a worker; each test starts the workers it wants."""
    async with arena(front_ends=1, workers=0, GATEWAY_WORKER_JOBS="400") as opened:
        yield opened


async def running(gateway: Arena, connectors: int, each: int) -> list[dict[str, Any]]:
    """So many reads of so many connectors, all under way at the application, which does not answer."""
    gateway.upstream.gate.clear()
    jobs: list[dict[str, Any]] = []
    for _ in range(connectors):
        async with gateway.desk() as desk:
            jobs += await asyncio.gather(
                *(desk.submit("tickets", "get", {"ticket_id": number}) for number in range(1, each + 1))
            )
    await eventually(lambda: _are_started(gateway, len(jobs), 0))
    return jobs


async def _are_started(gateway: Arena, jobs: int, attempt: int) -> bool:
    return await gateway.stores.value(STARTED_AGAIN, attempt) == jobs


async def outcomes(gateway: Arena, jobs: list[dict[str, Any]]) -> set[str]:
    gateway.upstream.gate.set()
    async with gateway.api() as api:
        return {(await api.ended_job(job))["status"] for job in jobs}


async def test_all_two_hundred_jobs_of_a_killed_worker_continue_at_once(gateway: Arena):
    first = await gateway.worker()
    jobs = await running(gateway, connectors=10, each=20)
    await gateway.worker()

    await first.kill()
    took = await seconds_until(lambda: _are_started(gateway, len(jobs), 1))
    ended = await outcomes(gateway, jobs)

    assert took <= AGAIN
    assert ended == {"succeeded"}


async def test_jobs_that_lost_two_workers_for_no_fault_of_theirs_continue_in_a_group_and_succeed(gateway: Arena):
    worker = await gateway.worker()
    jobs = await running(gateway, connectors=1, each=10)
    for attempt in (1, 2):
        await worker.kill()
        worker = await gateway.worker()
        took = await seconds_until(lambda attempt=attempt: _are_started(gateway, len(jobs), attempt))
        assert took <= AGAIN + 5  # with the start of a worker
    ended = await outcomes(gateway, jobs)

    assert ended == {"succeeded"}


async def test_a_frozen_and_thawed_worker_continues_and_nothing_counts_against_its_jobs(gateway: Arena):
    worker = await gateway.worker()
    jobs = await running(gateway, connectors=1, each=15)
    await eventually(lambda: gateway.upstream.requests == len(jobs))

    worker.send(signal.SIGSTOP)
    await eventually(lambda: gateway.stores.value("SELECT max(lease_until) < now() FROM jobs"))
    worker.send(signal.SIGCONT)
    await gateway.swept()
    ended = await outcomes(gateway, jobs)
    counted = await gateway.stores.value("SELECT max(worker_losses) FROM jobs")

    assert ended == {"succeeded"}
    assert counted == 0
    assert gateway.upstream.requests == len(jobs)


async def test_a_job_that_kills_its_workers_by_itself_is_given_up_and_a_hundred_others_finish(gateway: Arena):
    """Twice among all, once in a small group, once alone: four workers, six where others ran beside it to the last."""
    upstream, lost = gateway.upstream, 0
    upstream.deadly, upstream.slowest = 666, 0.2
    async with gateway.desk() as desk:
        deadly = await desk.submit("tickets", "get", {"ticket_id": 666})
        others = [await desk.submit("tickets", "get", {"ticket_id": number}) for number in range(1, 101)]
        while await _is_fatal(gateway, desk.api, deadly):
            await gateway.workers[-1].kill()
            upstream.fatal.clear()
            lost += 1
        rest = {(await desk.api.ended_job(job))["status"] for job in others}
        ended = await desk.api.ended_job(deadly)

    assert ended["error"]["code"] == "worker_crashed"
    assert MAX_LOSSES <= lost <= MAX_LOSSES_AMONG_OTHERS
    assert rest == {"succeeded"}


async def _is_fatal(gateway: Arena, api: Api, job: dict[str, Any]) -> bool:
    """Whether the job gets as far as to kill another worker, before it has ended."""

    async def is_decided() -> bool:
        return gateway.upstream.fatal.is_set() or (await api.get(f"/api/v1/jobs/{job['id']}")).document()["done"]

    await gateway.worker()
    await eventually(is_decided)
    return gateway.upstream.fatal.is_set()
