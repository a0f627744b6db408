"""Running jobs in PostgreSQL: claimed by compare-and-set, kept by heartbeats, every later write behind a fence.

A claim raises the job's fence; a write that carries an older one matches nothing, so whoever was frozen or given up
changes nothing any more. Time is the database's clock only.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from gateway.aio.batching import Batcher
from gateway.db.pool import Database
from gateway.jobs.model import Job, JobStatus
from gateway.jobs.rows import COLUMNS, job_of
from gateway.telemetry.metrics import JOBS_ENDED, QUEUE_WAIT

#: seconds that a claim holds without a heartbeat
LEASE = 10
#: organizations that one claim looks at, from a random one on
_TENANTS = 50

_TAKE = f"""
    UPDATE jobs
    SET status = 'running', worker = $1, fence = fence + 1, attempt = attempt + 1, next_attempt_at = NULL,
        lease_until = now() + interval '{LEASE} seconds', started_at = COALESCE(started_at, now())
    FROM chosen WHERE jobs.id = chosen.id AND jobs.status = 'queued'
    RETURNING {COLUMNS}
"""
_WAITS = "status = 'queued' AND crashes = 0"
# Fair between organizations: those go first that have the least running, and none takes a whole worker ($4 jobs at
# most). The recursion hops from organization to organization along the index instead of reading a deep queue, and ends
# where it began, because UNION drops what it has met. Only what is chosen is locked, so that claims at the same time
# find something as well.
_CLAIM = f"""
    WITH RECURSIVE tenants (organization_id) AS (
        SELECT COALESCE(
            (SELECT organization_id FROM jobs WHERE {_WAITS} AND organization_id >= $3
             ORDER BY organization_id LIMIT 1),
            (SELECT organization_id FROM jobs WHERE {_WAITS} ORDER BY organization_id LIMIT 1))
        UNION
        SELECT COALESCE(
            (SELECT organization_id FROM jobs WHERE {_WAITS} AND organization_id > tenants.organization_id
             ORDER BY organization_id LIMIT 1),
            (SELECT organization_id FROM jobs WHERE {_WAITS} ORDER BY organization_id LIMIT 1))
        FROM tenants WHERE tenants.organization_id IS NOT NULL
    ), running AS (
        SELECT organization_id, count(*) AS everywhere, count(*) FILTER (WHERE worker = $1) AS here
        FROM jobs WHERE status = 'running' GROUP BY organization_id
    ), oldest AS (
        SELECT job.*, row_number() OVER (PARTITION BY job.organization_id ORDER BY job.created_at, job.id) AS place
        FROM (SELECT organization_id FROM tenants WHERE organization_id IS NOT NULL LIMIT {_TENANTS}) AS tenants
        CROSS JOIN LATERAL (
            SELECT id, organization_id, created_at FROM jobs
            WHERE {_WAITS} AND organization_id = tenants.organization_id
            ORDER BY created_at, id LIMIT 4 * $2::bigint
        ) AS job
    ), ranked AS (
        SELECT oldest.id, oldest.created_at, place + COALESCE(everywhere, 0) AS turn, place + COALESCE(here, 0) AS here
        FROM oldest LEFT JOIN running USING (organization_id)
    ), chosen AS (
        SELECT jobs.id FROM jobs JOIN ranked ON ranked.id = jobs.id
        WHERE jobs.status = 'queued' AND ranked.here <= $4
        ORDER BY ranked.turn, ranked.created_at
        LIMIT $2 FOR UPDATE OF jobs SKIP LOCKED
    )
    {_TAKE}
"""
# What lost its worker may be what kills workers, so a worker runs one such job at a time: the next loss is its own.
_CLAIM_SUSPECT = f"""
    WITH chosen AS (
        SELECT id FROM jobs WHERE status = 'queued' AND crashes > 0
        ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    {_TAKE}
"""
# Rows are always locked in one order, so that statements about several jobs never wait for each other in a circle.
_HELD = """
    held AS (
        SELECT jobs.id FROM jobs JOIN given ON jobs.id = given.id AND jobs.fence = given.fence
        WHERE jobs.status = 'running' ORDER BY jobs.id FOR NO KEY UPDATE OF jobs
    )
"""
_HEARTBEAT = f"""
    WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS given (id, fence)), {_HELD}
    UPDATE jobs SET lease_until = now() + interval '{LEASE} seconds'
    FROM held WHERE jobs.id = held.id
    RETURNING jobs.id, jobs.fence, jobs.cancel_requested
"""
# The lease begins anew with the note, so that whoever wrote it knows how long it holds. Nothing more is sent for a job
# that is to be canceled.
_SENDING = f"""
    WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS given (id, fence)), {_HELD}
    UPDATE jobs
    SET sending_since = CASE WHEN cancel_requested THEN sending_since ELSE COALESCE(sending_since, now()) END,
        lease_until = now() + interval '{LEASE} seconds'
    FROM held WHERE jobs.id = held.id
    RETURNING jobs.id, jobs.cancel_requested
"""
# What an earlier attempt sent, and whose answer was lost, stays sent.
_NOT_DONE = """
    UPDATE jobs SET sending_since = $3 WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id
"""
# Written twice, because the first answer was lost, it is there once: parts have numbers.
_SAVE = """
    WITH saved AS (
        UPDATE jobs
        SET state = $3, sending_since = CASE WHEN NOT $6 THEN sending_since END, parts = greatest(parts, $4::integer)
        WHERE id = $1 AND fence = $2 AND status = 'running'
        RETURNING id, organization_id
    ), stored AS (
        INSERT INTO job_results (job_id, organization_id, part, lines)
        SELECT id, organization_id, $4::integer, $5::text FROM saved WHERE $5::text <> ''
        ON CONFLICT (job_id, part) DO UPDATE SET lines = EXCLUDED.lines
    )
    SELECT id FROM saved
"""
# An earlier attempt may have left some: this one's stand in their place.
_PUT_PART = """
    INSERT INTO job_results (job_id, organization_id, part, lines)
    SELECT id, organization_id, $3::integer, $4::text FROM jobs WHERE id = $1 AND fence = $2 AND status = 'running'
    ON CONFLICT (job_id, part) DO UPDATE SET lines = EXCLUDED.lines
    RETURNING part
"""
_PROGRESS = """
    UPDATE jobs SET progress = $3, total = $4, message = $5
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING cancel_requested
"""
_FINISH = f"""
    WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                             $8::bigint[], $9::integer[], $10::text[])
        AS given (id, fence, status, result, error, message, progress, total, part, lines)
    ), {_HELD}, stored AS (
        INSERT INTO job_results (job_id, organization_id, part, lines)
        SELECT given.id, jobs.organization_id, given.part, given.lines
        FROM given JOIN held ON held.id = given.id JOIN jobs ON jobs.id = given.id WHERE given.lines IS NOT NULL
        ON CONFLICT (job_id, part) DO UPDATE SET lines = EXCLUDED.lines
    )
    UPDATE jobs
    SET status = given.status, result = given.result, error = given.error,
        message = COALESCE(given.message, jobs.message), progress = COALESCE(given.progress, jobs.progress),
        total = COALESCE(given.total, jobs.total), finished_at = now(),
        expires_at = now() + make_interval(secs => $11), lease_until = NULL, worker = NULL, sending_since = NULL
    FROM given JOIN held ON held.id = given.id WHERE jobs.id = given.id
    RETURNING jobs.id
"""
#: whether a job can end canceled with nothing done: else it is taken up once more, by who can say what was.
NOTHING_DONE = "(effect = 'read' OR sending_since IS NULL AND state = '{}')"
_ENDS_CANCELED = f"cancel_requested AND {NOTHING_DONE}"
# Canceled meanwhile, it ends instead of waiting. What was sent and not answered stays noted.
_WAIT = f"""
    UPDATE jobs
    SET status = CASE WHEN {_ENDS_CANCELED} THEN 'canceled' WHEN cancel_requested THEN 'queued' ELSE 'waiting' END,
        next_attempt_at = CASE WHEN NOT cancel_requested THEN now() + make_interval(secs => $3) END,
        finished_at = CASE WHEN {_ENDS_CANCELED} THEN now() END,
        expires_at = CASE WHEN {_ENDS_CANCELED} THEN now() + make_interval(secs => $5) END,
        message = $4, lease_until = NULL, worker = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING id
"""
# What goes back counts as never taken.
_REQUEUE = f"""
    UPDATE jobs
    SET status = CASE WHEN {_ENDS_CANCELED} THEN 'canceled' ELSE 'queued' END,
        finished_at = CASE WHEN {_ENDS_CANCELED} THEN now() END,
        expires_at = CASE WHEN {_ENDS_CANCELED} THEN now() + make_interval(secs => $3) END,
        lease_until = NULL, worker = NULL, attempt = attempt - 1
    WHERE id = $1 AND fence = $2 AND status = 'running' AND NOT is_inline
    RETURNING status
"""
# With the row goes the key that stands for it, so that the same request can be made again.
_RELEASE = "DELETE FROM jobs WHERE id = $1 AND fence = $2 AND status = 'running' AND is_inline RETURNING id"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends."""

    status: JobStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    message: str | None = None
    progress: int | None = None
    total: int | None = None
    #: the last part of the result, where it is not stored yet
    part: int | None = None
    lines: str | None = None


class LostLease(Exception):
    """Somebody else holds the job now, or it has ended: stop, and write nothing more."""


class Leases:
    """What the process that runs a job writes; a write whose fence does not match raises LostLease."""

    def __init__(self, database: Database, retention: int) -> None:
        self._database = database
        self._retention = retention
        self._sending: Batcher[Job, bool | None] = Batcher(self._sending_all)
        self._finishing: Batcher[tuple[Job, Ending], bool] = Batcher(self._finish_all)

    async def claim(self, worker: str, most: int, share: int) -> list[Job]:
        """Up to `most` queued jobs, now ours to run; no organization gets more than `share` jobs of this worker."""
        async with self._database.system() as connection:
            claimed = [job_of(row) for row in await connection.fetch(_CLAIM, worker, most, uuid4(), share)]
        for job in claimed:
            if job.attempt == 1 and job.started_at is not None:
                QUEUE_WAIT.observe((job.started_at - job.created_at).total_seconds())
        return claimed

    async def claim_suspect(self, worker: str) -> Job | None:
        """The oldest job that lost its worker before."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_CLAIM_SUSPECT, worker)
        return None if row is None else job_of(row)

    async def heartbeat(self, held: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], bool]:
        """Extend these leases, by job id and fence; those still ours, and whether a caller wants them canceled."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_HEARTBEAT, [job_id for job_id, _ in held], [fence for _, fence in held])
        return {(row["id"], row["fence"]): row["cancel_requested"] for row in rows}

    async def sending(self, job: Job) -> bool:
        """Commit that the first byte of a write is about to go out, unless a caller wants it canceled: False."""
        is_canceled = await self._sending(job)
        if is_canceled is None:
            raise LostLease
        return not is_canceled

    async def _sending_all(self, jobs: Sequence[Job]) -> Sequence[bool | None]:
        async with self._database.system() as connection:
            rows = await connection.fetch(_SENDING, [job.id for job in jobs], [job.fence for job in jobs])
        noted = {row["id"]: row["cancel_requested"] for row in rows}
        return [noted.get(job.id) for job in jobs]

    async def not_done(self, job: Job) -> None:
        """Commit that what was about to be sent was certainly not done."""
        await self._fenced(_NOT_DONE, job, job.sending_since)

    async def save(
        self, job: Job, state: Mapping[str, Any], part: int, lines: str, *, is_answered: bool = True
    ) -> None:
        """Commit what a later attempt needs, and that part of the result, together; twice is as once."""
        await self._fenced(_SAVE, job, json.dumps(dict(state)), part, lines, is_answered)

    async def put_part(self, job: Job, part: int, lines: str) -> None:
        """Store one part of a result that is whole in memory."""
        await self._fenced(_PUT_PART, job, part, lines)

    async def progress(self, job: Job, done: int, total: int | None, message: str) -> bool:
        """Tell how far it is; whether a caller wants it canceled."""
        return bool(await self._fenced(_PROGRESS, job, done, total, _plain(message)))

    async def finish(self, job: Job, ending: Ending) -> None:
        """The one write that ends a job."""
        if not await self._finishing((job, ending)):
            raise LostLease
        JOBS_ENDED.add(job.task, ending.status)

    async def _finish_all(self, outcomes: Sequence[tuple[Job, Ending]]) -> Sequence[bool]:
        columns = zip(*(_ended(job, ending) for job, ending in outcomes), strict=True)
        async with self._database.system() as connection:
            rows = await connection.fetch(_FINISH, *map(list, columns), self._retention)
        ended = {row["id"] for row in rows}
        return [job.id in ended for job, _ in outcomes]

    async def wait(self, job: Job, seconds: float, reason: str) -> None:
        """Put it aside until the application takes requests again."""
        await self._fenced(_WAIT, job, seconds, _plain(reason), self._retention)

    async def requeue(self, job: Job) -> bool:
        """Give up a job that may be run again, for another worker; whether one is needed."""
        return bool(await self._fenced(_REQUEUE, job, self._retention) == JobStatus.QUEUED)

    async def release(self, job: Job) -> None:
        """Forget an inline call that came to nothing, and give its idempotency key back."""
        await self._fenced(_RELEASE, job)

    async def _fenced(self, query: str, job: Job, *arguments: Any) -> Any:
        async with self._database.system() as connection:
            row = await connection.fetchrow(query, job.id, job.fence, *arguments)
        if row is None:
            raise LostLease
        return row[0]


def _ended(job: Job, ending: Ending) -> tuple[Any, ...]:
    return (
        job.id,
        job.fence,
        ending.status,
        None if ending.result is None else json.dumps(dict(ending.result)),
        None if ending.error is None else json.dumps(dict(ending.error)),
        None if ending.message is None else _plain(ending.message),
        ending.progress,
        ending.total,
        ending.part,
        ending.lines,
    )


def _plain(text: str) -> str:
    """PostgreSQL's text knows no NUL, and an application's words may hold one."""
    return text.replace("\0", "")
