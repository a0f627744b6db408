"""What a call costs, and what exceeds a budget."""

from decimal import Decimal
from uuid import UUID

import pytest

from gateway.access.budgets.model import Cost, SpendingLimit, Use, number_at
from gateway.contract.budgets import BudgetPeriod

CLIENT, OTHER = UUID(int=1), UUID(int=2)
REFUND = "stripe.refunds.create"
LARGEST = Decimal(10) ** 30


def use(**members) -> Use:
    known = {"client_id": CLIENT, "workspace_name": "acme", "operation": REFUND, "params": {}, "is_write": True}
    return Use(**{**known, **members})


def budget(**members) -> SpendingLimit:
    return SpendingLimit(name="b", per=BudgetPeriod.DAY, **members)


def cost(calls=0, writes=0, records=0, sum_=0) -> Cost:
    return Cost(calls=calls, writes=writes, records=records, sum=Decimal(sum_))


@pytest.mark.parametrize(
    ("members", "covers"),
    [
        ({}, True),
        ({"client_id": CLIENT}, True),
        ({"client_id": OTHER}, False),
        ({"workspace_name": "acme"}, True),
        ({"workspace_name": "other"}, False),
    ],
)
def test_a_budget_covers_its_client_its_workspace_or_everything(members, covers):
    assert budget(**members).covers(use()) is covers


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"is_write": False}, cost(calls=1)),
        ({}, cost(calls=1, writes=1)),
        ({"params": {"amount": 12.5}}, cost(calls=1, writes=1, sum_="12.5")),
        ({"params": {"amount": 12.5}, "operation": "stripe.refunds.update"}, cost(calls=1, writes=1)),
        ({"calls": 0, "records": 7, "params": {"amount": 1}}, cost(records=7)),
        ({"calls": -1, "params": {"amount": 3}}, cost(calls=-1, writes=-1, sum_=-3)),
    ],
)
def test_a_call_costs_itself_and_its_number(members, expected):
    assert budget(sum_operation=REFUND, sum_param="amount").cost_of(use(**members)) == expected


@pytest.mark.parametrize(
    ("limits", "taken", "total", "exceeded"),
    [
        ({"calls": 3}, cost(1), cost(3), None),
        ({"calls": 3}, cost(1), cost(4), "3 calls"),
        ({"calls": 3}, cost(records=5), cost(9), None),
        ({"writes": 1}, cost(1), cost(9, 9), None),
        ({"writes": 1}, cost(1, 1), cost(9, 2), "1 writes"),
        ({"records": 10}, cost(1), cost(1, records=9), None),
        ({"records": 10}, cost(1), cost(1, records=10), "10 records"),
        ({"records": 10}, cost(records=90), cost(1, records=99), None),
        ({"sum_at_most": Decimal(100), "sum_param": "amount"}, cost(1, sum_=60), cost(2, sum_=100), None),
        (
            {"sum_at_most": Decimal(100), "sum_param": "amount"},
            cost(1, sum_=60),
            cost(2, sum_=120),
            "a sum of 100 for amount",
        ),
        ({"sum_at_most": Decimal(100), "sum_param": "amount"}, cost(1), cost(2, sum_=120), None),
        ({"calls": 0}, cost(1), cost(1), "0 calls"),
        ({"calls": 3}, cost(-1), cost(9), "3 calls"),
    ],
)
def test_a_budget_is_exceeded_by_what_a_call_adds(limits, taken, total, exceeded):
    assert budget(**limits).exceeded(taken, total) == exceeded


@pytest.mark.parametrize(
    ("params", "path", "number"),
    [
        ({"amount": 5}, "amount", 5),
        ({"amount": "5.25"}, "amount", Decimal("5.25")),
        ({"refund": {"amount": 5}}, "refund.amount", 5),
        ({}, "amount", 0),
        ({"amount": None}, "amount", 0),
        ({"refund": None}, "refund.amount", 0),
        ({"refund": {}}, "refund.amount", 0),
        ({"amount": -5}, "amount", 0),
        ({"amount": "-0.01"}, "amount", 0),
        ({"refund": 5}, "refund.amount", LARGEST),
        *(({"amount": each}, "amount", LARGEST) for each in (True, [5], {"value": 5}, float("inf"), float("nan"))),
        *(
            ({"amount": each}, "amount", LARGEST)
            for each in ("NaN", "sNaN", "-NaN", "Infinity", "five", "5,25", "$5", "")
        ),
        ({"amount": "9" * 1000}, "amount", LARGEST),
        ({"amount": "1e999"}, "amount", LARGEST),
    ],
)
def test_a_param_counts_if_it_is_a_number_and_exceeds_every_budget_if_it_is_anything_else(params, path, number):
    assert number_at(params, path) == number
