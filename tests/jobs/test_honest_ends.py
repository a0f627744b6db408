"""Ends that say what happened: what is done once is told once, and what may have been done is never told undone."""

import asyncio
import json
from dataclasses import replace

import pytest

from gateway import errors
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import Unavailable
from gateway.foundation.aio.background import cancel_and_wait
from gateway.jobs import results
from gateway.jobs.leases import Leases
from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobRunContext, Work
from gateway.jobs.runner import Runner
from gateway.jobs.store import IdempotencyKey, JobStore
from gateway.upstream.prepared import prepare
from gateway.upstream.responses import OperationResult
from gateway.upstream.run_context import Effects
from tests.harness.waiting import eventually
from tests.jobs.conftest import SEALING, SHARES, WORKER
from tests.upstream.long_running.factory import factory

#: after three losses in a row a job is the only poison candidate of its worker, and the next loss ends it
ISOLATED = "UPDATE jobs SET worker_losses = 3 WHERE id = $1"
KEY = IdempotencyKey("k", b"request", 3600)
HALF = Effects(
    known={"batches_finished": 1, "items_done": 2, "items": 4},
    summary="2 of 4 tickets updated",
    result={"total": 4, "succeeded": 2, "failed": 0},
    collected="results",
)
HALF_DONE, UNDER_WAY = HALF.document(), replace(HALF, is_open=True).document()


class LosesAnswers(Leases):
    """Hears of its first write only that PostgreSQL went away, although it was committed."""

    has_lost = False

    async def checkpoint(self, *arguments: object, **members: object) -> None:
        await super().checkpoint(*arguments, **members)
        if not self.has_lost:
            self.has_lost = True
            raise Unavailable


@pytest.fixture
def runner(leases: Leases) -> Runner:
    return Runner(leases, WORKER)


async def after(jobs, job: StoredJob) -> StoredJob:
    return await jobs.get(job.organization_id, job.id)


async def nothing_more(job: StoredJob, run_context: JobRunContext) -> OperationResult:
    raise AssertionError


async def ended(jobs, runner: Runner, job: StoredJob, work: Work) -> StoredJob:
    done = asyncio.Event()
    runner.start(job, work, done.set)
    await done.wait()
    return await after(jobs, job)


async def partial(jobs, job: StoredJob):
    head = results.partial_result(job, await jobs.head(job))
    pieces = results.document(head, jobs.lines(job, job.parts))
    return json.loads(b"".join([piece async for piece in pieces]))


async def test_a_part_whose_commit_was_not_heard_of_is_there_once(database, jobs, claimed):
    job = await claimed(effect=Effect.IDEMPOTENT)
    run_context = JobRunContext(LosesAnswers(database, 3600, SEALING), job)

    await run_context.checkpoint(HALF_DONE, [{"id": 1}, {"id": 2}])
    saved = await after(jobs, job)

    assert saved.parts == 1
    assert [part async for part in jobs.lines(saved, saved.parts)] == ['{"id":1}\n{"id":2}\n']


async def test_parts_that_come_out_of_order_are_read_in_order(jobs, leases, claimed):
    run_context = JobRunContext(leases, await claimed(effect=Effect.IDEMPOTENT))

    await run_context.checkpoint({}, ["third"], 3)
    await run_context.checkpoint({}, ["first"], 1)
    saved = await after(jobs, run_context._job)

    assert [part async for part in jobs.lines(saved, saved.parts)] == ['"first"\n', '"third"\n']


async def test_a_refusal_for_now_is_durable_before_the_wait(jobs, leases, maintenance, claimed, lost):
    job = await claimed(effect=Effect.WRITE)
    run_context = JobRunContext(leases, job)
    await run_context.mark_in_flight()
    await run_context.clear_in_flight()

    await lost(job)
    await maintenance.reap()

    assert (await after(jobs, job)).status is JobStatus.QUEUED


async def test_one_of_several_requests_that_was_not_done_says_nothing_of_the_others(leases, claimed):
    run_context = JobRunContext(leases, await claimed(effect=Effect.IDEMPOTENT))
    await run_context.mark_in_flight()
    await run_context.mark_in_flight()

    await run_context.clear_in_flight()

    assert run_context.sent_at is not None


async def test_what_is_in_flight_while_something_else_is_saved_stays_noted(leases, claimed, sql):
    job = await claimed(effect=Effect.IDEMPOTENT)
    run_context = JobRunContext(leases, job)
    await run_context.mark_in_flight()
    await run_context.mark_in_flight()

    await run_context.checkpoint(UNDER_WAY, answers=1)

    assert (await sql("SELECT in_flight_since FROM jobs WHERE id = $1", job.id))[0][0] is not None


class SavesOneByOne(Leases):
    """Begins its first save when it may, and notes for each later one whether a write is marked as in flight then."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.is_saving, self.may_save = asyncio.Event(), asyncio.Event()
        self.marked: list[bool] = []

    async def checkpoint(self, job: StoredJob, *arguments: object, **members: object) -> None:
        if self.is_saving.is_set():
            async with self._database.system() as connection:
                marked = await connection.fetchval("SELECT in_flight_since IS NOT NULL FROM jobs WHERE id = $1", job.id)
            self.marked.append(marked)
        self.is_saving.set()
        await self.may_save.wait()
        await super().checkpoint(job, *arguments, **members)


class Refused(JobRunContext):
    """Tells when a request is noted as refused for now."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.is_refused = asyncio.Event()

    async def clear_in_flight(self) -> None:
        self.is_refused.set()
        await super().clear_in_flight()


async def test_a_portion_that_is_refused_for_now_hides_no_other_whose_answer_is_not_saved(database, claimed):
    leases = SavesOneByOne(database, 3600, SEALING)
    run_context = Refused(leases, await claimed(effect=Effect.WRITE))
    async with factory() as (application, connector):
        application.limited["c"] = asyncio.Event()
        # Starts that are writes are noted in the run's own state.
        operation = connector.kind.operation("things", "tag").changed(effect=Effect.IDEMPOTENT)
        call = prepare(operation, {"ids": ["a", "b", "c"]})
        running = asyncio.create_task(connector.run(call, run_context))
        await leases.is_saving.wait()
        await eventually(lambda: len(application.runs) == 2)
        application.limited["c"].set()
        await run_context.is_refused.wait()
        leases.may_save.set()
        await eventually(lambda: leases.marked)
        await cancel_and_wait(running)

    assert leases.marked[0]


async def test_an_updates_key_stays_taken_when_its_front_end_dies_after_sending(
    jobs, leases, maintenance, new_job, lost
):
    new = new_job(effect=Effect.IDEMPOTENT, is_inline=True)
    call = (await jobs.accept(new, KEY, claimed_by=WORKER)).job
    await leases.mark_in_flight(call)
    await lost(call)

    await maintenance.reap()
    again = await jobs.accept(new_job(effect=Effect.IDEMPOTENT, is_inline=True), KEY, claimed_by=WORKER)

    assert not again.is_new
    assert again.job.status is JobStatus.UNKNOWN
    assert again.job.error["safe_to_retry"] is True


async def test_an_updates_key_stays_taken_when_its_answer_was_lost(jobs, runner, new_job):
    async def work(job, run_context):
        await run_context.mark_in_flight()
        raise errors.UpstreamError("the connection broke", extra={"outcome": "unknown"})

    call = (await jobs.accept(new_job(effect=Effect.IDEMPOTENT, is_inline=True), KEY, claimed_by=WORKER)).job
    with pytest.raises(errors.UpstreamError) as raised:
        await runner.run(call, work)
    again = await jobs.accept(new_job(effect=Effect.IDEMPOTENT, is_inline=True), KEY, claimed_by=WORKER)

    assert raised.value.is_outcome_unknown
    assert raised.value.extra["safe_to_retry"] is True
    assert (again.is_new, again.job.status) == (False, JobStatus.UNKNOWN)


async def test_an_update_that_lost_its_workers_after_sending_is_unknown(jobs, leases, maintenance, claimed, lost, sql):
    job = await claimed(effect=Effect.IDEMPOTENT)
    await leases.mark_in_flight(job)
    await sql(ISOLATED, job.id)
    await lost(job)

    await maintenance.reap()
    given_up = await after(jobs, job)

    assert given_up.status is JobStatus.UNKNOWN
    assert given_up.error["safe_to_retry"] is True


async def test_a_bulk_update_that_lost_its_workers_is_unknown_with_what_was_done(
    jobs, leases, maintenance, claimed, lost, sql
):
    job = await claimed(effect=Effect.IDEMPOTENT)
    await leases.checkpoint(job, HALF_DONE, {1: '{"id":1}\n{"id":2}\n'})
    await sql(ISOLATED, job.id)
    await lost(job)

    await maintenance.reap()
    given_up = await after(jobs, job)

    assert given_up.status is JobStatus.UNKNOWN
    assert given_up.error["known"]["batches_finished"] == 1
    assert "2 of 4 tickets updated" in given_up.message
    assert (await partial(jobs, given_up))["results"] == [{"id": 1}, {"id": 2}]


async def test_a_job_canceled_in_the_middle_counts_what_was_done(jobs, leases, claims, runner, claimed):
    job = await claimed(effect=Effect.IDEMPOTENT)
    await leases.checkpoint(job, HALF_DONE, {1: '{"id":1}\n{"id":2}\n'})
    await leases.defer(job, 3600, "limited")
    told = await jobs.request_cancel(job.organization_id, job.id)
    taken = (await claims.claim(WORKER, 1, SHARES))[0]
    canceled = await ended(jobs, runner, taken, nothing_more)

    assert told.status is JobStatus.QUEUED
    assert canceled.status is JobStatus.CANCELED
    assert "2 of 4 tickets updated" in canceled.message
    assert (await partial(jobs, canceled))["results"] == [{"id": 1}, {"id": 2}]


async def test_a_canceled_job_whose_batch_the_application_works_at_is_followed_first(
    jobs, leases, claims, runner, claimed
):
    async def work(job, run_context):
        await run_context.checkpoint(HALF_DONE)
        raise errors.JobCanceled("canceled; nothing was done")

    job = await claimed(effect=Effect.IDEMPOTENT)
    await leases.checkpoint(job, UNDER_WAY, {1: "1\n"})
    await leases.defer(job, 3600, "limited")
    await jobs.request_cancel(job.organization_id, job.id)
    taken = (await claims.claim(WORKER, 1, SHARES))[0]

    canceled = await ended(jobs, runner, taken, work)

    assert canceled.status is JobStatus.CANCELED
    assert canceled.error["known"]["items_done"] == 2


async def test_a_canceled_job_waits_while_the_application_does_not_say_how_its_work_ended(
    jobs, leases, claims, runner, claimed
):
    async def refused(job, run_context):
        raise errors.UpstreamRateLimited("too many requests", retry_after=3600)

    job = await claimed(effect=Effect.IDEMPOTENT)
    await leases.checkpoint(job, UNDER_WAY, {1: "1\n"})
    await leases.defer(job, 3600, "limited")
    await jobs.request_cancel(job.organization_id, job.id)
    taken = (await claims.claim(WORKER, 1, SHARES))[0]

    waiting = await ended(jobs, runner, taken, refused)

    assert (waiting.status, waiting.cancel_requested) == (JobStatus.WAITING, True)
    assert waiting.next_attempt_at > waiting.created_at


async def test_an_update_that_was_sent_and_lost_its_worker_is_not_canceled_as_if_it_had_not(
    jobs, leases, claims, maintenance, runner, claimed, lost
):
    job = await claimed(effect=Effect.IDEMPOTENT)
    await leases.mark_in_flight(job)
    await lost(job)
    await maintenance.reap()
    await jobs.request_cancel(job.organization_id, job.id)
    (again,) = await claims.claim("another", 1, SHARES)
    canceled = await ended(jobs, runner, again, nothing_more)

    assert canceled.status is JobStatus.UNKNOWN
    assert canceled.error["known"]["request_sent"] == "maybe"


@pytest.mark.parametrize(("is_sent", "request_sent"), [(True, True), (False, "maybe")])
async def test_a_request_is_known_as_sent_once_its_first_byte_went_out(jobs, runner, claimed, is_sent, request_sent):
    async def work(job, run_context):
        await run_context.mark_in_flight()
        if is_sent:
            run_context.first_byte_sent()
        raise errors.InternalError

    unknown = await ended(jobs, runner, await claimed(effect=Effect.WRITE), work)

    assert unknown.status is JobStatus.UNKNOWN
    assert unknown.error["known"]["request_sent"] == request_sent


async def test_what_was_answered_says_nothing_of_the_next_request(leases, claimed):
    run_context = JobRunContext(leases, await claimed(effect=Effect.IDEMPOTENT))
    await run_context.mark_in_flight()
    run_context.first_byte_sent()
    await run_context.checkpoint({}, answers=1)

    await run_context.mark_in_flight()

    assert not run_context.is_sent


@pytest.mark.parametrize(
    ("effect", "is_unknown"), [(Effect.WRITE, True), (Effect.IDEMPOTENT, True), (Effect.READ, False)]
)
async def test_a_job_whose_acceptance_was_not_heard_of_is_accepted_once_or_said_to_be_perhaps(
    database, new_job, effect, is_unknown
):
    class Deaf(JobStore):
        """Every commit is there, and none is heard of."""

        async def _accept_all(self, new):
            await super()._accept_all(new)
            away = Unavailable()
            away.was_sent = True
            raise away

    new = new_job(effect=effect)
    with pytest.raises(Unavailable) as raised:
        await Deaf(database, 3600, SEALING, timeout=0).accept(new)

    assert raised.value.is_outcome_unknown is is_unknown
    assert raised.value.retryable is not is_unknown
    assert raised.value.extra.get("known") == ({"job_id": str(new.id)} if is_unknown else None)


async def test_a_job_whose_acceptance_was_heard_of_late_is_there_once(database, jobs, new_job):
    class HardOfHearing(JobStore):
        has_lost = False

        async def _accept_all(self, new):
            accepted = await super()._accept_all(new)
            if not self.has_lost:
                self.has_lost = True
                away = Unavailable()
                away.was_sent = True
                raise away
            return accepted

    new = new_job()
    accepted = await HardOfHearing(database, 3600, SEALING).accept(new)

    assert accepted.job == await jobs.get_stored(new.organization_id, new.id)
