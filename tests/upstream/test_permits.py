"""Connections to applications: one ceiling for the process, shared between rate scopes."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from gateway.errors import Unavailable
from gateway.foundation.aio.turns import compute_for
from gateway.upstream.permits import Permit, Permits
from gateway.upstream.rate_limits import RateScope, Unlimited


class Counting(Unlimited):
    """A limiter that remembers how many places are taken, and the headers that it was given."""

    def __init__(self) -> None:
        self.places = 0
        self.headers: list[Mapping[str, str] | None] = []

    def acquire(self, scope: RateScope, timeout: float) -> None:
        self.places += 1

    def release(self, scope: RateScope, headers: Mapping[str, str] | None) -> None:
        self.places -= 1
        self.headers.append(headers)


def scope(name: str) -> RateScope:
    return RateScope(id=name, kind="small")


async def taken(permits: Permits, stack: AsyncExitStack, name: str) -> int:
    """Permits that a scope gets until it is refused."""
    for number in range(1000):
        try:
            await stack.enter_async_context(Permit(permits, scope(name), 1))
        except Unavailable:
            return number
    return 1000


async def test_one_account_takes_no_more_than_it_leaves_to_others():
    permits = Permits(Unlimited(), 100)

    async with AsyncExitStack() as stack:
        assert [await taken(permits, stack, name) for name in ("dead", "a", "b")] == [50, 25, 13]


async def test_an_organization_takes_half_of_what_the_others_leave_whatever_the_number_of_its_accounts():
    permits = Permits(Unlimited(), 100)

    async def taken_by(organization: str) -> int:
        compute_for(organization)
        return sum([await taken(permits, stack, f"{organization} {number}") for number in range(20)])

    async with AsyncExitStack() as stack:
        hostile = await asyncio.create_task(taken_by("hostile"))
        polite = await asyncio.create_task(taken_by("polite"))

    assert (hostile, polite) == (50, 25)
    assert permits.held == {}


async def test_a_slow_account_leaves_connections_to_the_others_of_its_organization():
    permits = Permits(Unlimited(), 100)
    compute_for("organization")

    async with AsyncExitStack() as stack:
        slow, others = await taken(permits, stack, "slow"), await taken(permits, stack, "other")

    assert (slow, others) == (25, 13)


async def test_many_accounts_share_all_of_it():
    permits = Permits(Unlimited(), 100)

    async with AsyncExitStack() as stack:
        assert sum([await taken(permits, stack, str(number)) for number in range(100)]) == 100
        with pytest.raises(Unavailable) as refused:
            await stack.enter_async_context(Permit(permits, scope("late"), 1))

    assert refused.value.retry_after == 1


async def test_what_was_given_back_can_be_had_again():
    permits = Permits(Unlimited(), 1)

    for _ in range(3):
        async with Permit(permits, scope("a"), 1):
            with pytest.raises(Unavailable):
                async with Permit(permits, scope("a"), 1):
                    pass


async def test_a_request_that_finds_no_connection_gives_its_place_back():
    limiter = Counting()

    with pytest.raises(Unavailable):
        async with Permit(Permits(limiter, 0), scope("a"), 1):
            pass

    assert limiter.places == 0


async def test_a_place_given_back_early_is_given_back_once_with_the_headers_of_the_response():
    limiter = Counting()

    async with Permit(Permits(limiter, 1), scope("a"), 1) as permit:
        permit.headers = {"x-left": "1"}
        permit.give_place()
        assert limiter.places == 0

    assert limiter.headers == [{"x-left": "1"}]
