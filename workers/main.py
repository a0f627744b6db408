"""A worker process: arq's loop, woken by notifications, jobs claimed from PostgreSQL, maintenance beside it."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable

from gateway.aio.background import cancel_and_wait
from gateway.aio.gc_tuning import tune_gc
from gateway.errors import Unavailable
from gateway.jobs.maintenance import INTERVAL
from gateway.jobs.wakeup import NotifiedWorker
from gateway.services import Services, open_services
from gateway.settings import Settings
from gateway.telemetry.prometheus import exposed
from gateway.telemetry.tracing import configure_tracing
from workers import delete_connector, synchronize
from workers.fetcher import Fetcher

log = logging.getLogger(__name__)

#: seconds between looks for jobs that no notification came for, and between prunings
_POLL, _PRUNE_INTERVAL, _PRUNE_FILES_INTERVAL = 1.0, 60.0, 300.0
#: seconds between looks for entities whose turn to be synchronized has come, and for connectors without copies
_DUE_INTERVAL, _BACKFILL_INTERVAL = 1.0, 60.0


async def work(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT, then let running jobs finish within the grace and hand back the rest."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    if settings.tracing:
        configure_tracing("gateway-worker")
    async with open_services(settings) as services, exposed(settings.metrics_bind, services.database):
        services.tasks.update({**delete_connector.tasks(services), **synchronize.tasks(services)})
        worker = Worker(services)
        await worker.until(stopping)


class Worker:
    """One worker: its slots, its wake-ups and its share of the maintenance."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._fetcher = Fetcher(services.leases, services.runner, services.settings.worker_jobs)
        self._wakeup = NotifiedWorker(self._fetcher.take, services.settings.redis_url)

    async def until(self, stopping: asyncio.Event) -> None:
        duties = [
            asyncio.create_task(duty, name=name)
            for name, duty in (
                ("wakeup", self._wakeup.main()),
                ("poll", self._every(_POLL, self._poll)),
                ("sweep", self._every(INTERVAL, self._sweep)),
                ("enqueue due", self._every(_DUE_INTERVAL, self._services.synchronization.enqueue_due)),
                ("backfill", self._every(_BACKFILL_INTERVAL, self._services.synchronization.backfill)),
                ("prune", self._every(_PRUNE_INTERVAL, self._services.maintenance.prune)),
                ("prune files", self._every(_PRUNE_FILES_INTERVAL, self._services.files.prune)),
            )
        ]
        tune_gc()
        log.info("worker is ready", extra={"worker": self._services.runner.worker})
        await stopping.wait()
        log.info("worker stops", extra={"running": self._services.runner.held})
        self._fetcher.close()
        await cancel_and_wait(*duties)
        await self._wakeup.close_quietly()
        await self._drain()

    async def _drain(self) -> None:
        services = self._services
        await self._fetcher.settled()
        for job in await services.runner.drain(services.settings.shutdown_grace):
            await services.wakeup.notify(job.id, job.attempt)
        with contextlib.suppress(Unavailable):
            await services.maintenance.deregister(services.runner.worker)

    async def _poll(self) -> None:
        """Rings may be lost; jobs are not."""
        await self._fetcher.take()
        await self._fetcher.take_suspect()

    async def _sweep(self) -> None:
        services = self._services
        await services.maintenance.heartbeat(services.runner.worker)
        if await services.maintenance.sweep():
            await self._fetcher.take()

    async def _every(self, seconds: float, duty: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await duty()
            except Unavailable:
                log.warning("PostgreSQL is away; trying again", extra={"seconds": seconds})
            except Exception:
                log.exception("maintenance failed by a bug; going on")
            await asyncio.sleep(seconds)
