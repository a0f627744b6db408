"""The time of day in a process: read from PostgreSQL, and advanced by a clock that does not jump.

All processes agree on the time. A wrong clock of a machine, or one that is set meanwhile, has no effect.
Without PostgreSQL, the time starts as the machine's at the start of the process, and advances in the same way.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

# If the system has CLOCK_BOOTTIME, it is used: it also advances while the machine sleeps.
_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


#: a clock that is never set, in seconds
steady: Callable[[], float] = time.monotonic if _STEADY is None else partial(time.clock_gettime, _STEADY)


def offset_within(offset: float, low: float, high: float) -> float:
    """The offset if a reading allows it, else the nearest one allowed: a slow answer does not move a good clock."""
    return min(max(offset, low), high)


class Clock:
    """Seconds since the epoch by the steady clock and an offset."""

    def __init__(self) -> None:
        self._offset = time.time() - steady()
        #: whether PostgreSQL's time was read
        self.is_set = False

    def unix_time(self) -> float:
        """Seconds since the epoch."""
        return self._offset + steady()

    def now(self) -> datetime:
        """The moment, in UTC."""
        return datetime.fromtimestamp(self._offset + steady(), UTC)

    def set_by(self, unix_time: float, requested_at: float) -> None:
        """Adopt a time that PostgreSQL read between `requested_at` (of the monotonic clock) and now."""
        self._offset = offset_within(self._offset, unix_time - steady(), unix_time - requested_at)
        self.is_set = True


#: the clock of the process; `db` sets it
CLOCK = Clock()
