"""Growth: what becomes of latency and throughput with more connectors, more workers and more records.

    python -m tests.benchmarks.bench_growth [--quick]

The baseline of each figure is the smallest size of the same run.
"""

import asyncio
import contextlib
import json
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import aiohttp
import asyncpg

from gateway.db.migrate import migrate
from gateway.embedded.postgres import EmbeddedPostgres
from tests.benchmarks import bench_search
from tests.benchmarks.bench_execute import CONNECTIONS, CREDENTIALS, Target, _gateway, _posted
from tests.benchmarks.bench_jobs import _LEFT, _drained, _rate, bench, worker
from tests.benchmarks.plots import Plot
from tests.benchmarks.processes import free_port, server
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone

_CONNECTORS = "/api/v1/integrations/connectors"


async def run(quick: bool = False) -> Report:
    """All three kinds of growth."""
    report = Report("Growth")
    await _connectors(report, (10, 1000) if quick else (10, 100, 1_000, 10_000), 2.0 if quick else 4.0)
    await _workers(report, (1, 2) if quick else (1, 2, 4), 500 if quick else 4000)
    await _records(report, (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000), 100 if quick else 300)
    report.notes.append("the baseline of a figure is the smallest size of the same run")
    return report


async def _connectors(report: Report, sizes: Sequence[int], seconds: float) -> None:
    """Calls of connectors at random, each of which has to be opened from time to time."""
    measured = {}
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gw-")))
        port = free_port()
        application = await stack.enter_async_context(
            server("tests.benchmarks.relays", "application", str(port), port=port, core=1)
        )
        target = await _gateway(stack, folder, free_port(), application.url)
        paths = [target.path]
        for size in sizes:
            await _create(target, paths, size)
            measured[size] = await _called(target, paths, seconds)
    first, last = measured[sizes[0]], measured[sizes[-1]]
    report.figures += [
        Figure(f"{sizes[-1]:,} connectors: p50 at {CONNECTIONS} connections", last[0], first[0], "ms", at_most=2),
        Figure(f"{sizes[-1]:,} connectors: requests/s", last[2], first[2], "req/s", at_least=0.5),
    ]
    lines = {
        "p50": [(n, each[0]) for n, each in measured.items()],
        "p99": [(n, each[1]) for n, each in measured.items()],
    }
    title = "Execute with more connectors"
    report.plots.append(Plot("connectors", title, "connectors", "ms", lines, is_logarithmic=True))


async def _create(target: Target, paths: list[str], size: int) -> None:
    """Connectors of their own credentials until there are `size` of them."""
    wanted = iter(range(len(paths), size))
    body = {"workspace_name": "w", "connector_type": "support-desk", "credentials": CREDENTIALS, "validate": False}

    async with aiohttp.ClientSession(target.server.url) as session:

        async def creator() -> None:
            for number in wanted:
                made = await _posted(session, _CONNECTORS, {**body, "name": f"c{number}"}, target.headers)
                paths.append(f"{_CONNECTORS}/{made['id']}/execute")

        await asyncio.gather(*(creator() for _ in range(16)))


async def _called(target: Target, paths: Sequence[str], seconds: float) -> tuple[float, float, float]:
    """p50 and p99 in milliseconds, and requests a second."""
    body = json.dumps({"entity": "tickets", "action": "list", "params": {"per_page": SMALL}}).encode()
    headers = {"Content-Type": "application/json", **target.headers}
    chance, latencies = random.Random(3), list[float]()
    async with aiohttp.ClientSession(target.server.url) as session:
        started = time.perf_counter()

        async def caller() -> None:
            while (began := time.perf_counter()) - started < seconds:
                async with session.post(chance.choice(paths), data=body, headers=headers) as response:
                    await response.read()
                    assert response.status == 200, response.status
                latencies.append((time.perf_counter() - began) * 1000)

        await asyncio.gather(*(caller() for _ in range(CONNECTIONS)))
    latencies.sort()
    return statistics.median(latencies), latencies[int(len(latencies) * 0.99)], len(latencies) / seconds


async def _workers(report: Report, sizes: Sequence[int], jobs: int) -> None:
    """Jobs that wait for 5 ms each, worked off by several workers of this one machine."""
    rates = []
    async with bench() as opened:
        for size in sizes:
            await _rate(lambda: opened.accept("some_work"), jobs)
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(size):
                    await stack.enter_async_context(worker("gateway", opened.environment))
                rates.append((float(size), await _drained(opened.our_database, _LEFT, jobs)))
            await opened.clear()
    report.figures.append(Figure(f"{sizes[-1]} workers: jobs of 5 ms", rates[-1][1], rates[0][1], "jobs/s"))
    report.notes.append("workers share the cores of this machine with PostgreSQL, so they cannot grow beyond these")
    report.plots.append(Plot("workers", "Jobs with more workers", "workers", "jobs/s", {"jobs of 5 ms": rates}))


async def _records(report: Report, sizes: Sequence[int], times: int) -> None:
    """The same searches of the same small connector, beside ever more records of others."""
    measured: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres", durable=False)
        url = postgres.start()
        try:
            for size in sizes:
                async for name, p50 in _searched(url, size, times):
                    measured.setdefault(name, []).append((float(size), p50))
        finally:
            postgres.stop()
    for name, points in measured.items():
        report.figures.append(
            Figure(f"{sizes[-1]:,} records: {name}, p50", points[-1][1], points[0][1], "ms", at_most=3)
        )
    title = "Search of a small connector with more records beside it"
    report.plots.append(Plot("records", title, "records of all connectors", "p50 ms", measured, is_logarithmic=True))


async def _searched(url: str, size: int, times: int) -> AsyncIterator[tuple[str, float]]:
    """Names of searches and their p50 in a database of so many records."""
    server_connection = await asyncpg.connect(url)
    name = f"records_{size}"
    await server_connection.execute(f"CREATE DATABASE {name}")
    own = url.replace("/gateway?", f"/{name}?")
    await migrate(own)
    loaded = await bench_search.load(own, size)
    for row in await bench_search.compare(own, loaded.entities[0], times, None):
        if row.name in ("eq, 1 in 5 + sort", "keyword + sort", "next page"):
            yield row.name, row.p50
    await server_connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await server_connection.close()


if __name__ == "__main__":
    measured_alone(run, __doc__)
