"""Ends or requeues the jobs of killed processes. Every worker runs the rounds, but only one at a time reaps."""

import logging
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from gateway.contract.kinds import Effect
from gateway.errors import InternalError, Unavailable, WorkerCrashed
from gateway.foundation.db.notifications import NOTIFY, WRITTEN
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import readable
from gateway.jobs.leases import LEASE, NOTHING_DONE, JobOutcome
from gateway.jobs.model import COLUMNS, job_of
from gateway.jobs.outcome import classify_outcome, unreadable_outcome
from gateway.jobs.processes import has_ended
from gateway.jobs.sealing import JobSealing
from gateway.jobs.settlements import SETTLED, settling

log = logging.getLogger(__name__)

#: seconds between rounds
INTERVAL = 2.0
#: consecutive worker losses, without progress in between, after which a job ends `worker_crashed`. One loss is no
#: evidence against a job. After two it is claimed in a small group of such jobs, after three as the only one.
MAX_LOSSES = 4
#: the same if other jobs ran on the lost worker, because each of them may be the cause
MAX_LOSSES_AMONG_OTHERS = 6
#: seconds without a heartbeat after which a worker does not count as live
_WORKER_TIMEOUT = 15
#: a longer time between two rounds, by the database's clock, means that this process was frozen
_FREEZE = timedelta(seconds=0.7 * LEASE)
#: rounds after a freeze during which workers may renew their leases
_ROUNDS_AFTER_FREEZE = 2
#: the number of the advisory lock: any number that all gateways agree on
_LOCK = 0x73776570

_TRY_LOCK = "SELECT now() AS now, pg_try_advisory_xact_lock($1) AS is_ours"
# While PostgreSQL was unavailable, all leases expired: their holders get time to renew them.
_JUST_STARTED = "SELECT pg_postmaster_start_time() > now() - make_interval(secs => $1)"
# Each process listens for notifications in a session with its name as `application_name`. While the session lasts, the
# process has not ended, even if its pid is free here: copies of a virtual machine have the same names and pids.
_WITHOUT_SESSION = """
    SELECT DISTINCT worker FROM jobs
    WHERE status = 'running' AND worker IS NOT NULL
      AND right(worker, 63) NOT IN (SELECT application_name FROM pg_stat_activity WHERE application_name IS NOT NULL)
"""
# The process has certainly ended or, if leases may be judged, the lease has expired. Jobs whose key is forgotten wait.
_LOST = """
    status = 'running' AND (worker = ANY($1::text[]) OR $2 AND lease_until < now())
    AND (key_id <> ALL ($3::text[])) IS NOT FALSE
"""
_LOST_TOO_MANY = f"""
    (worker_losses + 1 >= {MAX_LOSSES_AMONG_OTHERS} OR worker_losses + 1 >= {MAX_LOSSES} AND NOT EXISTS (
        SELECT FROM jobs AS other
        WHERE other.status = 'running' AND other.worker = jobs.worker AND other.id <> jobs.id))
"""
# A write that may have been done. One whose row another transaction changes at that moment is ended in the next round.
_MAY_BE_DONE = "(effect <> 'read' AND in_flight_since IS NOT NULL AND (effect = 'write' OR is_inline))"
_ENDS = "finished_at = now(), expires_at = now() + make_interval(secs => $6), lease_until = NULL, worker = NULL"

# Jobs that are not run again: writes whose response was lost, inline ones included, and jobs that lost too many
# workers.
_NOT_RUN_AGAIN = f"""
    SELECT {COLUMNS} FROM jobs
    WHERE {_LOST} AND ({_MAY_BE_DONE} OR NOT is_inline AND {_LOST_TOO_MANY})
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
_END = f"""
    WITH ended AS (
        UPDATE jobs
        SET status = $2, result = $3, error = $4, message = $5, {_ENDS}, in_flight_since = NULL,
            worker_losses = worker_losses + 1
        WHERE id = $1
        RETURNING {SETTLED}
    )
    {settling("ended")}
"""
# An inline call without a write in flight leaves no trace: deleting its row deletes its idempotency key too.
_DELETE_LOST_INLINE = f"""
    WITH lost AS (
        DELETE FROM jobs WHERE {_LOST} AND is_inline AND NOT {_MAY_BE_DONE}
        RETURNING {SETTLED.replace("jobs.finished_at", "now() AS finished_at")}
    ), noted AS ({settling("lost", outcome=f"'{WorkerCrashed.code}'")})
    SELECT id FROM lost
"""
# `in_flight_since` stays: if the response is never found, the job reports it. The previous worker may resume its lease.
_REQUEUE_LOST = f"""
    UPDATE jobs
    SET status = 'queued', worker_losses = worker_losses + 1, lease_until = NULL,
        message = 'its worker was lost; waiting for another'
    WHERE {_LOST} AND NOT is_inline AND NOT {_MAY_BE_DONE}
    RETURNING id, connector_id, NOT {NOTHING_DONE} AS may_be_written
"""
_REQUEUE_DUE = """
    UPDATE jobs SET status = 'queued', next_attempt_at = NULL
    WHERE status = 'waiting' AND next_attempt_at <= now()
    RETURNING id
"""
_LOST_WORKER = WorkerCrashed("the worker was lost while it ran the job")
_HEARTBEAT = "INSERT INTO workers (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET seen_at = now()"
# The worker has drained: leases that it could not release, because PostgreSQL was unavailable, end now.
_DEREGISTER = """
    WITH gone AS (DELETE FROM workers WHERE id = $1)
    UPDATE jobs SET lease_until = now() WHERE worker = $1 AND status = 'running'
"""
_HAS_LIVE_WORKER = f"SELECT EXISTS (SELECT FROM workers WHERE seen_at > now() - interval '{_WORKER_TIMEOUT} seconds')"


class Maintenance:
    """Ends or requeues the jobs of lost workers, so that an accepted job is never lost."""

    def __init__(self, database: Database, retention: int, sealing: JobSealing, *, timeout: float = LEASE) -> None:
        self._database = database
        self._sealing = sealing
        self._retention = retention
        #: seconds after an outage of PostgreSQL, or the start of this process, during which no job counts as lost: a
        #: process that has just started has not seen an outage, such as one that the promotion of a standby ended
        self._timeout = timeout
        self._rounds_to_skip = round(timeout / INTERVAL)
        self._reaped_at: datetime | None = None

    async def reap(self) -> int:
        """End, requeue or delete the jobs of lost workers; returns the number of jobs now queued.

        Does nothing while another worker reaps. Raises Unavailable.
        """
        try:
            async with self._database.system() as connection, connection.transaction():
                locked = await connection.fetchrow(_TRY_LOCK, _LOCK)
                self._notice_freeze(locked["now"])
                if not locked["is_ours"]:
                    return 0
                due = len(await connection.fetch(_REQUEUE_DUE))
                ended = [row["worker"] for row in await connection.fetch(_WITHOUT_SESSION) if has_ended(row["worker"])]
                may_judge = await self._may_judge_leases(connection)
                return due + await self._lost(connection, ended, may_judge, self._sealing.forgotten)
        except Unavailable:
            self._rounds_to_skip = round(self._timeout / INTERVAL)
            raise

    def _notice_freeze(self, now: datetime) -> None:
        """Skip rounds after a freeze of this process: others may have frozen too, and need time to renew leases."""
        if self._reaped_at is not None and now - self._reaped_at > _FREEZE:
            self._rounds_to_skip = max(self._rounds_to_skip, _ROUNDS_AFTER_FREEZE + 1)
        self._reaped_at = now

    async def _may_judge_leases(self, connection: Connection) -> bool:
        self._rounds_to_skip = max(0, self._rounds_to_skip - 1)
        return not self._rounds_to_skip and not await connection.fetchval(_JUST_STARTED, self._timeout)

    async def _lost(self, connection: Connection, *lost: Any) -> int:
        """End or requeue the jobs of lost workers; `lost` are the arguments of `_LOST`. Returns the number requeued."""
        await self._end_lost(connection, *lost)
        for row in await connection.fetch(_DELETE_LOST_INLINE, *lost):
            log.warning(
                "a call was lost with the process that ran it, and nothing was sent", extra={"job_id": str(row["id"])}
            )
        requeued = await connection.fetch(_REQUEUE_LOST, *lost)
        for row in requeued:
            if row["may_be_written"]:
                await _announce_write(connection, row["connector_id"])
        return len(requeued)

    async def _end_lost(self, connection: Connection, *lost: Any) -> None:
        for row in await connection.fetch(_NOT_RUN_AGAIN, *lost):
            ended = readable(row, self._ended, "a job")
            outcome, result = (unreadable_outcome(row, ended), None) if isinstance(ended, InternalError) else ended
            await connection.execute(
                _END, row["id"], outcome.status, result, outcome.error_text, outcome.message, self._retention
            )
            if row["effect"] != Effect.READ:
                await _announce_write(connection, row["connector_id"])
            log.warning("a job ended with its worker", extra={"job_id": str(row["id"]), "status": outcome.status})

    def _ended(self, row: Any) -> tuple[JobOutcome, str | None]:
        """How the lost job in the row ends, and its sealed result."""
        job = job_of(row, self._sealing)
        outcome = classify_outcome(job, _LOST_WORKER, job.in_flight_since)
        return outcome, None if outcome.result is None else self._sealing.seal_document(job, "result", outcome.result)

    async def heartbeat(self, worker: str) -> None:
        async with self._database.system() as connection:
            await connection.execute(_HEARTBEAT, worker)

    async def deregister(self, worker: str) -> None:
        """Remove a worker that has stopped; jobs that it still held are lost at once."""
        async with self._database.system() as connection:
            await connection.execute(_DEREGISTER, worker)

    async def has_live_worker(self) -> bool:
        """Whether any worker sent a heartbeat recently."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_HAS_LIVE_WORKER))


async def _announce_write(connection: Connection, connector_id: UUID | None) -> None:
    """Clear every process's cached responses of the connector: the lost worker could not announce its write."""
    if connector_id is not None:
        await connection.execute(NOTIFY, f"{WRITTEN}:{connector_id}")
