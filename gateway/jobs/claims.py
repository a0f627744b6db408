"""Claims: which queued jobs a worker gets next, fair between organizations and between the connectors of each.

Every connector has its own queue in PostgreSQL. Jobs that exceed the application's concurrency limit stay there, and so
do all jobs while the application's rate limit is reached, so that they take no slot of a worker.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from gateway.foundation.db.pool import Database
from gateway.foundation.db.rows import decoded
from gateway.foundation.telemetry.metrics import QUEUE_WAIT
from gateway.jobs.leases import LEASE
from gateway.jobs.model import COLUMNS, StoredJob, job_of
from gateway.jobs.sealing import JobSealing
from gateway.jobs.tasks import TASKS

#: queues that one claim reads, starting at a random one
_QUEUES = 50

# Rows are looked up by their id. With a plain `status = 'queued'` the planner may instead read the index of all queued
# jobs, once for each row: its statistics can be of a time when the queue was empty.
_IS_QUEUED = "jobs.status || '' = 'queued'"
_TAKE = f"""
    UPDATE jobs
    SET status = 'running', worker = $1, fence = fence + 1, attempt = attempt + 1, next_attempt_at = NULL,
        lease_until = now() + interval '{LEASE} seconds', started_at = COALESCE(started_at, now())
    FROM chosen WHERE jobs.id = chosen.id AND {_IS_QUEUED}
    RETURNING {COLUMNS}
"""
# Jobs of an organization that is being moved stay in the queue, and move with it; the job that exports it runs.
_MAY_RUN = """
    ({0}.organization_id <> ALL (ARRAY(SELECT id FROM organizations WHERE moving_since IS NOT NULL))
     OR {0}.id = ANY (ARRAY(SELECT moving_job FROM organizations WHERE moving_since IS NOT NULL)))
"""
# Queues with the fewest running jobs come first, then organizations with the fewest. Only chosen rows are locked, so
# that concurrent claims find other jobs. While a connector is on hold, only jobs that have waited for it are claimed.
CLAIM = f"""
    WITH running AS (
        SELECT organization_id, queue, count(*) AS everywhere, count(*) FILTER (WHERE worker = $1) AS here
        FROM jobs WHERE status = 'running' GROUP BY 1, 2
    ), of_organization AS (
        SELECT organization_id, sum(everywhere) AS everywhere, sum(here) AS here FROM running GROUP BY 1
    ), oldest AS (
        SELECT job.*, row_number() OVER (PARTITION BY organization_id, queue ORDER BY created_at, id) AS place
        FROM gateway_oldest_jobs($9, $10, $3, $4, {_QUEUES}, 4 * $2::integer, $11) AS job
        LEFT JOIN connector_holds AS hold ON hold.connector_id = job.queue AND held_until > now()
        WHERE worker_losses < 2 AND (hold.connector_id IS NULL OR attempt > 0)
          AND {_MAY_RUN.format("job")}
    ), within_queue AS (
        SELECT oldest.*, place + COALESCE(everywhere, 0) AS turn
        FROM oldest LEFT JOIN running USING (organization_id, queue)
        LEFT JOIN unnest($7::text[], $8::bigint[]) AS published (kind, concurrency) ON published.kind = oldest.kind
        WHERE place + COALESCE(here, 0) <= $6
          AND (concurrency IS NULL OR place + COALESCE(everywhere, 0) <= concurrency)
    ), within_organization AS (
        SELECT *, row_number() OVER (PARTITION BY organization_id ORDER BY turn, created_at, id) AS number
        FROM within_queue
    ), in_turn AS (
        SELECT id FROM within_organization LEFT JOIN of_organization USING (organization_id)
        WHERE number + COALESCE(here, 0) <= $5
        ORDER BY number + COALESCE(everywhere, 0), created_at
    ), chosen AS (
        SELECT job.id FROM in_turn, LATERAL (
            SELECT jobs.id FROM jobs WHERE jobs.id = in_turn.id AND {_IS_QUEUED} FOR UPDATE SKIP LOCKED
        ) AS job
        LIMIT $2
    )
    {_TAKE}
"""
# A job that lost two workers may be the cause: it runs in a small group of such jobs, and after one more loss alone.
_CLAIM_POISON_CANDIDATES = f"""
    WITH chosen AS (
        SELECT id FROM jobs
        WHERE status = 'queued' AND worker_losses >= 2 AND (worker_losses = 2) = $3 AND task = ANY ($4)
          AND (key_id <> ALL ($5::text[])) IS NOT FALSE
          AND {_MAY_RUN.format("jobs")}
        ORDER BY created_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    {_TAKE}
"""


@dataclass(frozen=True, slots=True)
class Shares:
    """Maximum jobs that a worker runs concurrently for one organization and for one connector."""

    organization: int
    connector: int
    #: kind → concurrent jobs that the application accepts from one connector, on all workers together
    concurrency: Mapping[str, int] = field(default_factory=dict)


class Claims:
    """Claims queued jobs by compare-and-set.

    `tasks`: names of the tasks that the worker knows. Jobs of other tasks stay in the queue, so that during a rolling
    upgrade an old worker leaves them to new ones.
    """

    def __init__(self, database: Database, sealing: JobSealing, tasks: Collection[str] = tuple(TASKS)) -> None:
        self._database = database
        self._sealing = sealing
        self._tasks = list(tasks)

    async def claim(self, worker: str, limit: int, shares: Shares, *, is_background: bool = False) -> list[StoredJob]:
        """Up to `limit` queued jobs, either interactive ones or background ones, whose keys are not forgotten.

        Raises Unavailable while the newest key is forgotten.
        """
        self._sealing.require_newest()
        async with self._database.system() as connection:
            rows = await connection.fetch(
                CLAIM,
                worker,
                limit,
                uuid4(),
                uuid4(),
                shares.organization,
                shares.connector,
                list(shares.concurrency),
                list(shares.concurrency.values()),
                is_background,
                self._tasks,
                self._sealing.forgotten,
            )
        claimed = await self._opened(rows)
        for job in claimed:
            if job.attempt == 1 and job.started_at is not None:
                QUEUE_WAIT.observe((job.started_at - job.created_at).total_seconds())
        return claimed

    async def claim_poison_candidates(self, worker: str, limit: int, *, is_group: bool) -> list[StoredJob]:
        """The oldest jobs that lost two workers, to run in a group; or those that lost more, to run alone.

        Raises Unavailable while the newest key is forgotten.
        """
        self._sealing.require_newest()
        forgotten = self._sealing.forgotten
        async with self._database.system() as connection:
            rows = await connection.fetch(_CLAIM_POISON_CANDIDATES, worker, limit, is_group, self._tasks, forgotten)
        return await self._opened(rows)

    async def _opened(self, rows: Sequence[Any]) -> list[StoredJob]:
        """The claimed jobs, without those that cannot be read: another worker may have their key or know their format.

        Their leases expire, and maintenance ends them if no worker can read them.
        """
        return (await decoded(rows, lambda row: job_of(row, self._sealing), "a job")).values
