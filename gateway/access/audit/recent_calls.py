"""The calls of the last day by client, connector and operation, from the audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gateway.foundation.db.pool import Database

#: the latest entries that are read, and the most frequent combinations that are returned
MAX_ENTRIES, _MAX_ROWS = 100_000, 1000

# A settlement is the second entry of a call; calls that a policy refused are none.
_RECENT = f"""
    SELECT actor, clients.name AS actor_name, connector_id, kind, what, calls
    FROM (
        SELECT actor, connector_id, kind, what, count(*) AS calls
        FROM (
            SELECT actor, connector_id, kind, what FROM audit
            WHERE organization_id = $1 AND at > now() - interval '1 day' AND actor IS NOT NULL AND kind IS NOT NULL
              AND connector_id IS NOT NULL AND entry_kind <> 'settlement'
              AND outcome IS DISTINCT FROM 'denied_by_policy'
            ORDER BY at DESC LIMIT {MAX_ENTRIES}
        ) AS entries
        GROUP BY 1, 2, 3, 4 ORDER BY calls DESC LIMIT {_MAX_ROWS}
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


async def recent_calls(database: Database, organization_id: UUID) -> Sequence[RecentCalls]:
    """The most frequent combinations among the latest entries of the last day."""
    async with database.tenant(organization_id) as connection:
        return [RecentCalls(**row) for row in await connection.fetch(_RECENT, organization_id)]
