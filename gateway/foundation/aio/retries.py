"""Retries while a service is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.errors import Unavailable

#: seconds between tries
_PAUSE = 0.5
#: seconds after which the last error is raised
_TIMEOUT = 600.0

Written = TypeVar("Written")


async def retry_until_available(
    write: Callable[[], Awaitable[Written]],
    on_unavailable: Callable[[], None] = lambda: None,
    *,
    timeout: float = _TIMEOUT,
) -> Written:
    """Repeat a write until the service, such as PostgreSQL, is available, so that no result is lost.

    Only for writes that may be repeated. Raises Unavailable after `timeout` seconds.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        try:
            return await write()
        except Unavailable:
            on_unavailable()
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_PAUSE)
