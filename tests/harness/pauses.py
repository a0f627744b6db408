"""Skips pauses between retries and between rounds of loops."""

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

#: seconds; a later timer is a timeout of a wait for bytes, and is not skipped
_LONGEST = 3.0
#: seconds within which bytes arrive that were sent within this process
_GRACE = 0.001


@contextmanager
def skipped(loop: asyncio.SelectorEventLoop) -> Iterator[None]:
    """Within the block, the loop's clock jumps to the next timer as soon as the loop is idle.

    A pause passes at once, and has its full length by the loop's clock. Not for tests of timeouts of a few seconds,
    which would expire while bytes are in transit.
    """
    clock = _clock_of(loop)
    clock.skips = True
    try:
        yield
    finally:
        clock.skips = False


class _Clock:
    """The clock and the selector of a loop; skipped time is kept, because a loop's clock must not go back."""

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
