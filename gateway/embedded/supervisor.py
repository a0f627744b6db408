"""Restarts child processes while this process runs, and ends them in order when it stops.

Groups start one after the other and stop in the reverse order, because a group depends on the earlier ones.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from gateway.embedded.child import Child, Report
from gateway.embedded.program import Program
from gateway.foundation.aio.background import cancel_and_wait

#: consecutive exits that are a crash loop
CRASH_LOOP = 3

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """Starts programs, restarts those that exit, forwards their output, and stops all of them in order."""

    def __init__(self, report: Report, on_change: Callable[[], None] = lambda: None) -> None:
        self._report = report
        self._on_change = on_change
        self._groups: list[list[Child]] = []
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, then wait for SIGINT, SIGTERM or SIGHUP; all children have ended when this returns or raises.

        After a second signal, the children are killed without their grace period.
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
                await cancel_and_wait(working, stopping)
                await self.stop()

    async def start(self, *programs: Program) -> None:
        """Start a group and wait until all its programs are ready; raises the failure of one that is not."""
        group = [Child(program, self._report, self._on_change) for program in programs]
        self._groups.append(group)
        await asyncio.gather(*(child.ready() for child in group))

    def restart(self, *roles: str) -> None:
        """Restart the children of these roles, without waiting."""
        for child in self._children():
            if child.program.role in roles:
                child.restart()

    async def stop(self) -> None:
        """End all children, beginning with the last group."""
        forced = asyncio.create_task(self._forced.wait())
        while self._groups:
            await asyncio.gather(*(child.end(forced) for child in self._groups[-1]))
            self._groups.pop()
        await cancel_and_wait(forced)

    def pids(self, role: str) -> list[int]:
        """Process ids of the running children of a role."""
        return [child.process.pid for child in self._children() if child.program.role == role and child.process]

    def ensure_no_crash_loop(self) -> None:
        """Raise StartupError if a child is in a crash loop, and SettingsError if its settings are invalid."""
        for child in self._children():
            if child.exits >= CRASH_LOOP or child.has_unusable_settings:
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
