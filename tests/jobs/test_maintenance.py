"""Maintenance: what a lost worker means for each effect class, and what outlives its time."""

import asyncio
import sys

import pytest

from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.foundation.db.notifications import WRITTEN, NotificationListener
from gateway.jobs.maintenance import INTERVAL, MAX_LOSSES, MAX_LOSSES_AMONG_OTHERS, Maintenance
from gateway.jobs.model import StoredJob
from gateway.jobs.processes import process_name
from gateway.jobs.store import IdempotencyKey
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually
from tests.jobs.conftest import RETENTION, SEALING, SHARES, WORKER

KEY = IdempotencyKey("k", b"request", 3600)
PAST_START = f"SELECT pg_postmaster_start_time() < now() - interval '{3 * INTERVAL} seconds'"


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
        await leases.mark_in_flight(job)
    await lost(job)

    await maintenance.reap()
    after = await jobs.get(job.organization_id, job.id)

    assert after.status is status


async def test_an_unknown_write_says_what_is_known(jobs, leases, maintenance, claimed, lost):
    job = await claimed()
    await leases.mark_in_flight(job)
    await lost(job)

    await maintenance.reap()
    error = (await jobs.get(job.organization_id, job.id)).error

    assert error["code"] == "outcome_unknown"
    assert (error["known"]["request_id"], error["known"]["find_by"]) == ("r-1", "a list")
    assert error["known"]["sent_at"].endswith("Z")
    assert error["known"]["request_sent"] == "maybe"


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.IDEMPOTENT])
async def test_the_write_of_a_lost_worker_is_announced(database_url, leases, maintenance, claimed, lost, effect):
    job, written = await claimed(effect=effect), asyncio.Queue[str]()
    listener = NotificationListener(database_url)
    listener.subscribe({WRITTEN: written.put_nowait}, None)
    await leases.mark_in_flight(job)
    await lost(job)

    async with listener.listening(), asyncio.timeout(30):
        await eventually(listener.is_current)
        await maintenance.reap()

        assert await written.get() == str(job.connector_id)


async def test_a_job_continues_at_once_when_its_process_has_certainly_ended(database, jobs, claims, new_job):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    ended, alive = process_name(process.pid), process_name()
    await jobs.accept(new_job())
    [lost] = await claims.claim(ended, 1, SHARES)
    await jobs.accept(new_job())
    [held] = await claims.claim(alive, 1, SHARES)

    # A PostgreSQL that has just started judges no lease yet.
    due = await Maintenance(database, RETENTION, SEALING, timeout=3600).reap()

    assert due == 1
    assert (await jobs.get(lost.organization_id, lost.id)).status is JobStatus.QUEUED
    assert (await jobs.get(held.organization_id, held.id)).status is JobStatus.RUNNING


async def test_a_process_that_has_just_started_gives_others_time_to_renew_their_leases(
    database, jobs, claimed, lost, sql
):
    async def is_old() -> bool:
        return bool((await sql(PAST_START))[0][0])

    await eventually(is_old)  # a PostgreSQL that has just started lets no lease be judged either
    job = await claimed(effect=Effect.READ)
    await lost(job)
    started = Maintenance(database, RETENTION, SEALING, timeout=2 * INTERVAL)

    async def is_requeued() -> bool:
        return bool(await started.reap())

    early = await is_requeued()
    status = (await jobs.get(job.organization_id, job.id)).status
    await eventually(is_requeued)

    assert not early
    assert status is JobStatus.RUNNING


async def test_a_process_with_a_session_has_not_ended_whatever_its_pid_says(
    database, database_url, jobs, claims, new_job
):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    name = process_name(process.pid)
    await jobs.accept(new_job())
    [job] = await claims.claim(name, 1, SHARES)
    listener = NotificationListener(database_url, name)

    async with listener.listening():
        await eventually(listener.is_current)
        await Maintenance(database, RETENTION, SEALING, timeout=3600).reap()

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.RUNNING


async def test_a_worker_that_leaves_holds_no_lease(jobs, maintenance, claimed):
    job = await claimed(effect=Effect.READ)

    await maintenance.deregister(WORKER)
    await maintenance.reap()

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.QUEUED


#: after so many losses in a row: how it is claimed next
NEXT = {1: "as any", 2: "in a group", 3: "alone"}


async def claimed_again(claims) -> tuple[str, StoredJob]:
    """The job that is due, and how it was claimed."""
    for how, claim in (
        ("as any", lambda: claims.claim(WORKER, 1, SHARES)),
        ("in a group", lambda: claims.claim_poison_candidates(WORKER, 1, is_group=True)),
        ("alone", lambda: claims.claim_poison_candidates(WORKER, 1, is_group=False)),
    ):
        if found := await claim():
            return how, found[0]
    raise AssertionError("nothing is due")


async def test_a_job_that_kills_its_workers_is_isolated_and_then_given_up(jobs, claims, maintenance, claimed, lost):
    job = await claimed(effect=Effect.READ)
    for losses in range(1, MAX_LOSSES):
        await lost(job)
        await maintenance.reap()
        how, job = await claimed_again(claims)
        assert (how, job.worker_losses) == (NEXT[losses], losses)
    await lost(job)

    await maintenance.reap()
    ended = await jobs.get(job.organization_id, job.id)

    assert (ended.status, ended.error["code"]) == (JobStatus.FAILED, "worker_crashed")


@pytest.mark.parametrize(
    ("worker_losses", "status"),
    [
        (MAX_LOSSES - 1, JobStatus.QUEUED),
        (MAX_LOSSES_AMONG_OTHERS - 2, JobStatus.QUEUED),
        (MAX_LOSSES_AMONG_OTHERS - 1, JobStatus.FAILED),
    ],
)
async def test_a_death_in_which_others_were_lost_too_is_little_evidence(
    jobs, maintenance, claimed, lost, sql, worker_losses, status
):
    job, another = await claimed(effect=Effect.READ), await claimed(effect=Effect.READ)
    await sql("UPDATE jobs SET worker_losses = $2 WHERE id = $1", job.id, worker_losses)
    await lost(job)
    await lost(another)

    await maintenance.reap()

    assert (await jobs.get(job.organization_id, job.id)).status is status
    assert (await jobs.get(another.organization_id, another.id)).status is JobStatus.QUEUED


async def test_all_jobs_of_a_dead_worker_are_due_at_once(claims, maintenance, sql, organization_id):
    await sql(
        """
        INSERT INTO jobs (id, organization_id, status, worker, lease_until)
        SELECT gen_random_uuid(), $1, 'running', 'dead', now() - interval '1 second' FROM generate_series(1, 200)
        """,
        organization_id,
    )

    await maintenance.reap()
    claimed = [await claims.claim(f"worker-{number}", 20, SHARES) for number in range(10)]

    assert sum(map(len, claimed)) == 200


async def test_an_inline_call_that_was_lost_before_sending_gives_its_key_back(jobs, maintenance, new_job, lost):
    call = (await jobs.accept(new_job(is_inline=True), KEY, claimed_by="gone")).job
    await lost(call)

    await maintenance.reap()
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by="here")

    assert again.is_new


async def test_a_malformed_error_of_one_lost_call_keeps_no_other_from_ending(jobs, maintenance, new_job, lost, sql):
    calls = [(await jobs.accept(new_job(is_inline=True), claimed_by="me")).job for _ in range(2)]
    await sql('UPDATE jobs SET error = \'{"code": "x", NaN\' WHERE id = $1', calls[0].id)
    for each in calls:
        await lost(each)

    await maintenance.reap()

    assert await sql("SELECT id FROM jobs") == []
    rows = await sql("SELECT outcome FROM audit WHERE call_id = ANY ($1)", [each.id for each in calls])
    assert [row["outcome"] for row in rows] == ["worker_crashed"] * 2


async def test_an_inline_write_that_was_lost_after_sending_stays_unknown_under_its_key(
    jobs, leases, maintenance, new_job, lost
):
    call = (await jobs.accept(new_job(is_inline=True), KEY, claimed_by="gone")).job
    await leases.mark_in_flight(call)
    await lost(call)

    await maintenance.reap()
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by="here")

    assert not again.is_new
    assert again.job.status is JobStatus.UNKNOWN


async def reaped_while_locked(database, maintenance, job: StoredJob) -> None:
    """One round while another transaction changes the job's row, and one afterwards."""
    async with database.system() as connection, connection.transaction():
        await connection.execute("UPDATE jobs SET wrapped_key = wrapped_key WHERE id = $1", job.id)
        reaping = asyncio.create_task(maintenance.reap())

        async def is_over() -> bool:
            return reaping.done() or await waits_for_lock(database)

        await eventually(is_over)
    await reaping
    await maintenance.reap()


async def test_a_write_in_flight_is_not_sent_again_if_its_row_is_being_changed_when_its_worker_is_lost(
    database, jobs, leases, maintenance, claimed, lost
):
    job = await claimed()
    await leases.mark_in_flight(job)
    await lost(job)

    await reaped_while_locked(database, maintenance, job)

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.UNKNOWN


async def test_an_inline_write_in_flight_keeps_its_key_if_its_row_is_being_changed_when_its_process_is_lost(
    database, jobs, leases, maintenance, new_job, lost
):
    call = (await jobs.accept(new_job(is_inline=True), KEY, claimed_by="gone")).job
    await leases.mark_in_flight(call)
    await lost(call)

    await reaped_while_locked(database, maintenance, call)
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by="here")

    assert not again.is_new
    assert again.job.status is JobStatus.UNKNOWN


async def test_a_waiting_job_is_due_again_at_its_time(jobs, leases, maintenance, claimed, sql):
    job = await claimed()
    await leases.defer(job, 60, "limited")
    early = await maintenance.reap()
    await sql("UPDATE jobs SET next_attempt_at = now() WHERE id = $1", job.id)

    due = await maintenance.reap()
    after = await jobs.get(job.organization_id, job.id)

    assert (early, due) == (0, 1)
    assert after.status is JobStatus.QUEUED
    assert after.next_attempt_at is None


async def test_a_worker_that_leaves_is_gone_at_once(maintenance):
    await maintenance.heartbeat(WORKER)
    before = await maintenance.has_live_worker()

    await maintenance.deregister(WORKER)

    assert (before, await maintenance.has_live_worker()) == (True, False)
