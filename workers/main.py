"""A worker process: claims jobs from PostgreSQL when Redis wakes it, and takes part in the maintenance."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Mapping
from functools import partial
from math import ceil

from gateway.errors import Unavailable
from gateway.events.deliverer import RENEWAL
from gateway.foundation.aio.deadline import Deadline
from gateway.foundation.aio.loops import every, running
from gateway.foundation.aio.memory import tune_gc, tune_malloc
from gateway.foundation.aio.starting import unless_stopped
from gateway.foundation.telemetry.tracing import configure_tracing
from gateway.jobs.claims import Claims
from gateway.jobs.maintenance import INTERVAL
from gateway.jobs.run_context import Work
from gateway.jobs.wakeup import NotifiedWorker
from gateway.kinds.catalog import Catalog
from gateway.run.monitoring.prometheus import exposed
from gateway.run.pruning import prunings
from gateway.run.services import CLOSING, Services, announce_restart, open_worker
from gateway.run.work import work_of
from gateway.settings import Settings
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
    async with contextlib.AsyncExitStack() as stack:
        with unless_stopped(stopping):
            services = await stack.enter_async_context(open_worker(settings))
            await stack.enter_async_context(exposed(settings.metrics_bind, services.database, services.catalog))
        if not stopping.is_set():
            await Worker(services).until(stopping)


class Worker:
    """A worker: claims and runs the jobs of the tasks in `work`, by default all, and takes part in the maintenance."""

    def __init__(self, services: Services, work: Mapping[str, Work] | None = None) -> None:
        self._services = services
        slots = Slots.of(services.settings.worker_jobs)
        work = work_of(services) if work is None else work
        claims = Claims(services.database, services.jobs.sealing, work)
        self._fetcher = Fetcher(claims, services.jobs.runner, work, slots, partial(concurrency_of, services.catalog))
        deliverer = services.events.deliverer
        services.process.notifications.subscribe(
            {"events": deliverer.on_event, "webhook": deliverer.on_webhook, "client": deliverer.on_client},
            deliverer.forget,
        )
        self._wakeup = NotifiedWorker(self._fetcher.wake, services.settings.redis_url)

    async def until(self, stopping: asyncio.Event) -> None:
        """Run until `stopping` is set, then stop gracefully."""
        services = self._services
        synchronization = services.copy.synchronization
        async with running(
            self._wakeup.main(),
            every(0, self._fetcher.fetch, name="fetcher"),
            every(INTERVAL, self._maintain, name="maintenance"),
            every(0.25, self._follow_notices, name="entities and records of notices"),
            every(1, synchronization.enqueue_due, name="due synchronizations"),
            every(1, services.operations.due_runs.start, name="due schedules"),
            every(5, services.logs.chain.seal, name="chain of the audit log"),
            every(60, services.logs.metering.publish, name="usage events"),
            every(INTERVAL, services.operations.approvals.end_jobs, name="approvals that were not given"),
            every(60, synchronization.backfill, name="synchronization backfill"),
            every(60, services.operations.deletion.resume, name="unfinished deletions"),
            every(60, services.operations.organization_deletion.resume, name="unfinished deletions of organizations"),
            every(60, services.organization_export.resume, name="unfinished exports of organizations"),
            every(0, services.events.deliverer.deliver, name="webhook deliveries"),
            every(RENEWAL, services.events.deliverer.renew, name="webhook leases"),
            *(every(seconds, prune, name=name) for name, seconds, prune in prunings(services)),
        ):
            tune_gc()
            tune_malloc()
            log.info("worker is ready", extra={"worker": services.jobs.runner.worker})
            await announce_restart(services)
            await stopping.wait()
            deadline = Deadline(services.settings.shutdown_grace)
            log.info("worker stops", extra={"running": len(services.jobs.runner.jobs)})
            self._fetcher.close()
        await announce_restart(services)
        await self._wakeup.close_quietly()
        await self._drain(deadline)

    async def _drain(self, deadline: Deadline) -> None:
        services = self._services
        await services.events.deliverer.close()
        await self._fetcher.drained()
        for job in await services.jobs.runner.drain(deadline.left(reserve=CLOSING)):
            await services.jobs.wakeup.notify(job.id, job.attempt)
        with contextlib.suppress(Unavailable):
            await services.jobs.maintenance.deregister(services.jobs.runner.worker)

    async def _maintain(self) -> None:
        await self._services.jobs.maintenance.heartbeat(self._services.jobs.runner.worker)
        if await self._services.jobs.maintenance.reap():
            self._fetcher.wake()

    async def _follow_notices(self) -> None:
        """Start the synchronizations that notices request now, instead of with the next poll."""
        if await self._services.copy.notices.bring_forward():
            await self._services.copy.synchronization.enqueue_due()
            self._fetcher.wake_for_all()
