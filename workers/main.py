"""A worker process: claims jobs from PostgreSQL when Redis wakes it, and takes part in the maintenance."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Iterable
from math import ceil

from gateway.aio.deadline import Deadline
from gateway.aio.loops import every, running
from gateway.aio.memory import tune_gc, tune_malloc
from gateway.errors import Unavailable
from gateway.events.deliverer import RENEWAL
from gateway.jobs.claims import Claims
from gateway.jobs.maintenance import INTERVAL
from gateway.jobs.tasks import TASKS, Task
from gateway.jobs.wakeup import NotifiedWorker
from gateway.kinds.catalog import Catalog
from gateway.monitoring.prometheus import exposed
from gateway.services.pruning import prunings
from gateway.services.stores import announce_restart
from gateway.services.worker import CLOSING, WorkerServices, open_worker
from gateway.settings import Settings
from gateway.telemetry.tracing import configure_tracing
from workers.fetcher import Fetcher, Slots

log = logging.getLogger(__name__)


def concurrency_of(catalog: Catalog) -> dict[str, int]:
    """Maximum concurrent jobs of one connector, by kind, for applications that publish a concurrency limit.

    It is 1.5 times that limit: the jobs above it wait for a permit, so that the limit stays used while the worker
    claims jobs and stores outcomes.
    """
    limits = {kind.name: kind.spec.rate_limit for kind in catalog}
    return {name: ceil(limit.concurrent * 1.5) for name, limit in limits.items() if limit and limit.concurrent}


async def work(settings: Settings) -> None:
    """Run jobs until SIGTERM or SIGINT, then finish running jobs within `shutdown_grace` and requeue the others."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    if settings.tracing:
        configure_tracing("gateway-worker")
    async with open_worker(settings) as services, exposed(settings.metrics_bind, services.database, services.catalog):
        await Worker(services).until(stopping)


class Worker:
    """A worker: claims and runs jobs of `tasks` only, and takes part in the maintenance."""

    def __init__(self, services: WorkerServices, tasks: Iterable[Task] = tuple(TASKS.values())) -> None:
        self._services = services
        slots = Slots.of(services.settings.worker_jobs)
        work = {task.name: task.run(services) for task in tasks}
        claims = Claims(services.database, services.sealing, work)
        self._fetcher = Fetcher(claims, services.runner, work, slots, concurrency_of(services.catalog))
        services.notifications.subscribe(
            {"events": services.deliverer.on_event, "webhook": services.deliverer.on_webhook}, services.deliverer.forget
        )
        self._wakeup = NotifiedWorker(self._fetcher.wake, services.settings.redis_url)

    async def until(self, stopping: asyncio.Event) -> None:
        """Run until `stopping` is set, then stop gracefully."""
        services = self._services
        synchronization = services.synchronization
        async with running(
            self._wakeup.main(),
            every(0, self._fetcher.fetch, name="fetcher"),
            every(INTERVAL, self._maintain, name="maintenance"),
            every(0.25, self._follow_notices, name="entities and records of notices"),
            every(1, synchronization.enqueue_due, name="due synchronizations"),
            every(1, services.due_runs.start, name="due schedules"),
            every(60, synchronization.backfill, name="synchronization backfill"),
            every(60, services.deletion.resume, name="unfinished deletions"),
            every(0, services.deliverer.deliver, name="webhook deliveries"),
            every(RENEWAL, services.deliverer.renew, name="webhook leases"),
            *(every(seconds, prune, name=name) for name, seconds, prune in prunings(services)),
        ):
            tune_gc()
            tune_malloc()
            log.info("worker is ready", extra={"worker": services.runner.worker})
            await announce_restart(services)
            await stopping.wait()
            deadline = Deadline(services.settings.shutdown_grace)
            log.info("worker stops", extra={"running": len(services.runner.jobs)})
            self._fetcher.close()
        await announce_restart(services)
        await self._wakeup.close_quietly()
        await self._drain(deadline)

    async def _drain(self, deadline: Deadline) -> None:
        services = self._services
        await services.deliverer.close()
        await self._fetcher.drained()
        for job in await services.runner.drain(deadline.left(reserve=CLOSING)):
            await services.wakeup.notify(job.id, job.attempt)
        with contextlib.suppress(Unavailable):
            await services.maintenance.deregister(services.runner.worker)

    async def _maintain(self) -> None:
        await self._services.maintenance.heartbeat(self._services.runner.worker)
        if await self._services.maintenance.reap():
            self._fetcher.wake()

    async def _follow_notices(self) -> None:
        """Start the synchronizations that notices request now, instead of with the next poll."""
        if await self._services.inbound_webhooks.bring_forward():
            await self._services.synchronization.enqueue_due()
            self._fetcher.wake_for_all()
