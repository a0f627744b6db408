"""POST /mcp: the Model Context Protocol, whose tools reach every operation of the caller's organization."""

from uuid import UUID

import msgspec
from aiohttp import web
from pydantic import Field

from gateway.agent_tools.hosted import HostedBackend, HostedCaller, HostedJobs
from gateway.agent_tools.server import Servers
from gateway.errors import Forbidden
from gateway.http.bodies import QueryString, read_query
from gateway.http.keys import AUDIT, CALLER, LIMITS, LINK_BASE, REQUEST_ID, SERVICES
from gateway.mcp import http
from gateway.mcp.request_state import RequestStates
from gateway.mcp.server import Server
from gateway.services import Services
from gateway.telemetry import tracing

SERVERS = web.AppKey("mcp_servers", Servers)
ORIGINS = web.AppKey("mcp_origins", frozenset[str])


class McpQuery(QueryString):
    """Which tools."""

    tools: str | None = Field(None, description="patterns such as team-chat.*.list, separated by commas")


def open_servers(app: web.Application, services: Services) -> None:
    """Make the tools of this process, once."""
    states = RequestStates(services.request_seals)
    app[SERVERS] = Servers(HostedBackend(services), HostedJobs(services), states)
    app[ORIGINS] = http.origins_of(services.settings.base_url, *services.settings.mcp_origins)


async def mcp(request: web.Request) -> web.StreamResponse:
    """POST /mcp: six tools, or with `?tools=` a tool for each operation that fits one of the patterns."""
    query = read_query(request, McpQuery)
    servers = request.app[SERVERS]
    if query.tools is None:
        return await _served(request, servers.six)
    return await _served(request, servers.flat(tuple(query.tools.split(","))))


async def mcp_of_kind(request: web.Request) -> web.StreamResponse:
    """POST /mcp/{kind}: a tool for each operation of the kind; raises UnknownConnectorType."""
    kind = request.app[SERVICES].catalog.kind(request.match_info["kind"])
    return await _served(request, request.app[SERVERS].flat((f"{kind.name}.*",)))


async def _served(request: web.Request, server: Server) -> web.StreamResponse:
    if not http.is_origin_allowed(request, request.app[ORIGINS]):
        raise Forbidden(f"pages of {request.headers['Origin']} may not call; GATEWAY_MCP_ORIGINS allows more")
    try:
        document = msgspec.json.decode(await request.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return http.parse_error()
    _continue_trace(document)
    return await http.handle(request, server, document, caller=_caller(request))


def _caller(request: web.Request) -> HostedCaller:
    pending = request[AUDIT]
    pending.what = None

    def audit(connector_id: UUID, what: str) -> None:
        pending.connector_id, pending.what = connector_id, what

    return HostedCaller(request[CALLER], request[REQUEST_ID], request.app[LINK_BASE], audit, request.app[LIMITS].parked)


def _continue_trace(document: object) -> None:
    """The trace that the message carries goes before that of its request."""
    params = document.get("params") if isinstance(document, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and isinstance(meta.get("traceparent"), str):
        tracing.continued(
            {name: meta[name] for name in ("traceparent", "tracestate") if isinstance(meta.get(name), str)}
        )
