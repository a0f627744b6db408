"""Drops old partitions of the request log. Its last one takes every id, so that no insertion waits for a new one."""

from datetime import timedelta

from gateway.access.request_log.partitions import Partition, dropped, is_full
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection, Database

#: the number of the advisory lock: any number that all gateways agree on
_LOCK = 0x6C6F6773
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock($1)"
# In the order of their ids. PostgreSQL reads the ends of an index for the ids, and the rows of a partition until it
# finds one that is recent.
_PARTITIONS = """
    WITH bounds AS (
        SELECT relname::text AS name, COALESCE(substring(bound FROM $$FROM \\('(\\d+)'\\)$$)::bigint, 0) AS lowest,
               COALESCE(substring(bound FROM $$TO \\('(\\d+)'\\)$$)::bigint, 9223372036854775807) AS following
        FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        CROSS JOIN LATERAL pg_get_expr(relpartbound, pg_class.oid) AS bound
        WHERE inhparent = 'request_log'::regclass
    )
    SELECT name, COALESCE(last.id - first.id + 1, 0) AS ids, first.at AS began_at,
           EXISTS (SELECT FROM request_log WHERE id >= lowest AND id < following AND at >= $1) AS is_recent
    FROM bounds
    LEFT JOIN LATERAL (
        SELECT id, at FROM request_log WHERE id >= lowest AND id < following ORDER BY id LIMIT 1
    ) AS first ON true
    LEFT JOIN LATERAL (
        SELECT id FROM request_log WHERE id >= lowest AND id < following ORDER BY id DESC LIMIT 1
    ) AS last ON true
    ORDER BY lowest
"""
_CONTINUE = "SELECT gateway_continue_request_log()"
_DROP = "SELECT gateway_drop_requests($1)"


async def prune_request_log(database: Database, retention: int, rows: int) -> None:
    """Drop what is older than `retention` seconds or beyond `rows` rows; one process does so at a time."""
    async with database.system() as connection, connection.transaction():
        if await connection.fetchval(_TRY_LOCK, _LOCK):
            await _prune(connection, timedelta(seconds=retention), rows)


async def _prune(connection: Connection, retention: timedelta, rows: int) -> None:
    now = CLOCK.now()
    partitions = [Partition(**row) for row in await connection.fetch(_PARTITIONS, now - retention)]
    if is_full(partitions[-1], now - retention, now, rows):
        await connection.execute(_CONTINUE)
    for name in dropped(partitions, rows):
        if not await connection.fetchval(_DROP, name):
            return
