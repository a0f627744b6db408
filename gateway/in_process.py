"""The engine in a caller's own process: no server, no database, no queue; credentials stay in memory."""

import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gateway.connectors.auth import Authorizer, StaticAuthorizer, checked_credentials, headers_for
from gateway.connectors.connector import Connector
from gateway.connectors.egress import EgressPolicy, parse_override
from gateway.connectors.rate_limits import RateScope
from gateway.connectors.requests import checked_environment
from gateway.connectors.responses import OperationResult
from gateway.connectors.transport import Transport
from gateway.connectors.upstreams import Upstreams
from gateway.errors import UnknownAction
from gateway.kinds.catalog import SEARCH_ACTION, Kind, load_catalog
from gateway.oauth_tokens.refreshing import RefreshingAuthorizer


@dataclass(frozen=True)
class Page:
    """What one call came to: the records of a list, or the record of anything else, and the Meta of a paged list."""

    answer: OperationResult

    @property
    def meta(self) -> dict[str, Any] | None:
        """The Meta as the product documents name its members; None where there is none."""
        return self.answer.meta

    @cached_property
    def result(self) -> Any:
        """The records or the record, parsed."""
        return self.answer.decoded()

    @property
    def records(self) -> list[Any]:
        """The records of a list; a single record as a list of one."""
        return self.result if isinstance(self.result, list) else [self.result]

    @property
    def record(self) -> Any:
        """The record of a get, create or update."""
        return self.result


class LocalConnector:
    """A connector whose credentials nobody else sees."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    @property
    def kind(self) -> Kind:
        """The kind, with its entities and operations."""
        return self._connector.kind

    async def execute(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> Page:
        """Run one operation to its end, bulk updates and reports included; raises `gateway.errors.GatewayError`."""
        if action == SEARCH_ACTION:
            raise UnknownAction(
                f"{entity}.{SEARCH_ACTION} searches the synchronized copy, which only the hosted mode has; "
                "create a connector on a gateway, or use list or api_search here"
            )
        return Page(await self._connector.execute(entity, action, params))

    async def pages(
        self, entity: str, action: str = "list", params: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Any]:
        """Every record of a list, page after page, as they are asked for."""
        async for page in self._connector.pages(entity, action, params):
            for record in Page(page).records:
                yield record

    async def download(
        self, entity: str, params: Mapping[str, Any] | None = None, *, range_header: str | None = None
    ) -> AsyncIterator[bytes]:
        """The bytes of a file as they come, whole or the range asked for (`bytes=0-99`); raises when they end early."""
        async with self._connector.download(entity, params, range_header=range_header) as file:
            async for piece in file:
                yield piece

    async def check(self) -> None:
        """Ask the application whether the credentials hold; raises what is wrong."""
        await self._connector.check()

    def dry_run(self, entity: str, action: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The exact requests that a call would send, secrets as `***`; nothing is sent."""
        return self._connector.dry_run(entity, action, params)


@asynccontextmanager
async def connect(
    kind: str,
    credentials: Mapping[str, str],
    *,
    environment: Mapping[str, str] | None = None,
    upstream: str | None = None,
    specs: Iterable[str | os.PathLike[str]] = (),
) -> AsyncIterator[LocalConnector]:
    """A connector of a kind in this process, open for as long as the block lasts.

    `environment` holds the kind's variables, such as `subdomain`; they may stand among the credentials too.
    `upstream` (`http://127.0.0.1:9001`) replaces scheme, host and port of every URL, for trying things out.
    `specs` are further folders of kinds. Raises InvalidCredentials, naming each field that is wrong.
    """
    found = load_catalog(specs).kind(kind)
    override = parse_override(upstream) if upstream else None
    variables = {name: value for name, value in credentials.items() if name in found.spec.environment}
    fields = {name: value for name, value in credentials.items() if name not in found.spec.environment}
    method, checked = checked_credentials(found.spec, fields)
    settled = checked_environment(found.spec, {**variables, **(environment or {})}, override)
    async with AsyncExitStack() as stack:
        policy = EgressPolicy.of([override] if override else [])
        transport = await stack.enter_async_context(Transport(policy))
        upstreams = Upstreams(transport, {found.name: override} if override else {})
        authorizer: Authorizer
        if found.spec.authentication[method].oauth:
            refreshing = RefreshingAuthorizer(found.spec, checked, settled, upstreams, method=method)
            settled = dict(await refreshing.completed())
            authorizer = refreshing
        else:
            authorizer = StaticAuthorizer(headers_for(found.spec.authentication[method], checked))
        scope = RateScope.of_credentials(found.spec, checked)
        yield LocalConnector(upstreams.connector(found, settled, authorizer, scope))
