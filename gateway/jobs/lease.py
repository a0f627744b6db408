"""A lease: one claim of a job by this process, with the work under it, its run context and its cancellation.

It is held by job id and fence. A job that this process claims again, because it was frozen for longer than its lease,
is another lease: what the first still does is refused by the fence and ends without touching the second.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from gateway.aio.clock import CLOCK, steady
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.db.retries import retry_until_available
from gateway.errors import (
    GatewayError,
    InternalError,
    JobCanceled,
    OutcomeUnknown,
    Unavailable,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from gateway.jobs import results
from gateway.jobs.leases import LEASE, JobOutcome, LeaseKey, Leases, LostLease
from gateway.jobs.model import CANCELED_UNDONE, CANCELED_UNSTARTED, StoredJob
from gateway.jobs.outcome import classify_outcome, is_requeued, must_go_on, releases_key, with_outcome
from gateway.telemetry import tracing
from gateway.telemetry.metrics import LEASES_LOST
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: seconds that one attempt may take, and a job with all its waiting
_LONGEST = 6 * 3600.0
_OLDEST = timedelta(days=1)
#: seconds until the retry of a job whose run found PostgreSQL unavailable
_RETRY_AFTER_UNAVAILABLE = 1.0
#: characters of a result that go into the statement that ends the job
_SMALL = 64 << 10

#: seconds between progress notes of one job
_PROGRESS_INTERVAL = 0.5

#: what is done for a job: run it to an answer, with its run context
Work = Callable[[StoredJob, "JobRunContext"], Awaitable[OperationResult]]
#: how a run came out
Outcome: TypeAlias = OperationResult | GatewayError


class JobRunContext:
    """A job's row as the context of its run: what it notes as it goes, each note with the fence."""

    def __init__(self, leases: Leases, job: StoredJob) -> None:
        self._leases = leases
        self._job = job
        self.state: Mapping[str, Any] = job.state
        #: when a request went out whose answer is not stored yet, be it by an earlier attempt
        self.sent_at: datetime | None = job.in_flight_since
        #: whether this process knows that a byte of it went out; a mark by another process does not say so
        self.is_sent = False
        #: requests whose answers are in no saved state; a run may send several side by side
        self._in_flight = 0
        #: what is noted of them goes out one after the other, as it happened
        self._write_lock = asyncio.Lock()
        self._parts = job.parts
        self._reported_at = float("-inf")
        self.last_progress: tuple[int, int | None] = (job.progress, job.total)
        #: whether this attempt has saved anything: a job that goes on may wait again however old it is
        self.has_saved = False
        #: whether a caller wants the job canceled
        self.is_canceled = job.cancel_requested
        #: set when the run is to send nothing more: the job is canceled, or its worker shuts down
        self.stopping = asyncio.Event()

    def stop(self, *, is_canceled: bool = False) -> None:
        """Ask the run to send nothing more; runs that do not watch `stopping` go on."""
        self.is_canceled = self.is_canceled or is_canceled
        self.stopping.set()

    @property
    def may_be_repeated(self) -> bool:
        """Whether the work since the last saved state can be done again without harm."""
        return self.sent_at is None or self._job.effect is not Effect.WRITE

    async def mark_in_flight(self) -> None:
        async with self._write_lock:
            asked_at = steady()
            if not await self._leases.mark_in_flight(self._job):
                raise JobCanceled(CANCELED_UNDONE)
            self._in_flight += 1
            self.sent_at = self.sent_at or CLOCK.now()
        # A process that was frozen in between must not send: others may have taken its job for lost.
        if steady() - asked_at > LEASE / 2:
            raise LostLease

    def first_byte_sent(self) -> None:
        self.is_sent = True

    async def clear_in_flight(self) -> None:
        async with self._write_lock:
            self._in_flight -= 1
            if not self._in_flight:
                await retry_until_available(lambda: self._leases.clear_in_flight(self._job))
                self.sent_at, self.is_sent = self._job.in_flight_since, False

    def refused(self) -> None:
        self._in_flight -= 1

    async def checkpoint(
        self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None, *, answers: int = 0
    ) -> None:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records).decode()
        await self.save(state, {part or self._parts + 1: lines} if lines else {}, answers=answers)

    async def save(self, state: Mapping[str, Any], parts: Mapping[int, str], *, answers: int = 0) -> None:
        """Keep this state for a later attempt and these numbered parts of the result, JSON lines each, or neither."""
        async with self._write_lock:
            is_answered = self._in_flight <= answers  # reads have answers too, and are not marked
            await retry_until_available(
                lambda: self._leases.checkpoint(self._job, state, parts, is_answered=is_answered)
            )
            self._in_flight = max(0, self._in_flight - answers)
            self.state, self._parts, self.has_saved = state, max([self._parts, *parts]), True
            if is_answered:
                self.sent_at, self.is_sent = None, False

    async def progress(self, done: int, total: int | None, message: str) -> None:
        now = asyncio.get_running_loop().time()
        is_changed = (done, total) != self.last_progress
        if not is_changed or (now - self._reported_at < _PROGRESS_INTERVAL and done != total):
            return
        self._reported_at, self.last_progress = now, (done, total)
        try:
            is_canceled = await self._leases.progress(self._job, done, total, message)
        except Unavailable:
            return
        if is_canceled and self._job.effect is Effect.READ:
            raise JobCanceled("canceled while it ran")


class Lease:
    """A claimed job at work; made in a running loop, where it begins at once."""

    def __init__(self, leases: Leases, job: StoredJob, work: Work) -> None:
        self.job = job
        self.run_context = JobRunContext(leases, job)
        #: done once PostgreSQL is away, so that the outcome cannot be written yet
        self.database_away: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leases = leases
        self._is_canceled = False
        #: whether the work is over and its outcome is being written: from here on only the fence decides whose it is
        self._is_finishing = False
        #: the outcome once it is written; None where it is no longer ours to write
        self.task: asyncio.Task[Outcome | None] = asyncio.create_task(self._run(work), name=f"job {job.id}")

    @property
    def key(self) -> LeaseKey:
        return self.job.id, self.job.fence

    def cancel(self) -> None:
        """Stop a read in progress; a write already sent runs to its true end, and nothing more is sent after it."""
        self.run_context.stop(is_canceled=True)
        if self.job.effect is Effect.READ and not (self._is_canceled or self._is_finishing):
            self._is_canceled = True
            self.task.cancel()

    def lose(self) -> bool:
        """Stop: another worker holds the job, or it has ended. False while this lease stores the final state."""
        return not self._is_finishing and self.task.cancel()

    async def _run(self, work: Work) -> Outcome | None:
        job = self.job
        _add_job_context(job)
        try:
            with tracing.span(f"job {job.task}", "consumer", job_id=str(job.id), attempt=job.attempt):
                outcome = await self._outcome(work)
            self._is_finishing = True
            # Written twice it does no harm: the fence, or the end that was written, refuses the second.
            return await retry_until_available(lambda: self._write(outcome), self._on_away)
        except LostLease:
            LEASES_LOST.add()
            log.warning("lost the lease; the result is dropped", extra={"job_id": str(job.id)})
            with contextlib.suppress(Unavailable):
                await self._leases.restore([self.key])
            return None if self.run_context.may_be_repeated else self._too_late()
        except Unavailable:
            log.error("PostgreSQL is away for too long; the result is dropped", extra={"job_id": str(job.id)})
            return None

    def _on_away(self) -> None:
        if not self.database_away.done():
            self.database_away.set_result(None)

    async def _outcome(self, work: Work) -> Outcome:
        if self.job.cancel_requested and not must_go_on(self.job, self.run_context.state):
            return JobCanceled(CANCELED_UNSTARTED if self.job.attempt == 1 else "canceled before it ran again")
        try:
            async with asyncio.timeout(_LONGEST):
                return await work(self.job, self.run_context)
        except GatewayError as error:
            return error
        except TimeoutError:
            return UpstreamTimeout(f"the job was not done within {_LONGEST / 3600:.0f} hours")
        except asyncio.CancelledError:
            if self._is_canceled:
                return JobCanceled("canceled while it ran")
            raise
        except LostLease:
            raise
        except Exception:
            log.exception("a job failed by a bug", extra={"job_id": str(self.job.id)})
            return InternalError()

    async def _write(self, outcome: Outcome) -> Outcome:
        """The one write that ends the job, defers it, or deletes an inline one; what a caller who waits gets."""
        job, run_context = self.job, self.run_context
        if isinstance(outcome, OperationResult):
            await self._leases.finish(job, await self._success(outcome))
            return outcome
        may_wait = run_context.has_saved or CLOCK.now() - job.created_at < _OLDEST
        if may_wait and is_requeued(job, outcome, run_context.sent_at):
            await self._leases.defer(job, float(outcome.retry_after or _RETRY_AFTER_UNAVAILABLE), outcome.detail)
            await self._hold_connector(outcome)
            return outcome
        job_outcome = self._classified(outcome)
        if job.is_inline and job_outcome.status is not JobStatus.UNKNOWN and releases_key(outcome):
            await self._leases.release(job)
        else:
            await self._leases.finish(job, job_outcome)
        return with_outcome(outcome, job_outcome)

    def _too_late(self) -> GatewayError:
        lost = OutcomeUnknown("the answer to a write came too late", extra={"outcome": "unknown"})
        return with_outcome(lost, self._classified(lost))

    def _classified(self, error: GatewayError) -> JobOutcome:
        run_context = self.run_context
        return classify_outcome(self.job, error, run_context.sent_at, run_context.state, is_sent=run_context.is_sent)

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
        head, number, lines = results.head_of(result), 0, None
        for part in results.parts_of(result):
            if lines is not None:
                await self._leases.store_part(self.job, number, lines)
            number, lines = number + 1, part
        if lines is not None and len(lines) > _SMALL:
            await self._leases.store_part(self.job, number, lines)
            lines = None
        if result.collected is None:
            head["parts"] = number
        done, total = self.run_context.last_progress
        return JobOutcome(
            JobStatus.SUCCEEDED,
            result=head,
            message=results.message_of(head),
            progress=total or done,
            total=total,
            part=number,
            lines=lines,
        )

    async def requeue(self) -> bool:
        """Give up what was stopped: for another worker where nothing was sent; whether one is needed."""
        try:
            if self.run_context.may_be_repeated:
                return not self.job.is_inline and await self._leases.requeue(self.job)
            lost = InternalError("the process was stopped while the write was under way; look it up")
            await self._leases.finish(self.job, self._classified(lost))
        except (LostLease, Unavailable):
            log.warning("left a job to its lease", extra={"job_id": str(self.job.id)})
        return False


def _add_job_context(job: StoredJob) -> None:
    """Logs and traces of this run name the job, the request that asked for it, and its trace."""
    tracing.add_log_fields(job_id=str(job.id), **({"request_id": job.request_id} if job.request_id else {}))
    if job.traceparent is not None:
        tracing.continued({"traceparent": job.traceparent})
