"""Waiting for what tells nobody that it has happened: another process, a file, a row."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

#: seconds for anything that must come about, on a busy machine too
PATIENCE = 180.0
#: seconds between two looks: longer, the longer it has taken, as a look at a gateway is work for that gateway
_SHORTEST, _LONGEST = 0.02, 0.2


async def eventually(look: Callable[[], Any | Awaitable[Any]], *, within: float = PATIENCE) -> Any:
    """What the look (plain or awaited) gives, once that is true; TimeoutError after `within` seconds."""
    started = time.monotonic()
    async with asyncio.timeout(within):
        while not (seen := await _looked(look)):  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(_pause_since(started))
    return seen


def _pause_since(started: float) -> float:
    return min(max((time.monotonic() - started) / 10, _SHORTEST), _LONGEST)


async def _looked(look: Callable[[], Any]) -> Any:
    seen = look()
    return await seen if inspect.isawaitable(seen) else seen


def eventually_without_loop(look: Callable[[], Any], *, within: float = PATIENCE) -> Any:
    """`eventually` for a test that has no event loop."""
    started = time.monotonic()
    while not (seen := look()):
        assert time.monotonic() < started + within, "it did not happen in time"
        time.sleep(_pause_since(started))
    return seen
