"""Budgets and what a call costs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from gateway.access.identity.model import PersonSession
from gateway.contract.budgets import BudgetLimits, BudgetPeriod

_NOTHING = Decimal(0)
#: the largest number of a param that is added; one that is larger exceeds every budget
_LARGEST = Decimal(10) ** 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimit:
    """What may be used in a period, and by whom: each None is "no limit" or "anybody"."""

    name: str
    per: BudgetPeriod
    client_id: UUID | None = None
    workspace_name: str | None = None
    calls: int | None = None
    writes: int | None = None
    records: int | None = None
    sum_operation: str | None = None
    sum_param: str | None = None
    sum_at_most: Decimal | None = None

    def covers(self, use: "Use") -> bool:
        """Whether a use counts."""
        is_client = self.client_id is None or self.client_id in (use.client_id, use.acting_client_id)
        return is_client and self.workspace_name in (None, use.workspace_name)

    def cost_of(self, use: "Use") -> "Cost":
        """What a use costs."""
        added = _NOTHING
        if self.sum_param is not None and self.sum_operation == use.operation:
            added = number_at(use.params, self.sum_param)
        return Cost(calls=use.calls, writes=use.calls * use.is_write, records=use.records, sum=added * use.calls)

    def exceeded(self, cost: "Cost", total: "Cost") -> str | None:
        """What a call that costs this would exceed, where `total` has its cost already; None if nothing."""
        if self.calls is not None and cost.calls and total.calls > self.calls:
            return f"{self.calls} calls"
        if self.writes is not None and cost.writes and total.writes > self.writes:
            return f"{self.writes} writes"
        if self.records is not None and cost.calls and total.records >= self.records:
            return f"{self.records} records"
        if self.sum_at_most is not None and cost.sum and total.sum > self.sum_at_most:
            return f"a sum of {self.sum_at_most.normalize():f} for {self.sum_param}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A call that counts, the records that it returned, or with -1 calls one that was counted and not made."""

    client_id: UUID | None
    #: the client that acts for the person in a session
    acting_client_id: UUID | None = None
    #: those of the session, which cover it in addition to the organization's
    budgets: tuple[SpendingLimit, ...] = ()
    workspace_name: str | None
    #: `kind.entity.action`
    operation: str
    params: Mapping[str, Any]
    is_write: bool
    calls: int = 1
    records: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What is taken from a budget, or the total of it in a period."""

    calls: int
    writes: int
    records: int
    sum: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What is spent of a budget in the current period."""

    total: Cost
    resets_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBudget:
    """A budget as administrators see it."""

    budget: SpendingLimit
    #: whether `client_id` is a person
    is_person: bool
    spent: Spent
    created_at: datetime
    created_by: UUID | None


def spending_limit(
    name: str, limits: BudgetLimits, client_id: UUID | None = None, workspace_name: str | None = None
) -> SpendingLimit:
    """What is counted for a budget."""
    limit = limits.sum
    return SpendingLimit(
        name=name,
        per=limits.per,
        client_id=client_id,
        workspace_name=workspace_name,
        calls=limits.calls,
        writes=limits.writes,
        records=limits.records,
        sum_operation=None if limit is None else limit.operation,
        sum_param=None if limit is None else limit.param,
        sum_at_most=None if limit is None else Decimal(str(limit.at_most)),
    )


def budgets_of(session: PersonSession | None) -> tuple[SpendingLimit, ...]:
    """The budgets of a session, and of those in which it was opened."""
    return () if session is None else tuple(spending_limit(each.name, each.limits) for each in session.budgets)


def exceeding(inner: BudgetLimits, outer: BudgetLimits) -> str | None:
    """The member in which a budget asks for more than one that covers it too; None if there is none.

    An hour is a part of a day, and a day of a month; what a longer period may have says nothing about a shorter one.
    """
    periods = list(BudgetPeriod)
    if periods.index(inner.per) > periods.index(outer.per):
        return None
    for name in ("calls", "writes", "records"):
        most, asked = getattr(outer, name), getattr(inner, name)
        if most is not None and asked is not None and asked > most:
            return name
    if inner.sum is None or outer.sum is None or inner.sum.at_most <= outer.sum.at_most:
        return None
    is_same = (inner.sum.operation, inner.sum.param) == (outer.sum.operation, outer.sum.param)
    return "sum" if is_same else None


def number_at(params: Mapping[str, Any], path: str) -> Decimal:
    """The number at a dotted path; nothing without a value, and for a negative one, which gives nothing back.

    A value that is no number exceeds every budget: the application may read a number from it, such as from `5,25 EUR`.
    """
    value: Any = params
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return _LARGEST
        value = value.get(name)
        if value is None:
            return _NOTHING
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _LARGEST
    try:
        number = Decimal(str(value)) if len(str(value)) <= 100 else _LARGEST
    except (ArithmeticError, ValueError):
        return _LARGEST
    return min(max(number, _NOTHING), _LARGEST) if number.is_finite() else _LARGEST
