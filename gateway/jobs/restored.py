"""Ends the writes of a restored database: they may have been done between the backup and the restore."""

from gateway.foundation.db.pool import Database
from gateway.jobs.settlements import SETTLED, settling

#: jobs of one statement, which must finish within the statement timeout
_BATCH = 500
_SENTENCE = "the database was restored from a backup, and what this job did after the backup is not known; look it up"
# The state may be sealed and the keys may not be here, so that the columns say what is known.
_END = f"""
    WITH ended AS (
        UPDATE jobs
        SET status = 'unknown', message = '{_SENTENCE}', fence = fence + 1, worker = NULL, lease_until = NULL,
            in_flight_since = NULL, next_attempt_at = NULL, finished_at = now(),
            expires_at = now() + make_interval(secs => $1),
            error = json_build_object(
                'code', 'outcome_unknown', 'detail', '{_SENTENCE}', 'outcome', 'unknown',
                'known', json_strip_nulls(json_build_object(
                    'request_id', request_id, 'find_by', find_by, 'request_sent', 'maybe', 'items', total,
                    'items_done', CASE WHEN total IS NOT NULL THEN progress END)),
                'safe_to_retry', effect = 'idempotent')::text
        WHERE id = ANY (ARRAY(
            SELECT id FROM jobs WHERE status IN ('queued', 'waiting', 'running') AND effect <> 'read'
            ORDER BY id LIMIT {_BATCH} FOR UPDATE))
        RETURNING {SETTLED}
    ), noted AS ({settling("ended")})
    SELECT id FROM ended
"""


async def end_unfinished_writes(database: Database, retention: int) -> int:
    """End every unfinished job that writes to an application as `unknown`; returns their number.

    Only while no front end and no worker runs. The jobs expire after `retention` seconds.
    """
    count = 0
    async with database.system() as connection:
        while ended := len(await connection.fetch(_END, retention)):
            count += ended
    return count
