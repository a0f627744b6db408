"""Starts `gateway` commands as forks of a process that has imported the gateway already."""

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.harness.fork_server import LENGTH

ROOT = Path(__file__).parents[2]


class Forked:
    """A process, with the methods of `asyncio.subprocess.Process` that the tests use."""

    def __init__(self, pipe: int) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self._pipe = pipe
        self._read = b""
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(pipe, self._readable)

    def _readable(self) -> None:
        """Read what the fork server has written: the pid and the return code, each a line."""
        chunk = os.read(self._pipe, 64)
        self._read += chunk
        lines = self._read.splitlines(keepends=True)
        numbers = [int(line) for line in lines if line.endswith(b"\n")]
        if numbers and not self._started.done():
            self.pid = numbers[0]
            self._started.set_result(None)
        if len(numbers) == 2:
            self.returncode = numbers[1]
            self._ended.set_result(self.returncode)
        elif not chunk:
            error = ChildProcessError("the fork server has ended")
            (self._ended if self._started.done() else self._started).set_exception(error)
        if len(numbers) == 2 or not chunk:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)

    async def started(self) -> None:
        await self._started

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, sign: signal.Signals) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sign)


async def forked(*words: str, environment: Mapping[str, str], stdout: int, stderr: int) -> Forked:
    """Start `gateway WORDS…` with these file descriptors as its outputs, and no input."""
    document = {"words": words, "environment": dict(environment), "directory": os.getcwd()}
    request = json.dumps(document).encode()
    pipe, report = os.pipe()
    server = _server()
    socket.send_fds(server, [len(request).to_bytes(LENGTH)], [stdout, stderr, report])
    server.sendall(request)
    os.close(report)
    process = Forked(pipe)
    await process.started()
    return process


@cache
def _server() -> socket.socket:
    """The socket of this process's fork server."""
    ours, its = socket.socketpair()
    process = subprocess.Popen((sys.executable, "-m", "tests.harness.fork_server"), stdin=its, cwd=ROOT)
    its.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
