"""Trying again while a service that is needed is away."""

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
    """Write it as soon as the service, such as PostgreSQL, is there: what is done is not forgotten because it is away.

    Only for what does no harm when it is written twice. Raises Unavailable after `timeout` seconds.
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
