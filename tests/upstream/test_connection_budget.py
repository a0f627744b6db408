"""Connections to applications: one ceiling for the process, shared between rate scopes."""

from contextlib import ExitStack

import pytest

from gateway.errors import Unavailable
from gateway.upstream.connection_budget import ConnectionBudget
from gateway.upstream.rate_limits import RateScope


def scope(name: str) -> RateScope:
    return RateScope(name, "small")


def taken(budget: ConnectionBudget, stack: ExitStack, name: str) -> int:
    """Connections that a scope gets until it is refused."""
    for number in range(1000):
        try:
            stack.enter_context(budget.one(scope(name)))
        except Unavailable:
            return number
    return 1000


def test_one_account_takes_no_more_than_it_leaves_to_others():
    budget = ConnectionBudget(100)

    with ExitStack() as stack:
        assert [taken(budget, stack, name) for name in ("dead", "a", "b")] == [50, 25, 13]


def test_many_accounts_share_all_of_it():
    budget = ConnectionBudget(100)

    with ExitStack() as stack:
        assert sum(taken(budget, stack, str(number)) for number in range(100)) == 100
        with pytest.raises(Unavailable) as refused, budget.one(scope("late")):
            pass

    assert refused.value.retry_after == 1


def test_what_was_given_back_can_be_had_again():
    budget = ConnectionBudget(1)

    for _ in range(3):
        with budget.one(scope("a")), pytest.raises(Unavailable), budget.one(scope("a")):
            pass
