"""Deletes old events, by age and by their number in an organization."""

from uuid import UUID

from gateway.events.feed import NUMBER
from gateway.foundation.db.pool import Database

#: rows that one statement deletes
_BATCH = 1000

_UNNUMBERED = "SELECT DISTINCT organization_id FROM events WHERE last_id IS NULL LIMIT $1"
_FEEDS = "SELECT organization_id FROM event_feeds WHERE last_id > pruned_id"
# The feed's row is locked before its events, as when they are numbered. The order of ids is nearly that of times.
_PRUNE = """
    WITH feed AS (
        SELECT organization_id, last_id FROM event_feeds WHERE organization_id = $1 FOR NO KEY UPDATE
    ), old AS (
        SELECT events.last_id FROM feed JOIN events USING (organization_id)
        WHERE events.last_id <= (
            SELECT COALESCE(max(last_id), 0) FROM (
                SELECT last_id, at FROM events WHERE organization_id = $1 AND last_id IS NOT NULL
                ORDER BY last_id LIMIT $4
            ) AS first
            WHERE at < now() - make_interval(secs => $2) OR last_id <= (SELECT last_id - $3::bigint FROM feed)
        )
    ), deleted AS (
        DELETE FROM events USING old WHERE organization_id = $1 AND events.last_id = old.last_id
        RETURNING events.last_id
    )
    UPDATE event_feeds SET pruned_id = GREATEST(pruned_id, (SELECT max(last_id) FROM deleted))
    WHERE organization_id = $1 AND EXISTS (SELECT FROM deleted)
    RETURNING (SELECT count(*) FROM deleted)
"""


async def prune_events(database: Database, seconds: int, max_events: int) -> int:
    """Delete events older than `seconds`, and the oldest of an organization beyond `max_events`; returns their rows.

    Events without an id are numbered first, so that a cursor from before them is known to be too old.
    """
    async with database.system() as connection:
        unnumbered: list[UUID] = [row[0] for row in await connection.fetch(_UNNUMBERED, _BATCH)]
    for organization_id in unnumbered:
        async with database.system() as connection:
            while await connection.fetchval(NUMBER, organization_id):
                pass
    async with database.system() as connection:
        feeds: list[UUID] = [row[0] for row in await connection.fetch(_FEEDS)]
    return sum([await _prune(database, feed, seconds, max_events) for feed in feeds])


async def _prune(database: Database, organization_id: UUID, seconds: int, max_events: int) -> int:
    total = 0
    while True:
        async with database.system() as connection:
            rows: int = await connection.fetchval(_PRUNE, organization_id, seconds, max_events, _BATCH) or 0
        total += rows
        if rows < _BATCH:
            return total
