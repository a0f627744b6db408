"""Reads what an MCP server offers, for the import: its name, its protocol version and its tools, each list bounded."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
from yarl import URL

from gateway.contract.connectors import MCP, TOKEN_REQUIRED
from gateway.errors import (
    FieldError,
    GatewayError,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamInvalidResponse,
    UpstreamTimeout,
)
from gateway.foundation import payloads
from gateway.foundation.mcp import HANDSHAKE_VERSIONS, VERSIONS
from gateway.kinds.importing.mcp_server import FAILURE, MARK
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream import mcp_messages, mcp_sessions
from gateway.upstream.auth import QUERY_PREFIX, StaticAuthorizer
from gateway.upstream.egress import checked_url
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.responses import UpstreamResponse
from gateway.upstream.session import UpstreamSession
from gateway.upstream.upstreams import Upstreams

#: maximum pages of tools, tools, and bytes of all tools
_MAX_PAGES, _MAX_TOOLS, _MAX_BYTES = 200, 2_000, 8 << 20
#: seconds for all pages
_DEADLINE = 120.0
#: a member of a query whose name says that it is a credential; `team` and `project_ref` are none
_SECRET_NAME = re.compile(r"key$|token|secret|passw|credential|signature|^(auth|authorization|jwt|pat|sig|code)$", re.I)


@dataclass(frozen=True, kw_only=True)
class McpAddress:
    """An MCP server, and how its tools may be listed."""

    url: str
    #: the access token; None if everybody may list and call the tools
    token: str | None = None
    #: the header of the token, if it is not `Authorization: Bearer`
    header: str | None = None
    #: the member of the query that is the token, in place of a header
    query: str | None = None
    #: if the token comes from a person's consent: the members of `oauth` in the spec of the kind
    oauth: Mapping[str, Any] | None = None
    #: the name of the kind; by default made from the server's name
    kind: str | None = None

    def __str__(self) -> str:
        """The address without its query, in which some servers expect a key."""
        return self.url.partition("?")[0]

    @property
    def authentication(self) -> Any:
        """How the import describes the credentials."""
        if self.oauth is not None:
            return {"oauth": self.oauth}
        return "none" if self.token is None else {"header": self.header, "query": self.query}

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that authenticate."""
        if self.token is None:
            return {}
        if self.query is not None:
            return {f"{QUERY_PREFIX}{self.query}": self.token}
        return {"Authorization": f"Bearer {self.token}"} if self.header is None else {self.header: self.token}


class _ToolPage(msgspec.Struct):
    tools: list[msgspec.Raw]
    nextCursor: str | None = None  # noqa: N815


class _Listed(msgspec.Struct):
    result: _ToolPage


class _Said(msgspec.Struct):
    """What a server says of itself."""

    serverInfo: dict[str, Any] = {}  # noqa: N815
    capabilities: dict[str, Any] = {}


class _Greeting(msgspec.Struct):
    result: _Said


async def described(upstreams: Upstreams, address: McpAddress, *, within: float = _DEADLINE) -> dict[str, Any]:
    """The document of a server, as `gateway.kinds.importing.mcp_server` maps it; `within` so many seconds.

    Raises InvalidParams for an address or a token that does not do, and the server's own errors.
    """
    url = url_of(upstreams, address)
    try:
        async with asyncio.timeout(within):
            session, greeting = await _greeted(upstreams, url, address)
            tools = await _tools(session, own_url(session, url))
    except TimeoutError:
        raise UpstreamTimeout(f"the MCP server has not listed its tools within {within:.0f} seconds") from None
    except ReauthorizationRequired as refused:
        if address.token is None:
            raise _token_required() from refused
        raise InvalidParams("the MCP server does not list its tools: its token is refused") from refused
    return {
        MARK: session.spec.mcp,
        "server": str(url),
        "serverInfo": greeting.serverInfo,
        "capabilities": greeting.capabilities,
        "authentication": address.authentication,
        "tools": tools,
    }


def _token_required() -> InvalidParams:
    """The error of a server that answers nobody without a token."""
    message = (
        "the MCP server does not list its tools: it asks for a token; give one in access_token, or let a person sign "
        "in: gateway connect --mcp URL, or POST /api/v1/integrations/connectors/oauth/initiate with mcp_server"
    )
    return InvalidParams(faults=[FieldError("/credentials/access_token", "access_token", TOKEN_REQUIRED, message)])


def url_of(upstreams: Upstreams, address: McpAddress) -> URL:
    """The URL of a server; raises InvalidParams unless it is https on a public host, without credentials."""
    try:
        host = URL(address.url).host or ""
    except ValueError:
        host = ""
    override = upstreams.override_of(address.kind)
    url = checked_url(address.url, hosts=[host], override=override, error=InvalidParams)
    if "{" in address.url or "}" in address.url:
        raise InvalidParams("address refused: it has braces; write %7B and %7D")
    twice = next((name for name in url.query if len(url.query.getall(name)) > 1), None)
    if twice is not None:
        raise InvalidParams(f"the query of the MCP server's URL has {twice[:60]} twice")
    secret = next((name for name in url.query if _SECRET_NAME.search(name)), None)
    if secret is not None:
        raise InvalidParams(
            f"the query of the MCP server's URL has {secret[:60]}, which is a credential that everybody who sees "
            f"the kind would see: leave it out of the URL, give it as credentials.access_token, and its name as `query`"
        )
    return url


async def _greeted(upstreams: Upstreams, url: URL, address: McpAddress) -> tuple[UpstreamSession, _Said]:
    """A session in the newest protocol version that the server speaks, and what it says of itself."""
    session = session_of(upstreams, url, address, VERSIONS[0])
    request = mcp_messages.message(own_url(session, url), "server/discover", {}, VERSIONS[0])
    try:
        return session, _said_in(await session.ask(request))
    except ReauthorizationRequired:
        raise
    except GatewayError as error:
        if error.upstream is None or error.upstream.status is None:
            raise
    session = session_of(upstreams, url, address, HANDSHAKE_VERSIONS[0])
    opening = await mcp_sessions.begun(session.send(60), request, HANDSHAKE_VERSIONS[0])
    agreed = session_of(upstreams, url, address, opening.protocol)
    credentials = await agreed.authorizer.headers()
    agreed.transport.mcp_sessions.keep(agreed.scope.id, request.url, credentials, opening.headers)
    return agreed, _said_in(opening.response)


def provisional_spec(url: URL, kind: str | None, protocol: str = VERSIONS[0], **members: Any) -> ConnectorSpec:
    """The spec of a server whose tools are not known yet."""
    return ConnectorSpec.model_validate(
        {
            "kind": kind or MCP,
            "title": "MCP server",
            "description": "an MCP server that is read for an import",
            "server": str(url.origin()),
            "hosts": [url.host],
            "authentication": {},
            "failure": FAILURE,
            "mcp": protocol,
            **members,
        }
    )


def session_of(upstreams: Upstreams, url: URL, address: McpAddress, protocol: str) -> UpstreamSession:
    """A session with a server whose tools are not known yet, with the credentials of the address."""
    spec = provisional_spec(url, address.kind, protocol)
    scope = RateScope(id=f"{MCP}:{uuid4()}", kind=MCP)
    return upstreams.session(spec, {}, StaticAuthorizer(address.headers), scope)


def own_url(session: UpstreamSession, url: URL) -> URL:
    """The URL to which the session sends messages."""
    return URL(f"{session.address}{url.raw_path_qs}", encoded=True)


def _said_in(response: UpstreamResponse) -> _Said:
    try:
        return payloads.typed(response.body, _Greeting).result
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
