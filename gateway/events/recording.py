"""Adds events in the transactions of their changes.

Triggers add the events of jobs and of connectors' states (`0003_jobs.sql`, `0008_events.sql`).
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.events import EventType
from gateway.foundation.db.pool import Connection

_WORKSPACE = """
    (SELECT workspaces.name FROM connectors JOIN workspaces ON workspaces.id = workspace_id WHERE connectors.id = $2)
"""
_ADD = f"""
    INSERT INTO events (organization_id, connector_id, workspace_name, type, data)
    VALUES ($1, $2, {_WORKSPACE}, $3, $4)
"""
_ADD_RECORDS = f"""
    INSERT INTO events (organization_id, connector_id, workspace_name, entity, type, size, record_ids)
    SELECT $1, $2, {_WORKSPACE}, $3, type, cardinality(ids), ids
    FROM (VALUES ('record.created', $4::text[]), ('record.updated', $5::text[]), ('record.deleted', $6::text[]))
        AS change (type, ids)
    WHERE cardinality(ids) > 0
"""


async def add_event(
    connection: Connection,
    organization_id: UUID,
    type_: EventType,
    data: Mapping[str, Any],
    connector_id: UUID | None = None,
) -> None:
    """Add one event in the caller's transaction."""
    await connection.execute(_ADD, organization_id, connector_id, type_, msgspec.json.encode(data).decode())


async def add_record_events(
    connection: Connection,
    organization_id: UUID,
    connector_id: UUID,
    entity: str,
    *,
    created: Sequence[str] = (),
    updated: Sequence[str] = (),
    deleted: Sequence[str] = (),
) -> None:
    """Add an event for each of these records, in the caller's transaction."""
    if created or updated or deleted:
        await connection.execute(_ADD_RECORDS, organization_id, connector_id, entity, created, updated, deleted)
