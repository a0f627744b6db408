"""Runs the jobs of this process, each under a lease and ended by one write.

Workers run jobs from the queue; front ends run those that they accepted for a caller that waits. If the process was
frozen for longer than a lease and claims the same job again, this is a second lease: the fence refuses the writes of
the first one.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    InternalError,
    JobCanceled,
    OutcomeUnknown,
    Unavailable,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.loops import every, running
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.aio.turns import compute_for, in_thread
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import LEASES_LOST
from gateway.jobs import results
from gateway.jobs.leases import JobOutcome, JobWaits, LeaseKey, Leases, LostLease
from gateway.jobs.model import CANCELED_UNSTARTED, StoredJob
from gateway.jobs.outcome import classify_outcome, is_requeued, must_continue, releases_key, with_outcome
from gateway.jobs.run_context import JobRunContext, Work
from gateway.upstream.field_selection import without_result
from gateway.upstream.responses import OperationResult, created_id

log = logging.getLogger(__name__)

#: seconds between heartbeats; a third of the lease
HEARTBEAT = 3.0
#: maximum seconds of one attempt
_MAX_ATTEMPT = 6 * 3600.0
#: age after which a job does not wait any longer for an application or PostgreSQL
_MAX_AGE = timedelta(days=1)
#: seconds until the retry of a job whose run found PostgreSQL unavailable
_RETRY_AFTER_UNAVAILABLE = 1.0
#: maximum characters of a result that the statement stores that ends the job
_STORED_WITH_END = 64 << 10
#: bytes of a result that is put into its stored form in a thread
_LARGE = 1 << 20

#: the outcome of a run
Outcome: TypeAlias = OperationResult | GatewayError


T = TypeVar("T")
R = TypeVar("R")


async def _computed(function: Callable[[T], R], argument: T, *, is_large: bool) -> R:
    return await in_thread(function, argument) if is_large else function(argument)


def _following(parts: Iterator[str]) -> str | None:
    return next(parts, None)


class Runner:
    """Runs the jobs of this process; `heartbeat` is the seconds between heartbeats."""

    def __init__(self, leases: Leases, worker: str, *, heartbeat: float = HEARTBEAT) -> None:
        self._leases = leases
        self.worker = worker
        self._heartbeat = heartbeat
        self._held: dict[LeaseKey, Lease] = {}

    @property
    def jobs(self) -> list[StoredJob]:
        return [lease.job for lease in self._held.values()]

    @asynccontextmanager
    async def renewing_leases(self) -> AsyncIterator["Runner"]:
        """Send heartbeats for the duration of the block."""
        async with running(every(self._heartbeat, self.beat, name="heartbeat")):
            yield self

    def start(self, job: StoredJob, work: Work, on_end: Callable[[], None] = lambda: None) -> None:
        """Run a claimed job until it ends or the process shuts down; then another worker continues it."""
        self._hold(job, work).task.add_done_callback(lambda _: on_end())

    async def run(self, job: StoredJob, work: Work) -> OperationResult:
        """Run a job for a caller that waits, and return its result once that is stored; raises the job's error.

        Raises Unavailable while PostgreSQL is unavailable; the result is stored as soon as it is back. If the caller
        disconnects, the job continues.
        """
        lease = self._hold(job, work)
        ends: list[asyncio.Future[Any]] = [lease.task, lease.database_unavailable]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        outcome = lease.task.result() if lease.task.done() and not lease.task.cancelled() else None
        if isinstance(outcome, OperationResult):
            return outcome
        if outcome is not None:
            raise outcome
        raise Unavailable("the outcome cannot be stored now; send the same request with the same key", retry_after=2)

    def adopt(self, job: StoredJob, reading: "asyncio.Future[OperationResult]") -> None:
        """Continue a read as a job, because it took longer than its caller's timeout."""

        async def read_on(_job: StoredJob, _run_context: JobRunContext) -> OperationResult:
            return await reading

        self._hold(job, read_on)

    def _hold(self, job: StoredJob, work: Work) -> "Lease":
        lease = Lease(self._leases, job, work)
        self._held[lease.key] = lease
        lease.task.add_done_callback(lambda _: self._held.pop(lease.key, None))
        return lease

    async def beat(self) -> None:
        """Renew all leases, and stop canceled jobs and those whose lease is lost; raises Unavailable."""
        keys = list(self._held)
        if not keys:
            return
        alive = await self._leases.heartbeat(self.worker, keys)
        for key in keys:
            if alive.get(key) and key in self._held:
                self._held[key].cancel()
        # A lease that has just ended may be missing in the response; its outcome is stored already.
        lost = [key for key in keys if key not in alive and key in self._held and self._held[key].lose()]
        if lost:
            await self._leases.restore(lost)

    def on_notify(self, job_id: str) -> None:
        """Handle a notification: the job's cancellation was requested."""
        canceled_id = UUID(job_id)
        for lease in list(self._held.values()):
            if lease.job.id == canceled_id:
                lease.cancel()

    async def drain(self, grace: float) -> list[StoredJob]:
        """Let jobs finish within `grace` seconds, then stop the others; returns those that are queued again."""
        for lease in self._held.values():
            lease.run_context.stop()
        if self._held:
            await asyncio.wait([lease.task for lease in self._held.values()], timeout=grace)
        left = list(self._held.values())
        for lease in left:
            lease.task.cancel()
        if left:
            await asyncio.wait([lease.task for lease in left])
        are_queued = await asyncio.gather(*(lease.requeue() for lease in left))
        return [lease.job for lease, is_queued in zip(left, are_queued, strict=True) if is_queued]


class Lease:
    """The run of a claimed job, which starts at once in the running event loop."""

    def __init__(self, leases: Leases, job: StoredJob, work: Work) -> None:
        self.job = job
        self.key: LeaseKey = (job.id, job.fence)
        self.run_context = JobRunContext(leases, job)
        #: done once PostgreSQL is unavailable, so that the outcome cannot be stored yet
        self.database_unavailable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leases = leases
        self._is_canceled = False
        #: whether the work has ended and its outcome is being stored: from now on only the fence decides
        self._is_finishing = False
        #: the outcome once it is stored; None if this worker has lost the lease
        self.task: asyncio.Task[Outcome | None] = asyncio.create_task(self._run(work), name=f"job {job.id}")

    def cancel(self) -> None:
        """Stop a read in progress; a write already sent is allowed to finish, and nothing more is sent after it."""
        self.run_context.stop(is_canceled=True)
        if self.job.effect is Effect.READ and not (self._is_canceled or self._is_finishing):
            self._is_canceled = True
            self.task.cancel()

    def lose(self) -> bool:
        """Stop, because another worker holds the job or it has ended; false while this lease stores the outcome."""
        return not self._is_finishing and self.task.cancel()

    async def _run(self, work: Work) -> Outcome | None:
        job = self.job
        _add_job_context(job)
        if job.attempt == 1 and not job.is_inline:
            tracing.record_wait("wait in the queue", (CLOCK.now() - job.created_at).total_seconds())
        compute_for(job.organization_id)
        try:
            with tracing.span(f"job {job.task}", "consumer", job_id=str(job.id), attempt=job.attempt):
                outcome = await self._outcome(work)
            self._is_finishing = True
            return await self._store(outcome)
        except JobWaits:
            return None
        except LostLease:
            LEASES_LOST.add()
            log.warning("lost the lease; the result is dropped", extra={"job_id": str(job.id)})
            with contextlib.suppress(Unavailable):
                await self._leases.restore([self.key])
            return None if self.run_context.may_be_repeated else self._lost_write()
        except Unavailable:
            log.error("PostgreSQL was unavailable for too long; the result is dropped", extra={"job_id": str(job.id)})
            return None

    async def _store(self, outcome: Outcome) -> Outcome:
        """Store the outcome; if it cannot be stored, end the job with that as its error."""
        # A repetition is safe: the fence or the final state of the row refuses the second write.
        try:
            return await retry_until_available(lambda: self._write(outcome), self._on_unavailable)
        except (LostLease, Unavailable):
            raise
        except Exception as error:
            unstorable = self._bug("the outcome of the job cannot be stored", error)
            return await retry_until_available(lambda: self._write(unstorable), self._on_unavailable)

    def _bug(self, what: str, error: BaseException) -> GatewayError:
        """Log an error that is no GatewayError; the job's error names its class, and never what it says."""
        log.error("%s because of a bug", what, exc_info=error, extra={"job_id": str(self.job.id)})
        return InternalError(f"{what}: {type(error).__name__}; the gateway's log has the details under this job's id")

    def _on_unavailable(self) -> None:
        if not self.database_unavailable.done():
            self.database_unavailable.set_result(None)

    async def _outcome(self, work: Work) -> Outcome:
        if self.job.cancel_requested and not must_continue(self.job, self.run_context.state):
            return JobCanceled(CANCELED_UNSTARTED if self.job.attempt == 1 else "canceled before it ran again")
        limit = asyncio.timeout(_MAX_ATTEMPT)
        try:
            async with limit:
                return await work(self.job, self.run_context)
        except GatewayError as error:
            return error
        except (LostLease, JobWaits, GeneratorExit):
            raise
        # Also one that is no Exception: a job whose run ends without an outcome would count as that of a lost worker.
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._is_canceled:
                return JobCanceled("canceled while it ran")
            if isinstance(error, asyncio.CancelledError) and _is_cancelled_from_outside():
                raise
            if isinstance(error, TimeoutError) and limit.expired():
                return UpstreamTimeout(f"the job was not done within {_MAX_ATTEMPT / 3600:.0f} hours")
            return self._bug("the run of the job failed", error)

    async def _write(self, outcome: Outcome) -> Outcome:
        """End the job, let it wait, or delete an inline one; returns the answer for a caller that waits."""
        job, run_context = self.job, self.run_context
        if isinstance(outcome, OperationResult):
            try:
                success = await self._success(outcome)
            except UpstreamInvalidResponse as error:
                if job.effect is Effect.READ:
                    return await self._write(error)
                success = await self._success(without_result(job.effect, outcome, error))
            await self._leases.finish(job, success)
            return outcome
        may_wait = run_context.has_saved or CLOCK.now() - job.created_at < _MAX_AGE
        if may_wait and is_requeued(job, outcome, run_context.sent_at):
            pause, is_followed = outcome.retry_after or _RETRY_AFTER_UNAVAILABLE, must_continue(job, run_context.state)
            await self._leases.defer(job, float(pause), outcome.detail, is_followed=is_followed)
            await self._hold_connector(outcome)
            return outcome
        job_outcome = self._classified(outcome)
        if job.is_inline and job_outcome.status is not JobStatus.UNKNOWN and releases_key(outcome):
            await self._leases.release(job, outcome.code)
        else:
            await self._leases.finish(job, job_outcome)
        return with_outcome(outcome, job_outcome)

    def _lost_write(self) -> GatewayError:
        lost = OutcomeUnknown("the response to a write came after the lease was lost", extra={"outcome": "unknown"})
        return with_outcome(lost, self._classified(lost))

    def _classified(self, error: GatewayError) -> JobOutcome:
        run_context = self.run_context
        sent_at, state, (done, total, _) = run_context.sent_at, run_context.state, run_context.reported
        outcome = classify_outcome(self.job, error, sent_at, state, is_sent=run_context.is_sent)
        return replace(outcome, progress=done, total=total)

    async def _hold_connector(self, outcome: GatewayError) -> None:
        """After a 429, pause the connector's other jobs; they would be refused too.

        A background job does not pause them: its share of the limit is smaller.
        """
        if (
            isinstance(outcome, UpstreamRateLimited)
            and outcome.retry_after
            and self.job.connector_id is not None
            and not self.job.is_background
        ):
            with contextlib.suppress(Unavailable):
                await self._leases.hold(self.job.connector_id, float(outcome.retry_after))

    async def _success(self, result: OperationResult) -> JobOutcome:
        is_large = len(memoryview(result.result)) > _LARGE
        head, number, lines = await _computed(results.head_of, result, is_large=is_large), 0, None
        parts = results.parts_of(result)
        while (part := await _computed(_following, parts, is_large=is_large)) is not None:
            if lines is not None:
                await self._leases.store_part(self.job, number, lines)
            number, lines = number + 1, part
        if lines is not None and len(lines) > _STORED_WITH_END:
            await self._leases.store_part(self.job, number, lines)
            lines = None
        if result.collected is None:
            head["parts"] = number
        done, total, message = self.run_context.reported
        return JobOutcome(
            status=JobStatus.SUCCEEDED,
            result=head,
            message=results.message_of(head) or message,
            progress=total or done,
            total=total,
            part=number,
            lines=lines,
            target=None if self.job.effect is Effect.READ else created_id(result.result),
        )

    async def requeue(self) -> bool:
        """Requeue a stopped job if it can be repeated, or else end it; returns whether it is queued."""
        try:
            if self.run_context.may_be_repeated:
                return not self.job.is_inline and await self._leases.requeue(self.job)
            lost = InternalError("the process was stopped during the write; look it up")
            await self._leases.finish(self.job, self._classified(lost))
        except (LostLease, Unavailable):
            log.warning("a stopped job is not requeued until its lease expires", extra={"job_id": str(self.job.id)})
        return False


def _is_cancelled_from_outside() -> bool:
    """Whether the current task is being cancelled, as opposed to awaiting something that was."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


def _add_job_context(job: StoredJob) -> None:
    """Add the job, the request that created it and its trace to the logs and traces of this run."""
    tracing.add_log_fields(job_id=str(job.id), **({"request_id": job.request_id} if job.request_id else {}))
    if job.traceparent is not None:
        tracing.continue_trace({"traceparent": job.traceparent})
