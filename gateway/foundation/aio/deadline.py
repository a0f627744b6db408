"""A deadline that several phases share, by the monotonic clock."""

import time
from collections.abc import Callable


class Deadline:
    """The moment by which everything has to be done."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + seconds

    def left(self, *, reserve: float = 0.0) -> float:
        """Seconds that a phase may take when `reserve` seconds are to be left for those after it; never negative."""
        return max(0.0, self._at - self._clock() - reserve)
