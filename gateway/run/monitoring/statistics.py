"""Statistics from PostgreSQL, for `gateway status`, `/metrics` and the health checks."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.contract.connectors import ConnectorStatus
from gateway.foundation.db.pool import Database

# Each state has a partial index, so that the many finished jobs are not read.
_JOBS = """
    SELECT 'queued' AS status, count(*) AS jobs,
           COALESCE(extract(epoch FROM now() - min(created_at)), 0)::float8 AS oldest
    FROM jobs WHERE status = 'queued'
    UNION ALL
    SELECT 'running', count(*), COALESCE(extract(epoch FROM now() - min(started_at)), 0)::float8
    FROM jobs WHERE status = 'running'
    UNION ALL
    SELECT 'waiting', count(*), COALESCE(extract(epoch FROM now() - min(created_at)), 0)::float8
    FROM jobs WHERE status = 'waiting'
"""
_WORKERS = """
    SELECT id, extract(epoch FROM now() - seen_at)::float8 AS since_heartbeat,
           extract(epoch FROM now() - started_at)::float8 AS age
    FROM workers WHERE seen_at > now() - interval '15 minutes' ORDER BY id
"""
_CONNECTORS = """
    SELECT kind, status, count(*) AS connectors FROM connectors WHERE deleted_at IS NULL GROUP BY kind, status
    ORDER BY kind, status
"""
# The lag of an entity is that of its oldest copy; a copy that was never loaded counts from its connector's creation.
_COPIES = """
    SELECT kind, entity, count(*) AS copies, sum(records)::bigint AS records,
           count(*) FILTER (WHERE context_entities.status = 'failed') AS failed,
           count(incomplete) AS incomplete, sum(held_deletions)::bigint AS held_deletions,
           COALESCE(max(extract(epoch FROM now() - COALESCE(last_synced_at, connectors.created_at))){of_lag}, 0)::float8
               AS lag
    FROM context_entities JOIN connectors ON connectors.id = connector_id
    WHERE {condition} AND deleted_at IS NULL AND connectors.status <> 'disabled'
    GROUP BY kind, entity ORDER BY kind, entity
"""
# More workers would not reduce the lag of a connector that must be authorized again.
_SYNC = _COPIES.format(of_lag=" FILTER (WHERE connectors.status = 'active')", condition="true")

# The statistics of one organization.
_OF_WORKSPACES = "($2::text[] IS NULL OR workspace_id IN (SELECT id FROM workspaces WHERE name = ANY ($2)))"
_OWN_SYNC = _COPIES.format(of_lag="", condition=f"context_entities.organization_id = $1 AND {_OF_WORKSPACES}")
_OWN_JOBS = """
    SELECT status, count(*) AS jobs FROM jobs
    WHERE organization_id = $1 AND status IN ('queued', 'running', 'waiting')
    AND ($2::text[] IS NULL OR workspace_name = ANY ($2)) GROUP BY status
"""
_OWN_COPIES = f"""
    SELECT count(*) AS copies, count(*) FILTER (WHERE context_entities.status = 'failed') AS failed,
           count(incomplete) AS incomplete, COALESCE(sum(held_deletions), 0)::bigint AS held_deletions,
           min(COALESCE(last_synced_at, connectors.created_at)) AS oldest_synced_at
    FROM context_entities JOIN connectors ON connectors.id = connector_id
    WHERE context_entities.organization_id = $1 AND deleted_at IS NULL AND connectors.status <> 'disabled'
    AND {_OF_WORKSPACES}
"""

#: seconds without a heartbeat after which a worker counts as stopped
HEARTBEAT_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class JobStatistics:
    """Jobs in one state, and the age of the oldest in seconds."""

    jobs: int
    oldest: float


@dataclass(frozen=True, slots=True)
class WorkerStatistics:
    """A worker, and the seconds since its last heartbeat and since its start."""

    id: str
    since_heartbeat: float
    age: float

    @property
    def is_alive(self) -> bool:
        return self.since_heartbeat < HEARTBEAT_TIMEOUT


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStatistics:
    """The synchronized copies of one entity, of all connectors together; lag in seconds."""

    kind: str
    entity: str
    copies: int
    records: int
    failed: int
    #: copies that lack records
    incomplete: int
    #: records of large deletions that wait until the next synchronization confirms them
    held_deletions: int
    lag: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of all organizations."""

    jobs: Mapping[str, JobStatistics]
    workers: Sequence[WorkerStatistics]
    #: by kind and stored status
    connectors: Mapping[tuple[str, str], int]
    synchronization: Sequence[SyncStatistics]

    def connectors_by_status(self, served: Collection[str]) -> Mapping[tuple[str, str], int]:
        """The connectors by kind and status, `unserved` if their kind is not in `served`, as callers see them."""
        counts: Counter[tuple[str, str]] = Counter()
        for (kind, status), count in self.connectors.items():
            is_unserved = kind not in served and status != ConnectorStatus.DISABLED
            counts[kind, ConnectorStatus.UNSERVED.value if is_unserved else status] += count
        return counts


@dataclass(frozen=True, slots=True)
class WorkInProgress:
    """The jobs of one organization that have not ended, and the state of its copies."""

    queued: int
    running: int
    waiting: int
    #: synchronized entities of connectors that are not disabled
    copies: int
    #: those whose last synchronization failed
    failed: int
    #: those that lack records
    incomplete: int
    #: records of large deletions that wait until the next synchronization confirms them
    held_deletions: int
    #: when the oldest copy was last synchronized, or else its connector was created; None without copies
    oldest_synced_at: datetime | None


async def read_work_in_progress(
    database: Database, organization_id: UUID, workspaces: Collection[str] | None = None
) -> WorkInProgress:
    """The statistics of one organization as of now, or of these workspaces of it; raises Unavailable."""
    limit = None if workspaces is None else list(workspaces)
    async with database.all_copies(organization_id) as connection:
        jobs = {row["status"]: row["jobs"] for row in await connection.fetch(_OWN_JOBS, organization_id, limit)}
        copies = await connection.fetchrow(_OWN_COPIES, organization_id, limit)
    assert copies is not None
    return WorkInProgress(*(jobs.get(status, 0) for status in ("queued", "running", "waiting")), **copies)


async def read_own_copies(
    database: Database, organization_id: UUID, workspaces: Collection[str] | None = None
) -> Sequence[SyncStatistics]:
    """The synchronized copies of one organization, or of these workspaces of it; raises Unavailable."""
    limit = None if workspaces is None else list(workspaces)
    async with database.all_copies(organization_id) as connection:
        return [SyncStatistics(**row) for row in await connection.fetch(_OWN_SYNC, organization_id, limit)]


async def read_statistics(database: Database) -> Statistics:
    """The statistics of all organizations; raises Unavailable."""
    async with database.system() as connection:
        jobs, workers = await connection.fetch(_JOBS), await connection.fetch(_WORKERS)
        connectors, synchronization = await connection.fetch(_CONNECTORS), await connection.fetch(_SYNC)
    return Statistics(
        {row["status"]: JobStatistics(row["jobs"], row["oldest"]) for row in jobs},
        [WorkerStatistics(**row) for row in workers],
        {(row["kind"], row["status"]): row["connectors"] for row in connectors},
        [SyncStatistics(**row) for row in synchronization],
    )
