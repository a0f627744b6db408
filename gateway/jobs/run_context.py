"""A job's row as the journal of its run; every note carries the fence."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from gateway.errors import JobCanceled, Unavailable
from gateway.jobs.leases import LEASE, Leases, LostLease
from gateway.jobs.model import Job
from gateway.kinds.spec import Effect

log = logging.getLogger(__name__)

#: seconds between progress notes of one job
_PROGRESS_INTERVAL = 0.5
#: seconds between tries while PostgreSQL is away, and until a note is given up
_PAUSE, _PERSISTENCE = 0.5, 600.0

Noted = TypeVar("Noted")


async def retry_until_available(
    note: Callable[[], Awaitable[Noted]], on_away: Callable[[], None] = lambda: None
) -> Noted:
    """Write it as soon as PostgreSQL is there: what is done is not forgotten because it is away; raises LostLease.

    Writing twice does no harm: the fence, or the end that was written, refuses the second.
    """
    given_up = asyncio.get_running_loop().time() + _PERSISTENCE
    while True:
        try:
            return await note()
        except Unavailable:
            on_away()
            if asyncio.get_running_loop().time() > given_up:
                raise
            await asyncio.sleep(_PAUSE)


class JobJournal:
    """What a run notes as it goes."""

    def __init__(self, leases: Leases, job: Job) -> None:
        self._leases = leases
        self._job = job
        self.state: Mapping[str, Any] = job.state
        #: when a write went out whose answer is not stored yet
        self.sent_at: datetime | None = None
        self._told_at = float("-inf")
        self.last: tuple[int, int | None] = (job.progress, job.total)

    @property
    def may_be_repeated(self) -> bool:
        """Whether the work since the last saved state can be done again without harm."""
        return self.sent_at is None or self._job.effect is not Effect.WRITE

    async def sending(self) -> None:
        asked_at = asyncio.get_running_loop().time()
        if not await self._leases.sending(self._job):
            raise JobCanceled("canceled before it was sent")
        self.sent_at = datetime.now(UTC)
        # A process that was frozen in between must not send: others may have taken its job for lost.
        if asyncio.get_running_loop().time() - asked_at > LEASE / 2:
            raise LostLease

    def not_done(self) -> None:
        self.sent_at = None

    async def save(self, state: Mapping[str, Any], records: Sequence[Any] = ()) -> None:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records).decode()
        await retry_until_available(lambda: self._leases.save(self._job, state, lines))
        self.state, self.sent_at = state, None

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
