"""The services that run jobs. A front end has them too: it runs calls with an Idempotency-Key as jobs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from yarl import URL

from gateway.context_store.notices.service import InboundWebhooks
from gateway.context_store.notices.store import HookStore
from gateway.context_store.records import documents
from gateway.context_store.search.search import ContextStore
from gateway.context_store.sync.schedule import Intervals
from gateway.context_store.sync.service import Synchronization
from gateway.context_store.sync.write_through import WriteThrough
from gateway.events.deliverer import Deliverer
from gateway.events.feed import Feed
from gateway.events.sender import TIMEOUT as DELIVERY_TIMEOUT
from gateway.events.sender import Sender
from gateway.events.service import WebhookService
from gateway.events.store import WebhookStore
from gateway.foundation.db.notifications import WRITTEN, NotificationListener
from gateway.foundation.telemetry.loop_lag import LoopLag
from gateway.foundation.telemetry.metrics import LOOP_LAG
from gateway.foundation.vault.vault import derived_key
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.leases import Leases
from gateway.jobs.maintenance import Maintenance
from gateway.jobs.removal import JobRemoval
from gateway.jobs.runner import Runner
from gateway.jobs.waiters import JobWaiters
from gateway.jobs.wakeup import Wakeup
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.service import Batches
from gateway.operations.copy_search import CopySearch
from gateway.operations.deletion import Deletion
from gateway.operations.execution import Execution
from gateway.operations.exports.service import Exports
from gateway.operations.response_cache import WRITING, ResponseCache
from gateway.operations.runs import OperationRuns
from gateway.operations.schedules.due import DueRuns
from gateway.operations.schedules.store import ScheduleStore
from gateway.run.services.engine import Engine, open_engine
from gateway.run.services.stores import open_stores
from gateway.settings import Settings
from gateway.upstream.egress import EgressPolicy, parse_override
from gateway.upstream.transport import Transport

#: seconds of `shutdown_grace` that are reserved for requeueing unfinished jobs and closing the stores
CLOSING = 3.0


@dataclass(frozen=True)
class WorkerServices(Engine):
    """The services that run jobs; a front end has them too."""

    wakeup: Wakeup
    job_waiters: JobWaiters
    feed: Feed
    webhooks: WebhookService
    deliverer: Deliverer
    runner: Runner
    maintenance: Maintenance
    runs: OperationRuns
    execution: Execution
    batches: Batches
    deletion: Deletion
    acceptance: JobAcceptance
    context_store: ContextStore
    copy_search: CopySearch
    exports: Exports
    schedule_store: ScheduleStore
    due_runs: DueRuns
    synchronization: Synchronization
    inbound_webhooks: InboundWebhooks
    loop_lag: LoopLag


@asynccontextmanager
async def open_worker(settings: Settings) -> AsyncIterator[WorkerServices]:
    """Open the services of a worker; raises as `open_services` does."""
    async with (
        open_stores(settings) as stores,
        open_engine(stores) as engine,
        open_jobs(engine) as services,
        listening(services),
    ):
        yield services


@asynccontextmanager
async def listening(services: WorkerServices) -> AsyncIterator[None]:
    """Receive notifications and renew leases within the block; all subscriptions must be made before."""
    async with services.notifications.listening(), services.runner.renewing_leases():
        yield


@asynccontextmanager
async def open_jobs(engine: Engine) -> AsyncIterator[WorkerServices]:
    """Open the job runner and the use cases that run as jobs."""
    settings, database, notifications = engine.settings, engine.database, engine.notifications
    async with AsyncExitStack() as stack:
        wakeup = await stack.enter_async_context(Wakeup.open(settings.redis_url))
        waiters, feed = JobWaiters(engine.job_store), Feed(database)
        sender = await stack.enter_async_context(_sender(settings))
        webhook_store = WebhookStore(database, engine.vault)
        read_records = partial(documents, database)
        synchronization = _synchronization(engine, wakeup)
        deliverer = Deliverer(webhook_store, feed, sender, engine.process, read_records, settings.webhook_retry_seconds)
        runner = Runner(Leases(database, settings.job_retention, engine.sealing), engine.process)
        cache = ResponseCache(database, settings.cache_bytes, notifications.is_current)
        stack.push_async_callback(cache.close)
        _subscribe(engine.notifications, cache, waiters, feed, runner)
        context_store = ContextStore(derived_key(engine.key_list, "context store cursors"))
        copy_search = CopySearch(engine.audit, engine.resolver, database, context_store)
        acceptance = JobAcceptance(database, engine.job_store, wakeup, settings.organization_jobs)
        runs = OperationRuns(engine.audit, engine.resolver, engine.files, WriteThrough(database), cache)
        execution = _execution(engine, acceptance, waiters, runner, runs, cache)
        schedule_store = ScheduleStore(database, engine.vault)
        loop_lag = stack.enter_context(LoopLag().watching())
        loop_lag.subscribe(LOOP_LAG.observe)
        yield WorkerServices(
            **vars(engine),
            wakeup=wakeup,
            job_waiters=waiters,
            feed=feed,
            webhooks=WebhookService(engine.audit, webhook_store, feed, sender, map(URL, settings.webhook_origins)),
            deliverer=deliverer,
            runner=runner,
            maintenance=Maintenance(database, settings.job_retention, engine.sealing),
            runs=runs,
            execution=execution,
            batches=_batches(engine, runs, acceptance),
            acceptance=acceptance,
            context_store=context_store,
            copy_search=copy_search,
            exports=Exports(
                engine.audit, database, engine.resolver, copy_search, execution, engine.job_store, engine.files
            ),
            schedule_store=schedule_store,
            due_runs=DueRuns(engine.audit, engine.catalog, database, schedule_store, engine.job_store, wakeup),
            deletion=_deletion(engine, wakeup),
            synchronization=synchronization,
            inbound_webhooks=InboundWebhooks(
                engine.audit,
                engine.catalog,
                HookStore(database, engine.vault),
                engine.connectors,
                synchronization,
                settings.base_url,
            ),
            loop_lag=loop_lag,
        )


def _subscribe(
    notifications: NotificationListener, cache: ResponseCache, waiters: JobWaiters, feed: Feed, runner: Runner
) -> None:
    notifications.subscribe(
        {"connector": cache.on_notify, WRITING: cache.on_writing, WRITTEN: cache.on_notify}, cache.invalidate_all
    )
    notifications.subscribe({"job": waiters.on_notify}, waiters.wake_all)
    notifications.subscribe({"events": feed.on_notify}, feed.wake_all)
    # A cancellation that the runner missed reaches it with the next heartbeat.
    notifications.subscribe({"cancel": runner.on_notify}, None)


def _batches(engine: Engine, runs: OperationRuns, acceptance: JobAcceptance) -> Batches:
    return Batches(
        engine.audit,
        engine.resolver,
        runs,
        engine.job_store,
        BatchInputs(engine.database, engine.sealing),
        engine.sealing,
        acceptance,
        idempotency_seconds=engine.settings.idempotency_seconds,
    )


def _deletion(engine: Engine, wakeup: Wakeup) -> Deletion:
    return Deletion(
        engine.audit,
        engine.database,
        engine.connector_store,
        engine.connectors,
        engine.identity,
        engine.job_store,
        JobRemoval(engine.database, engine.settings.job_retention, engine.sealing),
        engine.files,
        engine.oauth.authorizers,
        wakeup,
        engine.request_log,
    )


def _synchronization(engine: Engine, wakeup: Wakeup) -> Synchronization:
    return Synchronization(
        engine.audit,
        engine.database,
        engine.catalog,
        engine.connector_store,
        engine.resolver,
        engine.job_store,
        wakeup,
        Intervals(engine.settings.sync_every),
        is_automatic=engine.settings.synchronize,
    )


@asynccontextmanager
async def _sender(settings: Settings) -> AsyncIterator[Sender]:
    """The sender of deliveries, with connections of its own: deliveries must not reach applications' overrides."""
    policy = EgressPolicy.of(map(parse_override, settings.webhook_origins))
    async with Transport(policy, idle=DELIVERY_TIMEOUT, max_connections=settings.max_upstream_connections) as transport:
        yield Sender(transport)


def _execution(
    engine: Engine,
    acceptance: JobAcceptance,
    waiters: JobWaiters,
    runner: Runner,
    runs: OperationRuns,
    cache: ResponseCache,
) -> Execution:
    settings = engine.settings
    return Execution(
        engine.audit,
        engine.resolver,
        engine.job_store,
        acceptance,
        waiters,
        runner,
        runs,
        cache,
        inline_budget=settings.inline_budget,
        idempotency_seconds=settings.idempotency_seconds,
    )
