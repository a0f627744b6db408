"""How many jobs an organization may have queued: looked up once a second, counted in between."""

import time
from dataclasses import dataclass
from uuid import UUID

from gateway.db.pool import Database
from gateway.errors import RateLimited
from gateway.telemetry.metrics import REFUSED

#: seconds for which a count is good, and that a refused caller is asked to wait
_FRESH, _RETRY_AFTER = 1.0, 5
#: organizations that are remembered
_REMEMBERED = 10_000

# No further than the quota: a deep queue costs no more than a full one. Background jobs do not count.
_QUEUED = """
    SELECT count(*) FROM
        (SELECT FROM jobs WHERE organization_id = $1 AND status = 'queued' AND NOT is_background LIMIT $2) AS queued
"""


@dataclass(slots=True)
class _Room:
    left: int
    until: float


class JobQuota:
    """Room for jobs, by organization."""

    def __init__(self, database: Database, max_queued: int) -> None:
        self._database = database
        self._max_queued = max_queued
        self._rooms: dict[UUID, _Room] = {}

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
