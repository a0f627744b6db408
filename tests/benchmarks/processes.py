"""Server processes for benchmarks, on a separate core if there are two, and their cost."""

import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.harness.processes import Program, free_port


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


def cpu_of_children(name: str) -> float:
    """Processor seconds of all processes below this one whose name holds that."""
    seconds = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if name in process.name():
                times = process.cpu_times()
                seconds += times.user + times.system
    return seconds


def on_core(pid: int, core: int) -> None:
    """Let a process use one core only, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {core % (os.cpu_count() or 1)})


def waited_for_processor(pid: int) -> float:
    """Seconds for which the main thread of a process was ready and had no processor; 0 where that is not known."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


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


def server(
    *arguments: str, port: int, environment: Mapping[str, str] | None = None, core: int | None = 0, path: str = "/"
) -> AbstractAsyncContextManager[Server]:
    """`python -m …` on a port, until the block ends; ready when it answers anything at `path`."""
    program = Program(sys.executable, "-m", *arguments, environment={**os.environ, **(environment or {})})
    return served(program, port, core=core, path=path)


def application(*, seconds: float = 0.0, core: int | None = 1) -> AbstractAsyncContextManager[Server]:
    """An application that has its answers ready, so many seconds after it is asked."""
    port = free_port()
    return server("tests.benchmarks.pressure", str(port), str(seconds), port=port, core=core)


@asynccontextmanager
async def served(program: Program, port: int, *, core: int | None = 0, path: str = "/") -> AsyncIterator[Server]:
    """A program that listens on a port, until the block ends; ready when it answers anything at `path`."""
    await program.start()
    try:
        if core is not None:
            on_core(program.pid, core)
        url = f"http://127.0.0.1:{port}"
        await program.answers(url + path)
        yield Server(url, program.pid)
    finally:
        await program.stop()


@asynccontextmanager
async def worker(*arguments: str, environment: Mapping[str, str]) -> AsyncIterator[None]:
    """`python -m …`, which listens at no port, until the block ends."""
    program = Program(sys.executable, "-m", *arguments, environment={**os.environ, **environment})
    await program.start()
    try:
        yield
    finally:
        await program.stop()
