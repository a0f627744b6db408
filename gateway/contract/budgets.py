"""Budgets: what clients, people and workspaces may use in a period."""

from enum import StrEnum
from typing import Annotated

from msgspec import Struct

from gateway.contract.members import Id, ListOf, Time, member


class BudgetPeriod(StrEnum):
    """The period after which a budget is whole again, by the clock and the calendar in UTC."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class BudgetSum(Struct, frozen=True, kw_only=True):
    """The sum that a param of an operation may reach."""

    operation: Annotated[str, member("`kind.entity.action`.", "stripe.refunds.create")]
    param: Annotated[str, member("The param, with dots into objects; its value is a number.", "amount")]
    at_most: Annotated[float, member("The sum of a period.", 100000)]


class BudgetSpendingView(Struct, frozen=True, kw_only=True):
    """What is spent in the current period."""

    calls: Annotated[int, member("Calls, searches, downloads, uploads, and lines of batches.", 7)]
    writes: Annotated[int, member("Those of them that change something.", 2)]
    records: Annotated[int, member("Records that calls and searches returned.", 140)]
    sum: Annotated[float, member("The sum of the param.", 1250)]


class BudgetLimits(Struct, frozen=True, kw_only=True):
    """What a budget allows."""

    per: Annotated[BudgetPeriod, member("The period after which the budget is whole again.")]
    calls: Annotated[int | None, member("Maximum calls.", 1000)] = None
    writes: Annotated[int | None, member("Maximum writes.", 50)] = None
    records: Annotated[
        int | None, member("Records after which no further call is made; the last one may exceed it.", 10000)
    ] = None
    sum: Annotated[BudgetSum | None, member("Maximum sum of a param.")] = None


class NewBudget(BudgetLimits, frozen=True, kw_only=True):
    """What a budget allows, and to whom: a client, a person, a workspace, or the whole organization."""

    client_id: Annotated[Id | None, member("The client whose calls count, also those for people.")] = None
    person_id: Annotated[Id | None, member("The person whose calls count, by whichever client.")] = None
    workspace_name: Annotated[str | None, member("The workspace whose connectors count.", "acme")] = None


class BudgetView(NewBudget, frozen=True, kw_only=True):
    """A budget, and what is spent of it."""

    name: Annotated[str, member("The budget's name.", "support-agent")]
    spent: Annotated[BudgetSpendingView, member("What is spent in the current period.")]
    resets_at: Annotated[Time, member("When the budget is whole again.")]
    created_at: Annotated[Time, member("When it was stored first.")]
    created_by: Annotated[Id | None, member("The client that stored it last.")]


class BudgetList(ListOf[BudgetView], frozen=True):
    """The organization's budgets, by name."""
