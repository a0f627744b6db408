"""Ends the jobs of a deleted connector, then deletes everything in them that came from the application or the caller.

The rows stay until they expire, so that a caller that waits for a job receives its final state.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from gateway.errors import InternalError, JobCanceled
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import readable
from gateway.jobs.leases import NOTHING_DONE, JobOutcome
from gateway.jobs.model import COLUMNS, job_of
from gateway.jobs.outcome import classify_outcome, unreadable_outcome
from gateway.jobs.sealing import JobSealing
from gateway.jobs.settlements import SETTLED, settling
from gateway.jobs.tasks import TASKS, sql_names

#: jobs of one statement, which must finish within the statement timeout
_BATCH = 200

# Not the jobs that perform the deletion.
_OF_CONNECTOR = f"""
    organization_id = $1 AND connector_id = $2
    AND task NOT IN ({sql_names(task for task in TASKS.values() if not task.deletes_with_connector)})
"""
_CANCEL = f"""
    WITH changed AS (
        UPDATE jobs
        SET cancel_requested = true,
            status = CASE WHEN status = 'running' THEN status ELSE 'canceled' END,
            message = CASE WHEN status = 'running' THEN message ELSE 'canceled: its connector was deleted' END,
            finished_at = CASE WHEN status <> 'running' THEN now() END,
            expires_at = CASE WHEN status <> 'running' THEN now() + make_interval(secs => $3) END,
            next_attempt_at = NULL
        WHERE id = ANY (ARRAY(
            SELECT id FROM jobs
            WHERE {_OF_CONNECTOR} AND NOT cancel_requested
              AND (status = 'running' OR status IN ('queued', 'waiting') AND {NOTHING_DONE})
            ORDER BY id LIMIT {_BATCH} FOR UPDATE))
        RETURNING {SETTLED}
    ), noted AS ({settling("changed")})
    SELECT id FROM changed
"""
_RUNNING = f"SELECT count(*) FROM jobs WHERE {_OF_CONNECTOR} AND status = 'running'"
_SELECT_RUNNING = (
    f"SELECT {COLUMNS} FROM jobs WHERE {_OF_CONNECTOR} AND status = 'running' ORDER BY id FOR NO KEY UPDATE"
)
# Jobs that wait, of which something was or may have been done, canceled before or not.
_SELECT_BEGUN = f"""
    SELECT {COLUMNS} FROM jobs
    WHERE {_OF_CONNECTOR} AND status IN ('queued', 'waiting') ORDER BY id LIMIT {_BATCH} FOR NO KEY UPDATE
"""
# A higher fence refuses every later write of a worker that still runs the job.
_END = f"""
    WITH ended AS (
        UPDATE jobs
        SET status = $3, error = $4, message = $5, fence = fence + 1, lease_until = NULL, worker = NULL,
            in_flight_since = NULL, next_attempt_at = NULL, finished_at = now(),
            expires_at = now() + make_interval(secs => $6)
        WHERE organization_id = $1 AND id = $2
        RETURNING {SETTLED}
    )
    {settling("ended")}
"""
_DELETED = JobCanceled("ended: its connector was deleted")
_BATCH_AFTER = f"SELECT id, fence FROM jobs WHERE {_OF_CONNECTOR} AND id > $3 ORDER BY id LIMIT {_BATCH}"
_EMPTY = """
    UPDATE jobs
    SET result = NULL, params = '{}', selection = '{}', state = '{}', labels = '{}', find_by = NULL, target = NULL,
        token_hash = NULL, approval = NULL,
        message = 'its connector was deleted',
        error = (SELECT text FROM unnest($2::uuid[], $3::text[]) AS emptied (id, text) WHERE emptied.id = jobs.id)
    WHERE organization_id = $1 AND id = ANY ($2)
"""
# Read here: a cast of a malformed text would fail the statement, and with it the deletion.
_ERRORS = "SELECT id, error FROM jobs WHERE organization_id = $1 AND id = ANY ($2) AND error IS NOT NULL FOR UPDATE"
#: members of an error that say what was done; the others may have what the application or the caller sent
_STAYING = ("code", "outcome", "known", "safe_to_retry")
_DELETE_PARTS = "DELETE FROM job_results WHERE organization_id = $1 AND job_id = ANY ($2)"
_DELETE_INPUTS = "DELETE FROM batch_inputs WHERE organization_id = $1 AND job_id = ANY ($2)"
_DELETE_EVENTS = "DELETE FROM job_events WHERE organization_id = $1 AND job_id = ANY ($2)"
_DELETE_APPROVALS = "DELETE FROM approvals WHERE organization_id = $1 AND job_id = ANY ($2)"
_DELETE_KEYS = "DELETE FROM idempotency_keys WHERE organization_id = $1 AND job_id = ANY ($2)"


class JobRemoval:
    """Cancels and empties the jobs of a deleted connector; their rows expire after `retention` seconds."""

    def __init__(self, database: Database, retention: int, sealing: JobSealing) -> None:
        self._database = database
        self._retention = retention
        self._sealing = sealing

    async def cancel(self, organization_id: UUID, connector_id: UUID) -> None:
        """End queued and waiting jobs, and request the cancellation of running ones.

        A job of which something was done ends with what is known of it.
        """
        async with self._database.tenant(organization_id) as connection:
            while await connection.fetch(_CANCEL, organization_id, connector_id, self._retention):
                pass
            while True:
                async with connection.transaction():
                    begun = await connection.fetch(_SELECT_BEGUN, organization_id, connector_id)
                    await self._end(connection, begun)
                if not begun:
                    return

    async def running(self, organization_id: UUID, connector_id: UUID) -> int:
        """The number of running jobs."""
        async with self._database.tenant(organization_id) as connection:
            return int(await connection.fetchval(_RUNNING, organization_id, connector_id))

    async def end_running(self, organization_id: UUID, connector_id: UUID) -> None:
        """End jobs that did not stop when canceled; later writes of their workers are refused."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            await self._end(connection, await connection.fetch(_SELECT_RUNNING, organization_id, connector_id))

    async def _end(self, connection: Connection, rows: Sequence[Any]) -> None:
        """End these jobs with what is known of them."""
        for row in rows:
            ended = readable(row, self._ended, "a job")
            outcome = unreadable_outcome(row, ended) if isinstance(ended, InternalError) else ended
            error = outcome.error_text
            await connection.execute(
                _END, row["organization_id"], row["id"], outcome.status, error, outcome.message, self._retention
            )

    def _ended(self, row: Any) -> JobOutcome:
        """How the job in the row ends."""
        job = job_of(row, self._sealing)
        return classify_outcome(job, _DELETED, job.in_flight_since)

    async def after(self, organization_id: UUID, connector_id: UUID, job_id: UUID) -> list[tuple[UUID, int]]:
        """Ids and fences of the next batch of its jobs, in the order of ids, after `job_id`."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_BATCH_AFTER, organization_id, connector_id, job_id)
        return [(row["id"], row["fence"]) for row in rows]

    async def empty(self, organization_id: UUID, job_ids: Sequence[UUID]) -> None:
        """Delete params, results, events and idempotency keys of these jobs."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            rows = await connection.fetch(_ERRORS, organization_id, job_ids)
            errors = {row["id"]: _emptied(row["error"]) for row in rows}
            await connection.execute(_EMPTY, organization_id, job_ids, [errors.get(job_id) for job_id in job_ids])
            for statement in (_DELETE_PARTS, _DELETE_INPUTS, _DELETE_EVENTS, _DELETE_APPROVALS, _DELETE_KEYS):
                await connection.execute(statement, organization_id, job_ids)


def _emptied(error: str) -> str:
    """The error with what is known of the job, without what the application or the caller sent."""
    try:
        members = msgspec.json.decode(error, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        members = {}
    kept = {name: members[name] for name in _STAYING if members.get(name) is not None}
    emptied = {"code": InternalError.code, **kept, "detail": "the connector of this job was deleted"}
    return msgspec.json.encode(emptied).decode()
