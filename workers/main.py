"""A worker process: arq's loop woken by the bell, jobs claimed from PostgreSQL, upkeep beside it."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable

from gateway.errors import Unavailable
from gateway.jobs.bell import BellWorker
from gateway.jobs.upkeep import INTERVAL
from gateway.services import Services, open_services
from gateway.settings import Settings
from workers import deletion

log = logging.getLogger(__name__)

#: seconds between looks at PostgreSQL while no bell is heard, and between prunings
_POLL, _PRUNE_INTERVAL, _PRUNE_FILES_INTERVAL = 0.5, 60.0, 300.0


async def work(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT, then let running jobs finish within the grace and hand back the rest."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    async with open_services(settings) as services:
        services.tasks.update(deletion.tasks(services))
        worker = Worker(services)
        await worker.until(stopping)


class Worker:
    """One worker: its slots, its bell and its share of the upkeep."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._slots = services.settings.worker_jobs
        self._bell = BellWorker(self._take_one, services.settings.redis_url, self._slots)

    async def until(self, stopping: asyncio.Event) -> None:
        duties = [
            asyncio.create_task(duty, name=name)
            for name, duty in (
                ("bell", self._bell.main()),
                ("sweep", self._every(INTERVAL, self._sweep)),
                ("poll", self._every(_POLL, self._poll)),
                ("prune", self._every(_PRUNE_INTERVAL, self._services.upkeep.prune)),
                ("prune files", self._every(_PRUNE_FILES_INTERVAL, self._services.files.prune)),
            )
        ]
        log.info("worker is ready", extra={"worker": self._services.runner.worker})
        await stopping.wait()
        log.info("worker stops", extra={"running": self._services.runner.held})
        self._bell.stop_picking()
        for duty in duties[1:]:
            duty.cancel()
        await self._drain()
        duties[0].cancel()
        for duty in duties:
            with contextlib.suppress(asyncio.CancelledError):
                await duty
        await self._bell.close_quietly()

    async def _drain(self) -> None:
        handed_back = await self._services.runner.drain(self._services.settings.shutdown_grace)
        for job_id, attempt in handed_back:
            await self._services.bell.ring(job_id, attempt)

    async def _take_one(self) -> None:
        """One slot, one job: whichever is due."""
        try:
            claimed = await self._services.jobs.claim(self._services.runner.worker)
        except Unavailable:
            return
        for job in claimed:
            await self._services.runner.run(job)

    async def _poll(self) -> None:
        """With no bell to be heard the worker looks for itself."""
        free = self._slots - self._services.runner.held
        if self._bell.is_listening or free <= 0:
            return
        for job in await self._services.jobs.claim(self._services.runner.worker, free):
            self._services.runner.start(job)

    async def _sweep(self) -> None:
        upkeep = self._services.upkeep
        await upkeep.sign_of_life(self._services.runner.worker)
        for due in await upkeep.sweep():
            if not await self._services.bell.ring(due.id, due.ring):
                return

    async def _every(self, seconds: float, duty: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await duty()
            except Unavailable:
                log.warning("PostgreSQL is away; trying again", extra={"seconds": seconds})
            except Exception:
                log.exception("upkeep failed by a bug; going on")
            await asyncio.sleep(seconds)
