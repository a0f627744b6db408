"""Running jobs: one holder at a time, and nothing written by who is no longer it."""

import asyncio

import pytest

from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import DeniedByPolicy, InternalError, InvalidParams, document
from gateway.jobs.leases import JobOutcome, LostLease
from gateway.jobs.model import JobFilter
from gateway.jobs.store import IdempotencyKey
from tests.jobs.conftest import SHARES, WORKER

SUCCESS = JobOutcome(status=JobStatus.SUCCEEDED, result={"result": 1, "collected": None, "meta": None})


async def test_a_job_is_claimed_once(jobs, claims, new_job):
    await jobs.accept(new_job())

    first, second = await claims.claim(WORKER, 5, SHARES), await claims.claim("another", 5, SHARES)

    assert len(first) == 1
    assert (first[0].status, first[0].fence, first[0].attempt) == (JobStatus.RUNNING, 1, 1)
    assert second == []


async def test_claims_at_the_same_time_share_the_jobs_between_them(jobs, claims, new_job):
    accepted = {(await jobs.accept(new_job())).job.id for _ in range(40)}

    batches = await asyncio.gather(*(claims.claim(f"worker-{number}", 10, SHARES) for number in range(4)))
    claimed = [job.id for batch in batches for job in batch]

    assert len(claimed) == len(set(claimed))
    assert set(claimed) == accepted


async def test_an_end_is_written_once(jobs, leases, claimed):
    job = await claimed()
    await leases.finish(job, SUCCESS)

    with pytest.raises(LostLease):
        await leases.finish(job, JobOutcome(status=JobStatus.FAILED))
    ended = await jobs.get(job.organization_id, job.id)

    assert ended.status is JobStatus.SUCCEEDED
    assert ended.expires_at > ended.finished_at


@pytest.mark.parametrize(
    "late",
    [
        lambda leases, job: leases.finish(job, SUCCESS),
        lambda leases, job: leases.mark_in_flight(job),
        lambda leases, job: leases.checkpoint(job, {}, {1: "1\n"}),
        lambda leases, job: leases.store_part(job, 1, "1\n"),
        lambda leases, job: leases.progress(job, 1, 2, "m"),
        lambda leases, job: leases.defer(job, 1, "m"),
        lambda leases, job: leases.requeue(job),
    ],
    ids=["finish", "mark_in_flight", "checkpoint", "store_part", "progress", "defer", "requeue"],
)
async def test_who_lost_its_lease_writes_nothing(leases, claims, maintenance, claimed, lost, late):
    job = await claimed(effect=Effect.READ)
    await lost(job)
    await maintenance.reap()
    await claims.claim("another", 1, SHARES)

    with pytest.raises(LostLease):
        await late(leases, job)


async def test_a_heartbeat_says_what_is_still_ours_and_what_is_to_be_canceled(jobs, leases, claimed):
    kept, canceled, ended = [await claimed() for _ in range(3)]
    await jobs.request_cancel(canceled.organization_id, canceled.id)
    await leases.finish(ended, SUCCESS)

    ours = await leases.heartbeat(WORKER, [(job.id, job.fence) for job in (kept, canceled, ended)])

    assert ours == {(kept.id, kept.fence): False, (canceled.id, canceled.fence): True}


async def test_a_holder_that_was_taken_for_lost_takes_its_job_back(jobs, leases, maintenance, claimed, lost, sql):
    job = await claimed(effect=Effect.READ)
    await lost(job)
    await maintenance.reap()

    ours = await leases.heartbeat(WORKER, [(job.id, job.fence)])
    (again,) = await sql("SELECT status, worker, worker_losses FROM jobs WHERE id = $1", job.id)
    await leases.finish(job, SUCCESS)

    assert ours == {(job.id, job.fence): False}
    assert tuple(again) == ("running", WORKER, 0)


async def test_a_job_that_another_has_claimed_is_not_taken_back(jobs, leases, claims, maintenance, claimed, lost):
    job = await claimed(effect=Effect.READ)
    await lost(job)
    await maintenance.reap()
    await claims.claim("another", 1, SHARES)

    assert await leases.heartbeat(WORKER, [(job.id, job.fence)]) == {}


@pytest.mark.parametrize(("attempts", "worker_losses"), [(1, 0), (11, 1)])
async def test_a_loss_is_forgiven_when_its_worker_is_still_there_but_not_forever(
    jobs, leases, maintenance, claimed, lost, sql, attempts, worker_losses
):
    job = await claimed(effect=Effect.READ)
    await sql("UPDATE jobs SET attempt = $2 WHERE id = $1", job.id, attempts)
    await lost(job)
    await maintenance.reap()

    await leases.restore([(job.id, job.fence)])

    assert await losses_of(sql, job) == worker_losses


async def losses_of(sql, job) -> int:
    return (await sql("SELECT worker_losses FROM jobs WHERE id = $1", job.id))[0][0]


PROGRESS = {
    "checkpoint": lambda leases, job: leases.checkpoint(job, {"at": 1}, {}),
    "further than before": lambda leases, job: leases.progress(job, job.progress + 1, None, "m"),
    "as far as before": lambda leases, job: leases.progress(job, job.progress, None, "m"),
}


@pytest.mark.parametrize(
    ("step", "worker_losses"), [("checkpoint", 0), ("further than before", 0), ("as far as before", 2)]
)
async def test_losses_count_only_where_there_was_no_progress_between_them(leases, claimed, sql, step, worker_losses):
    job = await claimed(effect=Effect.READ)
    await sql("UPDATE jobs SET worker_losses = 2 WHERE id = $1", job.id)

    await PROGRESS[step](leases, job)

    assert await losses_of(sql, job) == worker_losses


async def test_ends_and_heartbeats_at_once_do_not_wait_for_each_other_in_a_circle(leases, claimed, sql):
    held = [await claimed() for _ in range(50)]
    beats = [(job.id, job.fence) for job in reversed(held)]

    await asyncio.gather(
        *(leases.heartbeat(WORKER, beats) for _ in range(5)), *(leases.finish(job, SUCCESS) for job in held)
    )

    ids = [job.id for job in held]
    [[succeeded]] = await sql("SELECT count(*) FROM jobs WHERE id = ANY($1) AND status = 'succeeded'", ids)
    assert succeeded == 50


async def test_nothing_more_is_sent_for_a_job_that_is_to_be_canceled(jobs, leases, claimed, sql):
    job = await claimed()
    await jobs.request_cancel(job.organization_id, job.id)

    may_send = await leases.mark_in_flight(job)

    assert not may_send
    assert (await sql("SELECT in_flight_since FROM jobs WHERE id = $1", job.id))[0][0] is None


async def test_what_goes_back_counts_as_never_taken(jobs, leases, claimed):
    job = await claimed()

    needs_another = await leases.requeue(job)
    returned = await jobs.get(job.organization_id, job.id)

    assert needs_another
    assert (returned.status, returned.attempt, returned.worker_losses) == (JobStatus.QUEUED, 0, 0)


@pytest.mark.parametrize(
    "give_up", [lambda leases, job: leases.requeue(job), lambda leases, job: leases.defer(job, 9, "m")]
)
async def test_a_canceled_job_that_is_given_up_ends(jobs, leases, claimed, give_up):
    job = await claimed()
    await jobs.request_cancel(job.organization_id, job.id)

    await give_up(leases, job)
    ended = await jobs.get(job.organization_id, job.id)

    assert ended.status is JobStatus.CANCELED
    assert ended.finished_at is not None


async def test_a_released_call_gives_its_key_back_and_is_settled(jobs, leases, new_job, sql):
    key = IdempotencyKey("k", b"request", 3600)
    call = (await jobs.accept(new_job(is_inline=True), key, claimed_by=WORKER)).job

    await leases.release(call, "upstream_rate_limited")
    again = await jobs.accept(new_job(is_inline=True), key, claimed_by=WORKER)

    assert again.is_new
    rows = await sql("SELECT entry_kind, outcome FROM audit WHERE call_id = $1", call.id)
    assert [tuple(row) for row in rows] == [("settlement", "upstream_rate_limited")]


@pytest.mark.parametrize(
    ("error", "outcome", "policies"),
    [
        (InvalidParams('"code": "another"', extra={"code_of": {"code": "inner"}}), "invalid_params", ["begun"]),
        (DeniedByPolicy('the policy "policy": "x"', extra={"policy": "main", "advice": "ask"}), "denied_by_policy",
         ["main"]),
        (DeniedByPolicy("no policy permits this"), "denied_by_policy", []),
        (InternalError("a number", extra={"value": float("nan")}), "internal_error", ["begun"]),
    ],
)  # fmt: skip
async def test_a_call_is_settled_with_the_code_and_the_policy_of_its_error(
    jobs, leases, new_job, sql, error, outcome, policies
):
    call = (await jobs.accept(new_job(is_inline=True), claimed_by=WORKER)).job
    await leases.note_policies(call, ["begun"])

    await leases.finish(call, JobOutcome(status=JobStatus.FAILED, error=document(error)))

    rows = await sql("SELECT outcome, policies FROM audit WHERE call_id = $1", call.id)
    assert [tuple(row) for row in rows] == [(outcome, policies)]


async def test_causes_of_failures_are_counted_beside_a_malformed_error(jobs, leases, claimed, sql):
    ended = [await claimed() for _ in range(2)]
    for job in ended:
        await leases.finish(job, JobOutcome(status=JobStatus.FAILED, error=document(InvalidParams("no"))))
    await sql("UPDATE jobs SET error = 'malformed' WHERE id = $1", ended[0].id)

    causes = await jobs.causes(ended[0].organization_id, JobFilter(), 100, 10)

    assert {each.code for each in causes} == {"failed", "invalid_params"}


async def test_state_and_records_are_kept_together(jobs, leases, claimed):
    job = await claimed()

    await leases.checkpoint(job, {"at": 1}, {1: "1\n2\n"})
    await leases.checkpoint(job, {"at": 2}, {2: "3\n"})
    await leases.finish(job, SUCCESS)
    ended = await jobs.get_stored(job.organization_id, job.id)
    lines = [part async for part in jobs.lines(ended, ended.parts)]

    assert ended.state == {"at": 2}
    assert lines == ["1\n2\n", "3\n"]


async def test_each_change_that_callers_see_has_a_number_and_an_event(jobs, leases, claimed):
    job = await claimed()
    await leases.progress(job, 1, 2, "1 of 2")
    await leases.mark_in_flight(job)
    await leases.finish(job, SUCCESS)
    ended = await jobs.get(job.organization_id, job.id)

    events = await jobs.events(ended, 0)

    assert [(event.number, event.event) for event in events] == [(2, "status"), (3, "progress"), (4, "status")]
    assert ended.version == 5
