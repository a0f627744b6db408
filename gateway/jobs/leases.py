"""The leases of running jobs in PostgreSQL: a claim takes one by compare-and-set, and heartbeats renew it.

A claim raises the job's fence. A write with an older fence matches no row, so that a process that was frozen or marked
lost changes nothing. All times are the database's.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from gateway.access.audit.entry import Entry, inserting
from gateway.contract.jobs import JobStatus
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.db.batch_writer import rows_of
from gateway.foundation.db.pool import Database
from gateway.foundation.telemetry.metrics import JOBS_ENDED
from gateway.jobs.model import StoredJob
from gateway.jobs.sealing import JobSealing, part_field
from gateway.jobs.settlements import SETTLED, settling
from gateway.upstream.refusals import LONGEST_WAIT

#: seconds that a lease lasts without a heartbeat
LEASE = 10
#: escapes in JSON that PostgreSQL may refuse to read
_UNREADABLE = re.compile(r"\\u(0000|d[89a-f])")
#: timeout in seconds of a statement that writes or reads a part of a result
LARGE_TIMEOUT = 60.0
#: maximum seconds for which a connector's jobs are not claimed, even if its application asks for more
_LONGEST_HOLD = 300

# Rows are always locked in the order of their ids, so that statements on several jobs do not deadlock.
_HELD = """
    held AS (
        SELECT jobs.id FROM jobs JOIN given ON jobs.id = given.id AND jobs.fence = given.fence
        WHERE jobs.status = 'running' ORDER BY jobs.id FOR NO KEY UPDATE OF jobs
    )
"""
# If a job was marked lost but not claimed since (its fence is unchanged), the previous worker may resume its lease.
_HEARTBEAT = f"""
    WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS given (id, fence)), held AS (
        SELECT jobs.id FROM jobs JOIN given ON jobs.id = given.id AND jobs.fence = given.fence
        WHERE jobs.status = 'running' OR jobs.status = 'queued' AND jobs.worker = $3
        ORDER BY jobs.id FOR NO KEY UPDATE OF jobs
    )
    UPDATE jobs
    SET lease_until = now() + interval '{LEASE} seconds', worker = $3, status = 'running',
        worker_losses = CASE WHEN status = 'queued' THEN GREATEST(worker_losses - 1, 0) ELSE worker_losses END,
        message = CASE WHEN status = 'queued' THEN 'its worker is back' ELSE message END
    FROM held WHERE jobs.id = held.id
    RETURNING jobs.id, jobs.fence, jobs.cancel_requested
"""
# The worker is alive, so it did not crash. From the eleventh attempt on, losses count all the same.
_RESTORE = """
    WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS given (id, fence)), lost AS (
        SELECT jobs.id FROM jobs JOIN given ON jobs.id = given.id AND jobs.fence >= given.fence
        WHERE status IN ('queued', 'running', 'waiting') AND worker_losses > 0 AND attempt <= 10
        ORDER BY jobs.id FOR NO KEY UPDATE OF jobs
    )
    UPDATE jobs SET worker_losses = worker_losses - 1 FROM lost WHERE jobs.id = lost.id
"""
# The statement also renews the lease, so that the caller knows how long it lasts. If cancellation was requested, the
# job is not marked, because nothing more is sent for it.
_MARK_IN_FLIGHT = f"""
    WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS given (id, fence)), {_HELD}
    UPDATE jobs
    SET in_flight_since = CASE WHEN cancel_requested THEN in_flight_since ELSE COALESCE(in_flight_since, now()) END,
        lease_until = now() + interval '{LEASE} seconds'
    FROM held WHERE jobs.id = held.id
    RETURNING jobs.id, jobs.cancel_requested
"""
# If the response to an earlier attempt's request was lost, the request still counts as sent.
_CLEAR_IN_FLIGHT = """
    UPDATE jobs SET in_flight_since = $3 WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id
"""
# Parts have numbers and audit entries have ids, so that a repetition after a lost response stores each once. A job that
# makes progress starts again with no lost workers.
_CHECKPOINT = f"""
    WITH saved AS (
        UPDATE jobs
        SET state = $3, in_flight_since = CASE WHEN NOT $6 THEN in_flight_since END, worker_losses = 0,
            parts = greatest(parts, (SELECT max(part) FROM unnest($4::integer[]) AS part))
        WHERE id = $1 AND fence = $2 AND status = 'running'
        RETURNING id, organization_id
    ), stored AS (
        INSERT INTO job_results (job_id, organization_id, part, lines)
        SELECT id, organization_id, part, lines
        FROM saved, unnest($4::integer[], $5::text[]) AS given (part, lines)
        ON CONFLICT (job_id, part) DO UPDATE SET lines = EXCLUDED.lines
    ), noted AS ({inserting("$7", also_from="saved,")})
    SELECT id FROM saved
"""
# A part replaces the one that an earlier attempt may have stored.
_STORE_PART = """
    INSERT INTO job_results (job_id, organization_id, part, lines)
    SELECT id, organization_id, $3::integer, $4::text FROM jobs WHERE id = $1 AND fence = $2 AND status = 'running'
    ON CONFLICT (job_id, part) DO UPDATE SET lines = EXCLUDED.lines
    RETURNING part
"""
_PROGRESS = """
    UPDATE jobs
    SET progress = $3, total = $4, message = $5, worker_losses = CASE WHEN $6 THEN 0 ELSE worker_losses END
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING cancel_requested
"""
_FINISH = f"""
    WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                             $8::bigint[], $9::integer[], $10::text[], $11::text[])
        AS given (id, fence, status, result, error, message, progress, total, part, lines, target)
    ), {_HELD}, stored AS (
        INSERT INTO job_results (job_id, organization_id, part, lines)
        SELECT given.id, jobs.organization_id, given.part, given.lines
        FROM given JOIN held ON held.id = given.id JOIN jobs ON jobs.id = given.id WHERE given.lines IS NOT NULL
        ON CONFLICT (job_id, part) DO UPDATE SET lines = EXCLUDED.lines
    ), ended AS (
        UPDATE jobs
        SET status = given.status, result = given.result, error = given.error,
            message = COALESCE(given.message, jobs.message), progress = COALESCE(given.progress, jobs.progress),
            total = COALESCE(given.total, jobs.total), target = COALESCE(jobs.target, given.target),
            finished_at = now(), expires_at = now() + make_interval(secs => $12), lease_until = NULL, worker = NULL,
            in_flight_since = NULL
        FROM given JOIN held ON held.id = given.id WHERE jobs.id = given.id
        RETURNING {SETTLED}
    ), noted AS ({settling("ended")})
    SELECT id FROM ended
"""
#: whether nothing of a job was done, so that it can be canceled at once. Otherwise a worker runs it once more, to
#: follow the work in progress and report what was done.
NOTHING_DONE = "(effect = 'read' OR in_flight_since IS NULL AND state = '{}')"
_ENDS_CANCELED = f"(cancel_requested AND {NOTHING_DONE})"
# A canceled job does not wait unless it follows work in progress ($6): it ends, or is queued again if something may
# have been done. `in_flight_since` stays.
_WAITS = "(NOT cancel_requested OR $6::boolean)"
_DEFER = f"""
    WITH given_back AS (UPDATE jobs
    SET status = CASE WHEN {_ENDS_CANCELED} THEN 'canceled' WHEN {_WAITS} THEN 'waiting' ELSE 'queued' END,
        next_attempt_at = CASE WHEN NOT {_ENDS_CANCELED} AND {_WAITS} THEN now() + make_interval(secs => $3) END,
        finished_at = CASE WHEN {_ENDS_CANCELED} THEN now() END,
        expires_at = CASE WHEN {_ENDS_CANCELED} THEN now() + make_interval(secs => $5) END,
        message = $4, lease_until = NULL, worker = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running'
    RETURNING {SETTLED}), noted AS ({settling("given_back")})
    SELECT id FROM given_back
"""
# The first refusal decides the pause; each later caller gets a longer Retry-After.
_HOLD = """
    INSERT INTO connector_holds AS hold (connector_id, held_until)
    VALUES ($1, now() + make_interval(secs => $2))
    ON CONFLICT (connector_id) DO UPDATE
    SET held_until = CASE WHEN hold.held_until > now() THEN LEAST(hold.held_until, EXCLUDED.held_until)
                          ELSE EXCLUDED.held_until END
"""
# The attempt does not count.
_REQUEUE = f"""
    WITH given_back AS (UPDATE jobs
    SET status = CASE WHEN {_ENDS_CANCELED} THEN 'canceled' ELSE 'queued' END,
        finished_at = CASE WHEN {_ENDS_CANCELED} THEN now() END,
        expires_at = CASE WHEN {_ENDS_CANCELED} THEN now() + make_interval(secs => $3) END,
        lease_until = NULL, worker = NULL, attempt = attempt - 1
    WHERE id = $1 AND fence = $2 AND status = 'running' AND NOT is_inline
    RETURNING {SETTLED}), noted AS ({settling("given_back")})
    SELECT status FROM given_back
"""
# For the audit entry at the job's end, whatever ends it.
_NOTE_POLICIES = """
    UPDATE jobs SET policies = $3 WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id
"""
# Deleting the row also deletes its idempotency key, so that the request can be sent again.
_RELEASE = f"""
    WITH released AS (
        DELETE FROM jobs WHERE id = $1 AND fence = $2 AND status = 'running' AND is_inline
        RETURNING {SETTLED.replace("jobs.finished_at", "now() AS finished_at")}
    ), noted AS ({settling("released", outcome="$3::text")})
    SELECT id FROM released
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job ends."""

    status: JobStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    message: str | None = None
    progress: int | None = None
    total: int | None = None
    #: the last part of the result, if it is not stored yet
    part: int | None = None
    lines: str | None = None
    #: the id of the record that the job made, for its audit entry
    target: str | None = None

    @property
    def error_text(self) -> str | None:
        """The error as JSON that PostgreSQL can read: NUL and lone surrogates are replaced."""
        if self.error is None:
            return None
        text = json.dumps(dict(self.error))
        return json.dumps(_readable(self.error)) if _UNREADABLE.search(text) else text


#: the id and fence of a claimed job
LeaseKey: TypeAlias = tuple[UUID, int]


class JobWaits(Exception):
    """The run ended without an outcome, because the job waits for an approval; its row says so already."""


class LostLease(Exception):
    """Another process holds the job, or the job has ended: the run must stop and write nothing more."""


class Leases:
    """The writes of the process that runs a job; a write whose fence does not match raises LostLease."""

    def __init__(self, database: Database, retention: int, sealing: JobSealing) -> None:
        self._database = database
        self._sealing = sealing
        self._retention = retention
        self._marking: Batcher[StoredJob, bool | None] = Batcher(self._mark_all_in_flight)
        self._finishing: Batcher[tuple[StoredJob, JobOutcome], bool] = Batcher(self._finish_all)

    async def heartbeat(self, worker: str, held: Sequence[LeaseKey]) -> dict[LeaseKey, bool]:
        """Renew these leases; returns those still held, each with whether its job's cancellation was requested."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_HEARTBEAT, *_columns(held), worker)
        return {(row["id"], row["fence"]): row["cancel_requested"] for row in rows}

    async def restore(self, lost: Sequence[LeaseKey]) -> None:
        """Take back one worker loss of each of these jobs: their worker was marked lost, but is alive."""
        async with self._database.system() as connection:
            await connection.execute(_RESTORE, *_columns(lost))

    async def mark_in_flight(self, job: StoredJob) -> bool:
        """Commit that a write is about to be sent; false if it must not be, because the job is to be canceled."""
        is_canceled = await self._marking(job)
        if is_canceled is None:
            raise LostLease
        return not is_canceled

    async def _mark_all_in_flight(self, jobs: Sequence[StoredJob]) -> Sequence[bool | None]:
        async with self._database.system() as connection:
            rows = await connection.fetch(_MARK_IN_FLIGHT, [job.id for job in jobs], [job.fence for job in jobs])
        canceled = {row["id"]: row["cancel_requested"] for row in rows}
        return [canceled.get(job.id) for job in jobs]

    async def note_policies(self, job: StoredJob, policies: Sequence[str]) -> None:
        """Commit which policies decided about the job."""
        await self._fenced(_NOTE_POLICIES, job, list(policies))

    async def clear_in_flight(self, job: StoredJob) -> None:
        """Commit that the application certainly did not do what was about to be sent."""
        await self._fenced(_CLEAR_IN_FLIGHT, job, job.in_flight_since)

    async def checkpoint(
        self,
        job: StoredJob,
        state: Mapping[str, Any],
        parts: Mapping[int, str],
        *,
        is_answered: bool = True,
        entries: Sequence[Entry] = (),
    ) -> None:
        """Commit the state for a later attempt with parts of the result and audit entries; it may be repeated."""
        sealed_state = self._sealing.seal_document(job, "state", state)
        sealed = [await self._sealing.sealed(job, part_field(part), lines) for part, lines in parts.items()]
        noted = rows_of(entries)
        await self._fenced(
            _CHECKPOINT, job, sealed_state, list(parts), sealed, is_answered, noted, timeout=LARGE_TIMEOUT
        )

    async def store_part(self, job: StoredJob, part: int, lines: str) -> None:
        """Store one part of a result that is complete in memory."""
        sealed = await self._sealing.sealed(job, part_field(part), lines)
        await self._fenced(_STORE_PART, job, part, sealed, timeout=LARGE_TIMEOUT)

    async def progress(self, job: StoredJob, done: int, total: int | None, message: str) -> bool:
        """Store the progress; returns whether the job's cancellation was requested."""
        return bool(await self._fenced(_PROGRESS, job, done, total, _without_nul(message), done > job.progress))

    async def finish(self, job: StoredJob, outcome: JobOutcome) -> None:
        """End the job: the only statement that does."""
        if not await self._finishing((job, outcome)):
            raise LostLease
        JOBS_ENDED.add(job.task, outcome.status)

    async def _finish_all(self, outcomes: Sequence[tuple[StoredJob, JobOutcome]]) -> Sequence[bool]:
        columns = zip(*(self._finish_columns(job, outcome) for job, outcome in outcomes), strict=True)
        async with self._database.system() as connection:
            rows = await connection.fetch(_FINISH, *map(list, columns), self._retention)
        ended = {row["id"] for row in rows}
        return [job.id in ended for job, _ in outcomes]

    def _finish_columns(self, job: StoredJob, outcome: JobOutcome) -> tuple[Any, ...]:
        return (
            job.id,
            job.fence,
            outcome.status,
            None if outcome.result is None else self._sealing.seal_document(job, "result", outcome.result),
            outcome.error_text,
            None if outcome.message is None else _without_nul(outcome.message),
            outcome.progress,
            outcome.total,
            outcome.part,
            None if outcome.lines is None else self._sealing.seal(job, part_field(outcome.part or 0), outcome.lines),
            outcome.target,
        )

    async def defer(self, job: StoredJob, seconds: float, reason: str, *, is_followed: bool = False) -> None:
        """Let the job wait for `seconds`, an hour at most, because the application refused it for now.

        `is_followed`: it waits even if its cancellation was requested, because it follows work in progress.
        """
        await self._fenced(_DEFER, job, min(seconds, LONGEST_WAIT), _without_nul(reason), self._retention, is_followed)

    async def hold(self, connector_id: UUID, seconds: float) -> None:
        """Let no new job of the connector be claimed for `seconds`, because its rate limit is reached."""
        async with self._database.system() as connection:
            await connection.execute(_HOLD, connector_id, min(seconds, _LONGEST_HOLD))

    async def requeue(self, job: StoredJob) -> bool:
        """Requeue the job for another worker; returns whether it is queued (false if it was canceled)."""
        return bool(await self._fenced(_REQUEUE, job, self._retention) == JobStatus.QUEUED)

    async def release(self, job: StoredJob, outcome: str = "failed") -> None:
        """Delete the row of an inline call that sent nothing, and release its idempotency key.

        `outcome` is that of its audit entry.
        """
        await self._fenced(_RELEASE, job, outcome)

    async def _fenced(self, query: str, job: StoredJob, *arguments: Any, timeout: float | None = None) -> Any:
        async with self._database.system() as connection:
            row = await connection.fetchrow(query, job.id, job.fence, *arguments, timeout=timeout)
        if row is None:
            raise LostLease
        return row[0]


def _columns(keys: Sequence[LeaseKey]) -> tuple[list[UUID], list[int]]:
    return [job_id for job_id, _ in keys], [fence for _, fence in keys]


def _without_nul(text: str) -> str:
    """The text without NUL, which PostgreSQL cannot store and an application's message may have."""
    return text.replace("\0", "")


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {_readable(name): _readable(member) for name, member in value.items()}
    return [_readable(each) for each in value] if isinstance(value, (list, tuple)) else value
