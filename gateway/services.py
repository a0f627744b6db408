"""What a process of the gateway holds, opened together and closed in reverse."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.aio.loops import every, running
from gateway.aio.remembered import Remembered
from gateway.audit.log import Audit
from gateway.connect_links.service import ConnectLinks
from gateway.connectors.resolver import ConnectorResolver
from gateway.connectors.service import ConnectorService
from gateway.connectors.store import ConnectorStore
from gateway.context_store.search.search import ContextStore
from gateway.context_store.sync.schedule import Intervals
from gateway.context_store.sync.service import Synchronization
from gateway.context_store.sync.write_through import WriteThrough
from gateway.db.notifications import WRITTEN, NotificationListener
from gateway.db.pool import Database
from gateway.identity.clients import Clients
from gateway.identity.console_sessions import ConsoleSessions
from gateway.identity.people import People
from gateway.identity.store import IdentityStore
from gateway.identity.tokens import Tokens
from gateway.identity.wrong_secrets import WrongSecrets
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
from gateway.kinds.catalog import Catalog, load_catalog
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
from gateway.settings import Settings, platform_apps, upstream_overrides
from gateway.sign_in.model import ProviderSettings
from gateway.sign_in.store import SignInStore
from gateway.telemetry.loop_lag import LoopLag
from gateway.telemetry.metrics import LOOP_LAG
from gateway.upstream.egress import EgressPolicy
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


@dataclass(frozen=True)
class Services:
    """Everything that handlers and workers act through."""

    settings: Settings
    database: Database
    notifications: NotificationListener
    catalog: Catalog
    vault: Vault
    sealing: JobSealing
    upstreams: Upstreams
    identity: IdentityStore
    clients: Clients
    tokens: Tokens
    connector_store: ConnectorStore
    connector_service: ConnectorService
    connectors: ConnectorResolver
    oauth: OAuth
    jobs: JobStore
    leases: Leases
    wakeup: Wakeup
    job_waiters: JobWaiters
    runner: Runner
    maintenance: Maintenance
    audit: Audit
    execution: Execution
    files: StoredFiles
    context_store: ContextStore
    copy_search: CopySearch
    #: seals what travels with an agent's client between a question and its answer
    request_seals: SealedText
    authorization: AuthorizationServer
    #: seals what travels with a browser from one page of a consent to the next
    page_seals: SealedText
    connect_links: ConnectLinks
    console_sessions: ConsoleSessions
    #: None where the settings name no provider
    provider_sign_in: "ProviderSignIn | None"
    deletion: Deletion
    synchronization: Synchronization
    loop_lag: LoopLag
    #: made for the first who searches it: a worker never does, and needs none of its libraries
    operations: "Remembered[OperationIndex]"


def _index_of(catalog: Catalog) -> "OperationIndex":
    from gateway.operation_search.index import OperationIndex  # a fifth of a second, while other requests go on

    return OperationIndex(catalog)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """All services of one process; raises Unavailable, KeyListError and SpecError when it cannot start."""
    key_list = read_keys(settings.encryption_keys, settings.encryption_keys_file)
    vault = Vault(key_list)
    sealing = JobSealing(vault, is_on=settings.seal_jobs)
    catalog = load_catalog(settings.specs)
    overrides = upstream_overrides()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(
                settings.database_url,
                # One more asks what takes long, and one listens, where there is a way past a pooler.
                size=settings.database_pool - 1 - (settings.session_url is not None),
                is_patient=True,
                has_pooler=settings.has_pooler,
            )
        )
        await stack.enter_async_context(running(every(_CLOCK_INTERVAL, database.read_clock, name="clock")))
        process = process_name()
        limiter = await stack.enter_async_context(SharedRateLimiter.open(settings.redis_url, process, Pauses(database)))
        policy = EgressPolicy.of(overrides.values())
        transport = Transport(policy, limiter, max_connections=settings.max_upstream_connections)
        upstreams = Upstreams(await stack.enter_async_context(transport), overrides)
        wakeup = await stack.enter_async_context(Wakeup.open(settings.redis_url))
        identity = IdentityStore(database)
        wrong_secrets = WrongSecrets.at(settings.redis_url)
        stack.push_async_callback(wrong_secrets.close)
        tokens = Tokens(identity, settings.token_seconds, wrong_secrets)
        audit = await stack.enter_async_context(Audit(database).writing())
        connector_store = ConnectorStore(database, vault)
        oauth = await stack.enter_async_context(
            open_oauth(
                audit,
                catalog,
                database,
                vault,
                identity,
                connector_store,
                upstreams,
                platform_apps(),
                base_url=settings.base_url,
                is_embedded=settings.embedded,
            )
        )
        connector_service = ConnectorService(audit, catalog, connector_store, identity, upstreams, oauth.apps.of)
        connectors = ConnectorResolver(connector_store, catalog, upstreams, oauth.authorizers)
        jobs = JobStore(database, settings.job_retention, sealing=sealing)
        leases = Leases(database, settings.job_retention, sealing)
        job_waiters = JobWaiters(jobs)
        runner = Runner(leases, process)
        files = StoredFiles(open_blobs(settings), database, settings.max_file_bytes)
        notifications = NotificationListener(settings.session_url, process)
        cache = ResponseCache(database, settings.cache_bytes, notifications.is_current)
        stack.push_async_callback(cache.close)
        execution = Execution(
            audit,
            connectors,
            jobs,
            wakeup,
            job_waiters,
            runner,
            files,
            JobQuota(database, settings.organization_jobs),
            WriteThrough(database),
            cache,
            inline_budget=settings.inline_budget,
            idempotency_seconds=settings.idempotency_seconds,
        )
        authorizations = AuthorizationStore(database)
        context_store = ContextStore(derived_key(key_list, "context store cursors"))
        notifications.subscribe({"connector": connectors.on_notify}, connectors.invalidate_all)
        notifications.subscribe(
            {"connector": cache.on_notify, WRITING: cache.on_writing, WRITTEN: cache.on_notify}, cache.invalidate_all
        )
        notifications.subscribe({"client": tokens.on_notify}, tokens.invalidate_all)
        notifications.subscribe({"job": job_waiters.on_notify}, job_waiters.wake_all)
        # What a runner may miss it learns with the next heartbeat.
        notifications.subscribe({"cancel": runner.on_notify}, None)
        await stack.enter_async_context(notifications.listening())
        loop_lag = stack.enter_context(LoopLag().watching())
        loop_lag.subscribe(LOOP_LAG.observe)
        await stack.enter_async_context(runner.renewing_leases())
        yield Services(
            settings=settings,
            database=database,
            notifications=notifications,
            catalog=catalog,
            operations=Remembered(partial(asyncio.to_thread, _index_of, catalog), inf),
            vault=vault,
            sealing=sealing,
            upstreams=upstreams,
            identity=identity,
            clients=Clients(audit, identity, is_embedded=settings.embedded),
            tokens=tokens,
            connector_store=connector_store,
            connector_service=connector_service,
            connectors=connectors,
            oauth=oauth,
            jobs=jobs,
            leases=leases,
            wakeup=wakeup,
            job_waiters=job_waiters,
            runner=runner,
            maintenance=Maintenance(database, settings.job_retention, sealing),
            audit=audit,
            execution=execution,
            files=files,
            context_store=context_store,
            copy_search=CopySearch(audit, connectors, database, context_store),
            request_seals=SealedText(derived_key(key_list, "mcp request states")),
            console_sessions=ConsoleSessions(database, identity, derived_key(key_list, "console forms")),
            provider_sign_in=_provider_sign_in(
                settings, database, identity, SealedText(derived_key(key_list, "provider sign-ins"))
            ),
            authorization=AuthorizationServer(
                audit, authorizations, Hosts(authorizations), tokens, settings.base_url, settings.token_seconds
            ),
            page_seals=SealedText(derived_key(key_list, "authorization pages")),
            connect_links=ConnectLinks(
                audit,
                database,
                catalog,
                identity,
                connector_store,
                connector_service,
                oauth.flows,
                base_url=settings.base_url,
                is_embedded=settings.embedded,
            ),
            deletion=Deletion(
                audit,
                database,
                connector_store,
                identity,
                jobs,
                JobRemoval(database, settings.job_retention, sealing),
                files,
                oauth.authorizers,
                wakeup,
            ),
            synchronization=Synchronization(
                audit,
                database,
                catalog,
                connector_store,
                connectors,
                jobs,
                wakeup,
                Intervals(settings.sync_every),
                is_automatic=settings.synchronize,
            ),
            loop_lag=loop_lag,
        )


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


def open_blobs(settings: Settings) -> Blobs:
    """The store of files that the settings name."""
    url = settings.files_url or str(settings.data_dir / "blobs")
    if not url.startswith("s3://"):
        return FolderBlobs(Path(url.removeprefix("file://")))
    from gateway.jobs.stored_files.bucket import BucketBlobs  # its library is needed only here

    return BucketBlobs(url)
