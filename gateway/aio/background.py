"""Ending tasks that run beside everything else."""

import asyncio
from typing import Any

#: seconds that a task may take to end, before it is told again
_TIMEOUT = 0.5


async def cancel_and_wait(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks until they have ended.

    Once is not enough: libraries turn being canceled into errors of their own, which a task that must go on through
    errors takes for one more of them.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_TIMEOUT)
