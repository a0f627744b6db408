"""Running claimed jobs: leases kept alive, outcomes written once, what was lost left for the sweeper.

Workers run jobs from the queue with it, front ends those that they accepted for a caller who waits.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from gateway import errors
from gateway.connectors.responses import Answer
from gateway.connectors.spec import Effect
from gateway.errors import GatewayError, InternalError, JobCanceled, Unavailable, UpstreamRateLimited
from gateway.jobs import results
from gateway.jobs.model import Job, JobStatus
from gateway.jobs.store import Ending, JobStore, LostLease

log = logging.getLogger(__name__)

#: seconds between heartbeats; a third of the lease
HEARTBEAT = 3.0
#: seconds between progress notes of one job
_PROGRESS_INTERVAL = 0.5

#: what a task does with its job: run it to an answer, keeping its journal
Task = Callable[[Job, "JobJournal"], Awaitable[Answer]]


class JobJournal:
    """A job's row as the journal of its run; every note carries the fence."""

    def __init__(self, store: JobStore, job: Job) -> None:
        self._store = store
        self._job = job
        self.state: Mapping[str, Any] = job.state
        #: whether a write has gone out whose answer is not here
        self.is_sending = False
        self._told_at = float("-inf")
        self.last: tuple[int, int | None] = (job.progress, job.total)

    async def sending(self) -> None:
        await self._store.sending(self._job)
        self.is_sending = True

    async def answered(self) -> None:
        # The note in the row is cleared by whatever is written next; until then a crash counts as an answer lost.
        self.is_sending = False

    async def save(self, state: Mapping[str, Any], records: Sequence[Any] = ()) -> None:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records).decode()
        await self._store.save(self._job, state, lines)
        self.state, self.is_sending = state, False

    async def progress(self, done: int, total: int | None, message: str) -> None:
        now = asyncio.get_running_loop().time()
        is_news = (done, total) != self.last
        if not is_news or (now - self._told_at < _PROGRESS_INTERVAL and done != total):
            return
        self._told_at, self.last = now, (done, total)
        if await self._store.progress(self._job, done, total, message) and self._job.effect is Effect.READ:
            raise JobCanceled("canceled while it ran")


@dataclass(slots=True)
class _Held:
    job: Job
    task: asyncio.Task[None]
    journal: JobJournal
    is_canceled: bool = field(default=False)


class Runner:
    """The jobs that this process holds."""

    def __init__(self, store: JobStore, tasks: Mapping[str, Task], worker: str) -> None:
        self._store = store
        self._tasks = tasks
        self.worker = worker
        self._held: dict[UUID, _Held] = {}

    @property
    def held(self) -> int:
        return len(self._held)

    @asynccontextmanager
    async def keeping_leases(self) -> AsyncIterator["Runner"]:
        """Heartbeats go out for as long as the block lasts."""
        beat = asyncio.create_task(self._keep_leases(), name="keep leases")
        try:
            yield self
        finally:
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat

    async def run(self, job: Job) -> None:
        """Run a claimed job to its end, or leave it to others; never raises for what the job does."""
        await asyncio.wait([self.start(job)])

    def start(self, job: Job) -> asyncio.Task[None]:
        """Run a claimed job beside whatever else runs."""
        return self._hold(job, self._tasks[job.task])

    def adopt(self, job: Job, reading: "asyncio.Future[Answer]") -> None:
        """Take over what is running already: a read that outlasted its caller's patience."""

        async def read_on(_job: Job, _journal: JobJournal) -> Answer:
            return await reading

        self._hold(job, read_on)

    def _hold(self, job: Job, work: Task) -> asyncio.Task[None]:
        journal = JobJournal(self._store, job)
        task = asyncio.create_task(self._run(job, journal, work), name=f"job {job.id}")
        self._held[job.id] = _Held(job, task, journal)
        task.add_done_callback(lambda _: self._held.pop(job.id, None))
        return task

    async def _run(self, job: Job, journal: JobJournal, work: Task) -> None:
        try:
            try:
                ending = await self._ended(job, journal, work)
            except UpstreamRateLimited as limited:
                if job.is_inline:
                    ending = _failed(job, journal, limited)
                else:
                    await self._store.wait(job, float(limited.retry_after or 1), limited.detail)
                    return
            await self._store.finish(job, ending)
        except LostLease:
            log.warning("lost the lease; the result is dropped", extra={"job_id": str(job.id)})
        except Unavailable:
            log.warning("PostgreSQL is away; the job is left to its lease", extra={"job_id": str(job.id)})

    async def _ended(self, job: Job, journal: JobJournal, work: Task) -> Ending:
        try:
            answer = await work(job, journal)
            return await self._succeeded(job, journal, answer)
        except (LostLease, Unavailable, UpstreamRateLimited):
            raise
        except JobCanceled as canceled:
            return Ending(JobStatus.CANCELED, message=canceled.detail)
        except GatewayError as error:
            return _failed(job, journal, error)
        except asyncio.CancelledError:
            held = self._held.get(job.id)
            if held is not None and held.is_canceled:
                return Ending(JobStatus.CANCELED, message="canceled while it ran")
            raise
        except Exception:
            log.exception("a job failed by a bug", extra={"job_id": str(job.id)})
            return _failed(job, journal, InternalError())

    async def _succeeded(self, job: Job, journal: JobJournal, answer: Answer) -> Ending:
        head, lines = results.stored(answer)
        for part in lines:
            await self._store.save(job, journal.state, part)
        done, total = journal.last
        return Ending(
            JobStatus.SUCCEEDED, result=head, message=results.message(answer), progress=total or done, total=total
        )

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            held = {job_id: each.job.fence for job_id, each in self._held.items()}
            if not held:
                continue
            try:
                ours = await self._store.heartbeat(held)
            except Unavailable:
                continue
            for job_id in held:
                self._heed(job_id, ours.get(job_id))

    def _heed(self, job_id: UUID, cancel_requested: bool | None) -> None:
        """Stop what is no longer ours, and reads that nobody wants any more."""
        held = self._held.get(job_id)
        if held is None or held.task.done():
            return
        if cancel_requested is None:
            held.task.cancel()
        elif cancel_requested:
            self.cancel(job_id)

    def cancel(self, job_id: UUID) -> None:
        """Stop a read in progress; a write already sent runs to its true end."""
        held = self._held.get(job_id)
        if held is not None and held.job.effect is Effect.READ and not held.journal.is_sending:
            held.is_canceled = True
            held.task.cancel()

    async def drain(self, grace: float) -> list[tuple[UUID, int]]:
        """Let running work finish within `grace` seconds; hand back what was not sent, to be rung for again."""
        tasks = [held.task for held in self._held.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        handed_back = []
        for held in list(self._held.values()):
            if held.task.done() or held.journal.is_sending:
                continue
            held.task.cancel()
            attempt = await self._store.hand_back(held.job)
            if attempt is not None:
                handed_back.append((held.job.id, attempt))
        return handed_back


def _failed(job: Job, journal: JobJournal, error: GatewayError) -> Ending:
    document = errors.document(error)
    if error.is_outcome_unknown or (journal.is_sending and job.effect is Effect.WRITE and _is_lost(error)):
        return Ending(JobStatus.UNKNOWN, error={**document, "code": "outcome_unknown"}, message=error.detail)
    return Ending(JobStatus.FAILED, error=document, message=error.detail)


def _is_lost(error: GatewayError) -> bool:
    return isinstance(error, InternalError)
