"""A child of the supervisor: starts a program, restarts it when it exits, and ends it."""

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from gateway.embedded import StartupError
from gateway.embedded.output import last_lines, line_pipe, log_file
from gateway.embedded.program import Program
from gateway.embedded.server import READY_WITHIN, not_ready
from gateway.foundation.aio.background import cancel_and_wait
from gateway.settings import SettingsError

logger = logging.getLogger(__name__)

#: seconds before the first restart; doubled for each further restart
FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0

#: seconds of running after which the count of a child's exits starts again
STEADY_AFTER = 30.0

#: seconds that a child has to exit after its hard signal
HARD_TIMEOUT = 5.0

#: called with the name of a child and a line that it wrote
Report = Callable[[str, str], None]


class Child:
    """One program, its current process, and the task that restarts it."""

    def __init__(self, program: Program, report: Report, on_change: Callable[[], None]) -> None:
        self.program = program
        self.process: asyncio.subprocess.Process | None = None
        self.exits = 0
        self._report = report
        self._on_change = on_change
        self._lines: deque[str] = deque(maxlen=10)
        self._refusal: StartupError | SettingsError | None = None
        self._stopping = asyncio.Event()
        self._is_restarting = False
        self._running = asyncio.create_task(self._run())

    @property
    def has_unusable_settings(self) -> bool:
        """Whether the process exited because its settings are invalid."""
        return isinstance(self._refusal, SettingsError)

    def failure(self) -> StartupError | SettingsError:
        """The reason why it does not start, with its last output if there is any."""
        return self._refusal or not_ready(self.program, last_lines(self.program.log) or list(self._lines))

    async def ready(self) -> None:
        """Wait until the program is ready; raises its failure. A program without `is_ready` is ready at once."""
        deadline = time.monotonic() + READY_WITHIN
        while not await self._is_ready():
            if self.exits or time.monotonic() > deadline:
                raise self.failure()
            await asyncio.sleep(0.01)

    def restart(self) -> None:
        """Stop the process and start it again at once; this does not count as an exit."""
        self._is_restarting = self.process is not None
        self._send(self.program.stop_signal)

    async def end(self, forced: asyncio.Task[Any]) -> None:
        """Stop the process; kill it after its grace period, or as soon as `forced` is done."""
        self._stopping.set()
        self._send(self.program.stop_signal)
        await asyncio.wait({self._running, forced}, timeout=self.program.grace, return_when=asyncio.FIRST_COMPLETED)
        for sign in (self.program.hard_signal, signal.SIGKILL):
            if not self._running.done():
                self._send(sign)
                await asyncio.wait({self._running}, timeout=HARD_TIMEOUT)
        await cancel_and_wait(self._running)

    async def _is_ready(self) -> bool:
        if self.program.is_ready is None:
            return True
        if self.process is None:
            return False
        return await asyncio.to_thread(self.program.is_ready, self.process.pid)

    async def _run(self) -> None:
        """Run the program, and restart it whenever it exits, until `end` is called."""
        delay = FIRST_DELAY
        while True:
            began = time.monotonic()
            outcome = await self._attempt()
            if self._stopping.is_set():
                return
            if self._is_restarting:
                self._is_restarting = False
                continue
            if time.monotonic() - began > STEADY_AFTER:
                self.exits, delay = 0, FIRST_DELAY
            self.exits += 1
            if self.has_unusable_settings:  # a restart can succeed only after a file was corrected
                delay = LONGEST_DELAY
            logger.warning("%s %s; starting it again in %.1f s", self.program.name, outcome, delay)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
            delay = min(delay * 2, LONGEST_DELAY)

    async def _attempt(self) -> str:
        """Run the program once; returns how it ended, for the log. A failed start counts as an exit."""
        try:
            status = await self._run_once()
        except StartupError as error:
            self._refusal = error
            return f"did not start ({error})"
        except OSError as error:
            return f"did not start ({error})"
        if status == self.program.unusable_status and self._lines:
            self._refusal = SettingsError(self._lines[-1].removeprefix("Error: "))
        return f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"

    async def _run_once(self) -> int:
        """Start the process and wait until it exits; returns its exit status, negative for a signal."""
        if self.program.prepare:
            await asyncio.to_thread(self.program.prepare)
        if self._stopping.is_set():
            return 0
        async with self._output() as output:
            process = await asyncio.create_subprocess_exec(
                *self.program.command(), **self.program.launch_options(output)
            )
            self._refusal = None
            try:
                self._set_process(process)
                return await process.wait()
            finally:
                self._set_process(None)

    @asynccontextmanager
    async def _output(self) -> AsyncIterator[int]:
        if self.program.log:
            with log_file(self.program.log) as output:
                yield output
        else:
            async with line_pipe(self._on_line) as output:
                yield output

    def _set_process(self, process: asyncio.subprocess.Process | None) -> None:
        self.process = process
        if self._stopping.is_set():  # `end` was called while the process was being started
            self._send(self.program.stop_signal)
        else:
            self._on_change()

    def _on_line(self, line: str) -> None:
        self._lines.append(line)
        self._report(self.program.name, line)

    def _send(self, sign: signal.Signals) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(sign)
