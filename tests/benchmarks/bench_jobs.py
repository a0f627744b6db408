"""Jobs, compared with procrastinate, which stores them in PostgreSQL too: acceptance, execution, latency.

    python -m tests.benchmarks.bench_jobs [--quick]

One worker process each, one after the other, on the same server, which flushes its log to disk.
"""

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import procrastinate

from gateway.access.identity.store import IdentityStore
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import new_key
from gateway.jobs.model import NewJob
from gateway.run.services import Services, open_worker
from gateway.settings import Settings
from tests.benchmarks.job_queues import baseline
from tests.benchmarks.processes import worker
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.waiting import eventually

_QUEUES = "tests.benchmarks.job_queues"
#: callers at a time
CALLERS = 32
#: seconds that the issue allows
STARTED_P50, STARTED_P99, TOLD_P50 = 0.010, 0.050, 0.010
OTHERS_A_SECOND, OTHERS_P99 = 100, 1.0
_FLOOD = """
    INSERT INTO jobs (id, organization_id, connector_id, task)
    SELECT gen_random_uuid(), $1, $2, 'a_second' FROM generate_series(1, $3::integer)
"""
_RUNNING = "SELECT count(*) FROM jobs WHERE status = 'running'"
_OTHERS_RUN = "SELECT NOT EXISTS (SELECT FROM jobs WHERE task = 'no_op' AND started_at IS NULL)"
_OTHERS_STARTED = "SELECT extract(epoch FROM started_at - created_at)::float8 FROM jobs WHERE task = 'no_op'"
_LEFT = "SELECT count(*) FROM jobs WHERE status NOT IN ('succeeded')"
_STARTED = "SELECT extract(epoch FROM started_at - created_at)::float8 FROM jobs"
_THEIRS_LEFT = "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'"
_THEIRS_STARTED = """
    SELECT extract(epoch FROM started.at - deferred.at)::float8
    FROM procrastinate_events AS started JOIN procrastinate_events AS deferred USING (job_id)
    WHERE started.type = 'started' AND deferred.type = 'deferred'
"""


@dataclass(frozen=True)
class Bench:
    """Both queues on their databases."""

    services: Services
    organization_id: UUID
    theirs: procrastinate.App
    our_database: asyncpg.Connection
    their_database: asyncpg.Connection
    environment: dict[str, str]

    async def accept(self, task: str) -> UUID:
        """As the front end does it: stored, then notified of."""
        new = NewJob(id=uuid4(), organization_id=self.organization_id, task=task, params={"a": 1})
        job = (await self.services.jobs.store.accept(new)).job
        await self.services.jobs.wakeup.notify(job.id, job.attempt)
        return job.id

    async def defer(self, task: str) -> None:
        await self.theirs.configure_task(task).defer_async()

    async def clear(self) -> None:
        await self.our_database.execute("TRUNCATE jobs CASCADE")
        await self.their_database.execute("TRUNCATE procrastinate_jobs CASCADE")


async def run(quick: bool) -> Report:
    """All figures."""
    jobs, singles = (500, 50) if quick else (4000, 200)
    report = Report("Jobs: one worker process, callers in another, PostgreSQL flushing to disk")
    async with bench() as opened:
        for task, what in (("no_op", "nothing"), ("some_work", "5 ms")):
            report.figures += await _worked_off(opened, task, what, jobs)
        report.figures += await _waited(opened, singles, report.notes)
        report.figures += await _fair(opened, *((2000, 200) if quick else (10_000, 1000)))
    return report


async def _worked_off(bench: Bench, task: str, what: str, jobs: int) -> list[Figure]:
    """Accepted without a worker, then worked off by one."""
    accepted = await _rate(lambda: bench.accept(task), jobs)
    async with worker(_QUEUES, "gateway", environment=bench.environment):
        ours = await _drained(bench.our_database, _LEFT, jobs)
    deferred = await _rate(lambda: bench.defer(task), jobs)
    async with worker(_QUEUES, "procrastinate", environment=bench.environment):
        theirs = await _drained(bench.their_database, _THEIRS_LEFT, jobs)
    await bench.clear()
    return [
        Figure(f"accepted, {CALLERS} callers ({what})", accepted, deferred, "jobs/s", at_least=1.5),
        Figure(f"worked off, {what} each", ours, theirs, "jobs/s", at_least=1.5),
    ]


async def _waited(bench: Bench, jobs: int, notes: list[str]) -> list[Figure]:
    """One job after the other on an idle machine: until it starts, and until its caller knows its end."""
    told = []
    async with worker(_QUEUES, "gateway", environment=bench.environment):
        await bench.services.jobs.waiters.done(bench.organization_id, await bench.accept("no_op"), 10)
        await bench.clear()
        for _ in range(jobs):
            job_id = await bench.accept("no_op")
            job = await bench.services.jobs.waiters.done(bench.organization_id, job_id, 10)
            told.append((datetime.now(UTC) - job.finished_at).total_seconds())
            await asyncio.sleep(0.01)
    started = [row[0] for row in await bench.our_database.fetch(_STARTED)]
    async with worker(_QUEUES, "procrastinate", environment=bench.environment):
        await bench.defer("no_op")
        await _drained(bench.their_database, _THEIRS_LEFT, 1)
        await bench.clear()
        for _ in range(jobs):
            await bench.defer("no_op")
            await asyncio.sleep(0.02)
    theirs = [row[0] for row in await bench.their_database.fetch(_THEIRS_STARTED)]
    await bench.clear()
    notes.append(
        f"procrastinate: accepted → started p50 {1000 * _p(theirs, 50):.1f} ms, p99 {1000 * _p(theirs, 99):.1f} ms"
    )
    return [
        _bounded("accepted → started, p50", _p(started, 50), STARTED_P50),
        _bounded("accepted → started, p99", _p(started, 99), STARTED_P99),
        _bounded("finished → waiting caller, p50", _p(told, 50), TOLD_P50),
    ]


async def _fair(bench: Bench, flood: int, others: int) -> list[Figure]:
    """A flood of one connector's jobs that take a second each, and then one job of each of many other connectors."""
    await bench.our_database.execute(_FLOOD, bench.organization_id, uuid4(), flood)
    async with worker(_QUEUES, "gateway", environment=bench.environment):
        await eventually(lambda: bench.our_database.fetchval(_RUNNING))
        for _ in range(others):
            new = NewJob(id=uuid4(), organization_id=bench.organization_id, connector_id=uuid4(), task="no_op")
            job = (await bench.services.jobs.store.accept(new)).job
            await bench.services.jobs.wakeup.notify(job.id, job.attempt)
            await asyncio.sleep(1 / OTHERS_A_SECOND)
        await eventually(lambda: bench.our_database.fetchval(_OTHERS_RUN))
    started = [row[0] for row in await bench.our_database.fetch(_OTHERS_STARTED)]
    await bench.clear()
    name = f"{flood:,} jobs of one connector queued: start of {others:,} others, p99"
    return [_bounded(name, _p(started, 99), OTHERS_P99)]


def _bounded(name: str, seconds: float, bound: float) -> Figure:
    return Figure(f"{name} (beside its bound)", seconds * 1000, bound * 1000, "ms", at_most=1)


def _p(values: Iterable[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def _rate(call: Callable[[], Awaitable[object]], times: int) -> float:
    """Calls a second, by so many callers at a time."""
    numbers = iter(range(times))

    async def caller() -> None:
        for _ in numbers:
            await call()

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return times / (time.perf_counter() - started)


async def _drained(connection: asyncpg.Connection, left: str, jobs: int) -> float:
    """Jobs a second from the first that ended to the last."""
    while await connection.fetchval(left) == jobs:  # noqa: ASYNC110  another process works
        await asyncio.sleep(0.005)
    begun, before = time.perf_counter(), await connection.fetchval(left)
    while await connection.fetchval(left):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return before / (time.perf_counter() - begun)


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """Stores of our own, both queues' tables, and what callers need."""
    directory = Path(tempfile.mkdtemp(prefix="gwb-"))
    postgres, redis = EmbeddedPostgres(directory / "p"), EmbeddedRedis(directory / "r")
    try:
        url, redis_url = postgres.start(), redis.start()
        environment = {
            "GATEWAY_DATABASE_URL": url,
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_ENCRYPTION_KEYS": new_key(),
            "GATEWAY_DATA_DIR": str(directory / "data"),
            "GATEWAY_LOG_LEVEL": "error",
            "BASELINE_URL": url.replace("/gateway?", "/theirs?"),
        }
        os.environ.update(environment)
        async with _opened(environment) as opened:
            yield opened
    finally:
        redis.stop()
        postgres.stop()
        shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def _opened(environment: dict[str, str]) -> AsyncIterator[Bench]:
    url = environment["GATEWAY_DATABASE_URL"]
    await migrate(url)
    async with Database.open(url, size=1) as database:
        organization = await IdentityStore(database).create_organization("bench")
    ours = await asyncpg.connect(url)
    await ours.execute("CREATE DATABASE theirs")
    theirs = await asyncpg.connect(environment["BASELINE_URL"])
    app = baseline(environment["BASELINE_URL"])
    async with app.open_async(), open_worker(Settings()) as services:
        await app.schema_manager.apply_schema_async()
        yield Bench(services, organization.id, app, ours, theirs, environment)
    await theirs.close()
    await ours.close()


if __name__ == "__main__":
    measured_alone(run, __doc__)
