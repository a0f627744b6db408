"""Running jobs in one process: how each outcome is written, what is stopped, and what a shutdown leaves."""

import asyncio
import json
from collections.abc import AsyncIterator

import msgspec
import pytest

from gateway import errors
from gateway.connectors.responses import Answer
from gateway.jobs import results
from gateway.jobs.leases import Ending, Leases
from gateway.jobs.model import Job, JobStatus
from gateway.jobs.runner import Runner
from gateway.jobs.store import IdempotencyKey
from gateway.kinds.spec import Effect
from tests.jobs.conftest import WORKER

KEY = IdempotencyKey("k", b"request", 3600)


@pytest.fixture
async def tasks() -> dict:
    """The work of the job; a test puts its own in."""
    return {}


@pytest.fixture
async def runner(leases, tasks) -> AsyncIterator[Runner]:
    runner = Runner(leases, tasks, WORKER)
    async with runner.keeping_leases():
        yield runner
        await runner.drain(0)


@pytest.fixture
def work(tasks):
    """`work(function)`: what jobs do from now on."""
    return lambda function: tasks.update(operation=function)


def answer(document) -> Answer:
    return Answer(msgspec.Raw(json.dumps(document).encode()))


async def ended(jobs, runner, job: Job) -> Job:
    done = asyncio.Event()
    runner.start(job, done.set)
    await done.wait()
    return await jobs.get(job.organization_id, job.id)


async def whole(jobs, job: Job) -> bytes:
    lines = jobs.lines(job, results.stored_parts(job))
    return b"".join([piece async for piece in results.document(job.result, lines)])


@pytest.mark.parametrize("document", [{"id": 1}, [], [{"id": 1}, {"id": 2}], [{"n": "x" * 100}] * 2500, None])
async def test_an_answer_is_stored_and_put_together_again(jobs, runner, claimed, work, document):
    async def run(job, journal):
        return answer(document)

    work(run)
    job = await ended(jobs, runner, await claimed())

    assert job.status is JobStatus.SUCCEEDED
    assert json.loads(await whole(jobs, job)) == document


async def test_what_an_earlier_attempt_left_is_not_in_the_result(jobs, leases, runner, claimed, work):
    async def run(job, journal):
        return answer([1])

    work(run)
    job = await claimed()
    for part in (1, 2, 3):
        await leases.put_part(job, part, "0\n")
    job = await ended(jobs, runner, job)

    assert json.loads(await whole(jobs, job)) == [1]


async def test_records_in_the_journal_are_part_of_the_result(jobs, runner, claimed, work):
    async def run(job, journal):
        await journal.save({"at": 1}, [{"id": 1}, {"id": 2}])
        return Answer(msgspec.Raw(b'{"message":"2 of 2 tickets updated","results":[]}'), collected="results")

    work(run)
    job = await ended(jobs, runner, await claimed())

    assert json.loads(await whole(jobs, job))["results"] == [{"id": 1}, {"id": 2}]
    assert job.message == "2 of 2 tickets updated"


async def test_a_limited_job_waits_with_the_time_it_is_tried_again(jobs, runner, claimed, work):
    async def run(job, journal):
        raise errors.UpstreamRateLimited("slow down", retry_after=30)

    work(run)
    job = await ended(jobs, runner, await claimed())

    assert (job.status, job.message) == (JobStatus.WAITING, "slow down")
    assert 25 < (job.next_attempt_at - job.created_at).total_seconds() < 35


async def test_a_bug_fails_the_job_and_tells_nothing_of_the_inside(jobs, runner, claimed, work):
    async def run(job, journal):
        raise RuntimeError("a secret")

    work(run)
    job = await ended(jobs, runner, await claimed())

    assert (job.status, job.error["code"]) == (JobStatus.FAILED, "internal_error")
    assert "secret" not in json.dumps(job.error)


async def test_a_bug_after_a_write_was_sent_leaves_its_outcome_unknown(jobs, runner, claimed, work):
    async def run(job, journal):
        await journal.sending()
        raise RuntimeError

    work(run)
    job = await ended(jobs, runner, await claimed())

    assert job.status is JobStatus.UNKNOWN


async def test_words_with_a_nul_in_them_can_be_kept(jobs, runner, claimed, work):
    async def run(job, journal):
        await journal.progress(1, 2, "one\0two")
        raise errors.UpstreamRejected("bad\0words")

    work(run)
    job = await ended(jobs, runner, await claimed())

    assert (job.status, job.message) == (JobStatus.FAILED, "badwords")


async def test_a_cancellation_that_is_heard_stops_a_read(jobs, runner, claimed, work):
    async def run(job, journal):
        await asyncio.Event().wait()

    work(run)
    job = await claimed(effect=Effect.READ)
    done = asyncio.Event()
    runner.start(job, done.set)
    await asyncio.sleep(0)

    runner.heard("cancel", str(job.id))
    await done.wait()

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.CANCELED


async def test_a_write_is_not_stopped_but_sends_nothing_more(jobs, runner, claimed, work):
    may_go_on, sent = asyncio.Event(), []

    async def run(job, journal):
        for number in range(3):
            await journal.sending()
            sent.append(number)
            await may_go_on.wait()
            journal.answered()
            await journal.save({"done": number})
        return answer(None)

    work(run)
    job = await claimed()
    done = asyncio.Event()
    runner.start(job, done.set)
    while not sent:  # noqa: ASYNC110  it goes on in the same loop
        await asyncio.sleep(0)
    await jobs.request_cancel(job.organization_id, job.id)
    runner.heard("cancel", str(job.id))
    may_go_on.set()
    await done.wait()

    assert sent == [0]
    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.CANCELED


async def test_a_job_that_was_canceled_before_it_began_does_nothing(jobs, leases, runner, new_job, work):
    async def run(job, journal):
        raise AssertionError

    work(run)
    await jobs.accept(new_job())
    job = (await leases.claim(WORKER, 1, 100))[0]
    await jobs.request_cancel(job.organization_id, job.id)
    await leases.hand_back(job)

    assert (await jobs.get(job.organization_id, job.id)).status is JobStatus.CANCELED


async def test_a_shutdown_lets_work_finish_and_hands_back_what_was_not_sent(jobs, runner, claimed, work):
    async def run(job, journal):
        if job.params["what"] == "sent":
            await journal.sending()
        if job.params["what"] != "quick":
            await asyncio.Event().wait()
        return answer(None)

    work(run)
    held = [await claimed(params={"what": what}) for what in ("quick", "unsent", "sent")]
    for job in held:
        runner.start(job)

    returned = await runner.drain(0.3)
    states = [(await jobs.get(job.organization_id, job.id)).status for job in held]

    assert states == [JobStatus.SUCCEEDED, JobStatus.QUEUED, JobStatus.UNKNOWN]
    assert [job.id for job in returned] == [held[1].id]


async def test_an_inline_call_answers_once_it_is_stored(jobs, runner, new_job, work):
    async def run(job, journal):
        return answer({"id": 1})

    work(run)
    accepted = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)
    got = await runner.run(accepted.job)
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)

    assert got.decoded() == {"id": 1}
    assert (again.is_new, again.job.status) == (False, JobStatus.SUCCEEDED)


@pytest.mark.parametrize(
    ("error", "is_free"), [(errors.UpstreamRateLimited(retry_after=1), True), (errors.UpstreamNotFound(), False)]
)
async def test_an_inline_call_that_came_to_nothing_leaves_its_key_free(jobs, runner, new_job, work, error, is_free):
    async def run(job, journal):
        raise error

    work(run)
    accepted = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)
    with pytest.raises(type(error)):
        await runner.run(accepted.job)
    again = await jobs.accept(new_job(is_inline=True), KEY, claimed_by=WORKER)

    assert again.is_new is is_free


async def test_a_read_that_is_taken_over_ends_as_a_job(jobs, runner, new_job):
    reading: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    job = (await jobs.accept(new_job(effect=Effect.READ), claimed_by=WORKER)).job

    runner.adopt(job, reading)
    reading.set_result(answer([1, 2]))
    await runner.drain(5)
    ended = await jobs.get(job.organization_id, job.id)

    assert ended.status is JobStatus.SUCCEEDED
    assert json.loads(await whole(jobs, ended)) == [1, 2]


async def test_a_job_whose_end_was_just_written_is_not_taken_for_a_lost_one(database, tasks, claimed, work):
    written, may_be_heard = asyncio.Event(), asyncio.Event()

    class Slow(Leases):
        """Hears of its own write late, as a busy process does."""

        async def finish(self, job: Job, ending: Ending) -> None:
            await super().finish(job, ending)
            written.set()
            await may_be_heard.wait()

    async def run(job, journal):
        return answer({"id": 1})

    work(run)
    runner = Runner(Slow(database, 3600), tasks, WORKER)
    waiting = asyncio.create_task(runner.run(await claimed()))
    await written.wait()

    await runner.beat()
    may_be_heard.set()

    assert (await waiting).decoded() == {"id": 1}
