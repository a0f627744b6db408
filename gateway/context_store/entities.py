"""The state of each entity of a connector: layout, size, and the state of its synchronization."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway import errors
from gateway.context_store.layout import Layout, dumped, loaded
from gateway.contract.connectors import CopyStatus
from gateway.foundation.db.pool import Connection

#: records in the sample that shows which words are common
SAMPLE = 1_000
#: minimum share of the sample that contains a common word
COMMON = 0.01
MAX_COMMON = 64
#: timeout of a statement in seconds; far more than one needs, for a server under load
TIMEOUT = 30.0
#: timeout of a statement at the end of a load in seconds
FINALIZE_TIMEOUT = 60.0

REGISTER = """
    INSERT INTO context_entities (connector_id, organization_id, entity, layout)
    VALUES ($1, $2, $3, $4::text::jsonb)
    ON CONFLICT (connector_id, entity) DO NOTHING
"""
COLUMNS = """
    id, connector_id, organization_id, entity, layout::text, common::text, records, generation, cursor, sweep_cursor,
    status, error::text, last_synced_at, next_sync_at, incomplete, held_deletions
"""
FIND = f"SELECT {COLUMNS} FROM context_entities WHERE connector_id = $1 AND entity = $2"
LIST = f"SELECT {COLUMNS} FROM context_entities WHERE connector_id = $1 ORDER BY entity"


# An interrupted sweep continues with its generation; a new sweep begins the next one.
BEGIN = """
    UPDATE context_entities
    SET status = 'syncing', started_at = now(),
        generation = generation + CASE WHEN $2 AND sweep_cursor IS NULL THEN 1 ELSE 0 END
    WHERE id = $1
    RETURNING generation
"""
CHECKPOINT = "UPDATE context_entities SET cursor = $2 WHERE id = $1"
RESTART = "UPDATE context_entities SET cursor = NULL, sweep_cursor = NULL WHERE id = $1"
CHECKPOINT_SWEEP = "UPDATE context_entities SET sweep_cursor = $2 WHERE id = $1 AND generation = $3"
FINISH = """
    UPDATE context_entities
    SET status = 'ready', error = NULL, last_synced_at = $2, next_sync_at = $3,
        sweep_cursor = CASE WHEN $4 THEN NULL ELSE sweep_cursor END,
        incomplete = CASE WHEN $4 THEN $5 ELSE COALESCE(incomplete, $5) END,
        held_deletions = COALESCE($6, held_deletions)
    WHERE id = $1
"""
FAIL = "UPDATE context_entities SET status = 'failed', error = $2::text::jsonb, next_sync_at = $3 WHERE id = $1"

CLEAN_PENDING_LIST = "SELECT context_settle()"
# PostgreSQL has no statistics of words by tenant. Half the sample is old records, half new ones.
MEASURE = """
    WITH sample AS MATERIALIZED (
        (SELECT w.terms
         FROM context_records AS r LEFT JOIN context_words AS w USING (entity_id, id)
         WHERE r.entity_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $2 / 2)
        UNION ALL
        (SELECT w.terms
         FROM context_records AS r LEFT JOIN context_words AS w USING (entity_id, id)
         WHERE r.entity_id = $1 AND deleted_at IS NULL ORDER BY id DESC LIMIT $2 / 2)
    ), common AS (
        SELECT term, count(*) / (SELECT count(*) FROM sample)::float8 AS share
        FROM sample, unnest(tsvector_to_array(terms)) AS term
        GROUP BY term ORDER BY share DESC LIMIT $4
    )
    UPDATE context_entities
    SET common = COALESCE((SELECT jsonb_object_agg(term, round(share::numeric, 4)) FROM common WHERE share >= $3), '{}')
    WHERE id = $1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntity:
    """One entity of a connector in the store."""

    id: int
    connector_id: UUID
    organization_id: UUID
    entity: str
    layout: Layout
    common: Mapping[str, float]
    #: records that are not deleted
    records: int
    #: the number of the current or latest sweep
    generation: int
    cursor: str | None
    sweep_cursor: str | None
    status: CopyStatus
    error: Mapping[str, Any] | None
    last_synced_at: datetime | None
    next_sync_at: datetime | None
    #: why the copy lacks records; None if it lacks none
    incomplete: str | None
    #: records of a large deletion that waits until the next run confirms it
    held_deletions: int


async def register(
    connection: Connection, connector_id: UUID, organization_id: UUID, entity: str, layout: Layout
) -> StoredEntity:
    """The entity: created and due at once, or the existing one, whose layout stays."""
    await connection.execute(REGISTER, connector_id, organization_id, entity, dumped(layout))
    registered = await find(connection, connector_id, entity)
    if registered is None:
        raise errors.NotFound("the connector was deleted")
    return registered


async def find(connection: Connection, connector_id: UUID, entity: str) -> StoredEntity | None:
    """The entity, or None if it was never registered or belongs to another tenant."""
    row = await connection.fetchrow(FIND, connector_id, entity)
    return row and _entity(row)


async def freshness(connection: Connection, connector_id: UUID) -> list[StoredEntity]:
    """All entities of the connector, by name."""
    return [_entity(row) for row in await connection.fetch(LIST, connector_id)]


async def begin(connection: Connection, entity: StoredEntity, *, full: bool) -> int:
    """Begin a run and return its generation: a new one for a sweep, unless an interrupted sweep continues."""
    return int(await connection.fetchval(BEGIN, entity.id, full))


async def checkpoint(connection: Connection, entity: StoredEntity, cursor: str | None) -> None:
    """Store where the next incremental read starts; call it in the transaction that wrote the records before that."""
    await connection.execute(CHECKPOINT, entity.id, cursor)


async def restart(connection: Connection, entity: StoredEntity) -> None:
    """Forget where reads start, so that the next run reads everything from the beginning."""
    await connection.execute(RESTART, entity.id)


async def checkpoint_sweep(connection: Connection, entity: StoredEntity, generation: int, cursor: str) -> None:
    """Store the sweep's progress, unless another sweep has begun since."""
    await connection.execute(CHECKPOINT_SWEEP, entity.id, cursor, generation)


async def finish(
    connection: Connection,
    entity: StoredEntity,
    *,
    as_of: datetime,
    next_sync_at: datetime | None,
    full: bool,
    is_changed: bool = True,
    missing: str | None = None,
    held: int | None = 0,
) -> None:
    """End a successful run: the copy has the application's records as of `as_of`.

    `missing`: why the run has not read all of them; only a full run that has clears an earlier reason. `held`: records
    whose deletion waits; None if the run decided nothing about deletions.
    """
    await connection.execute(FINISH, entity.id, as_of, next_sync_at, full, missing, held)
    if is_changed:
        await finalize(connection, entity)


async def fail(
    connection: Connection, entity: StoredEntity, error: errors.GatewayError, next_sync_at: datetime | None
) -> None:
    """End a failed run; committed records stay, and the next run continues from there."""
    document = msgspec.json.encode(errors.document(error)).decode()
    await connection.execute(FAIL, entity.id, document, next_sync_at)


async def finalize(connection: Connection, entity: StoredEntity) -> None:
    """After a load, clean the pending list of the word index and determine the common words."""
    await connection.execute(CLEAN_PENDING_LIST, timeout=FINALIZE_TIMEOUT)
    await connection.execute(MEASURE, entity.id, SAMPLE, COMMON, MAX_COMMON, timeout=FINALIZE_TIMEOUT)


def _entity(row: Mapping[str, Any]) -> StoredEntity:
    columns = dict(row)
    columns["layout"] = loaded(columns["layout"])
    columns["common"] = msgspec.json.decode(columns["common"])
    columns["error"] = columns["error"] and msgspec.json.decode(columns["error"])
    columns["status"] = CopyStatus(columns["status"])
    return StoredEntity(**columns)
