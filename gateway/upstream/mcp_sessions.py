"""Sessions with MCP servers of the revisions before 2026-07-28, which begin with `initialize`.

A process keeps the session of each rate scope, for the credentials that began it: with others, which may be those of
another account, a new session begins. A server that has forgotten a session answers 404, or 400 as some do: then the
session begins anew, and the request is sent again, because the server did nothing. A response with the id of the
request is the answer of a server that knows the session.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace
from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.least_used import LeastUsed
from gateway.foundation.mcp import OLDEST_VERSION, SESSION, VERSION, VERSIONS
from gateway.upstream.mcp_messages import initialize_params, initialized_body, message
from gateway.upstream.rate_limits import digest_of
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import Exchange, UpstreamResponse

_INITIALIZE = "initialize"
#: maximum sessions that a process keeps
_MAX_SESSIONS = 5_000
#: a session's id: visible ASCII
_SESSION_ID = re.compile(r"[!-~]{1,1000}")

#: sends one request and judges its response
Send = Callable[[UpstreamRequest], Awaitable[Exchange]]


class McpSessions:
    """The headers of sessions that have begun, by rate scope and address."""

    def __init__(self) -> None:
        #: with the digest of the credentials that began the session
        self._begun: dict[tuple[str, URL], tuple[str, Mapping[str, str]]] = {}
        self._used: LeastUsed[tuple[str, URL]] = LeastUsed(_MAX_SESSIONS)

    def of(self, scope_id: str, url: URL, credentials: Mapping[str, str]) -> Mapping[str, str] | None:
        """The headers of a session; None before it has begun with these credentials."""
        digest, found = self._begun.get((scope_id, url), (None, None))
        return found if digest == digest_of(credentials) else None

    def keep(self, scope_id: str, url: URL, credentials: Mapping[str, str], found: Mapping[str, str]) -> None:
        """Keep the headers of a session, in place of the session of other credentials."""
        key = scope_id, url
        self._used.discard(key)
        self._begun[key] = digest_of(credentials), found
        for dropped in self._used.add(key, computing_for()):
            del self._begun[dropped]


async def in_session(
    send: Send,
    begin: Send,
    request: UpstreamRequest,
    sessions: McpSessions,
    scope_id: str,
    credentials: Mapping[str, str],
    protocol: str,
) -> Exchange:
    """The outcome of a request within a session, which `begin` starts if there is none."""
    known = sessions.of(scope_id, request.url, credentials)
    if known is not None:
        exchange = await send(_with(request, known))
        if SESSION not in known or not _is_unknown(exchange):
            return exchange
    started = (await begun(begin, request, protocol)).headers
    sessions.keep(scope_id, request.url, credentials, started)
    return await send(_with(request, started))


def _is_unknown(exchange: Exchange) -> bool:
    """Whether the server says that it does not know the session of a request."""
    return exchange.error is not None and exchange.response.status in (400, 404) and not exchange.is_to_request


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
        if not _SESSION_ID.fullmatch(session_id):
            raise UpstreamInvalidResponse("the server's session id is not 1 to 1,000 visible ASCII characters")
        found[SESSION] = session_id
    notice = replace(opening, body=initialized_body(), operation="mcp.initialized", mcp_method=None)
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
    if found not in (*VERSIONS, OLDEST_VERSION):
        raise UpstreamInvalidResponse(f"the server speaks the protocol version {found[:40]!r}, which is not supported")
    return found


def _with(request: UpstreamRequest, session: Mapping[str, str]) -> UpstreamRequest:
    secrets = (*request.secrets, *([session[SESSION]] if SESSION in session else []))
    return replace(request, headers={**request.headers, **session}, secrets=secrets)
