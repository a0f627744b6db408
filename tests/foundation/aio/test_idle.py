"""A stream of items with marks for the time in which none comes."""

import asyncio
from contextlib import aclosing

import pytest

from gateway.foundation.aio.idle import with_idle_marks

SECONDS = 0.01


async def test_every_pause_is_marked_however_long_the_next_item_takes():
    go_on, is_closed = asyncio.Event(), asyncio.Event()

    async def items():
        try:
            yield 1
            await go_on.wait()
            yield 2
        finally:
            is_closed.set()

    seen: list[int | None] = []
    async with aclosing(with_idle_marks(items(), SECONDS)) as marked:
        async for item in marked:
            seen.append(item)
            if seen.count(None) == 3:
                go_on.set()

    assert [seen[0], *seen[1:4], seen[-1]] == [1, None, None, None, 2]
    assert is_closed.is_set()


async def test_an_error_of_the_items_is_raised():
    async def items():
        yield 1
        raise LookupError

    with pytest.raises(LookupError):
        assert [item async for item in with_idle_marks(items(), SECONDS)] == []


async def test_who_stops_reading_stops_the_items():
    is_canceled = asyncio.Event()

    async def items():
        yield 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_canceled.set()
            raise

    async with aclosing(with_idle_marks(items(), SECONDS)) as marked:
        await anext(marked)
        assert await anext(marked) is None

    assert is_canceled.is_set()
