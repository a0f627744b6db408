"""What a client has called in the last hour and today, for policies that name it: counted by the minute in PostgreSQL.

Concurrent calls are decided by the same counts; a budget is exact.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from gateway.access.policy.model import NOTHING, Counted, History, MadeCall, PolicyCall
from gateway.contract.kinds import Effect
from gateway.foundation.db.pool import Database

#: the largest value that is added
_LARGEST = 10**15
# In the order of the names, so that two calls do not wait for each other.
_COUNT = """
    INSERT INTO policy_history AS counted (organization_id, client_id, minute, name, total)
    SELECT $1, $2, date_trunc('minute', statement_timestamp()), added.name, added.total
    FROM unnest($3::text[], $4::numeric[]) AS added (name, total)
    WHERE EXISTS (SELECT FROM clients WHERE id = $2)
    ORDER BY added.name
    ON CONFLICT (organization_id, client_id, minute, name) DO UPDATE SET total = counted.total + EXCLUDED.total
"""
_READ = """
    SELECT name,
           coalesce(sum(total) FILTER (WHERE minute > now() - interval '1 hour'), 0) AS last_hour,
           coalesce(sum(total) FILTER (WHERE minute >= date_trunc('day', now(), 'UTC')), 0) AS today
    FROM policy_history
    WHERE organization_id = $1 AND client_id = $2 AND name = ANY ($3::text[])
      AND minute > least(now() - interval '1 hour', date_trunc('day', now(), 'UTC') - interval '1 minute')
    GROUP BY name
"""
PRUNE_HISTORY = """
    WITH old AS (
        SELECT organization_id, client_id, minute, name FROM policy_history
        WHERE minute < now() - interval '25 hours' LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM policy_history AS counted USING old
    WHERE (counted.organization_id, counted.client_id, counted.minute, counted.name)
        = (old.organization_id, old.client_id, old.minute, old.name)
"""


class HistoryStore:
    """The counts of clients."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, organization_id: UUID, client_id: UUID, operation: str, sums: Collection[str]) -> History:
        """The counts of a client, and the sums of these params of an operation, `kind.entity.action`."""
        names = ["calls", "writes", *(f"{operation}:{path}" for path in sums)]
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_READ, organization_id, client_id, names)
        counted = {row["name"]: Counted(row["last_hour"], row["today"]) for row in rows}
        return History(
            calls=counted.get("calls", NOTHING),
            writes=counted.get("writes", NOTHING),
            sums={path: counted.get(f"{operation}:{path}", NOTHING) for path in sums},
        )

    async def add(self, organization_id: UUID, call: MadeCall, sums: Collection[str]) -> None:
        """Count a call, and the sums of these params; one with -1 calls was counted before and not made."""
        added = {"calls": Decimal(call.calls), "writes": Decimal(call.calls * call.is_write)}
        added |= {f"{call.operation}:{path}": _number_at(call.params, path) * call.calls for path in sums}
        added = {name: total for name, total in added.items() if total}
        async with self._database.tenant(organization_id) as connection:
            await connection.execute(_COUNT, organization_id, call.client_id, list(added), list(added.values()))


def without(history: History, call: PolicyCall) -> History:
    """The history before a call that it has."""
    return History(
        calls=_less(history.calls, Decimal(1)),
        writes=_less(history.writes, Decimal(call.effect is not Effect.READ)),
        sums={path: _less(total, _number_at(call.params, path)) for path, total in history.sums.items()},
    )


def _less(counted: Counted, number: Decimal) -> Counted:
    return Counted(max(counted.last_hour - number, Decimal()), max(counted.today - number, Decimal()))


def _number_at(params: Mapping[str, Any], path: str) -> Decimal:
    """The number at a dotted path; nothing for another value, and for a negative one, which gives nothing back."""
    value: Any = params
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return Decimal()
    return Decimal(repr(min(value, _LARGEST)))
