"""An MCP server on a loopback port that is as old, as stateful or as rude as a test wants."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.foundation.mcp import HANDSHAKE_VERSIONS, METHOD, NAME, VERSION, VERSION_KEY, VERSIONS

CREATE = {
    "name": "create_issue",
    "description": "Creates an issue in a project.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 100},
            "labels": {"type": "array", "items": {"$ref": "#/$defs/label"}},
        },
        "required": ["title"],
        "$defs": {"label": {"type": "string", "enum": ["bug", "idea"]}},
    },
}
SEARCH = {
    "name": "search",
    "description": "Finds issues by words.",
    "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}


@dataclass
class McpServer:
    """What the server is like, and what it was asked."""

    protocol: str = VERSIONS[0]
    tools: list[dict[str, Any]] = field(default_factory=lambda: [CREATE, SEARCH])
    token: str | None = None
    #: whether requests need the session that `initialize` began; only before 2026-07-28
    has_sessions: bool = False
    #: whether responses are streams of events, each with a notification before the response
    streams: bool = False
    #: tools on a page of the list
    page: int = 50
    #: the status of a request with a session that is not known
    unknown_session: int = 404
    #: the result of a call, or a whole response with `error`; echoes the arguments by default
    answer: Mapping[str, Any] | None = None
    #: whether a stream goes on without a response, and whether it ends without one
    is_endless: bool = False
    is_cut: bool = False
    #: whether the cursor of the next page is always the same
    repeats_cursor: bool = False
    sessions: set[str] = field(default_factory=set)
    #: the methods of the requests, with the names of called tools
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    origin: URL = field(default_factory=URL)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        method, params = message["method"], message.get("params", {})
        self.asked.append(f"{method} {params['name']}" if method == "tools/call" else method)
        self.headers.append(request.headers)
        self.queries.append(request.query_string)
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"error": "invalid_token"}, status=401)
        if self.protocol not in HANDSHAKE_VERSIONS:
            said = params.get("_meta", {}).get(VERSION_KEY)
            names = (request.headers.get(METHOD), request.headers.get(NAME, params.get("name")))
            assert said == request.headers[VERSION] == self.protocol
            assert names == (method, params.get("name"))
        elif method == "initialize":
            return self._initialized(message)
        elif self.has_sessions and request.headers.get("Mcp-Session-Id") not in self.sessions:
            missing = "Mcp-Session-Id" not in request.headers
            return web.json_response(
                _error(None, -32000, "no session"), status=400 if missing else self.unknown_session
            )
        if "id" not in message:
            return web.Response(status=202)
        return await self._responded(request, self._response(message, method, params))

    def _initialized(self, message: Mapping[str, Any]) -> web.Response:
        headers = {}
        if self.has_sessions:
            self.sessions.add(headers.setdefault("Mcp-Session-Id", uuid4().hex))
        result = {"protocolVersion": self.protocol, "capabilities": {"tools": {}}, "serverInfo": self.info}
        return web.json_response(_result(message["id"], result), headers=headers)

    @property
    def info(self) -> dict[str, str]:
        return {"name": "tracker-mcp-server", "version": "1"}

    def _response(self, message: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        match method:
            case "server/discover" if self.protocol not in HANDSHAKE_VERSIONS:
                return _result(message["id"], {"serverInfo": self.info, "supportedVersions": [self.protocol]})
            case "ping" if self.protocol in HANDSHAKE_VERSIONS:
                return _result(message["id"], {})
            case "tools/list":
                begin = int(params.get("cursor", 0))
                end = begin + self.page
                following = {"nextCursor": "0" if self.repeats_cursor else str(end)}
                more = following if end < len(self.tools) or self.repeats_cursor else {}
                return _result(message["id"], {"tools": self.tools[begin:end], **more})
            case "tools/call" if self.answer is not None and "error" in self.answer:
                return {"jsonrpc": "2.0", "id": message["id"], **self.answer}
            case "tools/call":
                echo = {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
                return _result(message["id"], self.answer or echo)
        return _error(message["id"], -32601, f"no method {method}")

    async def _responded(self, request: web.Request, response: Mapping[str, Any]) -> web.StreamResponse:
        if not self.streams:
            return web.json_response(response)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        await stream.write(_event(notice))
        try:
            while self.is_endless:
                await stream.write(_event({**notice, "params": {"text": "x" * 65_536}}))
        except ConnectionError:
            return stream
        if self.is_cut:
            return stream
        await stream.write(_event(response))
        # A client need not wait for the end of the stream.
        await asyncio.Event().wait()
        return stream


def _event(message: Mapping[str, Any]) -> bytes:
    return f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode()


def _result(message_id: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "result": result}


def _error(message_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}


@asynccontextmanager
async def mcp_server(server: McpServer) -> AsyncIterator[McpServer]:
    """Serve it at `/mcp`, within the block."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/mcp", server.handle)
    async with TestServer(app, handler_cancellation=True, shutdown_timeout=0) as listening:
        server.origin = listening.make_url("/").origin()
        yield server


def tools(count: int) -> Sequence[dict[str, Any]]:
    """As many tools as that."""
    return [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(count)]
