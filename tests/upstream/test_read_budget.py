"""Answers read at once: the small ones never wait, of the large ones one goes on at a time."""

import asyncio

import pytest

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
