"""Jobs in PostgreSQL as callers use them: accepted in one transaction, read, listed and canceled."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from gateway.access.audit.activity import Cause
from gateway.access.audit.entry import INSERT_ENTRIES, Entry
from gateway.contract.cursors import cursor_after
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    IdempotencyMismatch,
    InternalError,
    NotFound,
    ResultExpired,
    Unavailable,
    with_unknown_outcome,
)
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.db.batch_writer import rows_of
from gateway.foundation.db.page_bytes import page_of_rows
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import decoded, readable, require_readable
from gateway.foundation.db.where import OWNED, Where
from gateway.jobs.leases import LARGE_TIMEOUT, LEASE, NOTHING_DONE
from gateway.jobs.model import (
    CANCELED_UNDONE,
    CANCELED_UNSTARTED,
    COLUMNS,
    INSERTED_COLUMNS,
    NEW_JOBS,
    NEXT_ARGUMENT,
    SUMMARY_COLUMNS,
    EndedJobs,
    JobChange,
    JobFilter,
    JobStep,
    JobSummary,
    NewJob,
    StoredJob,
    accepted_job,
    inserted_columns,
    job_of,
    summary_of,
)
from gateway.jobs.sealing import JobSealing, part_field
from gateway.jobs.settlements import code_in, settling
from gateway.jobs.tasks import TASKS, sql_names

# If it is repeated after a lost commit response, existing rows are left unchanged.
_INSERT = f"""
    INSERT INTO jobs ({INSERTED_COLUMNS}) SELECT * FROM {NEW_JOBS}
    ON CONFLICT (id) DO NOTHING RETURNING {SUMMARY_COLUMNS}
"""
_ACCEPTED = f"SELECT {COLUMNS} FROM jobs WHERE id = ANY ($1::uuid[])"
# The job is inserted as running, with the accepting process as its worker.
_INSERT_CLAIMED = f"""
    INSERT INTO jobs ({INSERTED_COLUMNS}, status, worker, lease_until, fence, attempt, started_at)
    SELECT *, 'running', ${NEXT_ARGUMENT}::text, now() + interval '{LEASE} seconds', 1, 1, now() FROM {NEW_JOBS}
    RETURNING {SUMMARY_COLUMNS}
"""
# The first request reserves the key; concurrent ones wait here. An expired key is replaced.
_RESERVE_KEY = """
    INSERT INTO idempotency_keys (organization_id, client_id, connector_id, key, fingerprint, job_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
    ON CONFLICT (organization_id, client_id, connector_id, key) DO UPDATE
    SET fingerprint = EXCLUDED.fingerprint, job_id = EXCLUDED.job_id, expires_at = EXCLUDED.expires_at
    WHERE idempotency_keys.expires_at < now()
    RETURNING job_id
"""
_FIND_BY_KEY = f"""
    SELECT fingerprint, {COLUMNS}
    FROM idempotency_keys JOIN jobs USING (organization_id, client_id, connector_id)
    WHERE organization_id = $1 AND client_id = $2 AND connector_id = $3 AND key = $4 AND jobs.id = job_id
"""
_IS_USED = """
    SELECT EXISTS (
        SELECT FROM idempotency_keys
        WHERE organization_id = $1 AND client_id = $2 AND connector_id = $3 AND key = $4 AND expires_at > now()
    )
"""
# Callers that wait or stream read the job here repeatedly: once the organization is disabled, they find none.
_GET = f"""
    SELECT {SUMMARY_COLUMNS} FROM jobs
    WHERE organization_id = $1 AND id = $2 AND NOT is_inline
      AND EXISTS (SELECT FROM organizations WHERE organizations.id = $1 AND disabled_at IS NULL)
"""
_NEWEST = f"SELECT {SUMMARY_COLUMNS} FROM jobs WHERE {{conditions}} ORDER BY created_at DESC, id DESC LIMIT {{limit}}"
#: columns whose values may be large
_WIDE = ("labels", "message", "error")
# The newest jobs of each status, from an index in their order, then the newest of those. The statuses are literals, so
# that PostgreSQL's planner knows which are rare.
_NEWEST_OF_ALL = "SELECT * FROM ({each}) AS jobs ORDER BY created_at DESC, id DESC LIMIT {limit}"
# At most so many jobs of a status: an organization may have any number of them.
_COUNTED = """
    SELECT '{status}' AS status, count(*) AS count
    FROM (SELECT FROM jobs WHERE {conditions} AND status = '{status}' LIMIT {limit}) AS counted
"""
_CAUSES = """
    SELECT COALESCE({code}, status) AS code, connector_id, count(*) AS count, max(created_at) AS last_at
    FROM ({failed}) AS failed GROUP BY 1, 2 ORDER BY count DESC, last_at DESC LIMIT {limit}
"""
_FAILED_AS = """
    (SELECT error, status, connector_id, created_at FROM jobs WHERE {conditions} AND status = '{status}' LIMIT {limit})
"""
# Of at most $4 jobs of a status: an organization may have any number of them.
_ENDED_AS = """
    (SELECT status FROM jobs
     WHERE organization_id = $1 AND status = '{}' AND created_at >= $2 AND NOT is_inline
       AND ($3::text[] IS NULL OR workspace_name = ANY ($3))
     LIMIT $4)
"""
_ENDED = f"""
    SELECT count(*) FILTER (WHERE status = '{JobStatus.FAILED}') AS failed,
           count(*) FILTER (WHERE status = '{JobStatus.UNKNOWN}') AS unknown
    FROM ({_ENDED_AS.format(JobStatus.FAILED)} UNION ALL {_ENDED_AS.format(JobStatus.UNKNOWN)}) AS ended
"""
# A queued or waiting job of which nothing was done ends at once; a running job is notified. A worker resumes a job of
# which something may have been done, and reports what was done. Deletions cannot be canceled.
_ENDS = f"(status IN ('queued', 'waiting') AND {NOTHING_DONE})"
_CANCEL = f"""
    WITH changed AS (
    UPDATE jobs
    SET cancel_requested = true,
        status = CASE WHEN {_ENDS} THEN 'canceled' WHEN status = 'waiting' THEN 'queued' ELSE status END,
        message = CASE WHEN NOT {_ENDS} THEN message
                       WHEN attempt = 0 THEN '{CANCELED_UNSTARTED}' ELSE '{CANCELED_UNDONE}' END,
        finished_at = CASE WHEN {_ENDS} THEN now() END,
        expires_at = CASE WHEN {_ENDS} THEN now() + make_interval(secs => $3) END,
        next_attempt_at = NULL
    WHERE organization_id = $1 AND id = $2 AND NOT is_inline AND status IN ('queued', 'waiting', 'running')
      AND task NOT IN ({sql_names(task for task in TASKS.values() if not task.is_cancellable)})
    RETURNING *
    ), noted AS ({settling("changed")})
    SELECT {SUMMARY_COLUMNS} FROM changed AS jobs
"""
_GET_STORED = f"SELECT {COLUMNS} FROM jobs WHERE organization_id = $1 AND id = $2 AND NOT is_inline"
_QUEUED = f"""
    SELECT {COLUMNS} FROM jobs
    WHERE organization_id = $1 AND connector_id = $2 AND task = $3 AND status = 'queued' ORDER BY created_at LIMIT $4
"""
_HEAD = "SELECT result FROM jobs WHERE organization_id = $1 AND id = $2"
_PARTS = """
    SELECT part, lines FROM job_results
    WHERE organization_id = $1 AND job_id = $2 AND part > $3 AND part <= $4 ORDER BY part LIMIT $5
"""
_EVENTS = """
    SELECT number, event, data FROM job_events
    WHERE organization_id = $1 AND job_id = $2 AND number > $3 AND number <= $4 ORDER BY number LIMIT $5
"""
_STATES = """
    SELECT data::json ->> 'status' AS status, (data::json ->> 'attempt')::integer AS attempt,
           data::json ->> 'message' AS message, at
    FROM job_events WHERE organization_id = $1 AND job_id = $2 AND event = 'status' ORDER BY number DESC LIMIT $3
"""
# The token may have expired since. If it was revoked, its row is deleted.
_FOLLOWED_BY = """
    SELECT jobs.client_id, organization_id FROM jobs
    JOIN tokens ON tokens.hash = jobs.token_hash AND tokens.client_id = jobs.client_id
    JOIN organizations ON organizations.id = organization_id AND organizations.disabled_at IS NULL
    WHERE jobs.id = $1 AND token_hash = $2 AND jobs.created_at > now() - make_interval(secs => $3)
"""

# Blocks the deletion of the connector until the job is committed, so that the deletion finds it.
_LOCK_CONNECTOR = """
    SELECT id FROM connectors WHERE organization_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE
"""

#: parts of a result fetched at first
_FIRST_PARTS = 4
#: while a fetch returns fewer bytes than this, the next one is for twice as many parts
_FEW_BYTES = 256 << 10
#: maximum parts of one fetch
_MAX_PARTS = 1000


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An `Idempotency-Key`: requests with the same key are one request."""

    key: str
    #: SHA-256 of the request
    fingerprint: bytes
    #: seconds until it expires
    seconds: int


@dataclass(frozen=True, slots=True)
class AcceptedJob:
    """The job of a request: a new one, or the one that was accepted with the same key."""

    job: StoredJob
    is_new: bool


class FoundJobs(NamedTuple):
    """Some jobs of a list, newest first."""

    jobs: Sequence[JobSummary]
    #: when the last one was created, and its id, even if it cannot be read; None if no more follow
    last: tuple[datetime, UUID] | None
    #: the time of which they are, if a replica was read
    as_of: datetime | None

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page; None after the last one."""
        return None if self.last is None else cursor_after([self.last], lambda place: place)


class JobStore:
    """Accepts, reads and cancels jobs for callers.

    `retention`: seconds that the result of a finished job is stored. `timeout`: seconds to accept a job, including
    retries after a lost connection.
    """

    def __init__(self, database: Database, retention: int, sealing: JobSealing, *, timeout: float = 1.8) -> None:
        self._database = database
        self._retention = retention
        self._sealing = sealing
        self._timeout = timeout
        self._accepting: Batcher[NewJob, StoredJob | InternalError] = Batcher(self._accept_all)

    async def accept(
        self,
        new: NewJob,
        key: IdempotencyKey | None = None,
        claimed_by: str | None = None,
        *,
        needs_connector: bool = False,
        intent: Entry | None = None,
    ) -> AcceptedJob:
        """Commit job, key and audit entry in one transaction; if the key was used before, return its job instead.

        Raises IdempotencyMismatch if the key was used for a different request. With `claimed_by` the job is inserted as
        running, with this process as its worker. With `needs_connector` it raises NotFound if the connector was deleted
        meanwhile; a deletion that begins later finds the job.
        """
        if key is None and claimed_by is None:
            return AcceptedJob(await self._accept(new), is_new=True)
        while True:
            async with self._database.tenant(new.organization_id) as connection, connection.transaction():
                if needs_connector and not await connection.fetchval(
                    _LOCK_CONNECTOR, new.organization_id, new.connector_id
                ):
                    raise NotFound("there is no such connector")
                if key is None or await self._reserve_key(connection, new, key):
                    if intent is not None:
                        await connection.execute(INSERT_ENTRIES, rows_of([intent]))
                    return AcceptedJob(await self.accept_within(connection, new, claimed_by), is_new=True)
                row = await connection.fetchrow(_FIND_BY_KEY, *_owner(new, key))
            # No row: the key was released between the two statements.
            if row is not None:
                members = dict(row)
                if members.pop("fingerprint") != key.fingerprint:
                    raise IdempotencyMismatch(
                        f"the Idempotency-Key {key.key!r} was used for a different request; use a new key"
                    )
                return AcceptedJob(require_readable(self._readable(members)), is_new=False)

    async def is_used(self, new: NewJob, key: IdempotencyKey) -> bool:
        """Whether the key was used before, so that `accept` would return its job."""
        async with self._database.tenant(new.organization_id) as connection:
            return bool(await connection.fetchval(_IS_USED, *_owner(new, key)))

    async def _accept(self, new: NewJob) -> StoredJob:
        """Insert the job; repeat it if the connection was lost before the commit was confirmed.

        Nothing else can: only this call knows the job's id.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout
        try:
            return require_readable(await self._accepting(new))
        except Unavailable as unavailable:
            if not unavailable.was_sent:
                raise
            lost = unavailable
        try:
            async with asyncio.timeout_at(deadline):
                return require_readable(await retry_until_available(lambda: self._accepting(new)))
        except (Unavailable, TimeoutError):
            raise _perhaps_accepted(new, lost) from lost

    async def accept_within(self, connection: Connection, new: NewJob, claimed_by: str | None = None) -> StoredJob:
        """Accept a job within the caller's transaction; with `claimed_by` as `accept` does."""
        columns = inserted_columns([new], self._sealing)
        if claimed_by is None:
            return accepted_job(await connection.fetchrow(_INSERT, *columns), new)
        return accepted_job(await connection.fetchrow(_INSERT_CLAIMED, *columns, claimed_by), new)

    async def _reserve_key(self, connection: Connection, new: NewJob, key: IdempotencyKey) -> bool:
        job_id = await connection.fetchval(_RESERVE_KEY, *_owner(new, key), key.fingerprint, new.id, key.seconds)
        return job_id is not None

    async def _accept_all(self, new: Sequence[NewJob]) -> Sequence[StoredJob | InternalError]:
        async with self._database.system() as connection:
            return await self.accept_all_within(connection, new)

    async def accept_all_within(
        self, connection: Connection, new: Sequence[NewJob]
    ) -> Sequence[StoredJob | InternalError]:
        """Accept jobs within the caller's transaction; a job that exists already is left unchanged.

        The result of one that exists and cannot be read is an error.
        """
        if not new:
            return []
        rows = {row["id"]: row for row in await connection.fetch(_INSERT, *inserted_columns(new, self._sealing))}
        missing = [each.id for each in new if each.id not in rows]
        before = await connection.fetch(_ACCEPTED, missing) if missing else []
        accepted = {row["id"]: self._readable(row) for row in before}
        return [accepted_job(rows[each.id], each) if each.id in rows else accepted[each.id] for each in new]

    def _readable(self, row: Any) -> StoredJob | InternalError:
        return readable(row, lambda row: job_of(row, self._sealing), "a job")

    async def get(self, organization_id: UUID, job_id: UUID) -> JobSummary:
        """The job; raises NotFound, also for a job of another organization."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET, organization_id, job_id)
        if row is None:
            raise NotFound("there is no such job")
        return _summary(row)

    async def page(
        self, organization_id: UUID, filter_: JobFilter, before: tuple[datetime, UUID] | None, limit: int
    ) -> FoundJobs:
        """Jobs that match, newest first, as many as a page has, without those that cannot be read."""
        where = _matching(organization_id, filter_)
        where.add("(created_at, id) < ({}, {})", *(before or (None, None)))
        find = _newest(where.text, filter_.statuses, where.argument(limit + 1))
        (rows, has_more), as_of = await self._database.read(
            organization_id, lambda connection: page_of_rows(connection, find, where.arguments, _WIDE, limit)
        )
        last = (rows[-1]["created_at"], rows[-1]["id"]) if has_more else None
        return FoundJobs((await decoded(rows, summary_of, "a job")).values, last, as_of)

    async def counts(self, organization_id: UUID, filter_: JobFilter, limit: int) -> Mapping[JobStatus, int]:
        """The number of jobs of each status that match but for their status; at most `limit` of each are counted."""
        where = _matching(organization_id, filter_)
        conditions, most = where.text, where.argument(limit)
        each = (_COUNTED.format(status=status, conditions=conditions, limit=most) for status in JobStatus)
        counted = " UNION ALL ".join(each)
        rows, _ = await self._database.read(
            organization_id, lambda connection: connection.fetch(counted, *where.arguments)
        )
        return {JobStatus(row["status"]): row["count"] for row in rows}

    async def causes(self, organization_id: UUID, filter_: JobFilter, read: int, limit: int) -> Sequence[Cause]:
        """Why the matching jobs failed or are unknown, the most frequent cause first; at most `read` of each."""
        where = _matching(organization_id, filter_)
        conditions, most = where.text, where.argument(read)
        failed = " UNION ALL ".join(
            _FAILED_AS.format(status=status, conditions=conditions, limit=most)
            for status in (JobStatus.FAILED, JobStatus.UNKNOWN)
        )
        find = _CAUSES.format(code=code_in("error"), failed=failed, limit=where.argument(limit))
        async with self._database.tenant(organization_id) as connection:
            return [Cause(**row) for row in await connection.fetch(find, *where.arguments)]

    async def ended(
        self, organization_id: UUID, workspaces: Collection[str] | None, since: datetime, limit: int
    ) -> EndedJobs:
        """The jobs created since then that failed or are unknown; at most `limit` of each are counted."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_ENDED, organization_id, since, workspaces, limit)
        assert row is not None
        return EndedJobs(**row)

    async def request_cancel(self, organization_id: UUID, job_id: UUID) -> JobSummary | None:
        """The job, canceled or with its cancellation requested; None if it has ended or cannot be canceled."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_CANCEL, organization_id, job_id, self._retention)
        return None if row is None else _summary(row)

    async def get_stored(self, organization_id: UUID, job_id: UUID) -> StoredJob:
        """The job with its params and state; raises NotFound, and InternalError for a row that cannot be read."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET_STORED, organization_id, job_id)
        if row is None:
            raise NotFound("there is no such job")
        return require_readable(self._readable(row))

    async def queued(self, organization_id: UUID, connector_id: UUID, task: str, limit: int) -> Sequence[StoredJob]:
        """Queued jobs of a connector and a task, oldest first, without those that cannot be read."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_QUEUED, organization_id, connector_id, task, limit)
        return (await decoded(rows, lambda row: job_of(row, self._sealing), "a job")).values

    async def head(self, job: JobSummary) -> dict[str, Any] | None:
        """The job's result without its records."""
        async with self._database.tenant(job.organization_id) as connection:
            text = await connection.fetchval(_HEAD, job.organization_id, job.id, timeout=LARGE_TIMEOUT)
        return None if text is None else json.loads(self._sealing.open(job, "result", text))

    async def lines(self, job: JobSummary, parts: int) -> AsyncIterator[str]:
        """The stored records as JSON lines, one part at a time; raises ResultExpired.

        No connection is held between parts, so that a slow reader does not occupy one.
        """
        last, limit = 0, _FIRST_PARTS
        while last < parts:
            async with self._database.tenant(job.organization_id) as connection:
                rows = await connection.fetch(
                    _PARTS, job.organization_id, job.id, last, parts, limit, timeout=LARGE_TIMEOUT
                )
            if not rows:
                raise ResultExpired("the result expired while it was read")
            for row in rows:
                yield await self._sealing.opened(job, part_field(row["part"]), row["lines"])
            last = rows[-1]["part"]
            has_few_bytes = sum(len(row["lines"]) for row in rows) < _FEW_BYTES
            limit = min(2 * limit, _MAX_PARTS) if has_few_bytes else _FIRST_PARTS

    async def events(self, job: JobSummary, after: int, limit: int = 500) -> list[JobChange]:
        """The changes after that number, oldest first, up to the version of `job`."""
        async with self._database.tenant(job.organization_id) as connection:
            rows = await connection.fetch(_EVENTS, job.organization_id, job.id, after, job.version, limit)
        return [JobChange(**row) for row in rows]

    async def steps(self, job: JobSummary, limit: int) -> list[JobStep]:
        """The latest changes of the job's state, oldest first."""
        async with self._database.tenant(job.organization_id) as connection:
            rows = await connection.fetch(_STATES, job.organization_id, job.id, limit)
        return [JobStep(JobStatus(row["status"]), row["attempt"], row["message"], row["at"]) for row in reversed(rows)]

    async def follower(self, job_id: UUID, token_hash: bytes, seconds: int) -> tuple[UUID, UUID] | None:
        """Client and organization of the job, if it was accepted with that token less than `seconds` ago."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_FOLLOWED_BY, job_id, token_hash, seconds)
        return None if row is None else (row["client_id"], row["organization_id"])


def _summary(row: Any) -> JobSummary:
    """The job in the row; raises InternalError for one that cannot be read."""
    return require_readable(readable(row, summary_of, "a job"))


def _matching(organization_id: UUID, filter_: JobFilter) -> Where:
    """The conditions of a filter but for the status."""
    where = Where()
    where.add("organization_id = {} AND NOT is_inline", organization_id)
    where.require(OWNED, filter_.person_id)
    where.add("session_id = {}", filter_.session_id)
    where.add("connector_id = {}", filter_.connector_id)
    where.add("workspace_name = {}", filter_.workspace_name)
    where.add("workspace_name = ANY ({}::text[])", filter_.workspaces)
    where.add("entity = {}", filter_.entity)
    where.add("created_at >= {}", filter_.created_after)
    where.add("created_at < {}", filter_.created_before)
    return where


def _newest(conditions: str, statuses: Sequence[str] | None, limit: str) -> str:
    if not statuses:
        return _NEWEST.format(conditions=conditions, limit=limit)
    each = [
        _NEWEST.format(conditions=f"{conditions} AND status = '{status}'", limit=limit)
        for status in sorted(map(JobStatus, set(statuses)))
    ]
    return _NEWEST_OF_ALL.format(each=" UNION ALL ".join(f"({one})" for one in each), limit=limit)


def _perhaps_accepted(new: NewJob, lost: Unavailable) -> GatewayError:
    if new.effect is Effect.READ:
        return lost
    unavailable = Unavailable(
        "the connection to PostgreSQL was lost while the job was accepted; it may run", retry_after=lost.retry_after
    )
    return with_unknown_outcome(unavailable, {"job_id": str(new.id)}, safe_to_retry=new.effect is Effect.IDEMPOTENT)


def _owner(new: NewJob, key: IdempotencyKey) -> tuple[Any, ...]:
    """Whose key it is: each client that acts for a person in sessions has keys of its own."""
    text = key.key if new.session is None else f"{new.session.client_id} {key.key}"
    return (new.organization_id, new.client_id, new.connector_id, text)
