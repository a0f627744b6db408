"""Reads by a replica of PostgreSQL, which are never older than the caller may notice.

The position of the primary's write-ahead log says what a replica has replayed. A read that must be current goes to the
replica once it has replayed everything that was committed before the read; any other read may be `max_lag` seconds old.
In every other case the primary is read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from math import inf
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import asyncpg

from gateway.errors import Unavailable
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.loops import every, running
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.telemetry.metrics import REPLICA_READS

T = TypeVar("T")

log = logging.getLogger(__name__)

#: seconds between measurements of the lag
_INTERVAL = 1.0
#: seconds that a current read waits for the replica, and between its looks
_CATCH_UP = 0.05
_LOOK = 0.005
#: seconds of lag from which a current read does not wait
_FAR_BEHIND = 0.5
#: measured positions that the replica has not replayed yet
_MAX_TRAIL = 1000

_IDENTITY = "(SELECT system_identifier FROM pg_control_system())::text"
# Everything that is committed is flushed: the position behind it is at most this one.
_PRIMARY = f"""
    SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint AS position, clock_timestamp() AS at,
           {_IDENTITY} AS system, pg_postmaster_start_time() AS started_at
"""
_REPLICA = f"""
    SELECT {_IDENTITY} AS system, pg_postmaster_start_time() AS started_at, pg_is_in_recovery() AS is_standby
"""
_REPLAYED = """
    SELECT ((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END)
            - '0/0'::pg_lsn)::bigint
"""


class _Position(NamedTuple):
    """A position of the primary's log, and the time at which nothing behind it was committed."""

    position: int
    at: datetime


class Replica:
    """The pool of a replica beside that of its primary."""

    def __init__(self, primary: Database, standby: Database, max_lag: float) -> None:
        self._primary = primary
        self._standby = standby
        self._max_lag = timedelta(seconds=max_lag)
        self._positions: Batcher[None, _Position] = Batcher(self._position)
        #: positions that the replica had not replayed when it was last asked
        self._trail: deque[_Position] = deque(maxlen=_MAX_TRAIL)
        #: when the newest replayed position was the primary's; None if the replica cannot be read
        self._as_of: datetime | None = None
        #: why it is not read
        self.trouble: str | None = "it was not asked yet"

    @classmethod
    @asynccontextmanager
    async def open(
        cls, primary: Database, url: str, *, size: int, max_lag: float, has_pooler: bool = False
    ) -> AsyncIterator["Replica"]:
        """A replica that is measured within the block. It may be unavailable; then the primary is read."""
        async with Database.open(url, size=size, is_patient=True, has_pooler=has_pooler) as standby:
            replica = cls(primary, standby, max_lag)
            async with running(every(_INTERVAL, replica.measure, name="replica")):
                yield replica

    @property
    def lag(self) -> float | None:
        """Seconds that the replica is behind the primary; None if that is unknown."""
        return None if self._as_of is None else max(0.0, (CLOCK.now() - self._as_of).total_seconds())

    async def read(
        self,
        organization_id: UUID,
        work: Callable[[Connection], Awaitable[T]],
        *,
        person: UUID | None = None,
        is_current: bool,
    ) -> tuple[T, datetime] | None:
        """What `work` reads, and the time of which it is; None if the primary must be read."""
        as_of, refusal = self._as_of, self._refusal(is_current=is_current)
        if as_of is None or refusal is not None:
            REPLICA_READS.add(refusal or "away")
            return None
        try:
            wanted = await self._positions(None) if is_current else None
            async with self._standby.tenant(organization_id, person) as connection:
                if wanted is not None and not await _has_replayed(connection, wanted.position):
                    REPLICA_READS.add("behind")
                    return None
                async with connection.transaction(readonly=True):
                    found = await work(connection)
        except (Unavailable, asyncpg.PostgresError) as error:
            REPLICA_READS.add("away")
            if isinstance(error, Unavailable):
                self._became(error.detail)
            return None
        REPLICA_READS.add("replica")
        return found, as_of if wanted is None else wanted.at

    def _refusal(self, *, is_current: bool) -> str | None:
        """Why the primary must be read; None if the replica may be."""
        if self.trouble is not None or self.lag is None:
            return "away"
        if timedelta(seconds=self.lag) > self._max_lag:
            return "lag"
        return "behind" if is_current and self.lag > _INTERVAL + _FAR_BEHIND else None

    async def measure(self) -> None:
        """Measure how far the replica is behind; a replica that may not be read is logged once."""
        try:
            async with self._primary.system() as connection:
                primary = await connection.fetchrow(_PRIMARY)
            async with self._standby.system() as connection:
                found = await connection.fetchrow(_REPLICA)
                replayed: int = await connection.fetchval(_REPLAYED)
        except Unavailable as unavailable:
            self._became(unavailable.detail)
            return
        except asyncpg.PostgresError as error:
            self._became(f"its position cannot be read: {type(error).__name__}")
            return
        if (fault := _fault_of(primary, found)) is not None:
            self._became(fault)
            return
        self._trail.append(_Position(primary["position"], primary["at"]))
        while self._trail and self._trail[0].position <= replayed:
            self._as_of = self._trail.popleft().at
        if self._as_of is None:
            self._became("how far it is behind is not known yet")
        elif primary["at"] - self._as_of > self._max_lag:
            self._became(f"it is {(primary['at'] - self._as_of).total_seconds():.0f} s behind")
        else:
            self._became(None)

    def _became(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            log.warning("the replica is not read, the primary answers: %s", trouble)
        elif trouble is None and self.trouble is not None:
            log.info("the replica is read")
        self.trouble = trouble

    async def _position(self, callers: Sequence[None]) -> Sequence[_Position]:
        async with self._primary.system() as connection:
            row = await connection.fetchrow(_PRIMARY)
        return [_Position(row["position"], row["at"])] * len(callers)


async def replica_lag(primary: Database, url: str) -> float:
    """The seconds that the server is behind; raises Unavailable if it cannot be read or is no replica."""
    async with Database.open(url, size=1) as standby:
        async with primary.system() as connection:
            wanted = await connection.fetchrow(_PRIMARY)
        async with standby.system() as connection:
            if (fault := _fault_of(wanted, await connection.fetchrow(_REPLICA))) is not None:
                raise Unavailable(fault)
            if await _has_replayed(connection, wanted["position"]):
                return 0.0
            replayed_at: datetime | None = await connection.fetchval("SELECT pg_last_xact_replay_timestamp()")
    return inf if replayed_at is None else (wanted["at"] - replayed_at).total_seconds()


def _fault_of(primary: Any, found: Any) -> str | None:
    """Why the server is no replica of the primary: another cluster, or a standby that was promoted."""
    if found["system"] != primary["system"]:
        return "GATEWAY_DATABASE_READ_URL is a server of another cluster"
    if not found["is_standby"] and found["started_at"] != primary["started_at"]:
        return "GATEWAY_DATABASE_READ_URL is a standby that was promoted"
    return None


async def _has_replayed(connection: Connection, position: int) -> bool:
    """Whether the server has replayed the log up to the position, at once or after a short wait."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _CATCH_UP
    while await connection.fetchval(_REPLAYED) < position:
        if loop.time() >= deadline:
            return False
        await asyncio.sleep(_LOOK)
    return True
