"""Processes that tests start, freeze, kill and start again."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp

from tests.harness.catalog import shipped_catalog
from tests.harness.forks import Forked, forked
from tests.harness.waiting import eventually

#: the command of this checkout
GATEWAY = (sys.executable, "-m", "gateway")
_STANDARD_ERROR = 2
#: an encryption key that no deployment has
KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def free_port() -> int:
    """A free port of the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_environment() -> dict[str, str]:
    """This process's environment without settings of the gateway."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}


def upstreams_at(url: str) -> dict[str, str]:
    """The settings that send the calls of every kind to one address."""
    return {f"GATEWAY_UPSTREAM_{name.upper().replace('-', '_')}": url for name in _kinds()}


@cache
def _kinds() -> tuple[str, ...]:
    return tuple(kind.name for kind in shipped_catalog())


class Program:
    """A command that can be run repeatedly; its output goes to `log`, or its errors to those of the tests."""

    def __init__(
        self, *command: str, environment: Mapping[str, str], log: Path | None = None, ready: str | None = None
    ) -> None:
        self.command = command
        self._environment = dict(environment)  # uvloop takes no other mapping
        self._log = log
        self._ready = ready
        self._process: Process | Forked | None = None
        #: offset in the file at which the output of this run begins
        self._begin = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it, and wait until its output contains `ready`."""
        await self.launch()
        await self.ready()

    async def launch(self) -> None:
        """Start it without waiting."""
        with (self._log or Path(os.devnull)).open("ab") as sink:
            self._begin = sink.tell()
            self._process = await self._started(sink.fileno(), sink.fileno() if self._log else _STANDARD_ERROR)

    async def ready(self) -> None:
        if self._ready is not None:
            ready = self._ready
            await self.until(lambda: ready in self._output())

    async def _started(self, stdout: int, stderr: int) -> Process | Forked:
        return await asyncio.create_subprocess_exec(*self.command, env=self._environment, stdout=stdout, stderr=stderr)

    async def answers(self, url: str) -> None:
        """Wait for a response from the URL."""
        async with aiohttp.ClientSession() as session:
            await self.until(lambda: _answers(session, url))

    async def until(self, look: Any) -> Any:
        """`eventually`, but fail if the process ends before."""

        def looked() -> Any:
            assert self.is_running, f"{' '.join(self.command)} ended: {self._output()}"
            return look()

        return await eventually(looked)

    def _output(self) -> str:
        return self._log.read_bytes()[self._begin :].decode(errors="replace") if self._log else "see above"

    def send(self, sign: signal.Signals) -> None:
        if self.is_running:
            assert self._process is not None
            with suppress(ProcessLookupError):
                self._process.send_signal(sign)

    async def ended(self) -> int:
        """Wait for its end; returns the exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Send SIGTERM as an orchestrator does, and wait for the end; returns the exit code."""
        self.send(sign)
        return await self.ended()

    async def kill(self) -> None:
        """Send SIGKILL, which ends a frozen process too."""
        await self.stop(signal.SIGKILL)


class Gateway(Program):
    """A `gateway` command that can be run again and again; each run is a fork, which starts sooner."""

    def __init__(self, *words: str, environment: Mapping[str, str], log: Path | None = None, ready: str | None = None):
        super().__init__("gateway", *words, environment=environment, log=log, ready=ready)

    async def _started(self, stdout: int, stderr: int) -> Forked:
        return await forked(*self.command[1:], environment=self._environment, stdout=stdout, stderr=stderr)


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            await response.read()
    except aiohttp.ClientError:
        return False
    return True
