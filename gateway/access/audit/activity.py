"""When connectors were last used, and how many calls of them failed recently, from the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.foundation.db.pool import Database

#: maximum failures that are counted
MAX_ERRORS = 100

# One index look-up for each connector.
_ACTIVITY = f"""
    SELECT connector.id, (
        SELECT at FROM audit WHERE organization_id = $1 AND connector_id = connector.id ORDER BY at DESC LIMIT 1
    ) AS last_used_at, (
        SELECT count(*) FROM (
            SELECT FROM audit
            WHERE organization_id = $1 AND connector_id = connector.id AND at > now() - interval '1 hour'
              AND outcome NOT IN ('succeeded', 'accepted')
            LIMIT {MAX_ERRORS}
        ) AS failed
    ) AS errors
    FROM unnest($2::uuid[]) AS connector (id)
"""
_LAST_USES = """
    SELECT client.id, (
        SELECT at FROM audit WHERE organization_id = $1 AND audit.actor = client.id ORDER BY at DESC LIMIT 1
    ) AS last_used_at
    FROM unnest($2::uuid[]) AS client (id)
"""


@dataclass(frozen=True, slots=True)
class Activity:
    """When a connector was last used, and its recent failures."""

    last_used_at: datetime | None = None
    #: failed calls of the last hour, at most `MAX_ERRORS`
    errors: int = 0


async def activity_of(
    database: Database, organization_id: UUID, connector_ids: Sequence[UUID]
) -> Mapping[UUID, Activity]:
    """The activity of each of these connectors."""
    async with database.tenant(organization_id) as connection:
        rows = await connection.fetch(_ACTIVITY, organization_id, list(connector_ids))
    return {row["id"]: Activity(row["last_used_at"], row["errors"]) for row in rows}


async def last_uses_of(
    database: Database, organization_id: UUID, client_ids: Sequence[UUID]
) -> Mapping[UUID, datetime | None]:
    """When each of these clients was last used."""
    async with database.tenant(organization_id) as connection:
        rows = await connection.fetch(_LAST_USES, organization_id, list(client_ids))
    return {row["id"]: row["last_used_at"] for row in rows}
