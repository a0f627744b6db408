"""Reads what an MCP server offers, for the import: its name, its protocol version and its tools, each list bounded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
from yarl import URL

from gateway.contract.connectors import MCP
from gateway.errors import (
    GatewayError,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamInvalidResponse,
)
from gateway.foundation import payloads
from gateway.foundation.mcp import HANDSHAKE_VERSIONS, VERSIONS
from gateway.kinds.importing.mcp_server import FAILURE, MARK
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream import mcp_messages, mcp_sessions
from gateway.upstream.auth import StaticAuthorizer
from gateway.upstream.egress import checked_url
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.responses import UpstreamResponse
from gateway.upstream.session import UpstreamSession
from gateway.upstream.upstreams import Upstreams

#: maximum pages of tools, tools, and bytes of all tools
_MAX_PAGES, _MAX_TOOLS, _MAX_BYTES = 200, 2_000, 8 << 20


@dataclass(frozen=True, kw_only=True)
class McpAddress:
    """An MCP server, and how its tools may be listed."""

    url: str
    #: the access token; None if everybody may list and call the tools
    token: str | None = None
    #: the header of the token, if it is not `Authorization: Bearer`
    header: str | None = None
    #: the name of the kind; by default made from the server's name
    kind: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that authenticate."""
        if self.token is None:
            return {}
        return {"Authorization": f"Bearer {self.token}"} if self.header is None else {self.header: self.token}


class _ToolPage(msgspec.Struct):
    tools: list[msgspec.Raw]
    nextCursor: str | None = None  # noqa: N815


class _Listed(msgspec.Struct):
    result: _ToolPage


class _Said(msgspec.Struct):
    serverInfo: dict[str, Any] = {}  # noqa: N815


class _Greeting(msgspec.Struct):
    result: _Said


async def described(upstreams: Upstreams, address: McpAddress) -> dict[str, Any]:
    """The document of a server, as `gateway.kinds.importing.mcp_server` maps it.

    Raises InvalidParams for an address or a token that does not do, and the server's own errors.
    """
    override = upstreams.overrides.get(address.kind or MCP)  # GATEWAY_UPSTREAM_MCP while the kind has no name
    host = URL(address.url).host or "" if "://" in address.url else ""
    url = checked_url(address.url, hosts=[host], override=override, error=InvalidParams)
    try:
        session, greeting = await _greeted(upstreams, url, address)
        tools = await _tools(session, _own_url(session, url))
    except ReauthorizationRequired as refused:
        advice = "its token is refused" if address.token else "it asks for a token; give one in access_token"
        raise InvalidParams(f"the MCP server does not list its tools: {advice}") from refused
    return {
        MARK: session.spec.mcp,
        "server": str(url),
        "serverInfo": greeting,
        "authentication": {"header": address.header} if address.token else "none",
        "tools": tools,
    }


async def _greeted(upstreams: Upstreams, url: URL, address: McpAddress) -> tuple[UpstreamSession, Mapping[str, Any]]:
    """A session in the newest protocol version that the server speaks, and what it says of itself."""
    session = _session(upstreams, url, address, VERSIONS[0])
    request = mcp_messages.message(_own_url(session, url), "server/discover", {}, VERSIONS[0])
    try:
        return session, _server_info(await session.ask(request))
    except ReauthorizationRequired:
        raise
    except GatewayError as error:
        if error.upstream is None or error.upstream.status is None:
            raise
    session = _session(upstreams, url, address, HANDSHAKE_VERSIONS[0])
    opening = await mcp_sessions.begun(session.send(60), request, HANDSHAKE_VERSIONS[0])
    agreed = _session(upstreams, url, address, opening.protocol)
    agreed.transport.mcp_sessions.keep(agreed.scope.id, request.url, opening.headers)
    return agreed, _server_info(opening.response)


def _session(upstreams: Upstreams, url: URL, address: McpAddress, protocol: str) -> UpstreamSession:
    spec = ConnectorSpec.model_validate(
        {
            "kind": address.kind or MCP,
            "title": "MCP server",
            "description": "an MCP server that is read for an import",
            "server": str(url.origin()),
            "hosts": [url.host],
            "authentication": {},
            "failure": FAILURE,
            "mcp": protocol,
        }
    )
    scope = RateScope(id=f"{MCP}:{uuid4()}", kind=MCP)
    return upstreams.session(spec, {}, StaticAuthorizer(address.headers), scope)


def _own_url(session: UpstreamSession, url: URL) -> URL:
    return URL(f"{session.address}{url.raw_path}", encoded=True)


def _server_info(response: UpstreamResponse) -> Mapping[str, Any]:
    try:
        return payloads.typed(response.body, _Greeting).result.serverInfo
    except msgspec.MsgspecError as error:
        raise UpstreamInvalidResponse("the server's answer is not one of the Model Context Protocol") from error


async def _tools(session: UpstreamSession, url: URL) -> list[Any]:
    """All tools, page by page; raises UpstreamInvalidResponse for a list that is too long or does not end."""
    found: list[msgspec.Raw] = []
    size, cursor, seen = 0, None, set[str]()
    for _ in range(_MAX_PAGES):
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        request = mcp_messages.message(url, "tools/list", params, session.spec.mcp or VERSIONS[0])
        response = await session.ask(request)
        size += len(response.body)
        if size > _MAX_BYTES:
            raise _too_many()
        try:
            page = payloads.typed(response.body, _Listed).result
        except msgspec.MsgspecError as error:
            raise UpstreamInvalidResponse("the server's answer to tools/list has no tools") from error
        found += page.tools
        if len(found) > _MAX_TOOLS:
            raise _too_many()
        if not page.nextCursor:
            return [payloads.value(each) for each in found]
        cursor = page.nextCursor
        if cursor in seen:
            raise UpstreamInvalidResponse("the server's list of tools does not end: it repeats a cursor")
        seen.add(cursor)
    raise UpstreamInvalidResponse(f"the server's list of tools has more than {_MAX_PAGES} pages")


def _too_many() -> UpstreamInvalidResponse:
    words = f"the server lists more than {_MAX_TOOLS:,} tools or {_MAX_BYTES >> 20} MiB of them"
    return UpstreamInvalidResponse(words)
