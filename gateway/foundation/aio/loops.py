"""Background loops, supervised: an error ends one round of a loop and never the loop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from gateway.errors import Unavailable
from gateway.foundation.aio.background import cancel_and_wait
from gateway.foundation.telemetry.metrics import BACKGROUND_FAILURES

log = logging.getLogger(__name__)

#: minimum seconds before the round after a failed one, so that a loop that always fails does not spin
_PAUSE = 0.5


async def every(seconds: float, work: Callable[[], Awaitable[object]], *, name: str) -> NoReturn:
    """Await `work()` repeatedly, `seconds` after it returned, until the task is cancelled.

    Every error is counted in `gateway_background_failures{loop}`. The first of consecutive errors is logged, with its
    traceback unless a store is unavailable. `SystemExit` and `KeyboardInterrupt` are raised.
    """
    failures = 0
    _name_task(name)
    while True:
        try:
            await work()
        except (Exception, asyncio.CancelledError) as error:
            _raise_if_cancelled()
            failures += 1
            BACKGROUND_FAILURES.add(name)
            if failures == 1:
                _report(name, error)
        else:
            if failures:
                log.info("a background loop has recovered", extra={"loop": name, "failures": failures})
            failures = 0
        await asyncio.sleep(max(seconds, _PAUSE) if failures else seconds)


@asynccontextmanager
async def running(*loops: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run the loops during the block; they have ended when it is left."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        await cancel_and_wait(*tasks)


def _name_task(name: str) -> None:
    task = asyncio.current_task()
    if task is not None:
        task.set_name(name)


def _raise_if_cancelled() -> None:
    """Raise CancelledError if the loop itself was cancelled, even if a library has turned that into another error."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _report(name: str, error: BaseException) -> None:
    if isinstance(error, Unavailable):
        log.warning("a background loop waits: %s", error.detail, extra={"loop": name})
    else:
        log.error("a background loop failed, and continues", exc_info=error, extra={"loop": name})
