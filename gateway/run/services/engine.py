"""The services that call applications: the HTTP client with its rate limits, OAuth, and the connectors."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gateway.connectors.consent.service import OAuth, open_oauth
from gateway.connectors.resolver import ConnectorResolver
from gateway.run.services.stores import Stores
from gateway.settings import ignored_variables, platform_apps, upstream_overrides
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.limits.pauses import Pauses
from gateway.upstream.limits.rate_limiter import SharedRateLimiter
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Engine(Stores):
    """The services that call applications."""

    upstreams: Upstreams
    oauth: OAuth
    resolver: ConnectorResolver


@asynccontextmanager
async def open_engine(stores: Stores) -> AsyncIterator[Engine]:
    """Open the HTTP client towards applications with its rate limiter, OAuth, and the resolver of connectors."""
    settings, database = stores.settings, stores.database
    overrides = upstream_overrides()
    for ignored in ignored_variables({*stores.catalog.kinds, *stores.catalog.refused}):
        log.warning("%s", ignored)
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
