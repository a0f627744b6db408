"""The sweeper: what a lost worker means for each effect class, and what outlives its time."""

import pytest

from gateway.jobs.model import JobStatus
from gateway.jobs.store import IdempotencyKey
from gateway.kinds.spec import Effect
from tests.jobs.conftest import WORKER

KEY = IdempotencyKey("k", b"request", 3600)


@pytest.mark.parametrize(
    ("effect", "was_sent", "status"),
    [
        (Effect.READ, False, JobStatus.QUEUED),
        (Effect.IDEMPOTENT, True, JobStatus.QUEUED),
        (Effect.WRITE, False, JobStatus.QUEUED),
        (Effect.WRITE, True, JobStatus.UNKNOWN),
    ],
)
async def test_a_lost_worker_means_what_the_effect_says(
    jobs, leases, maintenance, claimed, lost, effect, was_sent, status
):
    job = await claimed(effect=effect)
    for _ in range(was_sent):
        await leases.sending(job)
    await lost(job)

    await maintenance.sweep()
    after = await jobs.get(job.organization_id, job.id)

    assert after.status is status


async def test_an_unknown_write_tells_what_is_known(jobs, leases, maintenance, claimed, lost):
    job = await claimed()
    await leases.sending(job)
    await lost(job)

    await maintenance.sweep()
    error = (await jobs.get(job.organization_id, job.id)).error

    assert error["code"] == "outcome_unknown"
    assert (error["known"]["request_id"], error["known"]["find_by"]) == ("r-1", "a list")
    assert error["known"]["sent_at"].endswith("Z")


async def test_a_job_that_lost_two_workers_is_given_up(jobs, leases, maintenance, claimed, lost):
    job = await claimed(effect=Effect.READ)
    await lost(job)
    await maintenance.sweep()
    again = await leases.claim_suspect(WORKER)
    await lost(again)

    await maintenance.sweep()
    ended = await jobs.get(job.organization_id, job.id)

    assert (ended.status, ended.error["code"]) == (JobStatus.FAILED, "worker_crashed")


async def test_what_lost_a_worker_is_claimed_one_by_one_and_apart(leases, maintenance, claimed, lost):
    suspects = [await claimed(effect=Effect.READ) for _ in range(3)]
    for suspect in suspects:
        await lost(suspect)
    await maintenance.sweep()

    among_others = await leases.claim(WORKER, 10, 75)
    alone = await leases.claim_suspect(WORKER)

    assert among_others == []
    assert alone.id == suspects[0].id


async def test_an_inline_call_that_was_lost_before_sending_gives_its_key_back(jobs, maintenance, new_job, lost):
    call = (await jobs.accept(new_job(is_inline=True), KEY, claimed_by="gone")).job
    await lost(call)

    await maintenance.sweep()
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by="here")

    assert again.is_new


async def test_an_inline_write_that_was_lost_after_sending_stays_unknown_under_its_key(
    jobs, leases, maintenance, new_job, lost
):
    call = (await jobs.accept(new_job(is_inline=True), KEY, claimed_by="gone")).job
    await leases.sending(call)
    await lost(call)

    await maintenance.sweep()
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by="here")

    assert not again.is_new
    assert again.job.status is JobStatus.UNKNOWN


async def test_a_waiting_job_is_due_again_at_its_time(jobs, leases, maintenance, claimed, sql):
    job = await claimed()
    await leases.wait(job, 60, "limited")
    early = await maintenance.sweep()
    await sql("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", job.id)

    due = await maintenance.sweep()
    after = await jobs.get(job.organization_id, job.id)

    assert (early, due) == (0, 1)
    assert after.status is JobStatus.QUEUED
    assert after.next_attempt_at is None


async def test_a_worker_that_leaves_is_gone_at_once(maintenance):
    await maintenance.heartbeat(WORKER)
    before = await maintenance.is_a_worker_there()

    await maintenance.deregister(WORKER)

    assert (before, await maintenance.is_a_worker_there()) == (True, False)
