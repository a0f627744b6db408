"""How busy this thread is: its running time and its wait for a processor, as a share of all time.

A thread with too much to do reaches 1 even if other processes share its processor; its running time alone would not. A
thread that waits for applications stays low, however many calls wait; the lag of the event loop would not.
"""

import contextlib
import os
import time

#: of the calling thread: nanoseconds running, nanoseconds waiting for a processor, and how often (proc(5) on Linux)
_SCHEDSTAT = "/proc/thread-self/schedstat"


class ThreadLoad:
    """The share of time for which the thread that created it was busy, between two calls of `measure`."""

    def __init__(self) -> None:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
        self._last = (time.perf_counter(), self._busy())

    def measure(self) -> float:
        """The share since the last call, 0 to 1."""
        now = (time.perf_counter(), self._busy())
        passed, busy = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        return min(1.0, busy / passed) if passed > 0 else 0.0

    def _busy(self) -> float:
        """Seconds running or waiting for a processor; the running time alone if the system has no schedstat file."""
        if self._file is None:
            return time.thread_time()
        at_work, waiting, _ = os.pread(self._file, 100, 0).split()
        return (int(at_work) + int(waiting)) / 1e9

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
