"""The context of a job's run, which writes to the job's row while the work goes on."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from gateway.access.audit.entry import Entry
from gateway.contract.kinds import Effect
from gateway.errors import JobCanceled, Unavailable
from gateway.foundation.aio.clock import CLOCK, steady
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.aio.turns import in_thread
from gateway.jobs.leases import LEASE, Leases, LostLease
from gateway.jobs.model import CANCELED_UNDONE, StoredJob
from gateway.jobs.settlements import call_id_of
from gateway.upstream.responses import OperationResult

#: minimum seconds between two writes of a job's progress
_PROGRESS_INTERVAL = 0.5
#: records, and bytes of them, that are put on lines in a thread
_MANY, _LARGE = 5000, 256 << 10


class JobRunContext:
    """Stores requests in flight, state, parts of the result and progress; every method may raise LostLease."""

    def __init__(self, leases: Leases, job: StoredJob) -> None:
        self._leases = leases
        self._job = job
        self.state: Mapping[str, Any] = job.state
        #: when the first request was sent whose response is not stored yet, by this attempt or an earlier one
        self.sent_at: datetime | None = job.in_flight_since
        #: whether this process knows that a byte of it was sent; a mark by another process does not say that
        self.is_sent = False
        #: requests whose responses are in no saved state; a run may send several concurrently
        self._in_flight = 0
        #: keeps the writes about them in order
        self._write_lock = asyncio.Lock()
        self._parts = job.parts
        self._reported_at = float("-inf")
        self._stored: tuple[int, int | None] = (job.progress, job.total)
        #: progress, total and message of the latest report, which may not be stored yet
        self.reported: tuple[int, int | None, str | None] = (*self._stored, None)
        #: whether this attempt has saved a state: such a job may wait again, however old it is
        self.has_saved = False
        #: whether a caller has requested the job's cancellation
        self.is_canceled = job.cancel_requested
        #: set when the run must send nothing more, because the job is canceled or the worker shuts down
        self.stopping = asyncio.Event()

    def stop(self, *, is_canceled: bool = False) -> None:
        """Set `stopping`; a run that does not watch it continues."""
        self.is_canceled = self.is_canceled or is_canceled
        self.stopping.set()

    @property
    def may_be_repeated(self) -> bool:
        """Whether the work since the last saved state can safely be repeated."""
        return self.sent_at is None or self._job.effect is not Effect.WRITE

    async def decided(self, policies: Sequence[str]) -> None:
        """Store which policies decided when the job started, for the audit entry at its end."""
        if policies and call_id_of(self._job) is not None:
            await retry_until_available(lambda: self._leases.note_policies(self._job, policies))

    async def mark_in_flight(self) -> None:
        async with self._write_lock:
            asked_at = steady()
            if not await self._leases.mark_in_flight(self._job):
                raise JobCanceled(CANCELED_UNDONE)
            self._in_flight += 1
            self.sent_at = self.sent_at or CLOCK.now()
        # If the process was frozen in between, it must not send: the job may have been marked lost.
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
        lines = await in_thread(_lines, records) if len(records) > _MANY or _is_large(records) else _lines(records)
        await self.save(state, {part or self._parts + 1: lines} if lines else {}, answers=answers)

    async def save(
        self,
        state: Mapping[str, Any],
        parts: Mapping[int, str],
        *,
        answers: int = 0,
        entries: Sequence[Entry] = (),
    ) -> None:
        """Commit the state for a later attempt with parts of the result (number → JSON lines) and audit entries."""
        async with self._write_lock:
            is_answered = self._in_flight <= answers  # reads are answered too, but not marked
            await retry_until_available(
                lambda: self._leases.checkpoint(self._job, state, parts, is_answered=is_answered, entries=entries)
            )
            self._in_flight = max(0, self._in_flight - answers)
            self.state, self._parts, self.has_saved = state, max([self._parts, *parts]), True
            if is_answered:
                self.sent_at, self.is_sent = None, False

    async def progress(self, done: int, total: int | None, message: str) -> None:
        # The statement that ends the job stores the last report, so that it needs no further statement.
        now, self.reported = asyncio.get_running_loop().time(), (done, total, message)
        if (done, total) == self._stored or now - self._reported_at < _PROGRESS_INTERVAL:
            return
        self._reported_at, self._stored = now, (done, total)
        try:
            is_canceled = await self._leases.progress(self._job, done, total, message)
        except Unavailable:
            return
        if is_canceled and self._job.effect is Effect.READ:
            raise JobCanceled("canceled while it ran")


def _lines(records: Sequence[Any]) -> str:
    """The records as JSON lines."""
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records).decode()


def _is_large(records: Sequence[Any]) -> bool:
    return sum(len(memoryview(record)) for record in records if isinstance(record, msgspec.Raw)) > _LARGE


#: the work of a job: the function that runs it with its run context and returns the answer
Work = Callable[[StoredJob, JobRunContext], Awaitable[OperationResult]]
