"""Pauses that nobody needs: between two tries, between two rounds of a loop."""

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

#: seconds; a timer further away is a timeout of somebody who waits for bytes, and is left alone
_LONGEST = 3.0
#: seconds in which bytes that are on their way within this process arrive
_GRACE = 0.001


@contextmanager
def skipped(loop: asyncio.SelectorEventLoop) -> Iterator[None]:
    """Within the block the loop's clock moves on to the next timer as soon as nothing else is left to do.

    A pause passes at once, and by the loop's clock it took as long as it should. Not for tests of timeouts of a few
    seconds and less, which would run out while bytes are still on their way.
    """
    clock = _clock_of(loop)
    clock.skips = True
    try:
        yield
    finally:
        clock.skips = False


class _Clock:
    """The clock and the selector of a loop; what was skipped stays skipped, as no clock of a loop may go back."""

    def __init__(self, loop: asyncio.SelectorEventLoop) -> None:
        self._time, self._select = loop.time, loop._selector.select
        self._ahead = 0.0
        self.skips = False
        loop.time, loop._selector.select = self.time, self.select

    def time(self) -> float:
        return self._time() + self._ahead

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self.skips or timeout is None or not _GRACE < timeout <= _LONGEST:
            return self._select(timeout)
        events = self._select(_GRACE)
        if not events:
            self._ahead += timeout
        return events


@cache
def _clock_of(loop: asyncio.SelectorEventLoop) -> _Clock:
    return _Clock(loop)
