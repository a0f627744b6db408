"""The metrics of a process and the shared statistics for Prometheus; also served on `GATEWAY_METRICS_BIND`."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.errors import Unavailable
from gateway.foundation.aio.remembered import Remembered
from gateway.foundation.db.pool import Database
from gateway.foundation.telemetry.metrics import REGISTRY
from gateway.kinds.catalog import Catalog
from gateway.run.monitoring.statistics import Statistics, read_statistics

#: seconds for which the statistics from PostgreSQL are cached
_FRESH = 10.0
#: seconds that a scrape waits for PostgreSQL
_TIMEOUT = 2.0
#: seconds for which every scrape gets the same text, because scrapes need no token
_REMEMBERED = 1.0


class PrometheusExporter(Collector):
    """The metrics of this process, and statistics of all processes."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self._database = database
        self._catalog = catalog
        self._statistics: Statistics | None = None
        self._read_at = float("-inf")
        #: the exposition format; without the shared statistics while PostgreSQL is unavailable
        self.text = Remembered(self._text, _REMEMBERED)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    async def _text(self) -> bytes:
        if time.monotonic() - self._read_at > _FRESH:
            self._read_at, self._statistics = time.monotonic(), None
            with contextlib.suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(_TIMEOUT):
                    self._statistics = await read_statistics(self._database)
        return generate_latest(REGISTRY) + generate_latest(self._registry)

    async def response(self) -> web.Response:
        """The response to a scrape."""
        return web.Response(body=await self.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def collect(self) -> Iterator[Metric]:
        yield _pool(self._database)
        if self._database.replica is not None and (lag := self._database.replica.lag) is not None:
            yield GaugeMetricFamily("gateway_replica_lag_seconds", "How far the replica is behind.", value=lag)
        if self._statistics is not None:
            yield from _shared(self._statistics, self._catalog)


@asynccontextmanager
async def exposed(bind: str | None, database: Database, catalog: Catalog) -> AsyncIterator[None]:
    """Serve `/metrics` and `/healthz` on `bind` within the block, if it is set. Raises OSError if it is in use."""
    if not bind:
        yield
        return
    exporter = PrometheusExporter(database, catalog)

    async def scrape(request: web.Request) -> web.Response:
        return await exporter.response()

    async def alive(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application()
    app.router.add_get("/metrics", scrape)
    app.router.add_get("/healthz", alive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        host, _, port = bind.rpartition(":")
        await web.TCPSite(runner, host.strip("[]") or "127.0.0.1", int(port)).start()
        yield
    finally:
        await runner.cleanup()


def _pool(database: Database) -> Metric:
    use = GaugeMetricFamily("gateway_database_connections", "Connections to PostgreSQL.", labels=["state"])
    for state, connections in database.use.items():
        use.add_metric([state], connections)
    return use


def _shared(statistics: Statistics, catalog: Catalog) -> Iterator[Metric]:
    """The statistics from PostgreSQL. Every process exports the same: take the maximum over processes, not the sum."""
    jobs = GaugeMetricFamily("gateway_jobs", "Jobs that have not ended, by state.", labels=["status"])
    oldest = GaugeMetricFamily("gateway_jobs_oldest_seconds", "Age of the oldest job in a state.", labels=["status"])
    for status, each in statistics.jobs.items():
        jobs.add_metric([status], each.jobs)
        oldest.add_metric([status], each.oldest)
    workers = GaugeMetricFamily("gateway_workers", "Workers with a recent heartbeat.")
    workers.add_metric([], sum(worker.is_alive for worker in statistics.workers))
    connectors = GaugeMetricFamily("gateway_connectors", "Connectors by status.", labels=["kind", "status"])
    for (kind, status), count in statistics.connectors_by_status(catalog.kinds).items():
        connectors.add_metric([kind, status], count)
    copied = ["kind", "entity"]
    lag = GaugeMetricFamily("gateway_sync_lag_seconds", "Age of the oldest copy of an entity.", labels=copied)
    failed = GaugeMetricFamily("gateway_sync_failed", "Copies whose last synchronization failed.", labels=copied)
    incomplete = GaugeMetricFamily("gateway_sync_incomplete", "Copies that lack records.", labels=copied)
    held = GaugeMetricFamily(
        "gateway_sync_held_deletions", "Records of large deletions that wait to be confirmed.", labels=copied
    )
    for copy in statistics.synchronization:
        lag.add_metric([copy.kind, copy.entity], copy.lag)
        failed.add_metric([copy.kind, copy.entity], copy.failed)
        incomplete.add_metric([copy.kind, copy.entity], copy.incomplete)
        held.add_metric([copy.kind, copy.entity], copy.held_deletions)
    yield from (jobs, oldest, workers, connectors, lag, failed, incomplete, held)
