"""Budgets of several processes on a real PostgreSQL."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

import pytest

from gateway.access.budgets.model import Cost, SpendingLimit, Use
from gateway.access.budgets.point import BudgetPoint
from gateway.access.budgets.store import BudgetStore
from gateway.access.identity.store import IdentityStore
from gateway.contract.budgets import BudgetPeriod
from gateway.errors import BudgetSpent
from gateway.foundation.db.pool import Database
from tests.harness.clients import new_organization
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually

FRONT_ENDS, CALLS, MOST = 10, 30, 217


@pytest.mark.parametrize(
    "limits", [{"calls": MOST}, {"sum_operation": "a.b.c", "sum_param": "n", "sum_at_most": Decimal(MOST)}]
)
async def test_ten_front_ends_spend_a_budget_exactly(database: Database, database_url: str, limits):
    organization_id = await new_organization(IdentityStore(database))
    budget = SpendingLimit(name="main", per=BudgetPeriod.MONTH, **limits)
    await BudgetStore(database).put(organization_id, budget, False, uuid4())
    use = Use(client_id=uuid4(), workspace_name="w", operation="a.b.c", params={"n": 1}, is_write=True)

    async def is_taken(point: BudgetPoint) -> bool:
        try:
            return await point.spend(organization_id, use)
        except BudgetSpent:
            return False

    async with AsyncExitStack() as stack:
        databases = [await stack.enter_async_context(Database.open(database_url, size=2)) for _ in range(FRONT_ENDS)]
        points = [BudgetPoint(BudgetStore(each), lambda: True) for each in databases]
        taken = await asyncio.gather(*(is_taken(point) for point in points for _ in range(CALLS)))

    total = (await BudgetStore(database).get(organization_id, "main")).spent.total
    assert sum(taken) == MOST
    assert (total.calls, total.writes) == (MOST, MOST)


async def test_a_call_that_a_budget_did_not_take_is_not_given_back_to_it(database: Database):
    """The call was taken before an administrator stored the budget."""
    organization_id, store = await new_organization(IdentityStore(database)), BudgetStore(database)
    use = Use(client_id=uuid4(), workspace_name="w", operation="a.b.c", params={"n": 5}, is_write=True)
    sums = {"sum_operation": "a.b.c", "sum_param": "n", "sum_at_most": Decimal(9)}
    await store.put(organization_id, SpendingLimit(name="main", per=BudgetPeriod.DAY, **sums), False, uuid4())
    point = BudgetPoint(store, lambda: True)

    await point.spend(organization_id, replace(use, calls=-1))
    given_back = (await store.get(organization_id, "main")).spent.total
    await point.spend(organization_id, use)
    await point.spend(organization_id, replace(use, calls=-1))
    after = (await store.get(organization_id, "main")).spent.total

    assert given_back == after == Cost(calls=0, writes=0, records=0, sum=Decimal(0))


async def test_a_call_goes_on_whose_budget_is_deleted_at_the_same_moment(database: Database):
    organization_id, store = await new_organization(IdentityStore(database)), BudgetStore(database)
    for name in ("deleted", "kept"):
        await store.put(organization_id, SpendingLimit(name=name, per=BudgetPeriod.DAY, calls=9), False, uuid4())
    use = Use(client_id=uuid4(), workspace_name="w", operation="a.b.c", params={}, is_write=True)
    point = BudgetPoint(store, lambda: True)
    async with database.tenant(organization_id) as connection, connection.transaction():
        await connection.execute("DELETE FROM budgets WHERE organization_id = $1 AND name = 'deleted'", organization_id)
        spending = asyncio.create_task(point.spend(organization_id, use))
        await eventually(lambda: waits_for_lock(database))

    assert await spending
    assert (await store.get(organization_id, "kept")).spent.total.calls == 1
