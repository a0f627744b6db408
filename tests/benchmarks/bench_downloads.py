"""Downloads beside a bare aiohttp relay, nginx and starlette + httpx: speed, cost, memory, and stalled readers.

    python -m tests.benchmarks.bench_downloads [--quick]

Application and readers share one core, the server that is measured has the other. Cost is the server's CPU time a GiB.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.benchmarks.bench_execute import Target, own_gateway
from tests.benchmarks.file_relays import nginx_settings
from tests.benchmarks.processes import Server, beside_the_server, served, server
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.processes import Program, free_port

#: MiB of the file; of the file in a quick run
FILE, QUICK_FILE = 1024, 512
READERS, STALLED = 4, 100
_BUFFER = 1 << 20
#: seconds between looks at a server's memory
_LOOK = 0.02


@dataclass(frozen=True)
class Run:
    """What it took to bring a number of files through."""

    mib_per_second: float
    #: CPU seconds of the server a GiB
    cost: float
    #: MiB that its memory grew at most
    grown: float


@dataclass(frozen=True)
class Source:
    """A server that has the file, and how to ask it; `{size}` is the file's MiB."""

    server: Server
    path: str
    headers: tuple[str, ...] = ()

    def connected(self, size: int) -> socket.socket:
        """A connection on which the file has been asked for."""
        address = urlsplit(self.server.url)
        lines = [f"GET {self.path.format(size=size)} HTTP/1.1", f"Host: {address.netloc}", *self.headers, "", ""]
        connection = socket.create_connection((address.hostname, address.port))
        connection.sendall("\r\n".join(lines).encode())
        return connection

    def read(self, size: int) -> None:
        """Take the whole file and forget it."""
        buffer = bytearray(_BUFFER)
        with self.connected(size) as connection:
            head = connection.recv(_BUFFER)
            assert b" 200 " in head.split(b"\r\n")[0], head[:500]
            left = size * (1 << 20) - len(head.partition(b"\r\n\r\n")[2])
            while left > 0:
                got = connection.recv_into(buffer)
                assert got, f"{left} bytes are missing"
                left -= got

    async def measure(self, size: int, readers: int) -> Run:
        before = self.server.memory_mib()
        peak, cpu, started = before, self.server.cpu_seconds(), time.perf_counter()
        reading = asyncio.gather(*(asyncio.to_thread(self.read, size) for _ in range(readers)))
        while not reading.done():
            await asyncio.wait([reading], timeout=_LOOK)
            peak = max(peak, self.server.memory_mib())
        await reading
        took, spent = time.perf_counter() - started, self.server.cpu_seconds() - cpu
        return Run(size * readers / took, spent / (size * readers / 1024), peak - before)


async def run(quick: bool = False) -> Report:
    """The figures of PERFORMANCE for downloads."""
    size, rounds = (QUICK_FILE, 1) if quick else (FILE, 4)
    report = Report("Downloads")
    report.notes.append(
        f"a file of {size} MiB; CPU time is that of the server process, of the round with the median ratio of {rounds}"
    )
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        async with contextlib.AsyncExitStack() as stack:
            sources, gateway = await _sources(stack, Path(folder), report)
            stack.enter_context(beside_the_server())
            for readers in (1, READERS):
                runs = {name: [] for name in sources}
                for _ in range(rounds):
                    for name, source in sources.items():
                        runs[name].append(await source.measure(size, readers))
                report.figures += _figures(readers, runs)
            report.figures += await _stalled(sources["gateway"], gateway, 1.0 if quick else 3.0)
    return report


async def _sources(stack: contextlib.AsyncExitStack, folder: Path, report: Report) -> tuple[dict[str, Source], Target]:
    ports, relays = [free_port() for _ in range(5)], "tests.benchmarks.file_relays"

    async def started(name: str, number: int, *upstream: str, core: int = 0) -> Server:
        port = ports[number]
        return await stack.enter_async_context(server(relays, name, str(port), *upstream, port=port, core=core))

    application = await started("application", 0, core=1)
    target = await own_gateway(stack, ports[1], application.url)
    path = target.path.replace("/execute", "/download/attachments?attachment_id={size}")
    sources = {
        "gateway": Source(target.server, path, tuple(f"{name}: {value}" for name, value in target.headers.items())),
        "relay": Source(await started("aiohttp", 2, application.url), "/files/{size}"),
        "starlette": Source(await started("starlette", 3, application.url), "/files/{size}"),
    }
    if shutil.which("nginx"):
        nginx = await stack.enter_async_context(_nginx(folder, ports[4], application.url))
        sources["nginx"] = Source(nginx, "/files/{size}")
    else:
        report.notes.append("nginx is not installed: its figures are left out")
    return sources, target


@asynccontextmanager
async def _nginx(folder: Path, port: int, upstream: str) -> AsyncIterator[Server]:
    settings = nginx_settings(folder, port, upstream)
    command = ("nginx", "-e", "stderr", "-c", str(settings), "-p", str(folder))
    async with served(Program(*command, environment=os.environ), port) as nginx:
        yield nginx


def _cost(run: Run) -> float:
    return run.cost


def _figures(readers: int, runs: dict[str, list[Run]]) -> list[Figure]:
    # With several readers the bare relay itself stays below 1.8 of starlette, so that target is for one.
    bounds = {"relay": 0.9, "nginx": 0.65, "starlette": 1.8 if readers == 1 else None}
    pairs = {name: paired(runs["gateway"], runs[name], _cost) for name in bounds if name in runs}
    # CPU time is compared, as it does not depend on what else the machine does; the speed is beside it.
    figures = [
        Figure(f"×{readers}: MiB a CPU second beside {name}", 1024 / ours.cost, 1024 / theirs.cost, "MiB",
               at_least=bounds[name])
        for name, (ours, theirs) in pairs.items()
    ]  # fmt: skip
    figures += [
        Figure(f"×{readers}: speed beside {name}", ours.mib_per_second, theirs.mib_per_second, "MiB/s")
        for name, (ours, theirs) in pairs.items()
    ]
    most = max(run.grown for run in runs["gateway"])
    return [*figures, Figure(f"×{readers}: memory grown at most (baseline: 32 MiB)", most, 32, "MiB", at_most=1)]


async def _stalled(source: Source, execute: Target, seconds: float) -> list[Figure]:
    """What readers hold that stopped reading, and what it does to everybody else."""
    idle = await execute.load(SMALL, 8, seconds)
    before = source.server.memory_mib()
    readers = [await asyncio.to_thread(source.connected, FILE) for _ in range(STALLED)]
    await asyncio.sleep(seconds)
    busy = await execute.load(SMALL, 8, seconds)
    held = source.server.memory_mib() - before
    for reader in readers:
        reader.close()
    return [
        Figure(f"{STALLED} stalled readers: memory (baseline: 160 MiB)", held, 160, "MiB", at_most=1),
        Figure(f"{STALLED} stalled readers: p99 of execute, beside idle", busy.p99_ms, idle.p99_ms, "ms", at_most=3),
    ]


if __name__ == "__main__":
    measured_alone(run, __doc__)
