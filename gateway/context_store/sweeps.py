"""The records that a sweep has not seen: counted, remembered as absent, and deleted."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway.context_store.entities import TIMEOUT, StoredEntity
from gateway.context_store.records import BATCH_ROWS, MARK_SEEN, SEEN_AGAIN, lock, tombstone
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection

#: records that one statement marks as absent
_MARKED = 10 * BATCH_ROWS

# Records that were written since the sweep began count as seen. Each record's mark is looked up by its key. The join of
# `NOT EXISTS` may read all marks for each record, because a table that was just filled has no statistics.
_IS_UNSEEN = """
    r.entity_id = $1 AND r.generation < $2 AND r.deleted_at IS NULL AND r.observed_at <= $3
      AND (SELECT TRUE FROM context_marks AS m
           WHERE m.entity_id = r.entity_id AND m.generation = $2 AND m.id = r.id) IS NULL
"""
# A sweep that was interrupted here has the same generation, so that it does not count as a second one.
_IS_AGAIN = "COALESCE(r.absent_in, $2) < $2"
COUNT = f"""
    SELECT count(*) FILTER (WHERE NOT {_IS_AGAIN}) AS first, count(*) FILTER (WHERE {_IS_AGAIN}) AS again
    FROM context_records AS r WHERE {_IS_UNSEEN}
"""
RECORDS = "SELECT records FROM context_entities WHERE id = $1"
UNSEEN = f"SELECT r.id FROM context_records AS r WHERE {_IS_UNSEEN} AND ({_IS_AGAIN}) = $4 LIMIT $5"
MARK_ABSENT = f"""
    UPDATE context_records SET absent_in = $2
    WHERE entity_id = $1 AND id IN (
        SELECT r.id FROM context_records AS r WHERE {_IS_UNSEEN} AND r.absent_in IS NULL LIMIT $4)
"""
MARK_IDS_ABSENT = "UPDATE context_records SET absent_in = $2 WHERE entity_id = $1 AND id = ANY ($3::text[])"
BY_INDEX = "SET LOCAL enable_seqscan = off"
CLEAR_SEEN = "DELETE FROM context_marks WHERE entity_id = $1 AND generation <= $2"


class Unseen(NamedTuple):
    """The number of records that a sweep has not seen."""

    #: records that the complete sweep before has seen, or that were seen since
    first: int
    #: records that an earlier complete sweep has not seen either
    again: int
    #: all records of the copy
    records: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that has read everything, and that began at this time."""

    entity: StoredEntity
    generation: int
    began_at: datetime

    async def count(self, connection: Connection) -> Unseen:
        """The number of records that this sweep has not seen."""
        async with self._by_index(connection):
            row = await connection.fetchrow(COUNT, *self._key, timeout=TIMEOUT)
        assert row is not None
        records = await connection.fetchval(RECORDS, self.entity.id)
        return Unseen(row["first"], row["again"], records)

    async def unseen(self, connection: Connection, limit: int, *, again: bool) -> list[str]:
        """Ids of records that this sweep has not seen, for the first time or again."""
        async with self._by_index(connection):
            rows = await connection.fetch(UNSEEN, *self._key, again, limit, timeout=TIMEOUT)
        return [row["id"] for row in rows]

    async def mark_seen(self, connection: Connection, ids: Sequence[str]) -> None:
        """Count these records as seen."""
        key, entity = list(ids), self.entity
        await connection.execute(MARK_SEEN, entity.id, entity.organization_id, self.generation, key, timeout=TIMEOUT)
        await connection.execute(SEEN_AGAIN, entity.id, key, timeout=TIMEOUT)

    async def mark_absent(self, connection: Connection, ids: Sequence[str] = ()) -> None:
        """Remember the records that this sweep has not seen for the first time, or these."""
        if ids:
            await connection.execute(MARK_IDS_ABSENT, self.entity.id, self.generation, list(ids), timeout=TIMEOUT)
            return
        while True:
            async with self._by_index(connection):
                done = await connection.execute(MARK_ABSENT, *self._key, _MARKED, timeout=TIMEOUT)
            if int(str(done).rpartition(" ")[2]) < _MARKED:
                return

    async def delete(self, connection: Connection, *, again: bool) -> int:
        """Delete the records that this sweep has not seen, for the first time or again; returns their number."""
        deleted = 0
        while True:
            async with connection.transaction():
                await lock(connection, self.entity)
                ids = await self.unseen(connection, BATCH_ROWS, again=again)
                deleted += await tombstone(connection, self.entity, ids, CLOCK.now())
            if len(ids) < BATCH_ROWS:
                return deleted

    async def end(self, connection: Connection) -> None:
        """Forget which records this sweep has seen."""
        await connection.execute(CLEAR_SEEN, self.entity.id, self.generation, timeout=TIMEOUT)

    @asynccontextmanager
    async def _by_index(self, connection: Connection) -> AsyncIterator[None]:
        """Statements of this block read no table from end to end."""
        async with connection.transaction():
            await connection.execute(BY_INDEX)
            yield

    @property
    def _key(self) -> tuple[int, int, datetime]:
        return self.entity.id, self.generation, self.began_at
