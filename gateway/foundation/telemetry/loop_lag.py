"""The lag of the event loop: the time for which all tasks of the process wait."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

#: seconds between measurements
INTERVAL = 0.05


class LoopLag:
    """Seconds by which the loop is late, measured by a timer every INTERVAL."""

    def __init__(self) -> None:
        self.seconds = 0.0
        #: seconds of one cycle of the loop, which runs each ready callback once
        self.cycle = 0.0
        self._listeners: list[Callable[[float], None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def subscribe(self, listener: Callable[[float], None]) -> None:
        """Call the listener with every measurement."""
        self._listeners.append(listener)

    def unsubscribe_all(self) -> None:
        self._listeners.clear()

    @contextmanager
    def watching(self) -> Iterator["LoopLag"]:
        """Measure for the duration of the block."""
        loop = asyncio.get_running_loop()
        self._schedule(loop)
        try:
            yield self
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + INTERVAL
        self._timer = loop.call_at(due, self._on_timer, loop, due)

    def _on_timer(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.seconds = max(0.0, loop.time() - due)
        loop.call_soon(self._begin_cycle, loop)

    def _begin_cycle(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(self._end_cycle, loop, time.perf_counter())

    def _end_cycle(self, loop: asyncio.AbstractEventLoop, began: float) -> None:
        self.cycle = time.perf_counter() - began  # uvloop updates loop.time() only once per cycle
        for listener in self._listeners:
            try:
                listener(self.seconds)
            except Exception:
                log.exception("a listener of the event loop's lag failed")
        self._schedule(loop)
