"""The sweeper: finds what killed processes left behind. Every worker runs it, one at a time sweeps."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gateway.db.pool import Connection, Database
from gateway.jobs.store import CRASHES

log = logging.getLogger(__name__)

#: seconds between sweeps
INTERVAL = 2.0
#: seconds that a rung job may stay queued before it is rung for again
_UNHEARD = 2
#: seconds after which a worker without a sign of life is forgotten
_FORGOTTEN = 3600
#: any number; all gateways agree on it
_LOCK = 0x73776570

_TRY_LOCK = "SELECT pg_try_advisory_xact_lock($1)"
_LOST = "status = 'running' AND lease_until < now()"

# A write whose answer was lost is never run again: that is the one honest end.
_END_LOST_WRITES = f"""
    UPDATE jobs
    SET status = 'unknown', finished_at = now(), expires_at = now() + make_interval(secs => $1), lease_until = NULL,
        message = 'the worker was lost after a write had been sent',
        error = json_build_object(
            'code', 'outcome_unknown',
            'detail', 'the worker was lost after a write had been sent; look it up before sending it again',
            'sent_at', to_char(sending_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text
    WHERE {_LOST} AND sending_since IS NOT NULL AND effect = 'write'
    RETURNING id
"""
# What was run for a caller who waited has nobody to run it for; a job that kills its workers is given up.
_GIVE_UP = f"""
    UPDATE jobs
    SET status = 'failed', finished_at = now(), expires_at = now() + make_interval(secs => $1), lease_until = NULL,
        message = 'its worker crashed',
        error = json_build_object('code', 'worker_crashed', 'detail', 'the worker crashed while it ran the job')::text
    WHERE {_LOST} AND (is_inline OR crashes + 1 >= {CRASHES})
    RETURNING id
"""
_RETURN_LOST = f"""
    UPDATE jobs
    SET status = 'queued', crashes = crashes + 1, lease_until = NULL, worker = NULL, sending_since = NULL,
        rung_at = now(), message = 'its worker was lost; waiting for another'
    WHERE {_LOST}
    RETURNING id, attempt
"""
_RETURN_DUE = """
    UPDATE jobs SET status = 'queued', next_attempt_at = NULL, rung_at = now()
    WHERE status = 'waiting' AND next_attempt_at <= now()
    RETURNING id, attempt
"""
# Bounded: a deep queue is worked off by the rings it has; these are for rings that were lost.
_UNHEARD_JOBS = f"""
    UPDATE jobs SET rung_at = now()
    WHERE id IN (SELECT id FROM jobs WHERE status = 'queued' AND rung_at < now() - interval '{_UNHEARD} seconds'
                 ORDER BY created_at LIMIT 500 FOR UPDATE SKIP LOCKED)
    RETURNING id, attempt, extract(epoch FROM clock_timestamp())::bigint AS moment
"""
_PRUNE = (
    "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE expires_at < now() - interval '1 day' LIMIT 1000)",
    "DELETE FROM job_results USING jobs WHERE jobs.id = job_results.job_id AND jobs.expires_at < now()",
    "DELETE FROM idempotency_keys WHERE expires_at < now()",
    "DELETE FROM tokens WHERE expires_at < now() - interval '1 hour'",
    f"DELETE FROM workers WHERE seen_at < now() - interval '{_FORGOTTEN} seconds'",
)
_SEEN = """
    INSERT INTO workers (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET seen_at = now()
"""
_A_WORKER_SEEN = "SELECT EXISTS (SELECT FROM workers WHERE seen_at > now() - interval '15 seconds')"


@dataclass(frozen=True, slots=True)
class Due:
    """A queued job that somebody must be told of; the number makes each ring its own."""

    id: UUID
    ring: int


class Upkeep:
    """What keeps the promise that an accepted job is never lost."""

    def __init__(self, database: Database, retention: int) -> None:
        self._database = database
        self._retention = retention

    async def sweep(self) -> Sequence[Due]:
        """End, return and prune what is overdue; the jobs to ring for. Nothing while another worker sweeps."""
        async with self._database.system() as connection, connection.transaction():
            if not await connection.fetchval(_TRY_LOCK, _LOCK):
                return []
            await self._end(connection)
            due = [Due(row["id"], row["attempt"]) for row in await connection.fetch(_RETURN_LOST)]
            due += [Due(row["id"], row["attempt"]) for row in await connection.fetch(_RETURN_DUE)]
            due += [Due(row["id"], row["moment"]) for row in await connection.fetch(_UNHEARD_JOBS)]
        return due

    async def _end(self, connection: Connection) -> None:
        for row in await connection.fetch(_END_LOST_WRITES, self._retention):
            log.warning("a write's outcome is unknown: its worker was lost", extra={"job_id": str(row["id"])})
        for row in await connection.fetch(_GIVE_UP, self._retention):
            log.warning("a job was given up: its workers crashed", extra={"job_id": str(row["id"])})

    async def prune(self) -> None:
        """Drop what has outlived its time."""
        async with self._database.system() as connection:
            for statement in _PRUNE:
                await connection.execute(statement)

    async def sign_of_life(self, worker: str) -> None:
        async with self._database.system() as connection:
            await connection.execute(_SEEN, worker)

    async def is_a_worker_there(self) -> bool:
        """Whether any worker gave a sign of life lately."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_A_WORKER_SEEN))
