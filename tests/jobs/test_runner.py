"""Running jobs in one process: how each outcome is written, what is stopped, and what a shutdown leaves."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import msgspec
import pytest

from gateway import errors
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.foundation.telemetry.metrics import BACKGROUND_FAILURES
from gateway.jobs import results
from gateway.jobs.leases import JobOutcome, Leases
from gateway.jobs.model import StoredJob
from gateway.jobs.runner import Runner
from gateway.jobs.store import IdempotencyKey
from gateway.upstream.responses import OperationResult
from tests.harness.databases import refusing
from tests.harness.waiting import eventually
from tests.jobs.conftest import SEALING, SHARES, WORKER

KEY = IdempotencyKey("k", b"request", 3600)


@pytest.fixture
async def runner(leases) -> AsyncIterator[Runner]:
    runner = Runner(leases, WORKER, heartbeat=0.05)
    async with runner.renewing_leases():
        yield runner
        await runner.drain(0)


def answer(document) -> OperationResult:
    return OperationResult(result=msgspec.Raw(json.dumps(document).encode()))


async def ended(jobs, runner, job: StoredJob, work) -> StoredJob:
    done = asyncio.Event()
    runner.start(job, work, done.set)
    await done.wait()
    return await jobs.get(job.organization_id, job.id)


async def whole(jobs, job: StoredJob) -> bytes:
    head = results.require_result(job, await jobs.head(job))
    lines = jobs.lines(job, results.stored_parts(job, head))
    return b"".join([piece async for piece in results.document(head, lines)])


@pytest.mark.parametrize(
    "document",
    [{"id": 1}, [], [{"id": 1}, {"id": 2}], [{"n": "x" * 100}] * 2500, None, {"n": "x" * 200_000}, "x" * 200_000],
    ids=["one", "none", "two", "many", "null", "a large one", "a large text"],
)
async def test_an_answer_is_stored_and_put_together_again(jobs, runner, claimed, document):
    async def run(job, run_context):
        return answer(document)

    job = await ended(jobs, runner, await claimed(), run)

    assert job.status is JobStatus.SUCCEEDED
    assert json.loads(await whole(jobs, job)) == document


async def test_the_last_report_of_a_run_is_the_final_one_however_soon_it_follows_another(jobs, runner, claimed):
    async def run(job, run_context):
        await run_context.progress(1, None, "a: 1 record; 0 of 2 entities done")
        await run_context.progress(3, None, "2 of 2 entities synchronized, 3 records")
        return answer([])

    job = await ended(jobs, runner, await claimed(), run)

    assert (job.message, job.progress) == ("2 of 2 entities synchronized, 3 records", 3)


async def test_the_last_report_of_a_run_that_fails_is_the_final_one_too(jobs, runner, claimed):
    async def run(job, run_context):
        await run_context.progress(1, 3, "1 of 3")
        await run_context.progress(2, 3, "2 of 3")
        raise errors.UpstreamRejected("the application refused the third")

    job = await ended(jobs, runner, await claimed(), run)

    assert (job.status, job.progress, job.total) == (JobStatus.FAILED, 2, 3)


async def test_what_an_earlier_attempt_left_is_not_in_the_result(jobs, leases, runner, claimed):
    async def run(job, run_context):
        return answer([1])

    job = await claimed()
    for part in (1, 2, 3):
        await leases.store_part(job, part, "0\n")
    job = await ended(jobs, runner, job, run)

    assert json.loads(await whole(jobs, job)) == [1]


async def test_records_in_the_journal_are_part_of_the_result(jobs, runner, claimed):
    async def run(job, run_context):
        await run_context.checkpoint({"at": 1}, [{"id": 1}, {"id": 2}])
        return OperationResult(
            result=msgspec.Raw(b'{"message":"2 of 2 tickets updated","results":[]}'), collected="results"
        )

    job = await ended(jobs, runner, await claimed(), run)

    assert json.loads(await whole(jobs, job))["results"] == [{"id": 1}, {"id": 2}]
    assert job.message == "2 of 2 tickets updated"


async def test_a_limited_job_waits_with_the_time_it_is_tried_again(jobs, runner, claimed):
    async def run(job, run_context):
        raise errors.UpstreamRateLimited("slow down", retry_after=30)

    job = await ended(jobs, runner, await claimed(), run)

    assert (job.status, job.message) == (JobStatus.WAITING, "slow down")
    assert 25 < (job.next_attempt_at - job.created_at).total_seconds() < 35


@pytest.mark.parametrize(("has_saved", "status"), [(True, JobStatus.WAITING), (False, JobStatus.FAILED)])
async def test_an_old_job_waits_again_only_where_it_continues(jobs, runner, claimed, sql, has_saved, status):
    async def run(job, run_context):
        if has_saved:
            await run_context.save({"at": 1}, {})
        raise errors.UpstreamRateLimited("slow down", retry_after=30)

    job = await claimed(effect=Effect.READ)
    await sql("UPDATE jobs SET created_at = now() - interval '2 days' WHERE id = $1", job.id)
    old = msgspec.structs.replace(job, created_at=job.created_at - timedelta(days=2))

    assert (await ended(jobs, runner, old, run)).status is status


async def test_a_bug_fails_the_job_and_reveals_no_internals(jobs, runner, claimed):
    async def run(job, run_context):
        raise RuntimeError("a secret")

    job = await ended(jobs, runner, await claimed(), run)

    assert (job.status, job.error["code"]) == (JobStatus.FAILED, "internal_error")
    assert "secret" not in json.dumps(job.error)


async def test_a_bug_after_a_write_was_sent_leaves_its_outcome_unknown(jobs, runner, claimed):
    async def run(job, run_context):
        await run_context.mark_in_flight()
        raise RuntimeError

    job = await ended(jobs, runner, await claimed(), run)

    assert job.status is JobStatus.UNKNOWN


async def test_words_with_a_nul_in_them_can_be_kept_and_read_by_the_database(jobs, runner, claimed, sql):
    async def run(job, run_context):
        await run_context.progress(1, 2, "one\0two")
        raise errors.UpstreamRejected("bad\0words")

    job = await ended(jobs, runner, await claimed(), run)

    assert (job.status, job.message) == (JobStatus.FAILED, "badwords")
    [row] = await sql("SELECT error::jsonb ->> 'detail' AS detail FROM jobs WHERE id = $1", job.id)
    assert row["detail"] == "bad\N{REPLACEMENT CHARACTER}words"


async def test_a_cancellation_that_is_heard_stops_a_read(jobs, runner, claimed):
    async def run(job, run_context):
        began.set()
        await asyncio.Event().wait()

    job = await claimed(effect=Effect.READ)
    began, done = asyncio.Event(), asyncio.Event()
    runner.start(job, run, done.set)
    await began.wait()

    runner.on_notify(str(job.id))
    await done.wait()

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.CANCELED


async def test_a_write_is_not_stopped_but_sends_nothing_more(jobs, runner, claimed):
    may_go_on, sent = asyncio.Event(), []

    async def run(job, run_context):
        for number in range(3):
            await run_context.mark_in_flight()
            sent.append(number)
            await may_go_on.wait()
            await run_context.checkpoint({"done": number}, answers=1)
        return answer(None)

    job = await claimed()
    done = asyncio.Event()
    runner.start(job, run, done.set)
    await eventually(lambda: sent)
    await jobs.request_cancel(job.organization_id, job.id)
    runner.on_notify(str(job.id))
    may_go_on.set()
    await done.wait()

    assert sent == [0]
    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.CANCELED


async def test_a_job_that_was_canceled_before_it_began_does_nothing(jobs, leases, new_job, claims):
    await jobs.accept(new_job())
    job = (await claims.claim(WORKER, 1, SHARES))[0]
    await jobs.request_cancel(job.organization_id, job.id)
    await leases.requeue(job)

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.CANCELED


async def test_a_shutdown_lets_work_finish_and_hands_back_what_was_not_sent(jobs, runner, claimed):
    async def run(job, run_context):
        if job.params["what"] == "sent":
            await run_context.mark_in_flight()
        if job.params["what"] != "quick":
            await asyncio.Event().wait()
        return answer(None)

    held = [await claimed(params={"what": what}) for what in ("quick", "unsent", "sent")]
    for job in held:
        runner.start(job, run)

    returned = await runner.drain(0.3)
    states = [(await jobs.get(job.organization_id, job.id)).status for job in held]

    assert states == [JobStatus.SUCCEEDED, JobStatus.QUEUED, JobStatus.UNKNOWN]
    assert [job.id for job in returned] == [held[1].id]


async def test_an_inline_call_answers_once_it_is_stored(jobs, runner, new_job):
    async def run(job, run_context):
        return answer({"id": 1})

    accepted = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)
    got = await runner.run(accepted.job, run)
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)

    assert got.decoded() == {"id": 1}
    assert (again.is_new, again.job.status) == (False, JobStatus.SUCCEEDED)


@pytest.mark.parametrize(
    ("error", "is_free"), [(errors.UpstreamRateLimited(retry_after=1), True), (errors.UpstreamNotFound(), False)]
)
async def test_an_inline_call_that_came_to_nothing_leaves_its_key_free(jobs, runner, new_job, error, is_free):
    async def run(job, run_context):
        raise error

    accepted = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)
    with pytest.raises(type(error)):
        await runner.run(accepted.job, run)
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)

    assert again.is_new is is_free


async def test_a_read_that_is_taken_over_ends_as_a_job(jobs, runner, new_job):
    reading: asyncio.Future[OperationResult] = asyncio.get_running_loop().create_future()
    job = (await jobs.accept(new_job(effect=Effect.READ), claimed_by=WORKER)).job

    runner.adopt(job, reading)
    reading.set_result(answer([1, 2]))
    await runner.drain(5)
    ended = await jobs.get(job.organization_id, job.id)

    assert ended.status is JobStatus.SUCCEEDED
    assert json.loads(await whole(jobs, ended)) == [1, 2]


async def test_a_job_whose_end_was_just_written_is_not_taken_for_a_lost_one(database, claimed):
    written, may_be_heard = asyncio.Event(), asyncio.Event()

    class Slow(Leases):
        """Hears of its own write late, as a busy process does."""

        async def finish(self, job: StoredJob, outcome: JobOutcome) -> None:
            await super().finish(job, outcome)
            written.set()
            await may_be_heard.wait()

    async def run(job, run_context):
        return answer({"id": 1})

    runner = Runner(Slow(database, 3600, SEALING), WORKER)
    waiting = asyncio.create_task(runner.run(await claimed(), run))
    await written.wait()

    await runner.beat()
    may_be_heard.set()

    assert (await waiting).decoded() == {"id": 1}


#: what PostgreSQL answers when its disk is full, after a failover, and when statements wait for each other in a circle
REFUSALS = {"53100": "disk full", "25006": "read only", "40P01": "deadlock", "XX000": "internal"}


@pytest.mark.parametrize("sqlstate", REFUSALS, ids=REFUSALS.values())
async def test_heartbeats_continue_after_any_error_of_postgresql(database_url, runner, claimed, sql, sqlstate):
    async def run(job, run_context):
        await asyncio.Event().wait()

    async def lease_until() -> datetime:
        return (await sql("SELECT lease_until FROM jobs WHERE id = $1", job.id))[0][0]

    job, failed = await claimed(), BACKGROUND_FAILURES.value("heartbeat")
    async with refusing(database_url, "UPDATE ON jobs", sqlstate):
        runner.start(job, run)
        await eventually(lambda: BACKGROUND_FAILURES.value("heartbeat") > failed)

    before = await lease_until()

    async def is_renewed() -> bool:
        return await lease_until() > before

    assert await eventually(is_renewed)


async def test_a_job_that_the_same_process_claims_again_keeps_its_result(
    jobs, leases, claims, maintenance, claimed, lost, new_job
):
    runner, first_may_end, second_may_end = Runner(leases, WORKER), asyncio.Event(), asyncio.Event()
    both_ended = asyncio.Semaphore(0)

    async def first(job, run_context):
        await first_may_end.wait()
        return answer("first")

    async def second(job, run_context):
        await second_may_end.wait()
        return answer("second")

    job = await claimed(effect=Effect.READ)
    runner.start(job, first, both_ended.release)
    await lost(job)
    await maintenance.reap()
    runner.start((await claims.claim(WORKER, 1, SHARES))[0], second, both_ended.release)

    first_may_end.set()
    await both_ended.acquire()
    held_after_the_first, _ = len(runner.jobs), await runner.beat()
    second_may_end.set()
    await both_ended.acquire()
    job = await jobs.get(job.organization_id, job.id)

    assert held_after_the_first == 1
    assert job.status is JobStatus.SUCCEEDED
    assert json.loads(await whole(jobs, job)) == "second"


async def test_a_caller_that_disconnects_leaves_no_task_but_its_job(jobs, runner, new_job):
    may_end, began = asyncio.Event(), asyncio.Event()

    async def run(job, run_context):
        began.set()
        await may_end.wait()
        return answer(1)

    call = (await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)).job
    before = asyncio.all_tasks()
    caller = asyncio.create_task(runner.run(call, run))
    await began.wait()
    caller.cancel()
    await asyncio.wait([caller])
    left = {task.get_name() for task in asyncio.all_tasks() - before}
    may_end.set()
    await runner.drain(5)

    assert left == {f"job {call.id}"}


async def test_a_large_document_is_kept_beside_its_row(jobs, runner, claimed, sql):
    async def run(job, run_context):
        return answer({"n": "x" * 3_000_000})

    job = await ended(jobs, runner, await claimed(), run)
    ((in_row,),) = await sql("SELECT length(result) FROM jobs WHERE id = $1", job.id)

    assert in_row < 1000
    assert len(json.loads(await whole(jobs, job))["n"]) == 3_000_000


async def test_large_records_are_kept_in_parts_of_about_a_mebibyte(jobs, runner, claimed, sql):
    async def run(job, run_context):
        return answer([{"n": "x" * 300_000}] * 10)

    job = await ended(jobs, runner, await claimed(), run)
    sizes = [size for (size,) in await sql("SELECT length(lines) FROM job_results WHERE job_id = $1", job.id)]

    assert len(sizes) == 3
    assert json.loads(await whole(jobs, job)) == [{"n": "x" * 300_000}] * 10


class Fatal(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
@pytest.mark.parametrize(
    "raised",
    [
        ValueError("secret"),
        TimeoutError(),
        RecursionError(),
        asyncio.CancelledError(),
        SystemExit(1),
        KeyboardInterrupt(),
        Fatal(),
        BaseExceptionGroup("several", [Fatal()]),
    ],
    ids=lambda raised: type(raised).__name__,
)
async def test_a_run_that_raises_anything_ends_its_job_once_with_the_reason(jobs, runner, claimed, raised, effect):
    async def run(job, run_context):
        if job.effect is Effect.WRITE:
            await run_context.mark_in_flight()
        raise raised

    job = await ended(jobs, runner, await claimed(effect=effect), run)

    assert job.status is (JobStatus.FAILED if effect is Effect.READ else JobStatus.UNKNOWN)
    assert type(raised).__name__ in job.error["detail"]
    assert "secret" not in job.error["detail"]
    assert (job.attempt, job.worker_losses) == (1, 0)


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_a_result_that_cannot_be_stored_ends_its_job_once_with_the_reason(jobs, runner, claimed, effect):
    outcome = OperationResult(result=msgspec.Raw(b'{"id":1}'), meta={"odd": {1, 2}})

    async def run(job, run_context):
        if job.effect is Effect.WRITE:
            await run_context.mark_in_flight()
        return outcome

    job = await ended(jobs, runner, await claimed(effect=effect), run)

    assert job.status is (JobStatus.FAILED if effect is Effect.READ else JobStatus.UNKNOWN)
    assert "cannot be stored" in job.error["detail"]


async def test_an_error_whose_words_cannot_be_stored_ends_its_job(jobs, runner, claimed):
    async def run(job, run_context):
        raise errors.UpstreamError("half a character: \ud800")

    job = await ended(jobs, runner, await claimed(effect=Effect.READ), run)

    assert job.status is JobStatus.FAILED
    assert "cannot be stored" in job.error["detail"]
