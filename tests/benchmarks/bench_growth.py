"""Growth: latency and throughput with more front ends, more workers and more records.

    python -m tests.benchmarks.bench_growth [--quick]

The baseline of each figure is the smallest size of the same run.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from gateway.embedded.postgres import EmbeddedPostgres
from gateway.foundation.db.migrate import migrate
from tests.benchmarks import bench_search
from tests.benchmarks.bench_execute import CONNECTIONS, WARM, Target, front_end, opened_stores
from tests.benchmarks.bench_jobs import _LEFT, _drained, _rate, bench
from tests.benchmarks.plots import Plot
from tests.benchmarks.processes import application, cpu_of_children, worker
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.processes import free_port


async def run(quick: bool = False) -> Report:
    """All three kinds of growth."""
    report = Report("Growth")
    await _front_ends(report, (1, 2, 4), *((1.0, 1) if quick else (2.0, 3)))
    await _workers(report, (1, 2) if quick else (1, 2, 4), 500 if quick else 4000)
    await _records(report, (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000), 100 if quick else 300)
    report.notes.append("the baseline of a figure is the smallest size of the same run")
    return report


async def _front_ends(report: Report, sizes: Sequence[int], seconds: float, rounds: int) -> None:
    """What a call costs each of several front ends and the stores they share; and what follows with cores for all."""
    costs: dict[int, list[Costs]] = {size: [] for size in sizes}
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(application(core=None))
        stores = await opened_stores(stack, upstream.url)
        targets = [await front_end(stack, stores, free_port(), core=None) for _ in range(sizes[-1])]
        for _ in range(rounds):
            for size in sizes:
                costs[size].append(await _costs(targets[:size], seconds))
    one, most = paired(costs[sizes[0]], costs[sizes[-1]], lambda each: each.front_end)
    middle = paired(costs[sizes[0]], costs[sizes[1]], lambda each: each.front_end)
    report.figures += [
        # Twice as many do 1.8 times as much where a call costs each at most a ninth more.
        Figure(f"{sizes[1]} front ends: calls in a second of processor time of each, beside one",
               1 / middle[1].front_end, 1 / middle[0].front_end, "calls", at_least=0.9),
        Figure(f"{sizes[-1]} front ends: calls in a second of processor time of each, beside one",
               1 / most.front_end, 1 / one.front_end, "calls", at_least=0.85),
        *(Figure(f"{size} front ends on cores of their own: calls/s by the model", _throughput(size, one),
                 _throughput(1, one), "/s", at_least=0.9 * size) for size in sizes[1:]),
    ]  # fmt: skip
    report.notes.append(_model(one))
    points = [(float(count), _throughput(count, one)) for count in range(1, 9)]
    plot = Plot(
        "front_ends", "Execute with more front ends, by the model", "front ends", "calls/s", {"calls/s": points}
    )
    report.plots.append(plot)


@dataclass(frozen=True)
class Costs:
    """Processor seconds of one call, at each station that it passes."""

    front_end: float
    postgres: float
    redis: float


async def _costs(targets: Sequence[Target], seconds: float) -> Costs:
    before = _spent(targets)
    loads = await asyncio.gather(*(target.load(SMALL, CONNECTIONS, seconds) for target in targets))
    calls = sum(load.requests_per_second for load in loads) * (WARM + seconds)
    spent = [after - earlier for after, earlier in zip(_spent(targets), before, strict=True)]
    return Costs(*(each / calls for each in spent))


def _spent(targets: Sequence[Target]) -> tuple[float, float, float]:
    own = sum(target.server.cpu_seconds() for target in targets)
    return own, cpu_of_children("postgres"), cpu_of_children("redis")


def _throughput(front_ends: int, costs: Costs) -> float:
    """Calls a second of so many front ends, each on a core of its own, beside one Redis and one PostgreSQL.

    A closed network of queues with 32 calls at each front end, by exact mean value analysis (Reiser and Lavenberg,
    1980): a call visits one front end, and both stores, which have a core each.
    """
    stations = [*[costs.front_end / front_ends] * front_ends, costs.postgres, costs.redis]
    queues = [0.0] * len(stations)
    rate = 0.0
    for calls in range(1, CONNECTIONS * front_ends + 1):
        times = [demand * (1 + queue) for demand, queue in zip(stations, queues, strict=True)]
        rate = calls / sum(times)
        queues = [rate * each for each in times]
    return rate


def _model(costs: Costs) -> str:
    stores = max(costs.postgres, costs.redis)
    full = f"{costs.front_end / stores:,.0f} front ends" if stores else "no number of front ends that was measured"
    return (
        f"the model: a closed queueing network, solved by mean value analysis, of measured service times: a call takes "
        f"{costs.front_end * 1e6:,.0f} µs of a front end, {costs.postgres * 1e6:,.1f} µs of PostgreSQL and "
        f"{costs.redis * 1e6:,.1f} µs of Redis; {full} would fill a core of the busier store"
    )


async def _workers(report: Report, sizes: Sequence[int], jobs: int) -> None:
    """Jobs that wait for 5 ms each, worked off by several workers of this one machine."""
    rates = []
    async with bench() as opened:
        for size in sizes:
            await _rate(lambda: opened.accept("some_work"), jobs)
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(size):
                    await stack.enter_async_context(
                        worker("tests.benchmarks.job_queues", "gateway", environment=opened.environment)
                    )
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
            yield row.name, row.search.p50
    await server_connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await server_connection.close()


if __name__ == "__main__":
    measured_alone(run, __doc__)
