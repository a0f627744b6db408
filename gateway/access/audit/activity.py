"""When connectors were last used, and how many calls of them failed recently, from the audit log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.access.audit.usage import IS_CALL
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
# $1 organization, $2 since when, $3 workspaces, $4 the caller's person, $5 entries to read, $6 causes. Failures of
# other people's connectors are left out.
_CAUSES = f"""
    SELECT outcome AS code, connector_id, count(*) AS count, max(at) AS last_at
    FROM (
        SELECT outcome, connector_id, at FROM audit
        WHERE organization_id = $1 AND at >= $2 AND connector_id IS NOT NULL
          AND outcome NOT IN ('succeeded', 'accepted') AND {IS_CALL}
        LIMIT $5
    ) AS failed JOIN connectors ON connectors.id = connector_id JOIN workspaces ON workspaces.id = workspace_id
    WHERE ($3::text[] IS NULL OR workspaces.name = ANY ($3)) AND (owner_id IS NULL OR owner_id = $4)
    GROUP BY 1, 2 ORDER BY count DESC, last_at DESC LIMIT $6
"""
#: maximum entries of which causes are counted
_MAX_FAILURES = 10_000


@dataclass(frozen=True, slots=True)
class Cause:
    """Why calls or jobs of a connector failed: the code of the error, and how often."""

    code: str
    connector_id: UUID | None
    count: int
    last_at: datetime


async def causes_of(
    database: Database,
    organization_id: UUID,
    since: datetime,
    workspaces: Collection[str] | None,
    person_id: UUID | None,
    limit: int,
) -> Sequence[Cause]:
    """The causes of the failed calls since then, the most frequent first."""
    async with database.tenant(organization_id) as connection:
        rows = await connection.fetch(
            _CAUSES, organization_id, since, workspaces and list(workspaces), person_id, _MAX_FAILURES, limit
        )
    return [Cause(**row) for row in rows]


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
