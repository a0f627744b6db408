"""Waiting: one look for all waiters of a job, at what concerns them, and never at what may be large."""

import asyncio
from collections.abc import AsyncIterator, Callable
from uuid import UUID

import pytest

from gateway.contract.jobs import JobStatus
from gateway.foundation.db.notifications import NotificationListener, notify
from gateway.foundation.db.pool import Database
from gateway.jobs.leases import JobOutcome
from gateway.jobs.model import JobSummary, StoredJob
from gateway.jobs.store import JobStore
from gateway.jobs.waiters import JobWaiters
from tests.harness.waiting import eventually
from tests.jobs.conftest import RETENTION, UNSEALED

SUCCESS = JobOutcome(status=JobStatus.SUCCEEDED, result={"result": 1, "collected": None, "meta": None})


class Counting(JobStore):
    """Counts how often a job is looked at."""

    looks = 0
    #: is called when a look begins
    on_look: Callable[[], None] | None = None
    #: holds what a look has found
    gate: asyncio.Event | None = None

    async def get(self, organization_id: UUID, job_id: UUID) -> JobSummary:
        gate = self.gate
        if self.on_look is not None:
            self.on_look()
        job = await super().get(organization_id, job_id)
        self.looks += 1
        if gate is not None:
            await gate.wait()
        return job


@pytest.fixture
def counting(database: Database) -> Counting:
    return Counting(database, RETENTION, UNSEALED)


@pytest.fixture
async def changes(database_url: str) -> AsyncIterator[NotificationListener]:
    """A listener whose first gap, which wakes everybody, is over."""
    changes, is_listening = NotificationListener(database_url), asyncio.Event()
    changes.subscribe({}, is_listening.set)
    async with changes.listening():
        await is_listening.wait()
        yield changes


@pytest.fixture
def waiters(counting: Counting, changes: NotificationListener) -> JobWaiters:
    """Waiters that hear of changes."""
    waiters = JobWaiters(counting)
    changes.subscribe({"job": waiters.on_notify}, waiters.wake_all)
    return waiters


async def caught_up(database: Database, changes: NotificationListener) -> None:
    """Returns when every change until now has been heard of."""
    heard = asyncio.Event()
    changes.subscribe({"test": lambda _: heard.set()}, None)
    await notify(database, "test", "")
    await heard.wait()


async def begun(waiters: JobWaiters, counting: Counting, waiting: list) -> list["asyncio.Task[JobSummary]"]:
    """Waiters that have looked once and wait."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    await eventually(lambda: waiters.waits.total == len(tasks))
    counting.looks = 0
    return tasks


async def test_waiters_of_a_job_share_a_look_at_it(waiters, counting, leases, claimed):
    job = await claimed()
    tasks = await begun(waiters, counting, [waiters.done(job.organization_id, job.id, 30) for _ in range(50)])

    await leases.finish(job, SUCCESS)
    found = await asyncio.gather(*tasks)

    assert {each.status for each in found} == {JobStatus.SUCCEEDED}
    assert counting.looks <= 2


async def test_who_has_seen_no_version_waits_for_the_next_change_after_one_look(
    database, changes, waiters, counting, leases, claimed
):
    job = await claimed()
    await caught_up(database, changes)
    waiting = asyncio.ensure_future(waiters.changed(job.organization_id, job.id, None, 30))
    await eventually(lambda: waiters.waits.total == 1)
    looks_before_the_change = counting.looks

    await leases.progress(job, 1, 2, "half")

    assert ((await waiting).progress, looks_before_the_change) == (1, 1)


async def test_a_change_that_the_look_under_way_finds_needs_no_second_look(counting, claimed):
    job = await claimed()
    waiters = JobWaiters(counting)
    version = (await counting.get(job.organization_id, job.id)).version
    counting.looks, counting.on_look = 0, lambda: waiters.on_notify(f"{job.id}:{version}:false")

    waiting = asyncio.ensure_future(waiters.changed(job.organization_id, job.id, None, 30))
    await eventually(lambda: waiters.waits.total == 1)
    looks = counting.looks
    waiters.stop_waiting()

    assert ((await waiting).version, looks) == (version, 1)


async def test_a_look_that_began_before_a_change_is_not_shared_after_it(counting, leases, claimed):
    job = await claimed()
    waiters = JobWaiters(counting)
    [for_step, for_end] = await begun(
        waiters,
        counting,
        [waiters.changed(job.organization_id, job.id, None, 30), waiters.done(job.organization_id, job.id, 30)],
    )

    counting.gate = asyncio.Event()
    waiters.on_notify(f"{job.id}:{job.version + 1}:false")
    await eventually(lambda: counting.looks == 1)
    counting.gate, gate = None, counting.gate
    await leases.finish(job, SUCCESS)
    waiters.on_notify(f"{job.id}:{job.version + 2}:true")
    await eventually(for_end.done)
    has_stepped = for_step.done()
    gate.set()

    assert (for_end.result().status, has_stepped) == (JobStatus.SUCCEEDED, False)
    assert (await for_step).status is JobStatus.SUCCEEDED


async def test_who_waits_for_the_end_does_not_look_at_each_step(waiters, counting, leases, claimed):
    job = await claimed()
    [for_end, for_step] = await begun(
        waiters,
        counting,
        [
            waiters.done(job.organization_id, job.id, 30),
            waiters.changed(job.organization_id, job.id, (await counting.get(job.organization_id, job.id)).version, 30),
        ],
    )

    await leases.progress(job, 1, 2, "half")
    step = await for_step
    looks_at_the_step = counting.looks
    await leases.finish(job, SUCCESS)
    end = await for_end

    assert (step.progress, end.status) == (1, JobStatus.SUCCEEDED)
    assert (looks_at_the_step, counting.looks) == (1, 2)


async def test_a_look_at_a_job_and_a_list_of_jobs_leave_out_what_may_be_large(jobs, leases, claimed):
    job = await claimed(params={"large": "x" * 1000})
    await leases.checkpoint(job, {"at": 1}, {})
    await leases.finish(job, SUCCESS)

    seen = await jobs.get(job.organization_id, job.id)
    stored = await jobs.get_stored(job.organization_id, job.id)

    assert not isinstance(seen, StoredJob)
    assert seen.is_stored
    assert {"params", "state", "selection", "result"} & set(JobSummary.__struct_fields__) == set()
    assert (stored.params, stored.state) == ({"large": "x" * 1000}, {"at": 1})
