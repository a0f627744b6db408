"""Takes what calls use from the budgets that cover them; every process caches budgets until they are changed.

An organization without budgets costs one look-up in a dictionary for each call.
"""

import math
from collections.abc import Callable, Sequence
from uuid import UUID

from gateway.access.budgets.model import Cost, SpendingLimit, Spent, Use
from gateway.access.budgets.store import BudgetStore
from gateway.contract.members import moment
from gateway.errors import BudgetSpent
from gateway.foundation.aio.notified_cache import NotifiedCache


class BudgetPoint:
    """The budgets of all organizations."""

    def __init__(self, store: BudgetStore, is_current: Callable[[], bool]) -> None:
        self._store = store
        self._cache: NotifiedCache[UUID, Sequence[SpendingLimit]] = NotifiedCache(store.current, is_current)
        self.on_notify, self.invalidate_all = self._cache.on_notify, self._cache.invalidate_all

    async def spend(self, organization_id: UUID, use: Use) -> bool:
        """Take a use from every budget that covers it, and return whether one does.

        Raises BudgetSpent if one has too little, and takes nothing.
        """
        budgets = [*await self._cache.get(organization_id), *use.budgets]
        costs = [(budget, budget.cost_of(use)) for budget in budgets if budget.covers(use)]
        if costs:
            await self._store.spend(organization_id, costs, _refuse)
        return bool(costs)


def _refuse(budget: SpendingLimit, cost: Cost, spent: Spent, seconds: float) -> None:
    """Raise BudgetSpent if the total exceeds the budget."""
    exceeded = budget.exceeded(cost, spent.total)
    if exceeded is None:
        return
    resets_at = moment(spent.resets_at)
    raise BudgetSpent(
        f"the budget {budget.name!r} allows {exceeded} per {budget.per}; it is whole again at {resets_at}",
        retry_after=max(math.ceil(seconds), 1),
        extra={"budget": budget.name, "resets_at": resets_at},
    )
