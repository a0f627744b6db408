"""Retries while a service is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.errors import Unavailable

#: seconds between tries, and until a write is given up
_PAUSE, _TIMEOUT = 0.5, 600.0

Written = TypeVar("Written")


async def retry_until_available(
    write: Callable[[], Awaitable[Written]], on_away: Callable[[], None] = lambda: None, *, timeout: float = _TIMEOUT
) -> Written:
    """Write as soon as the service, such as PostgreSQL, is available, so that a result is not lost.

    Only for writes that do no harm if they are repeated. Raises Unavailable after `timeout` seconds.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        try:
            return await write()
        except Unavailable:
            on_away()
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_PAUSE)
