"""Ends background tasks."""

import asyncio
from typing import Any

#: seconds that a cancelled task may take to end before it is cancelled again
_TIMEOUT = 0.5


async def cancel_and_wait(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks until they have ended.

    One cancellation may not be enough: a library can turn it into its own error, and a task that continues
    after errors then continues.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_TIMEOUT)
