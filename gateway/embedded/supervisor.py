"""Keeps child processes alive while this process runs, and ends them in order when it stops.

Groups start one after the other and stop in the reverse order: what was started last depends on what came before it.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from gateway.embedded.child import Child, Report, cancel
from gateway.embedded.program import Program

#: exits in a row that are a crash loop, after which a start is given up
CRASH_LOOP = 3

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Starts programs, restarts those that die, forwards what they write, and stops them all in order."""

    def __init__(self, report: Report, on_change: Callable[[], None] = lambda: None) -> None:
        self._report = report
        self._on_change = on_change
        self._groups: list[list[Child]] = []
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, then watch until SIGINT, SIGTERM or SIGHUP; all children are gone when this returns or raises.

        On a second signal it does not wait for the children's work.
        """
        with self._listening():
            working = asyncio.create_task(work)
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    working.result()
                    await stopping
            finally:
                await cancel(working, stopping)
                await self.stop()

    async def start(self, *programs: Program) -> None:
        """Start a group; returns when all that can tell are ready, StartupError when one does not get there."""
        group = [Child(program, self._report, self._on_change) for program in programs]
        self._groups.append(group)
        await asyncio.gather(*(child.ready() for child in group))

    def restart(self, *roles: str) -> None:
        """Restart the children of these roles; returns at once."""
        for child in self._children():
            if child.program.role in roles:
                child.restart()

    async def stop(self) -> None:
        """End all children, the last started group first."""
        forced = asyncio.create_task(self._forced.wait())
        while self._groups:
            await asyncio.gather(*(child.end(forced) for child in self._groups[-1]))
            self._groups.pop()
        await cancel(forced)

    def pids(self, role: str) -> list[int]:
        """Process ids of the running children of a role."""
        return [child.process.pid for child in self._children() if child.program.role == role and child.process]

    def ensure_no_crash_loop(self) -> None:
        """Raise StartupError if a child exits again and again, SettingsError once it cannot use its settings."""
        for child in self._children():
            if child.deaths >= CRASH_LOOP or child.has_unusable_settings:
                raise child.failure()

    def _children(self) -> Iterator[Child]:
        return (child for group in self._groups for child in group)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for sign in STOP_SIGNALS:
            loop.add_signal_handler(sign, self._on_signal)
        try:
            yield
        finally:
            for sign in STOP_SIGNALS:
                loop.remove_signal_handler(sign)

    def _on_signal(self) -> None:
        (self._forced if self._stopping.is_set() else self._stopping).set()
