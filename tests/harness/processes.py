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
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_environment() -> dict[str, str]:
    """This process's environment without any setting of a gateway."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}


def upstreams_at(url: str) -> dict[str, str]:
    """The settings that send the calls of every kind to one address."""
    return {f"GATEWAY_UPSTREAM_{name.upper().replace('-', '_')}": url for name in _kinds()}


@cache
def _kinds() -> tuple[str, ...]:
    return tuple(kind.name for kind in shipped_catalog())


class Program:
    """A command that can be run again and again; its output goes to a file, or where that of the tests goes."""

    def __init__(
        self, *command: str, environment: Mapping[str, str], log: Path | None = None, ready: str | None = None
    ) -> None:
        self.command = command
        self._environment = dict(environment)  # uvloop takes no other mapping
        self._log = log
        self._ready = ready
        self._process: Process | Forked | None = None
        #: where in the file the output of this run begins
        self._begin = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Returns when it has written what it writes once it is ready, where it writes anything."""
        await self.launch()
        await self.ready()

    async def launch(self) -> None:
        """A start that is not waited for."""
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
        """Returns when anything answers at the URL."""
        async with aiohttp.ClientSession() as session:
            await self.until(lambda: _answers(session, url))

    async def until(self, look: Any) -> Any:
        """What the look gives, once that is true, of a process that must not end before."""

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
        """The exit code, once there is one."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """As an orchestrator does: SIGTERM, then its end; the exit code."""
        self.send(sign)
        return await self.ended()

    async def kill(self) -> None:
        """By SIGKILL, which needs no thaw before."""
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
