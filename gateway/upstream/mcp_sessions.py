"""Sessions with MCP servers of the revisions before 2026-07-28, which begin with `initialize`.

A process keeps the session of each rate scope. A server that has forgotten one answers 404, or 400 as some do: then
the session begins anew, and the request is sent again, because the server did nothing.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace
from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.foundation.mcp import SESSION, VERSION, VERSIONS
from gateway.upstream.mcp_messages import initialize_params, initialized_body, message
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import Exchange, UpstreamResponse

_INITIALIZE = "initialize"
#: maximum sessions that a process keeps
_MAX_SESSIONS = 5_000
#: maximum characters of a session's id
_MAX_ID = 1_000
#: statuses of a request with a session that the server does not know
_UNKNOWN_SESSION = (400, 404)

#: sends one request and judges its response
Send = Callable[[UpstreamRequest], Awaitable[Exchange]]


class McpSessions:
    """The headers of sessions that have begun, by rate scope and address."""

    def __init__(self) -> None:
        self._headers: OrderedDict[tuple[str, URL], Mapping[str, str]] = OrderedDict()

    def of(self, scope_id: str, url: URL) -> Mapping[str, str] | None:
        """The headers of a session; None before it has begun."""
        return self._headers.get((scope_id, url))

    def keep(self, scope_id: str, url: URL, found: Mapping[str, str]) -> None:
        key = scope_id, url
        self._headers[key] = found
        self._headers.move_to_end(key)
        if len(self._headers) > _MAX_SESSIONS:
            self._headers.popitem(last=False)


async def in_session(
    send: Send, begin: Send, request: UpstreamRequest, sessions: McpSessions, scope_id: str, protocol: str
) -> Exchange:
    """The outcome of a request within a session, which `begin` starts if there is none."""
    known = sessions.of(scope_id, request.url)
    if known is not None:
        exchange = await send(_with(request, known))
        is_unknown = exchange.error is not None and exchange.response.status in _UNKNOWN_SESSION
        if SESSION not in known or not is_unknown:
            return exchange
    started = (await begun(begin, request, protocol)).headers
    sessions.keep(scope_id, request.url, started)
    return await send(_with(request, started))


@dataclass(frozen=True)
class Opening:
    """A session that has begun."""

    protocol: str
    #: the headers of its requests
    headers: Mapping[str, str]
    response: UpstreamResponse


async def begun(begin: Send, request: UpstreamRequest, protocol: str) -> Opening:
    """A new session at the address of a request; raises the server's error."""
    params = initialize_params(protocol)
    opening = message(request.url, _INITIALIZE, params, protocol)
    response = (await begin(opening)).succeeded()
    agreed = _version_of(response)
    found = {VERSION: agreed}
    session_id = response.headers.get(SESSION.lower())
    if session_id is not None:
        if len(session_id) > _MAX_ID:
            raise UpstreamInvalidResponse("the server's session id is too long")
        found[SESSION] = session_id
    notice = replace(opening, body=initialized_body(), operation="mcp.initialized", reads_events=False)
    (await begin(_with(notice, found))).succeeded()
    return Opening(agreed, found, response)


class _Initialized(msgspec.Struct):
    protocolVersion: str  # noqa: N815


class _Response(msgspec.Struct):
    result: _Initialized


def _version_of(response: UpstreamResponse) -> str:
    try:
        found = payloads.typed(response.body, _Response).result.protocolVersion
    except msgspec.MsgspecError as error:
        raise UpstreamInvalidResponse("the server's answer to initialize names no protocol version") from error
    if found not in VERSIONS:
        raise UpstreamInvalidResponse(f"the server speaks the protocol version {found[:40]!r}, which is not supported")
    return found


def _with(request: UpstreamRequest, session: Mapping[str, str]) -> UpstreamRequest:
    secrets = (*request.secrets, *([session[SESSION]] if SESSION in session else []))
    return replace(request, headers={**request.headers, **session}, secrets=secrets)
