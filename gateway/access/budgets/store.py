"""Budgets in PostgreSQL, and what is spent of them: the sum over all processes."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg

from gateway.access.budgets.model import Cost, SpendingLimit, Spent, StoredBudget
from gateway.contract.budgets import BudgetPeriod
from gateway.errors import Conflict, FieldError, InvalidParams, NotFound
from gateway.foundation.db.pool import Connection, Database

#: maximum budgets of an organization
MAX_BUDGETS = 1000
_LIMITS = "client_id, workspace_name, per, calls, writes, records, sum_operation, sum_param, sum_at_most"
_ALL = f"SELECT name, {_LIMITS} FROM budgets WHERE organization_id = $1 AND session_id IS NULL ORDER BY name"
#: when the period that began at a time ends, by the calendar in UTC
_END = "({} AT TIME ZONE 'UTC' + ('1 ' || per)::interval) AT TIME ZONE 'UTC'"
_STORED = f"""
    SELECT name, {_LIMITS}, created_at, created_by,
           EXISTS (SELECT FROM people WHERE people.client_id = budgets.client_id) AS is_person,
           {_END.format("now_since")} AS resets_at,
           coalesce(spent_calls, 0) AS spent_calls, coalesce(spent_writes, 0) AS spent_writes,
           coalesce(spent_records, 0) AS spent_records, coalesce(spent_sum, 0) AS spent_sum
    FROM budgets CROSS JOIN LATERAL (SELECT date_trunc(per, now(), 'UTC') AS now_since) AS period
    LEFT JOIN LATERAL (
        SELECT calls AS spent_calls, writes AS spent_writes, records AS spent_records, sum AS spent_sum
        FROM budget_spending AS spent
        WHERE spent.organization_id = budgets.organization_id AND spent.name = budgets.name AND since = now_since
    ) AS spending ON true
    WHERE organization_id = $1 AND session_id IS NULL AND ($2::text IS NULL OR name = $2) ORDER BY name
"""
# Changes of an organization's budgets are made one after the other.
_LOCK = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"
_OTHERS = "SELECT count(*) FROM budgets WHERE organization_id = $1 AND session_id IS NULL AND name <> $2"
_IS_CLIENT = """
    SELECT EXISTS (SELECT FROM people WHERE people.client_id = $2) AS is_person
    FROM client_organizations WHERE organization_id = $1 AND client_id = $2
"""
_IS_WORKSPACE = """
    SELECT EXISTS (SELECT FROM workspaces WHERE organization_id = $1 AND name = $2 AND deletion_began_at IS NULL)
"""
_PUT = f"""
    INSERT INTO budgets (organization_id, name, created_by, {_LIMITS})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    ON CONFLICT (organization_id, name) DO UPDATE SET
        created_by = EXCLUDED.created_by, client_id = EXCLUDED.client_id, workspace_name = EXCLUDED.workspace_name,
        per = EXCLUDED.per, calls = EXCLUDED.calls, writes = EXCLUDED.writes, records = EXCLUDED.records,
        sum_operation = EXCLUDED.sum_operation, sum_param = EXCLUDED.sum_param, sum_at_most = EXCLUDED.sum_at_most
"""
# Only what is spent is read of it: the limits are those of the session.
_ADD = "INSERT INTO budgets (organization_id, name, session_id, per) VALUES ($1, $2, $3, $4)"
# What was spent counts on, unless it is a sum of another param.
_FORGET_SUM = "UPDATE budget_spending SET sum = 0 WHERE organization_id = $1 AND name = $2"
_DELETE = "DELETE FROM budgets WHERE organization_id = $1 AND name = $2 RETURNING name"
# In the order of their names, so that two calls do not wait for each other. A budget that was deleted costs nothing. A
# call that was taken before the budget was stored is not given back to it.
_SPEND = f"""
    INSERT INTO budget_spending AS spent (organization_id, name, since, calls, writes, records, sum)
    SELECT $1, cost.name, date_trunc(per, statement_timestamp(), 'UTC'), cost.calls, cost.writes, cost.records, cost.sum
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::numeric[])
         AS cost (name, calls, writes, records, sum)
    JOIN budgets ON budgets.organization_id = $1 AND budgets.name = cost.name
    WHERE cost.calls >= 0 OR EXISTS (
        SELECT FROM budget_spending AS earlier WHERE earlier.organization_id = $1 AND earlier.name = cost.name
    )
    ORDER BY cost.name
    ON CONFLICT (organization_id, name) DO UPDATE SET
        since = EXCLUDED.since,
        calls = greatest(EXCLUDED.calls + CASE WHEN spent.since = EXCLUDED.since THEN spent.calls ELSE 0 END, 0),
        writes = greatest(EXCLUDED.writes + CASE WHEN spent.since = EXCLUDED.since THEN spent.writes ELSE 0 END, 0),
        records = EXCLUDED.records + CASE WHEN spent.since = EXCLUDED.since THEN spent.records ELSE 0 END,
        sum = greatest(EXCLUDED.sum + CASE WHEN spent.since = EXCLUDED.since THEN spent.sum ELSE 0 END, 0)
    RETURNING name, calls, writes, records, sum, statement_timestamp() AS at, (
        SELECT {_END.format("spent.since")} FROM budgets
        WHERE budgets.organization_id = $1 AND budgets.name = spent.name
    ) AS resets_at
"""

#: raises if the total exceeds the budget, which is whole again after the seconds
Refuse: TypeAlias = Callable[[SpendingLimit, Cost, Spent, float], None]


class BudgetStore:
    """The budgets of organizations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current(self, organization_id: UUID) -> Sequence[SpendingLimit]:
        """The budgets, by name."""
        async with self._database.tenant(organization_id) as connection:
            return [_budget(row) for row in await connection.fetch(_ALL, organization_id)]

    async def all(self, organization_id: UUID) -> Sequence[StoredBudget]:
        """The budgets with what is spent of them, by name."""
        async with self._database.tenant(organization_id) as connection:
            return [_stored(row) for row in await connection.fetch(_STORED, organization_id, None)]

    async def get(self, organization_id: UUID, name: str) -> StoredBudget:
        """The budget with what is spent of it; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_STORED, organization_id, name)
        if row is None:
            raise NotFound(f"there is no budget {name!r}")
        return _stored(row)

    async def put(self, organization_id: UUID, budget: SpendingLimit, is_person: bool, client_id: UUID) -> StoredBudget:
        """Store a budget, or change it; raises InvalidParams for a client or workspace that is not known, Conflict."""
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id)
            await _require_known(connection, organization_id, budget, is_person=is_person)
            if await connection.fetchval(_OTHERS, organization_id, budget.name) >= MAX_BUDGETS:
                raise Conflict(f"the organization has {MAX_BUDGETS} budgets; delete some")
            before = await connection.fetchrow(_STORED, organization_id, budget.name)
            await connection.execute(
                _PUT,
                organization_id,
                budget.name,
                client_id,
                budget.client_id,
                budget.workspace_name,
                budget.per.value,
                budget.calls,
                budget.writes,
                budget.records,
                budget.sum_operation,
                budget.sum_param,
                budget.sum_at_most,
            )
            summed = (budget.sum_operation, budget.sum_param)
            if before is not None and (before["sum_operation"], before["sum_param"]) != summed:
                await connection.execute(_FORGET_SUM, organization_id, budget.name)
            return _stored(await connection.fetchrow(_STORED, organization_id, budget.name))

    async def add(
        self, connection: Connection, organization_id: UUID, name: str, session_id: UUID, per: BudgetPeriod
    ) -> None:
        """Add the budget of a session in the caller's transaction."""
        await connection.execute(_ADD, organization_id, name, session_id, per.value)

    async def delete(self, organization_id: UUID, name: str) -> None:
        """Delete a budget and what is spent of it; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            if await connection.fetchval(_DELETE, organization_id, name) is None:
                raise NotFound(f"there is no budget {name!r}")

    async def spend(self, organization_id: UUID, costs: Sequence[tuple[SpendingLimit, Cost]], refuse: Refuse) -> None:
        """Take the costs from all budgets, or from none if `refuse` raises for one of the totals."""
        for _ in costs:
            with suppress(asyncpg.ForeignKeyViolationError):  # one of the budgets is deleted at this moment
                await self._spend(organization_id, costs, refuse)
                return
        await self._spend(organization_id, costs, refuse)

    async def _spend(self, organization_id: UUID, costs: Sequence[tuple[SpendingLimit, Cost]], refuse: Refuse) -> None:
        by_name = {budget.name: (budget, cost) for budget, cost in costs}
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            rows = await connection.fetch(
                _SPEND,
                organization_id,
                list(by_name),
                [cost.calls for _, cost in by_name.values()],
                [cost.writes for _, cost in by_name.values()],
                [cost.records for _, cost in by_name.values()],
                [cost.sum for _, cost in by_name.values()],
            )
            for row in rows:
                budget, cost = by_name[row["name"]]
                refuse(budget, cost, _spent(row), (row["resets_at"] - row["at"]).total_seconds())


async def _require_known(
    connection: Connection, organization_id: UUID, budget: SpendingLimit, *, is_person: bool
) -> None:
    """Raise InvalidParams for a client, person or workspace that the organization does not have."""
    if budget.client_id is not None:
        found = await connection.fetchrow(_IS_CLIENT, organization_id, budget.client_id)
        name, what = ("person_id", "person") if is_person else ("client_id", "client")
        if found is None or found["is_person"] != is_person:
            raise _unknown(name, f"the organization has no {what} {budget.client_id}")
    workspace = budget.workspace_name
    if workspace is not None and not await connection.fetchval(_IS_WORKSPACE, organization_id, workspace):
        raise _unknown("workspace_name", f"the organization has no workspace {workspace!r}")


def _unknown(name: str, message: str) -> InvalidParams:
    return InvalidParams(faults=[FieldError(f"/{name}", name, "unknown", message)])


def _budget(row: Any) -> SpendingLimit:
    return SpendingLimit(
        name=row["name"],
        per=BudgetPeriod(row["per"]),
        client_id=row["client_id"],
        workspace_name=row["workspace_name"],
        calls=row["calls"],
        writes=row["writes"],
        records=row["records"],
        sum_operation=row["sum_operation"],
        sum_param=row["sum_param"],
        sum_at_most=row["sum_at_most"],
    )


def _spent(row: Any, prefix: str = "") -> Spent:
    total = {name: row[f"{prefix}{name}"] for name in ("calls", "writes", "records", "sum")}
    return Spent(total=Cost(**total), resets_at=row["resets_at"])


def _stored(row: Any) -> StoredBudget:
    return StoredBudget(
        budget=_budget(row),
        is_person=row["is_person"],
        spent=_spent(row, "spent_"),
        created_at=row["created_at"],
        created_by=row["created_by"],
    )
