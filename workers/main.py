"""A worker process: arq's loop woken by the bell, jobs claimed from PostgreSQL, upkeep beside it."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable

from gateway.aio.background import ended
from gateway.aio.gc_tuning import shorten_pauses
from gateway.errors import Unavailable
from gateway.jobs.maintenance import INTERVAL
from gateway.jobs.wakeup import BellWorker
from gateway.services import Services, open_services
from gateway.settings import Settings
from gateway.telemetry.prometheus import exposed
from gateway.telemetry.tracing import configure_tracing
from workers import delete_connector, synchronize
from workers.fetcher import Intake

log = logging.getLogger(__name__)

#: seconds between looks for jobs that no bell was heard for, and between prunings
_POLL, _PRUNE_INTERVAL, _PRUNE_FILES_INTERVAL = 1.0, 60.0, 300.0
#: seconds between looks for entities whose turn to be synchronized has come, and for connectors without copies
_TURNS_INTERVAL, _TAKE_UP_INTERVAL = 1.0, 60.0


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
    """One worker: its slots, its bell and its share of the upkeep."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._intake = Intake(services.leases, services.runner, services.settings.worker_jobs)
        self._bell = BellWorker(self._intake.take, services.settings.redis_url)

    async def until(self, stopping: asyncio.Event) -> None:
        duties = [
            asyncio.create_task(duty, name=name)
            for name, duty in (
                ("bell", self._bell.main()),
                ("poll", self._every(_POLL, self._poll)),
                ("sweep", self._every(INTERVAL, self._sweep)),
                ("call turns", self._every(_TURNS_INTERVAL, self._services.synchronization.call_turns)),
                ("take up", self._every(_TAKE_UP_INTERVAL, self._services.synchronization.take_up)),
                ("prune", self._every(_PRUNE_INTERVAL, self._services.upkeep.prune)),
                ("prune files", self._every(_PRUNE_FILES_INTERVAL, self._services.files.prune)),
            )
        ]
        shorten_pauses()
        log.info("worker is ready", extra={"worker": self._services.runner.worker})
        await stopping.wait()
        log.info("worker stops", extra={"running": self._services.runner.held})
        self._intake.close()
        await ended(*duties)
        await self._bell.close_quietly()
        await self._drain()

    async def _drain(self) -> None:
        services = self._services
        await self._intake.settled()
        for job in await services.runner.drain(services.settings.shutdown_grace):
            await services.bell.ring(job.id, job.attempt)
        with contextlib.suppress(Unavailable):
            await services.upkeep.leave(services.runner.worker)

    async def _poll(self) -> None:
        """Rings may be lost; jobs are not."""
        await self._intake.take()
        await self._intake.take_suspect()

    async def _sweep(self) -> None:
        services = self._services
        await services.upkeep.sign_of_life(services.runner.worker)
        if await services.upkeep.sweep():
            await self._intake.take()

    async def _every(self, seconds: float, duty: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await duty()
            except Unavailable:
                log.warning("PostgreSQL is away; trying again", extra={"seconds": seconds})
            except Exception:
                log.exception("upkeep failed by a bug; going on")
            await asyncio.sleep(seconds)
