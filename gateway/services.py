"""The services of a process, in bundles that build on each other: stores, engine, jobs, and what only front ends need.

A bundle has the members of those below it. Each is opened by one function and closed in reverse order.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from yarl import URL

from gateway.aio.loops import every, running
from gateway.aio.remembered import Remembered
from gateway.audit.log import Audit
from gateway.batches.inputs import BatchInputs
from gateway.batches.service import Batches
from gateway.connect_links.service import ConnectLinks
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.resolver import ConnectorResolver
from gateway.connectors.service import ConnectorService
from gateway.connectors.store import ConnectorStore
from gateway.context_store.records import documents
from gateway.context_store.search.search import ContextStore
from gateway.context_store.sync.schedule import Intervals
from gateway.context_store.sync.service import Synchronization
from gateway.context_store.sync.write_through import WriteThrough
from gateway.db.notifications import RESTARTING, WRITTEN, NotificationListener, notify
from gateway.db.pool import Database
from gateway.errors import Unavailable
from gateway.events.deliverer import Deliverer
from gateway.events.feed import Feed
from gateway.events.sender import TIMEOUT as DELIVERY_TIMEOUT
from gateway.events.sender import Sender
from gateway.events.service import WebhookService
from gateway.events.store import WebhookStore
from gateway.exports.service import Exports
from gateway.identity.attempts import Attempts
from gateway.identity.clients import Clients
from gateway.identity.console_sessions import ConsoleSessions
from gateway.identity.people import People
from gateway.identity.store import IdentityStore
from gateway.identity.tokens import Tokens
from gateway.inbound_webhooks.service import InboundWebhooks
from gateway.inbound_webhooks.store import HookStore
from gateway.jobs.access import JobAccess
from gateway.jobs.file_links import FileLinks
from gateway.jobs.leases import Leases
from gateway.jobs.maintenance import Maintenance
from gateway.jobs.processes import process_name
from gateway.jobs.quota import JobQuota
from gateway.jobs.removal import JobRemoval
from gateway.jobs.rows import JobSealing
from gateway.jobs.runner import Runner
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.blobs import Blobs, FolderBlobs
from gateway.jobs.stored_files.store import StoredFiles
from gateway.jobs.waiters import JobWaiters
from gateway.jobs.wakeup import Wakeup
from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_catalog
from gateway.limits.pauses import Pauses
from gateway.limits.rate_limiter import SharedRateLimiter
from gateway.oauth_client.service import OAuth, open_oauth
from gateway.oauth_server.hosts import Hosts
from gateway.oauth_server.service import AuthorizationServer
from gateway.oauth_server.store import AuthorizationStore
from gateway.operations.copy_search import CopySearch
from gateway.operations.deletion import Deletion
from gateway.operations.execution import Execution
from gateway.operations.response_cache import WRITING, ResponseCache
from gateway.request_log.log import RequestLog
from gateway.schedules.due import DueRuns
from gateway.schedules.service import ScheduleService
from gateway.schedules.store import ScheduleStore
from gateway.settings import Settings, platform_apps, upstream_overrides
from gateway.sign_in.model import ProviderSettings
from gateway.sign_in.store import SignInStore
from gateway.telemetry.loop_lag import LoopLag
from gateway.telemetry.metrics import LOOP_LAG
from gateway.upstream.egress import EgressPolicy, parse_override
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from gateway.vault.sealed_text import SealedText
from gateway.vault.vault import Vault, derived_key, read_keys

if TYPE_CHECKING:
    from gateway.operation_search.index import OperationIndex
    from gateway.sign_in.service import ProviderSignIn

#: seconds of a shutdown's grace that are kept for requeueing what is not done and closing the stores
CLOSING = 3.0
#: seconds between readings of PostgreSQL's time of day
_CLOCK_INTERVAL = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stores:
    """Stores in PostgreSQL and on disk, and the keys that seal their secrets."""

    settings: Settings
    #: the name of this process, which no other has, earlier or later
    process: str
    key_list: Sequence[tuple[str, bytes]] = field(repr=False)
    vault: Vault
    sealing: JobSealing
    catalog: Catalog
    database: Database
    notifications: NotificationListener
    audit: Audit
    request_log: RequestLog
    identity: IdentityStore
    connector_store: ConnectorStore
    connectors: ConnectorAccess
    job_store: JobStore
    files: StoredFiles


@dataclass(frozen=True)
class Engine(Stores):
    """What calls applications."""

    upstreams: Upstreams
    oauth: OAuth
    resolver: ConnectorResolver


@dataclass(frozen=True)
class WorkerServices(Engine):
    """What runs jobs. A front end has it too: it runs calls that carry an Idempotency-Key as jobs."""

    wakeup: Wakeup
    job_waiters: JobWaiters
    feed: Feed
    webhooks: WebhookService
    deliverer: Deliverer
    runner: Runner
    maintenance: Maintenance
    execution: Execution
    batches: Batches
    deletion: Deletion
    quota: JobQuota
    context_store: ContextStore
    copy_search: CopySearch
    exports: Exports
    schedule_store: ScheduleStore
    due_runs: DueRuns
    synchronization: Synchronization
    inbound_webhooks: InboundWebhooks
    loop_lag: LoopLag


@dataclass(frozen=True)
class Services(WorkerServices):
    """The services of a front end."""

    tokens: Tokens
    clients: Clients
    jobs: JobAccess
    file_links: FileLinks
    #: what strangers try, counted by address
    attempts: Attempts
    connector_service: ConnectorService
    connect_links: ConnectLinks
    schedules: ScheduleService
    console_sessions: ConsoleSessions
    authorization: AuthorizationServer
    #: None where the settings name no provider
    provider_sign_in: "ProviderSignIn | None"
    #: seals what an agent's client holds between a question and its answer
    request_seals: SealedText
    #: seals what a browser holds between the pages of a consent
    page_seals: SealedText
    #: made for the first search: its libraries take a fifth of a second to load
    operations: "Remembered[OperationIndex]"


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """The services of a front end; raises Unavailable, KeyListError and SpecError when it cannot start."""
    async with (
        open_stores(settings) as stores,
        open_engine(stores) as engine,
        open_jobs(engine) as jobs,
        open_api(jobs) as services,
        _listening(services),
    ):
        yield services


@asynccontextmanager
async def open_worker(settings: Settings) -> AsyncIterator[WorkerServices]:
    """The services of a worker; raises as `open_services` does."""
    async with (
        open_stores(settings) as stores,
        open_engine(stores) as engine,
        open_jobs(engine) as services,
        _listening(services),
    ):
        yield services


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """The pool, its clock, and the stores over it."""
    key_list = read_keys(settings.encryption_keys, settings.encryption_keys_file)
    vault = Vault(key_list)
    sealing = JobSealing(vault, is_on=settings.seal_jobs)
    catalog = load_catalog(settings.specs)
    for name, refused in catalog.refused.items():
        log.error("%s is not served, its spec has errors: %s", name, refused)
    process = process_name()
    pool = Database.open(
        settings.database_url,
        # One more connection runs long statements, and one listens, unless a pooler leaves no way for it.
        size=settings.database_pool - 1 - (settings.session_url is not None),
        is_patient=True,
        has_pooler=settings.has_pooler,
    )
    async with (
        pool as database,
        running(every(_CLOCK_INTERVAL, database.read_clock, name="clock")),
        Audit(database).writing() as audit,
        RequestLog(database).writing() as request_log,
    ):
        identity, connector_store = IdentityStore(database), ConnectorStore(database, vault)
        yield Stores(
            settings=settings,
            process=process,
            key_list=key_list,
            vault=vault,
            sealing=sealing,
            catalog=catalog,
            database=database,
            notifications=NotificationListener(settings.session_url, process),
            audit=audit,
            request_log=request_log,
            identity=identity,
            connector_store=connector_store,
            connectors=ConnectorAccess(connector_store, identity),
            job_store=JobStore(database, settings.job_retention, sealing=sealing),
            files=StoredFiles(open_blobs(settings), database, settings.max_file_bytes),
        )


@asynccontextmanager
async def open_engine(stores: Stores) -> AsyncIterator[Engine]:
    """The HTTP client towards applications with its rate limiter, and the connectors that use it."""
    settings, database = stores.settings, stores.database
    overrides = upstream_overrides()
    async with AsyncExitStack() as stack:
        limiter = await stack.enter_async_context(
            SharedRateLimiter.open(settings.redis_url, stores.process, Pauses(database))
        )
        transport = Transport(
            EgressPolicy.of(overrides.values()),
            limiter,
            max_connections=settings.max_upstream_connections,
            observe=stores.request_log.note if settings.request_log_retention else None,
        )
        upstreams = Upstreams(await stack.enter_async_context(transport), overrides)
        oauth = await stack.enter_async_context(
            open_oauth(
                stores.audit,
                stores.catalog,
                database,
                stores.vault,
                stores.identity,
                stores.connector_store,
                stores.connectors,
                upstreams,
                platform_apps(),
                base_url=settings.base_url,
                is_embedded=settings.embedded,
            )
        )
        resolver = ConnectorResolver(stores.connector_store, stores.catalog, upstreams, oauth.authorizers)
        stores.notifications.subscribe({"connector": resolver.on_notify}, resolver.invalidate_all)
        yield Engine(**vars(stores), upstreams=upstreams, oauth=oauth, resolver=resolver)


@asynccontextmanager
async def open_jobs(engine: Engine) -> AsyncIterator[WorkerServices]:
    """The job machine and the use cases that run as jobs."""
    settings, database, notifications = engine.settings, engine.database, engine.notifications
    async with AsyncExitStack() as stack:
        wakeup = await stack.enter_async_context(Wakeup.open(settings.redis_url))
        waiters, feed = JobWaiters(engine.job_store), Feed(database)
        sender = await stack.enter_async_context(_sender(settings))
        webhook_store = WebhookStore(database, engine.vault)
        read_records = partial(documents, database)
        deliverer = Deliverer(webhook_store, feed, sender, engine.process, read_records, settings.webhook_retry_seconds)
        runner = Runner(Leases(database, settings.job_retention, engine.sealing), engine.process)
        cache = ResponseCache(database, settings.cache_bytes, notifications.is_current)
        stack.push_async_callback(cache.close)
        notifications.subscribe(
            {"connector": cache.on_notify, WRITING: cache.on_writing, WRITTEN: cache.on_notify}, cache.invalidate_all
        )
        notifications.subscribe({"job": waiters.on_notify}, waiters.wake_all)
        notifications.subscribe({"events": feed.on_notify}, feed.wake_all)
        # A cancellation that the runner missed reaches it with the next heartbeat.
        notifications.subscribe({"cancel": runner.on_notify}, None)
        context_store = ContextStore(derived_key(engine.key_list, "context store cursors"))
        copy_search = CopySearch(engine.audit, engine.resolver, database, context_store)
        quota = JobQuota(database, settings.organization_jobs)
        execution = _execution(engine, wakeup, waiters, runner, cache, quota)
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
            execution=execution,
            batches=_batches(engine, execution, wakeup, quota),
            quota=quota,
            context_store=context_store,
            copy_search=copy_search,
            exports=Exports(
                engine.audit, database, engine.resolver, copy_search, execution, engine.job_store, engine.files
            ),
            schedule_store=schedule_store,
            due_runs=DueRuns(engine.audit, engine.catalog, database, schedule_store, engine.job_store, wakeup),
            deletion=_deletion(engine, wakeup),
            synchronization=_synchronization(engine, wakeup),
            inbound_webhooks=InboundWebhooks(
                engine.audit,
                engine.catalog,
                HookStore(database, engine.vault),
                engine.connectors,
                settings.base_url,
            ),
            loop_lag=loop_lag,
        )


def _batches(engine: Engine, execution: Execution, wakeup: Wakeup, quota: JobQuota) -> Batches:
    return Batches(
        engine.audit,
        engine.resolver,
        execution,
        engine.job_store,
        BatchInputs(engine.database, engine.sealing),
        engine.sealing,
        wakeup,
        quota,
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
    """Deliveries have connections of their own: the overrides of applications are no receivers."""
    policy = EgressPolicy.of(map(parse_override, settings.webhook_origins))
    async with Transport(policy, idle=DELIVERY_TIMEOUT, max_connections=settings.max_upstream_connections) as transport:
        yield Sender(transport)


def _execution(
    engine: Engine, wakeup: Wakeup, waiters: JobWaiters, runner: Runner, cache: ResponseCache, quota: JobQuota
) -> Execution:
    settings = engine.settings
    return Execution(
        engine.audit,
        engine.resolver,
        engine.job_store,
        wakeup,
        waiters,
        runner,
        engine.files,
        quota,
        WriteThrough(engine.database),
        cache,
        inline_budget=settings.inline_budget,
        idempotency_seconds=settings.idempotency_seconds,
    )


@asynccontextmanager
async def open_api(jobs: WorkerServices) -> AsyncIterator[Services]:
    """What only front ends need: authentication, consent pages, search."""
    settings, database, audit = jobs.settings, jobs.database, jobs.audit
    attempts = Attempts.at(settings.redis_url)
    tokens = Tokens(jobs.identity, settings.token_seconds, attempts)
    jobs.notifications.subscribe({"client": tokens.on_notify}, tokens.invalidate_all)
    connector_service = ConnectorService(
        audit, jobs.catalog, jobs.connector_store, jobs.identity, jobs.upstreams, jobs.oauth.apps.of
    )
    grants = AuthorizationStore(database)
    job_access = JobAccess(jobs.job_store, jobs.job_waiters, jobs.identity)
    try:
        yield Services(
            **vars(jobs),
            tokens=tokens,
            attempts=attempts,
            jobs=job_access,
            file_links=FileLinks(audit, derived_key(jobs.key_list, "file links"), jobs.identity, job_access),
            clients=Clients(audit, jobs.identity, is_embedded=settings.embedded),
            connector_service=connector_service,
            schedules=ScheduleService(
                audit, jobs.catalog, jobs.connectors, jobs.schedule_store, jobs.job_store, jobs.quota, jobs.wakeup
            ),
            connect_links=ConnectLinks(
                audit,
                database,
                jobs.catalog,
                jobs.identity,
                jobs.connector_store,
                connector_service,
                jobs.oauth.flows,
                base_url=settings.base_url,
                is_embedded=settings.embedded,
            ),
            console_sessions=ConsoleSessions(database, jobs.identity, derived_key(jobs.key_list, "console forms")),
            authorization=AuthorizationServer(
                audit, grants, Hosts(grants, attempts), tokens, settings.base_url, settings.token_seconds
            ),
            provider_sign_in=_provider_sign_in(
                settings, database, jobs.identity, SealedText(derived_key(jobs.key_list, "provider sign-ins"))
            ),
            request_seals=SealedText(derived_key(jobs.key_list, "mcp request states")),
            page_seals=SealedText(derived_key(jobs.key_list, "authorization pages")),
            operations=Remembered(partial(asyncio.to_thread, _index_of, jobs.catalog), inf),
        )
    finally:
        await attempts.close()


@asynccontextmanager
async def _listening(services: WorkerServices) -> AsyncIterator[None]:
    """Notifications received and leases renewed, once everything has subscribed."""
    async with services.notifications.listening(), services.runner.renewing_leases():
        yield


def _index_of(catalog: Catalog) -> "OperationIndex":
    from gateway.operation_search.index import OperationIndex  # a fifth of a second, while other requests go on

    return OperationIndex(catalog)


def _provider_sign_in(
    settings: Settings, database: Database, identity: IdentityStore, seals: SealedText
) -> "ProviderSignIn | None":
    if settings.oidc_issuer is None:
        return None
    from gateway.sign_in.provider import Provider  # signatures of tokens: their library is needed only here
    from gateway.sign_in.service import ProviderSignIn

    provider = ProviderSettings(
        settings.oidc_issuer,
        settings.oidc_client_id,
        settings.oidc_client_secret,
        tuple(settings.oidc_scopes.split()),
        settings.oidc_claim,
        settings.oidc_private,
    )
    store, people = SignInStore(database), People(database, identity)
    return ProviderSignIn(Provider(provider), store, people, seals, settings.base_url)


async def announce_restart(services: Stores) -> None:
    """Let front ends know that this process begins to work or to stop; without PostgreSQL they do not hear of it."""
    with contextlib.suppress(Unavailable):
        await notify(services.database, RESTARTING, services.process)


def open_blobs(settings: Settings) -> Blobs:
    """The store of files that the settings name."""
    url = settings.files_url or str(settings.data_dir / "blobs")
    if not url.startswith("s3://"):
        return FolderBlobs(Path(url.removeprefix("file://")))
    from gateway.jobs.stored_files.bucket import BucketBlobs  # its library is needed only here

    return BucketBlobs(url)
