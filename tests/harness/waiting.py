"""Waiting for what tells nobody that it has happened: another process, a file, a row."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

#: seconds for anything that must come about, on a busy machine too
PATIENCE = 180.0
_INTERVAL = 0.02


async def eventually(look: Callable[[], Any | Awaitable[Any]], *, within: float = PATIENCE) -> Any:
    """What the look (plain or awaited) gives, once that is true; TimeoutError after `within` seconds."""
    async with asyncio.timeout(within):
        while not (seen := await _looked(look)):  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(_INTERVAL)
    return seen


async def _looked(look: Callable[[], Any]) -> Any:
    seen = look()
    return await seen if inspect.isawaitable(seen) else seen


def eventually_without_loop(look: Callable[[], Any], *, within: float = PATIENCE) -> Any:
    """`eventually` for a test that has no event loop."""
    deadline = time.monotonic() + within
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(_INTERVAL)
    return seen
