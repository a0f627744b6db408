"""Jobs in PostgreSQL: accepted in one transaction, claimed by compare-and-set, every later write behind a fence."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.connectors.spec import Effect
from gateway.db.pool import Connection, Database
from gateway.errors import NotFound
from gateway.jobs.model import Job, JobStatus, NewJob

#: seconds that a claim holds without a heartbeat, by the database's clock
LEASE = 10
#: workers that a job may lose before it is given up
CRASHES = 2

_COLUMNS = """
    id, organization_id, client_id, connector_id, workspace_name, task, kind, entity, action, params, shape, effect,
    is_inline, labels::text AS labels, status, cancel_requested, total, progress, message, error, result, attempt,
    crashes, fence, sending_since, state, parts, version, created_at, started_at, finished_at, next_attempt_at,
    expires_at
"""
_INSERT = f"""
    INSERT INTO jobs (id, organization_id, client_id, connector_id, workspace_name, task, kind, entity, action, params,
                      shape, effect, is_inline, labels, status, worker, lease_until, fence, attempt, started_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14::jsonb,
            CASE WHEN $15::text IS NULL THEN 'queued' ELSE 'running' END, $15,
            CASE WHEN $15::text IS NULL THEN NULL ELSE now() + interval '{LEASE} seconds' END,
            CASE WHEN $15::text IS NULL THEN 0 ELSE 1 END, CASE WHEN $15::text IS NULL THEN 0 ELSE 1 END,
            CASE WHEN $15::text IS NULL THEN NULL ELSE now() END)
    RETURNING {_COLUMNS}
"""
# The first to come keeps the key; a key past its time is as good as none.
_KEEP_KEY = """
    INSERT INTO idempotency_keys (organization_id, client_id, connector_id, key, fingerprint, job_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
    ON CONFLICT (organization_id, client_id, connector_id, key) DO UPDATE
    SET fingerprint = EXCLUDED.fingerprint, job_id = EXCLUDED.job_id, expires_at = EXCLUDED.expires_at
    WHERE idempotency_keys.expires_at < now()
    RETURNING job_id
"""
_KEPT_KEY = """
    SELECT fingerprint, job_id FROM idempotency_keys
    WHERE organization_id = $1 AND client_id = $2 AND connector_id = $3 AND key = $4
"""
# Fair between organizations: each one's oldest jobs, those first whose organization has the least running.
# The recursion hops from organization to organization along the index instead of reading a deep queue.
_CLAIM = f"""
    WITH RECURSIVE tenants AS (
        (SELECT organization_id FROM jobs WHERE status = 'queued' ORDER BY organization_id LIMIT 1)
        UNION ALL
        SELECT (SELECT organization_id FROM jobs
                WHERE status = 'queued' AND organization_id > tenants.organization_id
                ORDER BY organization_id LIMIT 1)
        FROM tenants WHERE tenants.organization_id IS NOT NULL
    ), locked AS MATERIALIZED (
        SELECT oldest.id, oldest.organization_id, oldest.created_at
        FROM tenants CROSS JOIN LATERAL (
            SELECT id, organization_id, created_at FROM jobs
            WHERE status = 'queued' AND organization_id = tenants.organization_id
            ORDER BY created_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
        ) AS oldest
    ), running AS (
        SELECT organization_id, count(*) AS jobs FROM jobs WHERE status = 'running' GROUP BY organization_id
    ), chosen AS (
        SELECT locked.id
        FROM locked LEFT JOIN running USING (organization_id)
        ORDER BY COALESCE(running.jobs, 0)
                 + row_number() OVER (PARTITION BY organization_id ORDER BY locked.created_at, locked.id),
                 locked.created_at
        LIMIT $2
    )
    UPDATE jobs
    SET status = 'running', worker = $1, fence = fence + 1, attempt = attempt + 1, next_attempt_at = NULL,
        lease_until = now() + interval '{LEASE} seconds', started_at = COALESCE(started_at, now())
    FROM chosen WHERE jobs.id = chosen.id AND jobs.status = 'queued'
    RETURNING {_COLUMNS.replace(" id,", " jobs.id,", 1)}
"""
_HEARTBEAT = f"""
    UPDATE jobs SET lease_until = now() + interval '{LEASE} seconds'
    FROM unnest($1::uuid[], $2::bigint[]) AS held (id, fence)
    WHERE jobs.id = held.id AND jobs.fence = held.fence AND jobs.status = 'running'
    RETURNING jobs.id, jobs.cancel_requested
"""
_SENDING = "UPDATE jobs SET sending_since = now() WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id"
_ANSWERED = "UPDATE jobs SET sending_since = NULL WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id"
_SAVE = """
    UPDATE jobs SET state = $3, sending_since = NULL, parts = parts + $4
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING parts, organization_id
"""
_ADD_PART = "INSERT INTO job_results (job_id, organization_id, part, lines) VALUES ($1, $2, $3, $4)"
_PROGRESS = """
    UPDATE jobs SET progress = $3, total = $4, message = $5
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING cancel_requested
"""
_FINISH = """
    UPDATE jobs
    SET status = $3, result = $4, error = $5, message = COALESCE($6, message), progress = COALESCE($7, progress),
        total = COALESCE($8, total), finished_at = now(), expires_at = now() + make_interval(secs => $9),
        lease_until = NULL, worker = NULL, sending_since = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING id
"""
_WAIT = """
    UPDATE jobs
    SET status = 'waiting', next_attempt_at = now() + make_interval(secs => $3), message = $4, lease_until = NULL,
        worker = NULL, sending_since = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING id
"""
# What was not sent goes back as if it had never been taken: this attempt does not count.
_HAND_BACK = """
    UPDATE jobs
    SET status = 'queued', lease_until = NULL, worker = NULL, attempt = attempt - 1, rung_at = now()
    WHERE id = $1 AND fence = $2 AND status = 'running' AND sending_since IS NULL AND NOT is_inline
    RETURNING id, attempt
"""
_GET = f"SELECT {_COLUMNS} FROM jobs WHERE organization_id = $1 AND id = $2 AND NOT is_inline"
_GET_ANY = f"SELECT {_COLUMNS} FROM jobs WHERE organization_id = $1 AND id = $2"
_LIST = f"""
    SELECT {_COLUMNS} FROM jobs
    WHERE organization_id = $1 AND NOT is_inline
      AND ($2::text[] IS NULL OR status = ANY ($2))
      AND ($3::uuid IS NULL OR connector_id = $3)
      AND ($4::text IS NULL OR workspace_name = $4)
      AND ($5::text IS NULL OR entity = $5)
      AND ($6::timestamptz IS NULL OR created_at >= $6)
      AND ($7::timestamptz IS NULL OR created_at < $7)
      AND ($8::timestamptz IS NULL OR (created_at, id) < ($8, $9::uuid))
    ORDER BY created_at DESC, id DESC
    LIMIT $10
"""
# Queued and waiting work ends at once; running work is told.
_CANCEL = f"""
    UPDATE jobs
    SET cancel_requested = true,
        status = CASE WHEN status IN ('queued', 'waiting') THEN 'canceled' ELSE status END,
        message = CASE WHEN status IN ('queued', 'waiting') THEN 'canceled before it ran' ELSE message END,
        finished_at = CASE WHEN status IN ('queued', 'waiting') THEN now() END,
        expires_at = CASE WHEN status IN ('queued', 'waiting') THEN now() + make_interval(secs => $3) END,
        next_attempt_at = NULL
    WHERE organization_id = $1 AND id = $2 AND NOT is_inline AND status IN ('queued', 'waiting', 'running')
    RETURNING {_COLUMNS}
"""
_LINES = "SELECT lines FROM job_results WHERE organization_id = $1 AND job_id = $2 ORDER BY part"
_EVENTS = """
    SELECT number, event, data FROM job_events
    WHERE organization_id = $1 AND job_id = $2 AND number > $3 ORDER BY number LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A caller's promise that requests with this key are one request."""

    key: str
    #: SHA-256 of the request
    fingerprint: bytes
    #: seconds that it is remembered
    seconds: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job of a request: a new one, or the one that its key already stands for."""

    job: Job
    is_new: bool
    #: whether the key came with another request before
    is_mismatch: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends."""

    status: JobStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    message: str | None = None
    progress: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One numbered change of a job."""

    number: int
    event: str
    data: str


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list shows."""

    statuses: Sequence[str] | None = None
    connector_id: UUID | None = None
    workspace_name: str | None = None
    entity: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


class LostLease(Exception):
    """Somebody else holds the job now, or it has ended: stop, and write nothing more."""


class JobStore:
    """Every write of a running job carries its fence; none matched means LostLease."""

    def __init__(self, database: Database, retention: int) -> None:
        self._database = database
        self._retention = retention

    async def accept(self, new: NewJob, key: IdempotencyKey | None = None, claimed_by: str | None = None) -> Accepted:
        """Job and key in one transaction; a key seen before brings its job back instead.

        With `claimed_by` the job is born running, held by the process that accepted it.
        """
        async with self._database.tenant(new.organization_id) as connection, connection.transaction():
            if key is not None:
                earlier = await self._earlier(connection, new, key)
                if earlier is not None:
                    return earlier
            row = await connection.fetchrow(_INSERT, *_arguments(new), claimed_by)
        return Accepted(_job(row), is_new=True)

    async def _earlier(self, connection: Connection, new: NewJob, key: IdempotencyKey) -> Accepted | None:
        owner = (new.organization_id, new.client_id, new.connector_id, key.key)
        kept = await connection.fetchval(_KEEP_KEY, *owner, key.fingerprint, new.id, key.seconds)
        if kept is not None:
            return None
        row = await connection.fetchrow(_KEPT_KEY, *owner)
        job = _job(await connection.fetchrow(_GET_ANY, new.organization_id, row["job_id"]))
        return Accepted(job, is_new=False, is_mismatch=row["fingerprint"] != key.fingerprint)

    async def claim(self, worker: str, most: int = 1) -> list[Job]:
        """Up to `most` queued jobs, now ours to run; fair between organizations."""
        async with self._database.system() as connection:
            return [_job(row) for row in await connection.fetch(_CLAIM, worker, most)]

    async def heartbeat(self, held: Mapping[UUID, int]) -> dict[UUID, bool]:
        """Extend the leases of these jobs; those still ours, and whether a caller wants them canceled."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_HEARTBEAT, list(held), list(held.values()))
        return {row["id"]: row["cancel_requested"] for row in rows}

    async def sending(self, job: Job) -> None:
        """Commit that the first byte of a write is about to go out; raises LostLease."""
        await self._held(_SENDING, job)

    async def answered(self, job: Job) -> None:
        """Commit that the write's answer is here."""
        await self._held(_ANSWERED, job)

    async def save(self, job: Job, state: Mapping[str, Any], lines: str) -> None:
        """Commit what a later attempt needs, and one more part of the result, together."""
        async with self._database.system() as connection, connection.transaction():
            row = await connection.fetchrow(_SAVE, job.id, job.fence, json.dumps(dict(state)), int(bool(lines)))
            if row is None:
                raise LostLease
            if lines:
                await connection.execute(_ADD_PART, job.id, row["organization_id"], row["parts"], lines)

    async def progress(self, job: Job, done: int, total: int | None, message: str) -> bool:
        """Tell how far it is; whether a caller wants it canceled."""
        return bool(await self._held(_PROGRESS, job, done, total, message))

    async def finish(self, job: Job, ending: Ending) -> None:
        """The one write that ends a job; raises LostLease."""
        result = None if ending.result is None else json.dumps(dict(ending.result))
        error = None if ending.error is None else json.dumps(dict(ending.error))
        figures = (ending.message, ending.progress, ending.total, self._retention)
        await self._held(_FINISH, job, ending.status, result, error, *figures)

    async def wait(self, job: Job, seconds: float, reason: str) -> None:
        """Put it aside until the application takes requests again."""
        await self._held(_WAIT, job, seconds, reason)

    async def hand_back(self, job: Job) -> int | None:
        """Give up what was not sent, for another worker; its attempt number, or None when it must not run again."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_HAND_BACK, job.id, job.fence)
        return None if row is None else int(row["attempt"])

    async def _held(self, query: str, job: Job, *arguments: Any) -> Any:
        async with self._database.system() as connection:
            row = await connection.fetchrow(query, job.id, job.fence, *arguments)
        if row is None:
            raise LostLease
        return row[0]

    async def get(self, organization_id: UUID, job_id: UUID) -> Job:
        """The job; raises NotFound, for another organization's just the same."""
        return await self._fetched(_GET, organization_id, job_id)

    async def get_any(self, organization_id: UUID, job_id: UUID) -> Job:
        """The job also when it was run inline, which callers do not see as a job."""
        return await self._fetched(_GET_ANY, organization_id, job_id)

    async def _fetched(self, query: str, organization_id: UUID, job_id: UUID) -> Job:
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(query, organization_id, job_id)
        if row is None:
            raise NotFound("there is no such job")
        return _job(row)

    async def find(
        self, organization_id: UUID, wanted: JobFilter, before: tuple[datetime, UUID] | None, limit: int
    ) -> Sequence[Job]:
        """The newest first."""
        created_at, job_id = before or (None, None)
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(
                _LIST,
                organization_id,
                wanted.statuses,
                wanted.connector_id,
                wanted.workspace_name,
                wanted.entity,
                wanted.created_after,
                wanted.created_before,
                created_at,
                job_id,
                limit,
            )
        return [_job(row) for row in rows]

    async def request_cancel(self, organization_id: UUID, job_id: UUID) -> Job | None:
        """The job, canceled or told so; None when it has ended."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_CANCEL, organization_id, job_id, self._retention)
        return None if row is None else _job(row)

    @asynccontextmanager
    async def lines(self, job: Job) -> AsyncIterator[AsyncIterator[str]]:
        """The stored records, a part of lines at a time, however many there are."""
        async with self._database.tenant(job.organization_id) as connection, connection.transaction():
            rows = connection.cursor(_LINES, job.organization_id, job.id, prefetch=4)
            yield (row["lines"] async for row in rows)

    async def events(self, job: Job, after: int, most: int = 500) -> list[JobEvent]:
        """The changes after that number, oldest first."""
        async with self._database.tenant(job.organization_id) as connection:
            rows = await connection.fetch(_EVENTS, job.organization_id, job.id, after, most)
        return [JobEvent(**row) for row in rows]


def _arguments(new: NewJob) -> tuple[Any, ...]:
    return (
        new.id,
        new.organization_id,
        new.client_id,
        new.connector_id,
        new.workspace_name,
        new.task,
        new.kind,
        new.entity,
        new.action,
        json.dumps(dict(new.params)),
        json.dumps(dict(new.shape)),
        new.effect,
        new.is_inline,
        json.dumps(dict(new.labels)),
    )


def _job(row: Any) -> Job:
    members = dict(row)
    for name in ("params", "shape", "labels", "state"):
        members[name] = json.loads(members[name])
    for name in ("error", "result"):
        members[name] = None if members[name] is None else json.loads(members[name])
    members["effect"] = Effect(members["effect"])
    members["status"] = JobStatus(members["status"])
    return Job(**members)
