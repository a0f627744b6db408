"""A job's row as the journal of its run; every note carries the fence."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from gateway.aio.clock import CLOCK, steady
from gateway.db.retries import retry_until_available
from gateway.errors import JobCanceled, Unavailable
from gateway.jobs.leases import LEASE, Leases, LostLease
from gateway.jobs.model import StoredJob
from gateway.kinds.spec import Effect

log = logging.getLogger(__name__)

#: seconds between progress notes of one job
_PROGRESS_INTERVAL = 0.5


class JobJournal:
    """What a run notes as it goes."""

    def __init__(self, leases: Leases, job: StoredJob) -> None:
        self._leases = leases
        self._job = job
        self.state: Mapping[str, Any] = job.state
        #: when a request went out whose answer is not stored yet, be it by an earlier attempt
        self.sent_at: datetime | None = job.sending_since
        #: requests on their way whose answer is not there; a run may send several side by side
        self._in_flight = 0
        #: what is noted of them goes out one after the other, as it happened
        self._noting = asyncio.Lock()
        self._parts = job.parts
        self._told_at = float("-inf")
        self.last: tuple[int, int | None] = (job.progress, job.total)

    @property
    def may_be_repeated(self) -> bool:
        """Whether the work since the last saved state can be done again without harm."""
        return self.sent_at is None or self._job.effect is not Effect.WRITE

    async def sending(self) -> None:
        async with self._noting:
            asked_at = steady()
            if not await self._leases.sending(self._job):
                raise JobCanceled("canceled before it was sent")
            self._in_flight += 1
            self.sent_at = self.sent_at or CLOCK.now()
        # A process that was frozen in between must not send: others may have taken its job for lost.
        if steady() - asked_at > LEASE / 2:
            raise LostLease

    async def not_done(self) -> None:
        async with self._noting:
            self._in_flight -= 1
            if not self._in_flight:
                await retry_until_available(lambda: self._leases.not_done(self._job))
                self.sent_at = self._job.sending_since

    def answered(self) -> None:
        self._in_flight -= 1

    async def save(self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None) -> None:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records).decode()
        async with self._noting:
            number = part or self._parts + bool(lines)
            is_answered = not self._in_flight
            await retry_until_available(
                lambda: self._leases.save(self._job, state, number, lines, is_answered=is_answered)
            )
            self.state, self._parts = state, max(self._parts, number)
            if is_answered:
                self.sent_at = None

    async def progress(self, done: int, total: int | None, message: str) -> None:
        now = asyncio.get_running_loop().time()
        is_changed = (done, total) != self.last
        if not is_changed or (now - self._told_at < _PROGRESS_INTERVAL and done != total):
            return
        self._told_at, self.last = now, (done, total)
        try:
            is_canceled = await self._leases.progress(self._job, done, total, message)
        except Unavailable:
            return
        if is_canceled and self._job.effect is Effect.READ:
            raise JobCanceled("canceled while it ran")
