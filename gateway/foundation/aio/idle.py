"""Marks that tell a reader that an idle stream is alive."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

Item = TypeVar("Item")


async def with_idle_marks(items: AsyncGenerator[Item, None], seconds: float) -> AsyncGenerator[Item | None, None]:
    """The items, and None for every `seconds` without one; closes the generator at the end."""
    reading = asyncio.ensure_future(anext(items, None))
    try:
        while True:
            is_read, _ = await asyncio.wait([reading], timeout=seconds)
            if not is_read:
                yield None
                continue
            item = reading.result()
            if item is None:
                return
            yield item
            reading = asyncio.ensure_future(anext(items, None))
    finally:
        reading.cancel()
        await asyncio.wait([reading])
        await items.aclose()
