"""An MCP server on a loopback port, as the kind that the import makes of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from gateway.contract.kinds import Effect
from gateway.kinds.importing.importing import kind_of
from gateway.kinds.importing.mapping import Options, import_document
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.mcp_servers import McpAddress, described
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.mcp_server import McpServer, mcp_server

KIND, URL = "tracker", "https://mcp.tracker.io/mcp"
TITLE = {"title": "Broken"}


@dataclass
class Reached:
    """A server, and the ways to it."""

    server: McpServer
    upstreams: Upstreams

    async def described(self, token: str | None = None, url: str = URL) -> dict[str, Any]:
        return await described(self.upstreams, McpAddress(url=url, token=token, kind=KIND))

    async def connector(
        self, token: str | None = None, scope: RateScope | None = None, effect: Effect = Effect.WRITE
    ) -> UpstreamConnector:
        """A connector of the kind, whose tools all have that effect."""
        imported = import_document(await self.described(token), Options(kind=KIND))
        for members in imported.entities.values():
            for action in members["actions"].values():
                action["effect"] = effect.value
        kind = kind_of(imported)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        scope = scope or RateScope(id=f"{KIND}:{uuid4()}", kind=KIND)
        self.server.asked.clear()
        return self.upstreams.connector(kind, {}, StaticAuthorizer(headers), scope)


@asynccontextmanager
async def reaching(**members: Any) -> AsyncIterator[Reached]:
    """A server with these members of `McpServer`, within the block."""
    async with mcp_server(McpServer(**members)) as server, Transport(EgressPolicy.of([server.origin])) as transport:
        yield Reached(server, Upstreams(transport, {KIND: server.origin}))
