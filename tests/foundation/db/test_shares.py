"""Shares of a pool: what one organization may use of it, and who is next."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.foundation.db.pool import ACTIVE, ConnectionShares


async def started(shares: ConnectionShares, holders: Sequence[str]) -> "list[asyncio.Task[None]]":
    """One task for each, which ends when its holder may use a connection."""
    tasks = [asyncio.create_task(shares.acquire(holder)) for holder in holders]
    await asyncio.sleep(0)
    return tasks


def granted(tasks: "Sequence[asyncio.Task[None]]") -> list[bool]:
    return [task.done() for task in tasks]


@pytest.mark.parametrize(("size", "total"), [(1, 1), (3, 3), (4, 3), (8, 6), (20, 15)])
def test_some_connections_are_kept_for_the_gateway_itself(size: int, total: int):
    assert ConnectionShares(size).total == total


@pytest.mark.parametrize(
    ("holders", "may_use"),
    [
        ("aaaaaaa", "aaaaaa"),
        ("baaaaa", "baa"),
        ("baaabb", "baab"),
        ("baaacd", "baacd"),
        ("abcdefg", "abcdef"),
    ],
)
async def test_an_organization_may_use_half_of_what_the_others_leave_and_all_while_it_is_alone(
    holders: str, may_use: str
):
    shares = ConnectionShares(8)

    tasks = await started(shares, holders)

    assert "".join(holder for holder, task in zip(holders, tasks, strict=True) if task.done()) == may_use
    for task in tasks:
        task.cancel()


async def test_an_organization_is_alone_again_a_minute_after_the_last_use_by_another():
    now = 0.0
    shares = ConnectionShares(8, lambda: now)
    await shares.acquire("b")
    shares.release("b")

    beside_another = granted(await started(shares, "aaaa"))
    now = ACTIVE
    alone = granted(await started(shares, "aa"))

    assert beside_another == [True, True, True, False]
    assert alone == [False, False]  # those behind it wait for their turn
    shares.release("a")
    await asyncio.sleep(0)
    assert shares.used("a") == 5


async def test_organizations_that_wait_take_turns():
    shares = ConnectionShares(1)
    await shares.acquire("a")
    order: list[str] = []

    async def use(holder: str) -> None:
        await shares.acquire(holder)
        order.append(holder)
        shares.release(holder)

    waiting = [asyncio.create_task(use(holder)) for holder in "aaabbc"]
    await asyncio.sleep(0)
    shares.release("a")
    await asyncio.gather(*waiting)

    assert "".join(order) == "abcaba"


async def test_who_no_longer_waits_takes_nothing():
    shares = ConnectionShares(1)
    await shares.acquire("a")
    leaving, also_leaving, staying = await started(shares, "bbc")
    leaving.cancel()
    await asyncio.sleep(0)
    also_leaving.cancel()

    shares.release("a")
    await staying

    assert shares.used("b") == 0
    assert shares.used("c") == 1


async def test_a_turn_that_comes_as_its_holder_leaves_goes_to_the_next():
    shares = ConnectionShares(1)
    await shares.acquire("a")
    leaving, staying = await started(shares, "bc")

    shares.release("a")
    leaving.cancel()
    await asyncio.wait_for(staying, 10)

    assert (shares.used("b"), shares.used("c")) == (0, 1)
