"""Waits for conditions without events: of other processes, files and rows."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

#: timeout in seconds, long enough for a busy machine
PATIENCE = 180.0
#: minimum and maximum seconds between two checks; they grow, because a check is work for the gateway
_SHORTEST, _LONGEST = 0.02, 0.2


async def eventually(look: Callable[[], Any | Awaitable[Any]], *, within: float = PATIENCE) -> Any:
    """Repeat `look` until its result, awaited if necessary, is true; raises TimeoutError after `within` seconds."""
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
    """`eventually` for a test without an event loop."""
    started = time.monotonic()
    while not (seen := look()):
        assert time.monotonic() < started + within, "it did not happen in time"
        time.sleep(_pause_since(started))
    return seen


async def is_listening(port: int) -> bool:
    """Whether a process accepts connections on a port of loopback."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
