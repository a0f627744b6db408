"""POST /mcp: the Model Context Protocol, with tools for every operation of the caller's organization."""

import asyncio
import re
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from aiohttp import web
from pydantic import Field

from gateway.agents.mcp.origins import is_origin_allowed, origins_of
from gateway.contract.oauth import JsonRpcRequest, JsonRpcResponse
from gateway.errors import FieldError, Forbidden, InvalidParams
from gateway.foundation.aio.remembered import Remembered
from gateway.web.bodies import QueryString, read_query
from gateway.web.keys import ACCESS, CALLER, INDEX, ORIGINS, SERVICES
from gateway.web.route import Route

if TYPE_CHECKING:
    from gateway.web.api.mcp_endpoint import McpEndpoint

#: created at the first request, because the protocol's models are a quarter of a front end's memory
ENDPOINT: web.AppKey[Remembered["McpEndpoint"]] = web.AppKey("mcp_endpoint")


#: maximum patterns of `tools`
MAX_PATTERNS = 50
_STARS = re.compile(r"\*+")


class KindQuery(QueryString):
    """The connectors that the tools use."""

    workspace: str | None = Field(None, max_length=200, description="only connectors of this workspace")


class McpQuery(KindQuery):
    """The tools, and the connectors that they use."""

    tools: str | None = Field(
        None,
        max_length=2000,
        description="patterns such as team-chat.*.list, separated by commas, at most 50; `*` is any text",
    )


def set_up_mcp(app: web.Application) -> None:
    """Set up the endpoint /mcp and its allowed origins."""
    settings = app[SERVICES].settings
    app[ENDPOINT] = Remembered(partial(_endpoint, app), inf, lambda: app[SERVICES].catalog.version)
    app[ORIGINS] = origins_of(settings.base_url, *settings.mcp_origins)


async def _endpoint(app: web.Application) -> "McpEndpoint":
    endpoint = await asyncio.to_thread(_loaded)
    return endpoint(app[SERVICES], app[INDEX], app[ACCESS])


def _loaded() -> "type[McpEndpoint]":
    from gateway.web.api.mcp_endpoint import McpEndpoint  # takes a third of a second

    return McpEndpoint


async def mcp(request: web.Request) -> web.StreamResponse:
    """The Model Context Protocol over Streamable HTTP, without sessions: six tools that reach every operation, or with
    `?tools=` a tool for each operation that matches one of the patterns, separated by commas.
    """
    query = read_query(request, McpQuery)
    return await _answer(request, query, None if query.tools is None else patterns_of(query.tools))


def patterns_of(text: str) -> tuple[str, ...]:
    """The different patterns; raises InvalidParams for more than `MAX_PATTERNS`, since each is matched by each name."""
    patterns = tuple(dict.fromkeys(_STARS.sub("*", pattern) for pattern in text.split(",")))
    if len(patterns) > MAX_PATTERNS:
        message = f"tools has {len(patterns)} patterns; send at most {MAX_PATTERNS}"
        raise InvalidParams(faults=[FieldError("/tools", "tools", "too_many", message)])
    return patterns


async def mcp_of_kind(request: web.Request) -> web.StreamResponse:
    """The Model Context Protocol with one tool for each operation of a kind."""
    kind = request.app[SERVICES].catalog.kind(request.match_info["kind"])
    return await _answer(request, read_query(request, KindQuery), (f"{kind.name}.*",))


async def _answer(request: web.Request, query: KindQuery, patterns: tuple[str, ...] | None) -> web.StreamResponse:
    if not is_origin_allowed(request, request.app[ORIGINS]):
        raise Forbidden(
            f"the origin {request.headers['Origin']} is not allowed; the operator can add it to GATEWAY_MCP_ORIGINS"
        )
    if query.workspace is not None:
        request[CALLER] = request[CALLER].limited_to(query.workspace)
    endpoint = await request.app[ENDPOINT]()
    return await endpoint.answer(request, patterns)


_RPC = {
    200: "A JSON-RPC response, as JSON or as a stream of events",
    202: "The notification is accepted",
    400: "A JSON-RPC error: an invalid message, headers that contradict it, or an unsupported revision or capability",
    404: "A JSON-RPC error: no such method",
}

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/mcp",
        mcp,
        "Model Context Protocol: six tools, or those that `tools` names",
        "Agents",
        query=McpQuery,
        body=JsonRpcRequest,
        response={200: JsonRpcResponse, 400: JsonRpcResponse, 404: JsonRpcResponse},
        answers=_RPC,
        media={200: ("text/event-stream",)},
        reads=("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Origin"),
        sends={200: ("Cache-Control", "X-Accel-Buffering")},
        audit="mcp",
        is_resource=True,
        command="gateway mcp",
        in_session=True,
    ),
    Route(
        "POST",
        "/mcp/{kind}",
        mcp_of_kind,
        "Model Context Protocol: a tool for each operation of a kind",
        "Agents",
        query=KindQuery,
        body=JsonRpcRequest,
        response={200: JsonRpcResponse, 400: JsonRpcResponse, 404: JsonRpcResponse},
        answers=_RPC,
        media={200: ("text/event-stream",)},
        reads=("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Origin"),
        sends={200: ("Cache-Control", "X-Accel-Buffering")},
        audit="mcp",
        is_resource=True,
        command="gateway mcp --tools support-desk.*",
        in_session=True,
    ),
)
