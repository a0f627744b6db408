"""The services of connectors: accounts at applications, and calls to them."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

import asyncpg

from gateway.access.identity.store import IdentityStore
from gateway.access.services import LogServices
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent.service import OAuth, open_oauth
from gateway.connectors.imports.service import ImportedKinds, Imports
from gateway.connectors.imports.store import TOPIC, ImportedKindStore
from gateway.connectors.links.service import ConnectLinks
from gateway.connectors.resolver import ConnectorResolver
from gateway.connectors.secret_values import open_secret_values
from gateway.connectors.service import BeginCopies, ConnectorService
from gateway.connectors.store import ConnectorStore
from gateway.errors import Unavailable
from gateway.foundation.aio.loops import every, running
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.kinds.catalog import Catalog
from gateway.settings import Settings, ignored_variables, platform_apps, upstream_overrides
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.limits.pauses import Pauses
from gateway.upstream.limits.rate_limiter import SharedRateLimiter
from gateway.upstream.oauth_tokens.client_keys import ClientKeys
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ConnectorServices:
    """Connectors, the consents that create them, and the HTTP client towards applications."""

    store: ConnectorStore
    access: ConnectorAccess
    change: ConnectorService
    imports: Imports
    links: ConnectLinks
    upstreams: Upstreams
    oauth: OAuth
    resolver: ConnectorResolver


@asynccontextmanager
async def open_connectors(
    settings: Settings,
    *,
    process: str,
    catalog: Catalog,
    database: Database,
    notifications: NotificationListener,
    vault: Vault,
    client_keys: ClientKeys,
    logs: LogServices,
    identity: IdentityStore,
    begin_copies: BeginCopies,
) -> AsyncIterator[ConnectorServices]:
    """Open the HTTP client towards applications with its rate limiter, OAuth, and the resolver of connectors."""
    overrides = upstream_overrides()
    for ignored in ignored_variables({*catalog.kinds, *catalog.refused}):
        log.warning("%s", ignored)
    async with AsyncExitStack() as stack:
        secrets = await stack.enter_async_context(open_secret_values(settings.secret_references))
        store = ConnectorStore(database, vault, secrets)
        access = ConnectorAccess(store, identity, catalog)
        limiter = await stack.enter_async_context(SharedRateLimiter.open(settings.redis_url, process, Pauses(database)))
        transport = Transport(
            EgressPolicy.of(overrides.values()),
            limiter,
            max_connections=settings.max_upstream_connections,
            observe=logs.requests.note if settings.request_log_retention else None,
        )
        upstreams = Upstreams(await stack.enter_async_context(transport), overrides)
        imported_kinds = ImportedKindStore(database)
        following = ImportedKinds(imported_kinds, catalog, lambda: resolver.invalidate_all())
        imports = Imports(
            logs.audit, imported_kinds, catalog, following, upstreams, frozenset(settings.import_organizations)
        )
        oauth = await stack.enter_async_context(
            open_oauth(
                logs.audit,
                catalog,
                database=database,
                vault=vault,
                identity=identity,
                connectors=store,
                access=access,
                upstreams=upstreams,
                imports=imports,
                platform=platform_apps(),
                client_keys=client_keys,
                base_url=settings.base_url,
                is_embedded=settings.embedded,
            )
        )
        resolver = ConnectorResolver(store, catalog, upstreams, oauth.authorizers, notifications.is_current)
        notifications.subscribe({"connector": resolver.on_notify}, resolver.invalidate_all)
        notifications.subscribe({TOPIC: following.on_notify}, following.on_notify)
        with suppress(Unavailable, asyncpg.PostgresError):  # then they are loaded once notifications arrive
            await following.load()
        await stack.enter_async_context(running(every(0, following.follow, name="imported kinds")))
        change = ConnectorService(
            audit=logs.audit,
            catalog=catalog,
            store=store,
            identity=identity,
            upstreams=upstreams,
            secrets=secrets,
            app_of=oauth.apps.of,
            begin_copies=begin_copies,
            forget=resolver.on_notify,
        )
        links = ConnectLinks(
            audit=logs.audit,
            database=database,
            catalog=catalog,
            identity=identity,
            connectors=store,
            access=access,
            service=change,
            flows=oauth.flows,
            base_url=settings.base_url,
            is_embedded=settings.embedded,
        )
        yield ConnectorServices(
            store=store,
            access=access,
            change=change,
            imports=imports,
            links=links,
            upstreams=upstreams,
            oauth=oauth,
            resolver=resolver,
        )
