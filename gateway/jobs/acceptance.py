"""Accepts jobs of callers while their organization has room in the queue, and notifies workers.

The queued jobs of an organization are counted once a second; in between, accepted jobs are added.
"""

import time
from dataclasses import dataclass
from uuid import UUID

from gateway.errors import RateLimited
from gateway.foundation.db.pool import Database
from gateway.foundation.telemetry.metrics import REFUSED
from gateway.jobs.model import NewJob
from gateway.jobs.store import AcceptedJob, IdempotencyKey, JobStore
from gateway.jobs.wakeup import Wakeup

#: seconds until the queued jobs are counted again
_FRESH = 1.0
#: seconds in the `Retry-After` of a refusal
_RETRY_AFTER = 5
#: organizations whose count is cached
_REMEMBERED = 10_000

# Counts up to the quota only, so that a long queue costs no more than a full one. Background jobs do not count.
_QUEUED = """
    SELECT count(*) FROM
        (SELECT FROM jobs WHERE organization_id = $1 AND status = 'queued' AND NOT is_background LIMIT $2) AS queued
"""


@dataclass(slots=True)
class _Room:
    left: int
    until: float


class JobAcceptance:
    """Accepts jobs of callers."""

    def __init__(self, database: Database, jobs: JobStore, wakeup: Wakeup, max_queued: int) -> None:
        self._database = database
        self._jobs = jobs
        self._wakeup = wakeup
        self._max_queued = max_queued
        self._rooms: dict[UUID, _Room] = {}

    async def accept(
        self, new: NewJob, key: IdempotencyKey | None = None, *, needs_connector: bool = False
    ) -> AcceptedJob:
        """Accept the job as `JobStore.accept` does, and notify the workers of a new one; raises RateLimited.

        A request whose key was used before needs no room in the queue.
        """
        try:
            await self.require_room(new.organization_id)
        except RateLimited:
            if key is None or not await self._jobs.is_used(new, key):
                raise
        accepted = await self._jobs.accept(new, key, needs_connector=needs_connector)
        if accepted.is_new:
            await self._wakeup.notify(accepted.job.id, accepted.job.attempt)
        return accepted

    async def require_room(self, organization_id: UUID) -> None:
        """Take room for one more job; raises RateLimited."""
        now = time.monotonic()
        room = self._rooms.get(organization_id)
        if room is None or room.until < now:
            room = await self._looked_up(organization_id, now)
        if room.left <= 0:
            REFUSED.add("organization_jobs")
            raise RateLimited(
                f"the organization has {self._max_queued} jobs queued; try again when some are done",
                retry_after=_RETRY_AFTER,
            )
        room.left -= 1

    async def _looked_up(self, organization_id: UUID, now: float) -> _Room:
        async with self._database.tenant(organization_id) as connection:
            queued = await connection.fetchval(_QUEUED, organization_id, self._max_queued)
        if len(self._rooms) >= _REMEMBERED:
            self._rooms.clear()
        room = self._rooms[organization_id] = _Room(self._max_queued - queued, now + _FRESH)
        return room
