"""Growth: latency and throughput with more front ends, more workers and more records.

    python -m tests.benchmarks.bench_growth [--quick]

The baseline of each figure is the smallest size of the same run.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import asyncpg

from gateway.access.identity.store import IdentityStore
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.pool import Database
from gateway.jobs.claims import Claims, Shares
from tests.benchmarks import bench_search
from tests.benchmarks.bench_execute import CONNECTIONS, WARM, Target, front_end, opened_stores
from tests.benchmarks.bench_jobs import _LEFT, _drained, _rate, bench
from tests.benchmarks.plots import Plot
from tests.benchmarks.processes import application, cpu_of_children, worker
from tests.benchmarks.relays import SMALL
from tests.benchmarks.report import Figure, Report, measured_alone, paired
from tests.harness.processes import free_port
from tests.jobs.conftest import UNSEALED


async def run(quick: bool = False) -> Report:
    """All kinds of growth."""
    report = Report("Growth")
    await _front_ends(report, (1, 2, 4), *((1.0, 1) if quick else (2.0, 3)))
    await _workers(report, (1, 2) if quick else (1, 2, 4), 500 if quick else 4000)
    await _records(report, (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000), 100 if quick else 300)
    await _claims(report, (10_000, 100_000) if quick else (100_000, 1_000_000, 10_000_000), 40 if quick else 200)
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


#: ended jobs of many connectors over three months, as the table has them until they are pruned
_ENDED_JOBS = """
    INSERT INTO jobs (id, organization_id, connector_id, kind, entity, action, status, created_at, started_at,
                      finished_at, expires_at)
    SELECT gen_random_uuid(), $1, md5((number % 1000)::text)::uuid, 'support-desk', 'tickets', 'list',
           CASE WHEN number % 50 = 0 THEN 'failed' ELSE 'succeeded' END, at, at, at, at + interval '90 days'
    FROM (
        SELECT number, now() - number * interval '90 days' / $3 AS at FROM generate_series($2 + 1, $3) AS number
    ) AS job
"""
_QUEUED_JOBS = """
    INSERT INTO jobs (id, organization_id, connector_id, kind, entity, action)
    SELECT gen_random_uuid(), $1, md5((number % 20)::text)::uuid, 'support-desk', 'tickets', 'list'
    FROM generate_series(1, 400) AS number
"""
_BLOCKS = """
    SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit
    FROM pg_statio_user_tables WHERE relname = 'jobs'
"""


async def _claims(report: Report, sizes: Sequence[int], times: int) -> None:
    """The same claims beside ever more ended jobs: time, and blocks of the table and its indexes."""
    points: list[tuple[float, float]] = []
    blocks: list[float] = []
    with tempfile.TemporaryDirectory(prefix="gw-") as folder:
        postgres = EmbeddedPostgres(Path(folder) / "postgres", durable=False)
        url = postgres.start()
        try:
            await migrate(url)
            async with Database.open(url, size=2) as database:
                organization = await IdentityStore(database).create_organization("bench")
                connection = await asyncpg.connect(url)
                # Its blocks would be counted too.
                await connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
                for former, size in zip((0, *sizes), sizes, strict=False):
                    await connection.execute(_ENDED_JOBS, organization.id, former, size, timeout=3600)
                    await connection.execute("VACUUM ANALYZE jobs", timeout=3600)
                    took, read = await _claimed(database, connection, organization.id, times)
                    points.append((float(size), took * 1e3))
                    blocks.append(read)
                await connection.close()
        finally:
            postgres.stop()
    name = f"{sizes[-1]:,} ended jobs: claims of 5 jobs, beside {sizes[0]:,}"
    report.figures += [
        Figure(f"{name}, p50", points[-1][1], points[0][1], "ms", at_most=1.1),
        Figure(f"{name}, blocks of a claim", blocks[-1], blocks[0], "blocks", at_most=1.1),
    ]
    report.plots.append(
        Plot("claims", "Claims with more ended jobs", "ended jobs", "p50 ms", {"claims": points}, is_logarithmic=True)
    )


async def _claimed(
    database: Database, connection: asyncpg.Connection, organization_id: UUID, times: int
) -> tuple[float, float]:
    """The median seconds and the mean blocks of a claim among 400 queued jobs of 20 connectors."""
    claims, shares = Claims(database, UNSEALED), Shares(organization=1000, connector=1000)
    await connection.execute(_QUEUED_JOBS, organization_id)
    seconds, before = [], await _blocks(connection)
    for _ in range(times):
        began = time.perf_counter()
        claimed = await claims.claim("worker", 5, shares)
        seconds.append(time.perf_counter() - began)
        if len(claimed) < 5:
            raise RuntimeError("a claim found too few jobs")
        ids = [job.id for job in claimed]
        await connection.execute("UPDATE jobs SET status = 'queued' WHERE id = ANY ($1)", ids)
    blocks = await _blocks(connection) - before
    await connection.execute("DELETE FROM jobs WHERE status = 'queued'")
    return statistics.median(seconds), blocks / times


async def _blocks(connection: asyncpg.Connection) -> float:
    """Blocks of the table and its indexes that statements have read so far; statistics arrive after a second."""
    await connection.execute("SELECT pg_stat_force_next_flush()")
    await asyncio.sleep(1.5)
    return float(await connection.fetchval(_BLOCKS))


if __name__ == "__main__":
    measured_alone(run, __doc__)
