"""Running claimed jobs: leases kept alive, outcomes written once, what was lost left for the sweeper.

Workers run jobs from the queue with it, front ends those that they accepted for a caller who waits.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from gateway.aio.background import ended
from gateway.connectors.responses import Answer
from gateway.errors import GatewayError, InternalError, JobCanceled, OutcomeUnknown, Unavailable, UpstreamTimeout
from gateway.jobs import results
from gateway.jobs.leases import Ending, Leases, LostLease
from gateway.jobs.model import CANCELED_UNSTARTED, Job, JobStatus
from gateway.jobs.outcome import classify_outcome, gives_key_back, is_requeued, must_go_on, told
from gateway.jobs.run_context import JobJournal, surely
from gateway.kinds.spec import Effect
from gateway.telemetry import tracing
from gateway.telemetry.logs import add_context
from gateway.telemetry.metrics import LEASES_LOST

log = logging.getLogger(__name__)

#: seconds between heartbeats; a third of the lease
HEARTBEAT = 3.0
#: seconds that one attempt may take, and a job with all its waiting
_LONGEST = 6 * 3600.0
_OLDEST = timedelta(days=1)
#: seconds until a job is tried again whose run found PostgreSQL away
_SOON = 1.0
#: characters of a result that go into the statement that ends the job
_SMALL = 64 << 10

#: what a task does with its job: run it to an answer, keeping its journal
Task = Callable[[Job, JobJournal], Awaitable[Answer]]
#: how a run came out
Outcome: TypeAlias = Answer | GatewayError


@dataclass(slots=True)
class _Held:
    job: Job
    task: "asyncio.Task[Outcome | None]"
    journal: JobJournal
    is_canceled: bool = False
    #: whether its work is over and the outcome is being written: from here on only the fence decides whose it is
    is_ending: bool = False
    #: set when PostgreSQL is away and the outcome cannot be written yet
    is_stuck: asyncio.Event = field(default_factory=asyncio.Event)


class Runner:
    """The jobs that this process holds."""

    def __init__(self, leases: Leases, tasks: Mapping[str, Task], worker: str) -> None:
        self._leases = leases
        self._tasks = tasks
        self.worker = worker
        self._held: dict[UUID, _Held] = {}

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def has_suspect(self) -> bool:
        """Whether one of them has lost a worker before."""
        return any(held.job.is_suspect for held in self._held.values())

    @asynccontextmanager
    async def keeping_leases(self) -> AsyncIterator["Runner"]:
        """Heartbeats go out for as long as the block lasts."""
        beat = asyncio.create_task(self._keep_leases(), name="keep leases")
        try:
            yield self
        finally:
            await ended(beat)

    def start(self, job: Job, on_end: Callable[[], None] = lambda: None) -> None:
        """Run a claimed job to its end beside whatever else runs, or leave it to others."""
        held = self._hold(job, self._tasks[job.task])
        held.task.add_done_callback(lambda _: on_end())

    async def run(self, job: Job) -> Answer:
        """Run a job for the caller who waits: its answer once that is stored; raises the job's error.

        Raises Unavailable when it cannot be stored for now; it will be, as soon as PostgreSQL is back.
        """
        held = self._hold(job, self._tasks[job.task])
        stuck = asyncio.create_task(held.is_stuck.wait())
        await asyncio.wait([held.task, stuck], return_when=asyncio.FIRST_COMPLETED)
        stuck.cancel()
        outcome = held.task.result() if held.task.done() and not held.task.cancelled() else None
        if isinstance(outcome, Answer):
            return outcome
        if outcome is not None:
            raise outcome
        raise Unavailable("the outcome cannot be stored now; send the same request with the same key", retry_after=2)

    def adopt(self, job: Job, reading: "asyncio.Future[Answer]") -> None:
        """Take over what is running already: a read that outlasted its caller's patience."""

        async def read_on(_job: Job, _journal: JobJournal) -> Answer:
            return await reading

        self._hold(job, read_on)

    def _hold(self, job: Job, work: Task) -> _Held:
        journal = JobJournal(self._leases, job)
        task = asyncio.create_task(self._run(job, journal, work), name=f"job {job.id}")
        held = self._held[job.id] = _Held(job, task, journal)
        task.add_done_callback(lambda _: self._held.pop(job.id, None))
        return held

    async def _run(self, job: Job, journal: JobJournal, work: Task) -> Outcome | None:
        """How it came out, once that is written; None when that is no longer ours to write."""
        _tell_whose(job)
        try:
            with tracing.span(f"job {job.task}", "consumer", job_id=str(job.id), attempt=job.attempt):
                outcome = await self._outcome(job, journal, work)
            held = self._held[job.id]
            held.is_ending = True
            return await surely(lambda: self._write(job, journal, outcome), held.is_stuck.set)
        except LostLease:
            LEASES_LOST.add()
            log.warning("lost the lease; the result is dropped", extra={"job_id": str(job.id)})
            return None if journal.may_be_repeated else _too_late(job, journal)
        except Unavailable:
            log.error("PostgreSQL is away for too long; the result is dropped", extra={"job_id": str(job.id)})
            return None

    async def _outcome(self, job: Job, journal: JobJournal, work: Task) -> Outcome:
        if job.cancel_requested and not must_go_on(job, journal.state):
            return JobCanceled(CANCELED_UNSTARTED if job.attempt == 1 else "canceled before it ran again")
        try:
            async with asyncio.timeout(_LONGEST):
                return await work(job, journal)
        except GatewayError as error:
            return error
        except TimeoutError:
            return UpstreamTimeout(f"the job was not done within {_LONGEST / 3600:.0f} hours")
        except asyncio.CancelledError:
            if self._held[job.id].is_canceled:
                return JobCanceled("canceled while it ran")
            raise
        except LostLease:
            raise
        except Exception:
            log.exception("a job failed by a bug", extra={"job_id": str(job.id)})
            return InternalError()

    async def _write(self, job: Job, journal: JobJournal, outcome: Outcome) -> Outcome:
        """The one write that ends the job, puts it aside, or lets go of it; what a caller who waits is told."""
        if isinstance(outcome, Answer):
            await self._leases.finish(job, await self._success(job, journal, outcome))
            return outcome
        if is_requeued(job, outcome, journal.sent_at) and datetime.now(UTC) - job.created_at < _OLDEST:
            await self._leases.wait(job, float(outcome.retry_after or _SOON), outcome.detail)
            return outcome
        ending = classify_outcome(job, outcome, journal.sent_at, journal.state)
        if job.is_inline and ending.status is not JobStatus.UNKNOWN and gives_key_back(outcome):
            await self._leases.release(job)
        else:
            await self._leases.finish(job, ending)
        return told(outcome, ending)

    async def _success(self, job: Job, journal: JobJournal, answer: Answer) -> Ending:
        head, number, lines = results.head_of(answer), 0, None
        for part in results.parts_of(answer):
            if lines is not None:
                await self._leases.put_part(job, number, lines)
            number, lines = number + 1, part
        if lines is not None and len(lines) > _SMALL:
            await self._leases.put_part(job, number, lines)
            lines = None
        if answer.collected is None:
            head["parts"] = number
        done, total = journal.last
        return Ending(
            JobStatus.SUCCEEDED,
            result=head,
            message=results.message(answer),
            progress=total or done,
            total=total,
            part=number,
            lines=lines,
        )

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            with contextlib.suppress(Unavailable):
                await self.beat()

    async def beat(self) -> None:
        """Lengthen all leases, and heed what became of the jobs meanwhile; raises Unavailable."""
        held = {job_id: each.job.fence for job_id, each in self._held.items()}
        ours = await self._leases.heartbeat(held) if held else {}
        for job_id in held:
            self._heed(job_id, ours.get(job_id))

    def _heed(self, job_id: UUID, cancel_requested: bool | None) -> None:
        """Stop what is no longer ours, and reads that nobody wants any more.

        A job whose end is being written may be gone from the heartbeat's answer because that end was written.
        """
        held = self._held.get(job_id)
        if held is None or held.is_ending or held.task.done():
            return
        if cancel_requested is None:
            held.task.cancel()
        elif cancel_requested:
            self._cancel(held)

    def heard(self, topic: str, subject: str) -> None:
        """News of a caller who wants a job canceled."""
        if topic == "cancel" and (held := self._held.get(UUID(subject))) is not None:
            self._cancel(held)

    def _cancel(self, held: _Held) -> None:
        """Stop a read in progress; a write already sent runs to its true end, and nothing more is sent after it."""
        if held.job.effect is Effect.READ and not (held.is_canceled or held.is_ending):
            held.is_canceled = True
            held.task.cancel()

    async def drain(self, grace: float) -> list[Job]:
        """Let running work finish within `grace` seconds; then hand back what was not sent, to be rung for again."""
        tasks = [held.task for held in self._held.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        left = list(self._held.values())
        for held in left:
            held.task.cancel()
        if left:
            await asyncio.wait([held.task for held in left])
        return [held.job for held in left if await self._is_handed_back(held)]

    async def _is_handed_back(self, held: _Held) -> bool:
        try:
            if held.journal.may_be_repeated:
                return not held.job.is_inline and await self._leases.hand_back(held.job)
            lost = InternalError("the process was stopped after the write had been sent; look it up")
            ending = classify_outcome(held.job, lost, held.journal.sent_at, held.journal.state)
            await self._leases.finish(held.job, ending)
        except (LostLease, Unavailable):
            log.warning("left a job to its lease", extra={"job_id": str(held.job.id)})
        return False


def _too_late(job: Job, journal: JobJournal) -> GatewayError:
    lost = OutcomeUnknown("a write was sent, and its answer came too late")
    return told(lost, classify_outcome(job, lost, journal.sent_at, journal.state))


def _tell_whose(job: Job) -> None:
    """Logs and traces of this run name the job, the request that asked for it, and its trace."""
    add_context(job_id=str(job.id), **({"request_id": job.request_id} if job.request_id else {}))
    if job.traceparent is not None:
        tracing.continued({"traceparent": job.traceparent})
