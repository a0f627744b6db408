"""Opens a connector in this process: checks the credentials and opens the connection pool."""

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from gateway.foundation.aio.synchronous import LoopThread
from gateway.in_process.connector import LocalConnector
from gateway.in_process.synchronous import SyncLocalConnector
from gateway.kinds.loading import load_catalog, own_folders
from gateway.upstream.auth import Authorizer, StaticAuthorizer, checked_credentials, headers_for
from gateway.upstream.egress import EgressPolicy, parse_override
from gateway.upstream.oauth_tokens.refreshing import RefreshingAuthorizer
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import checked_environment
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams


@asynccontextmanager
async def connect(
    kind: str,
    credentials: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    upstream: str | None = None,
    specs: Iterable[str | os.PathLike[str]] | None = None,
) -> AsyncIterator[LocalConnector]:
    """Open a connector of a kind in this process; it is closed when the block ends.

    `environment` has the kind's variables, such as `subdomain`; `credentials` may contain them too.
    `upstream` (`http://127.0.0.1:9001`) replaces scheme, host and port of every URL, for tests. `specs` are further
    folders of kinds, by default those of `GATEWAY_SPECS`. Raises InvalidCredentials, which names each wrong field.
    """
    application = load_catalog(own_folders() if specs is None else specs).kind(kind)
    override = parse_override(upstream) if upstream else None
    variables = {name: value for name, value in credentials.items() if name in application.spec.environment}
    fields = {name: value for name, value in credentials.items() if name not in application.spec.environment}
    method, checked = checked_credentials(application.spec, fields)
    full_environment = checked_environment(application.spec, {**variables, **(environment or {})}, override)
    async with AsyncExitStack() as stack:
        policy = EgressPolicy.of([override] if override else [])
        transport = await stack.enter_async_context(Transport(policy))
        upstreams = Upstreams(transport, {application.name: override} if override else {})
        authorizer: Authorizer
        if application.spec.authentication[method].oauth:
            refreshing = RefreshingAuthorizer(application.spec, checked, full_environment, upstreams, method=method)
            full_environment = dict(await refreshing.ensure_token_variables())
            authorizer = refreshing
        else:
            authorizer = StaticAuthorizer(headers_for(application.spec.authentication[method], checked))
        scope = RateScope.of_credentials(application.spec, checked)
        yield LocalConnector(upstreams.connector(application, full_environment, authorizer, scope))


@contextmanager
def connect_sync(
    kind: str,
    credentials: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    upstream: str | None = None,
    specs: Iterable[str | os.PathLike[str]] | None = None,
) -> Iterator[SyncLocalConnector]:
    """`connect` for programs without an event loop: the same arguments, methods and errors."""
    loop = LoopThread()
    context_manager = connect(kind, credentials, environment=environment, upstream=upstream, specs=specs)
    try:
        connector = loop.run(context_manager.__aenter__())
        try:
            yield SyncLocalConnector(connector, loop)
        finally:
            loop.run(context_manager.__aexit__(None, None, None))
    finally:
        loop.close()
