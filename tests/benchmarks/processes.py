"""Server processes for benchmarks, on a core of their own where there are two, and what they cost."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import aiohttp
import psutil

#: seconds for a server to answer
_PATIENCE = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Server:
    """A process that answers, and its account with the system."""

    url: str
    pid: int

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def memory_mib(self) -> float:
        return psutil.Process(self.pid).memory_info().rss / (1 << 20)


@contextmanager
def beside_the_server() -> Iterator[None]:
    """This process, which makes the load, on the other core than the server that is measured."""
    if not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before - {0} or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@asynccontextmanager
async def server(
    *arguments: str, port: int, environment: Mapping[str, str] | None = None, core: int | None = 0, path: str = "/"
) -> AsyncIterator[Server]:
    """`python -m …` on a port, until the block ends; ready when it answers anything at `path`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, env={**os.environ, **(environment or {})}, stdout=asyncio.subprocess.DEVNULL
    )
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, {core % (os.cpu_count() or 1)})
    try:
        url = f"http://127.0.0.1:{port}"
        await _answering(process, url + path)
        yield Server(url, process.pid)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _answering(process: asyncio.subprocess.Process, url: str) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(_PATIENCE):
        while True:
            try:
                async with session.get(url) as response:
                    await response.read()
                return
            except aiohttp.ClientError:
                assert process.returncode is None, f"{url} did not start"
                await asyncio.sleep(0.05)
