"""Answers read at once: the small ones never wait, of the large ones of an organization one goes on at a time."""

import asyncio

import pytest

from gateway.foundation.aio.turns import compute_for
from gateway.upstream.read_budget import ReadBudget


async def test_what_fits_is_read_side_by_side():
    budget = ReadBudget(100)

    with budget.reading() as one, budget.reading() as another:
        async with asyncio.timeout(1):
            await one.grow(60)
            await another.grow(40)


async def test_beyond_the_budget_one_continues_and_the_others_wait_for_its_end():
    budget, order = ReadBudget(100), []

    async def read(name: str, *sizes: int) -> None:
        with budget.reading() as reading:
            for size in sizes:
                await reading.grow(size)
                await asyncio.sleep(0)
        order.append(name)

    async with asyncio.timeout(1):
        await asyncio.gather(read("large", 90, 500, 500, 500), read("second", 20, 500), read("small", 10))

    assert order == ["small", "second", "large"]


async def test_what_was_held_is_free_when_it_was_read():
    budget = ReadBudget(100)
    with budget.reading() as dropped:
        await dropped.grow(100)

    with budget.reading() as next_one:
        async with asyncio.timeout(1):
            await next_one.grow(100)
            await next_one.grow(100)


async def test_who_gives_up_waiting_holds_nothing():
    budget = ReadBudget(10)
    with budget.reading() as first:
        await first.grow(20)
        with budget.reading() as second:
            waiting = asyncio.create_task(second.grow(20))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    with budget.reading() as third:
        async with asyncio.timeout(1):
            await third.grow(20)


async def begun(budget: ReadBudget, organization: str, size: int, end: asyncio.Event) -> None:
    """Read so many bytes, and hold them until the end."""
    compute_for(organization)
    with budget.reading() as reading:
        await reading.grow(size)
        await end.wait()


async def read(budget: ReadBudget, organization: str, size: int) -> None:
    end = asyncio.Event()
    end.set()
    async with asyncio.timeout(5):
        await asyncio.create_task(begun(budget, organization, size, end))


async def test_slow_responses_of_one_organization_hold_up_no_other_ones():
    budget, end = ReadBudget(1000), asyncio.Event()
    slow = [asyncio.create_task(begun(budget, "hostile", 100, end)) for _ in range(50)]
    await asyncio.sleep(0)

    await read(budget, "polite", 100)
    await read(budget, "polite", 5000)

    end.set()
    await asyncio.gather(*slow)
    assert (budget.available, dict(budget.held)) == (1000, {})


async def test_one_large_response_of_an_organization_is_read_at_a_time_and_two_together():
    budget, end = ReadBudget(1000), asyncio.Event()
    held = [asyncio.create_task(begun(budget, organization, 5000, end)) for organization in ("one", "two")]
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(read(budget, organization, 5000)) for organization in ("one", "three")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)

    end.set()

    await asyncio.gather(*held, *waiting)
    await read(budget, "four", 5000)
