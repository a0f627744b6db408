"""The responses of POST /mcp."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec
from aiohttp import web
from aiohttp.hdrs import ACCEPT

from gateway.access.services import AccessServices
from gateway.agents.mcp import http
from gateway.agents.mcp.messages import RESOURCE_EXHAUSTED, RpcError, invalid_params
from gateway.agents.mcp.request_state import RequestStates
from gateway.agents.tools.hosted import HostedBackend, HostedCaller, HostedEvents, HostedJobs, Index
from gateway.agents.tools.server import Servers
from gateway.errors import Unavailable
from gateway.foundation.telemetry import tracing
from gateway.run.services import Services
from gateway.web.admission.load_shedding import LIMITS
from gateway.web.bodies import read_bytes, require_fast_json
from gateway.web.keys import AUDIT, CALLER, LINK_BASE, REQUEST_ID


class McpEndpoint:
    """The MCP servers with the tools of this process."""

    def __init__(self, services: Services, index: Index, access: AccessServices) -> None:
        states = RequestStates(access.request_seals)
        self._servers = Servers(HostedBackend(services, index), HostedJobs(services), states, HostedEvents(services))

    async def answer(self, request: web.Request, patterns: tuple[str, ...] | None) -> web.StreamResponse:
        """The response to one POST: with the six tools, or with a tool for each operation that matches a pattern."""
        server = self._servers.general if patterns is None else self._servers.of_operations(patterns)
        raw = await read_bytes(request)
        require_fast_json(raw)
        try:
            document = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return await http.parse_error()
        _continue_trace(document)
        streaming = partial(_streaming, request)
        return await http.handle(request, server, document, caller=_caller(request), streaming=streaming)


def _caller(request: web.Request) -> HostedCaller:
    request[AUDIT].what = None  # a message that runs no use case, such as tools/list, is not recorded
    return HostedCaller(request[CALLER], request[REQUEST_ID], request.app[LINK_BASE], request.app[LIMITS].suspended)


@contextmanager
def _streaming(request: web.Request) -> Iterator[None]:
    """Count the request as a stream within the block; raises RpcError, also for a client that reads no stream."""
    if "text/event-stream" not in request.headers.get(ACCEPT, ""):
        raise invalid_params("this method answers with a stream; the Accept header must include text/event-stream")
    with ExitStack() as stack:
        try:
            stack.enter_context(request.app[LIMITS].one_stream(request, request[CALLER].organization_id))
        except Unavailable as error:
            raise RpcError(RESOURCE_EXHAUSTED, error.detail, {"limit": "streams"}) from error
        yield


def _continue_trace(document: object) -> None:
    """Continue the trace in `_meta` of the message, instead of that of its HTTP request."""
    params = document.get("params") if isinstance(document, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    if isinstance(meta, dict) and isinstance(meta.get("traceparent"), str):
        tracing.continue_trace(
            {name: meta[name] for name in ("traceparent", "tracestate") if isinstance(meta.get(name), str)}
        )
