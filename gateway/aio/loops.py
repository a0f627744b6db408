"""Background loops, supervised: an error ends one round of a loop and never the loop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn

from gateway.aio.background import cancel_and_wait
from gateway.errors import Unavailable
from gateway.telemetry.metrics import BACKGROUND_FAILURES

log = logging.getLogger(__name__)

#: seconds between rounds after one that failed, at least, so that a loop that always fails does not spin
_PAUSE = 0.5


async def every(seconds: float, duty: Callable[[], Awaitable[object]], *, name: str) -> NoReturn:
    """Await `duty()` again and again, `seconds` after it returned, until the task is cancelled.

    An error of the duty, whatever its class, is logged and counted in `gateway_background_failures{loop}`; the first of
    several in a row with its traceback, unless a store is unavailable. An end of the process (`SystemExit`,
    `KeyboardInterrupt`) goes through.
    """
    failures = 0
    _name_task(name)
    while True:
        try:
            await duty()
        except (Exception, asyncio.CancelledError) as error:
            _raise_if_cancelled()
            failures += 1
            BACKGROUND_FAILURES.add(name)
            if failures == 1:
                _report(name, error)
        else:
            if failures:
                log.info("a background loop works again", extra={"loop": name, "failures": failures})
            failures = 0
        await asyncio.sleep(max(seconds, _PAUSE) if failures else seconds)


@asynccontextmanager
async def running(*loops: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """The loops run beside the block, and have ended when it is left."""
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
    """Tell the loop's own cancellation from one inside the duty, and from an error that a library made of it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _report(name: str, error: BaseException) -> None:
    if isinstance(error, Unavailable):
        log.warning("a background loop waits: %s", error.detail, extra={"loop": name})
    else:
        log.error("a background loop failed; going on", exc_info=error, extra={"loop": name})
