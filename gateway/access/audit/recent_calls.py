"""Calls by client, connector and operation, from the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from gateway.foundation.db.pool import Database

#: the most frequent combinations that are returned
_MAX_ROWS = 100_000

# A settlement is the second entry of a call; calls that a policy refused are none.
_CALLS = """
    SELECT actor, clients.name AS actor_name, connector_id, kind, what, calls, (
        SELECT ARRAY(SELECT group_name FROM group_members AS member WHERE member.client_id = actor ORDER BY 1)
        FROM people WHERE people.client_id = actor
    ) AS groups
    FROM (
        SELECT actor, connector_id, kind, what, count(*) AS calls
        FROM (
            SELECT actor, connector_id, kind, what FROM audit
            WHERE organization_id = $1 AND at > $2 AND at <= $3 AND actor IS NOT NULL AND kind IS NOT NULL
              AND connector_id IS NOT NULL AND entry_kind <> 'settlement'
              AND outcome IS DISTINCT FROM 'denied_by_policy'
            ORDER BY at DESC LIMIT $4
        ) AS entries
        GROUP BY 1, 2, 3, 4 ORDER BY calls DESC LIMIT $5
    ) AS frequent LEFT JOIN clients ON clients.id = actor
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentCalls:
    """Calls of one operation by one client on one connector."""

    actor: UUID
    actor_name: str | None
    connector_id: UUID
    kind: str
    #: `tickets.update`; or another action on the connector, such as `connector.check`
    what: str
    calls: int
    #: the groups of the person as they are now; None for a client
    groups: Sequence[str] | None = None


async def calls_between(
    database: Database,
    organization_id: UUID,
    since: datetime,
    until: datetime,
    *,
    entries: int | None = None,
    combinations: int = _MAX_ROWS,
) -> Sequence[RecentCalls]:
    """The most frequent combinations among the entries of that time, or among the latest `entries` of them."""
    async with database.tenant(organization_id) as connection:
        rows = await connection.fetch(_CALLS, organization_id, since, until, entries, combinations)
    return [RecentCalls(**row) for row in rows]
