"""When entities are synchronized, and by which job: due runs, claimed by compare-and-set in PostgreSQL."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from gateway.context_store.entities import TIMEOUT, StoredEntity, register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.sync.sources import synchronized
from gateway.errors import GatewayError
from gateway.foundation.db.pool import Connection
from gateway.kinds.catalog import Catalog, Kind
from gateway.kinds.suggestions import did_you_mean, misspelt
from gateway.kinds.sync import Sync
from gateway.settings import SettingsError

#: seconds until a run is due again if its job never starts
LEASE = 60.0
#: maximum entities of one claim
_MAX = 200
#: the share by which an interval is lengthened or shortened at random, so that runs spread out over time
_JITTER = 0.1
#: maximum seconds until a failed run is tried again, if a retry may succeed
_RETRYABLE_WAIT = 60.0
#: the same for other failures
_MAX_WAIT = 3600.0

#: `held_by` counts only until its job has ended
IS_FREE = """
    (held_by IS NULL OR NOT EXISTS (
        SELECT FROM jobs WHERE jobs.id = held_by AND jobs.status IN ('queued', 'running', 'waiting')))
"""
# Several schedulers may run it: rows are locked, and a claim sets the time of the next run. Each connector gets one
# job, whose id is created here, so that the claim expires soon if its scheduler dies before it accepts the job.
# Organizations take turns, so that many entities of one do not delay the others'.
CLAIM_DUE = f"""
    WITH ready AS (
        SELECT e.id, row_number() OVER (PARTITION BY e.organization_id ORDER BY e.next_sync_at) AS turn
        FROM context_entities AS e JOIN connectors AS c ON c.id = e.connector_id
        JOIN organizations AS o ON o.id = c.organization_id AND o.disabled_at IS NULL AND o.moving_since IS NULL
        WHERE e.next_sync_at <= now() AND c.status = 'active' AND c.deleted_at IS NULL AND c.kind = ANY ($3::text[])
          AND {IS_FREE}
    ), due AS (
        SELECT e.id, e.connector_id FROM context_entities AS e JOIN ready USING (id)
        WHERE e.next_sync_at <= now() AND {IS_FREE}
        ORDER BY ready.turn, e.next_sync_at LIMIT $1 FOR NO KEY UPDATE OF e SKIP LOCKED
    ), claimed AS MATERIALIZED (
        SELECT connector_id, gen_random_uuid() AS job_id FROM (SELECT DISTINCT connector_id FROM due) AS connector
    )
    UPDATE context_entities AS e SET next_sync_at = now() + make_interval(secs => $2), held_by = claimed.job_id
    FROM due JOIN claimed USING (connector_id) WHERE e.id = due.id
    RETURNING e.connector_id, e.organization_id, e.entity, claimed.job_id
"""
CLAIM = f"""
    UPDATE context_entities SET held_by = $2, next_sync_at = now() + make_interval(secs => $3)
    WHERE id = $1 AND (held_by = $2 OR {IS_FREE})
    RETURNING id
"""
RELEASE = "UPDATE context_entities SET held_by = NULL WHERE id = $1 AND held_by = $2"
RUN_SOON = "UPDATE context_entities SET next_sync_at = now() WHERE id = $1"
ACTIVE_KINDS = "SELECT DISTINCT kind FROM connectors WHERE deleted_at IS NULL AND status = 'active'"
# Connectors from before their kind was searchable, or whose process died right after it created them.
UNREGISTERED = """
    SELECT c.id, c.organization_id, c.kind FROM connectors AS c
    LEFT JOIN (SELECT connector_id, count(*) AS entities FROM context_entities GROUP BY connector_id) AS registered
        ON registered.connector_id = c.id
    JOIN unnest($1::text[], $2::bigint[]) AS kinds (kind, entities) ON kinds.kind = c.kind
    WHERE c.deleted_at IS NULL AND c.status = 'active' AND COALESCE(registered.entities, 0) < kinds.entities
    ORDER BY c.created_at LIMIT $3
"""


@dataclass(frozen=True, slots=True)
class DueRun:
    """Entities of a connector whose run is due, and the job that claims them."""

    job_id: UUID
    connector_id: UUID
    organization_id: UUID
    entities: Sequence[str]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between runs: those of the spec, or of `GATEWAY_SYNC_EVERY` for a kind or `kind.entity`."""

    overrides: Mapping[str, float] = field(default_factory=dict)

    def of(self, kind: str, entity: str, sync: Sync) -> float:
        named = self.overrides.get(f"{kind}.{entity}", self.overrides.get(kind))
        return float(sync.interval) if named is None else named

    def require_known(self, catalog: Catalog) -> None:
        """Raise SettingsError for a misspelt name; a kind that is not served is not checked."""
        if faults := [fault for name in self.overrides if (fault := _fault(name, catalog))]:
            raise SettingsError(f"GATEWAY_SYNC_EVERY: {'; '.join(faults)}")


def _fault(name: str, catalog: Catalog) -> str | None:
    """The fault of the name of a kind or of `kind.entity`, with the nearest known name; None for a known one."""
    kind_name, dot, entity = name.partition(".")
    if kind_name in catalog.refused:
        return None
    kind = catalog.kinds.get(kind_name)
    if kind is None:
        meant = misspelt(kind_name, catalog.kinds)
        return None if meant is None else f"there is no kind {kind_name!r}; did you mean {meant}?"
    entities = synchronized(kind)
    if dot and entity not in entities:
        return f"{kind_name} has no synchronized entity {entity!r}; {did_you_mean(entity, entities)}"
    return None


def jittered(seconds: float) -> float:
    """The seconds, up to 10 % more or less at random."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, guards nothing


def after_failure(error: GatewayError, interval: float) -> float:
    """Seconds until the next try: those in the application's response, or else fewer if a retry may succeed."""
    if error.retry_after is not None:
        return min(float(error.retry_after), _MAX_WAIT)
    return min(interval, _RETRYABLE_WAIT if error.retryable else _MAX_WAIT)


async def claim_due(connection: Connection, kinds: Iterable[str]) -> list[DueRun]:
    """The runs of connectors of these kinds that are due, each claimed once."""
    rows = await connection.fetch(CLAIM_DUE, _MAX, LEASE, list(kinds))
    by_job: defaultdict[tuple[UUID, UUID, UUID], list[str]] = defaultdict(list)
    for row in rows:
        by_job[row["job_id"], row["connector_id"], row["organization_id"]].append(row["entity"])
    return [DueRun(*key, entities) for key, entities in by_job.items()]


async def claim(connection: Connection, entity: StoredEntity, job_id: UUID) -> bool:
    """Assign the entity to this job until the job ends; false if another job has it."""
    return await connection.fetchval(CLAIM, entity.id, job_id, LEASE) is not None


async def release(connection: Connection, entity: StoredEntity, job_id: UUID) -> None:
    """Release the entity; does nothing if another job has it."""
    await connection.execute(RELEASE, entity.id, job_id)


async def run_soon(connection: Connection, entity: StoredEntity) -> None:
    """Make its run due now."""
    await connection.execute(RUN_SOON, entity.id)


async def active_kinds(connection: Connection) -> set[str]:
    """The kinds of all active connectors."""
    return {row["kind"] for row in await connection.fetch(ACTIVE_KINDS, timeout=TIMEOUT)}


async def unregistered(connection: Connection, expected: Mapping[str, int], limit: int) -> list[tuple[UUID, UUID, str]]:
    """Active connectors that lack some of the entities of their kind: id, organization, kind."""
    rows = await connection.fetch(UNREGISTERED, list(expected), list(expected.values()), limit, timeout=TIMEOUT)
    return [(row["id"], row["organization_id"], row["kind"]) for row in rows]


async def register_all(
    connection: Connection, connector_id: UUID, organization_id: UUID, kind: Kind, names: Sequence[str]
) -> list[StoredEntity]:
    """The entities of a connector, new ones due at once."""
    return [
        await register(connection, connector_id, organization_id, name, chosen(search_fields(kind, name)))
        for name in names
    ]


def search_fields(kind: Kind, entity_id: str) -> dict[str, FieldType]:
    """The fields that a search of the entity may name; empty if the entity cannot be searched."""
    search = kind.entity(entity_id).search
    return {} if search is None else {name: FieldType.named(type_) for name, type_ in search.fields.items()}
