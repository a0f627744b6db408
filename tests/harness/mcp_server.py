"""An MCP server on a loopback port that is as old, as stateful or as rude as a test wants."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.foundation.mcp import (
    CAPABILITIES_KEY,
    METHOD,
    NAME,
    TASKS,
    VERSION,
    VERSION_KEY,
    VERSIONS,
    has_handshake,
)

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


#: a tool that servers of 2025-11-25 offer as a task
REPORT = {
    "name": "make_report",
    "description": "Makes a report of all issues.",
    "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
    "execution": {"taskSupport": "required"},
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
    #: the whole response to a call, in place of that to its id; and the status of each response
    response: Any = None
    status: int = 200
    #: the media type of each response, and its body with `%b` for the message
    wrapping: tuple[str, bytes] | None = None
    #: whether a stream ends after its response
    is_ended: bool = False
    #: whether a stream goes on without a response, and whether it ends without one
    is_endless: bool = False
    is_cut: bool = False
    #: whether a stream stays open and has no response
    is_silent: bool = False
    #: the states that the task of a call has, one at each look, the last one then always; None: it has no tasks
    states: Sequence[str] | None = None
    #: the milliseconds between two looks that the server asks for
    interval: Any = 1
    #: the arguments of the calls that became tasks, by the ids of the tasks; and how often each was looked at
    tasks: dict[str, Any] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    canceled: set[str] = field(default_factory=set)
    #: whether the cursor of the next page is always the same, and whether there is always a next page
    repeats_cursor: bool = False
    is_bottomless: bool = False
    #: where requests are redirected to
    redirects_to: URL | None = None
    #: the id of each session that begins; by default a random one
    session_id: str | None = None
    sessions: set[str] = field(default_factory=set)
    #: the ids of the requests that came in each session; one that comes again is refused, as JSON-RPC has it
    ids: dict[str | None, set[Any]] = field(default_factory=dict)
    #: methods that the server calls, before its response, and the answers to them; it waits for each
    asks: Sequence[str] = ()
    replies: list[Any] = field(default_factory=list)
    _replied: asyncio.Event = field(default_factory=asyncio.Event)
    #: the methods of the requests, with the names of called tools
    asked: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    origin: URL = field(default_factory=URL)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        message = await request.json()
        if "method" not in message:
            self.replies.append(message)
            self._replied.set()
            return web.Response(status=202)
        if "id" in message:
            ids = self.ids.setdefault(request.headers.get("Mcp-Session-Id"), set())
            if message["id"] in ids:
                return web.json_response(_error(message["id"], -32600, "the id was used before"), status=400)
            ids.add(message["id"])
        method, params = message["method"], message.get("params", {})
        self.asked.append(f"{method} {params['name']}" if method == "tools/call" else method)
        self.headers.append(request.headers)
        self.queries.append(request.query_string)
        if self.redirects_to is not None:
            raise web.HTTPTemporaryRedirect(self.redirects_to)
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"error": "invalid_token"}, status=401)
        if not has_handshake(self.protocol):
            said = params.get("_meta", {}).get(VERSION_KEY)
            named = params.get("name", params.get("taskId"))
            assert said == request.headers[VERSION] == self.protocol
            assert (request.headers.get(METHOD), request.headers.get(NAME)) == (method, named)
        elif method == "initialize":
            return self._initialized(message)
        elif self.has_sessions and request.headers.get("Mcp-Session-Id") not in self.sessions:
            missing = "Mcp-Session-Id" not in request.headers
            return web.json_response(
                _error(None, -32000, "no session"), status=400 if missing else self.unknown_session
            )
        if "id" not in message:
            return web.Response(status=202)
        response = self._response(message, method, params) if self.response is None else self.response
        return await self._responded(request, response)

    def _initialized(self, message: Mapping[str, Any]) -> web.Response:
        headers = {}
        if self.has_sessions:
            self.sessions.add(headers.setdefault("Mcp-Session-Id", self.session_id or uuid4().hex))
        result = {"protocolVersion": self.protocol, "capabilities": self.capabilities, "serverInfo": self.info}
        return web.json_response(_result(message["id"], result), headers=headers)

    @property
    def is_new(self) -> bool:
        """Whether it speaks the newest revision, whose tasks are an extension."""
        return not has_handshake(self.protocol)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it says that it can do."""
        if self.states is None:
            return {"tools": {}}
        if self.is_new:
            return {"tools": {}, "extensions": {TASKS: {}}}
        return {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}

    @property
    def info(self) -> dict[str, str]:
        return {"name": "tracker-mcp-server", "version": "1"}

    def _response(self, message: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        match method:
            case "server/discover" if self.is_new:
                said = {"serverInfo": self.info, "capabilities": self.capabilities}
                return _result(message["id"], {**said, "supportedVersions": [self.protocol]})
            case "ping" if not self.is_new:
                return _result(message["id"], {})
            case "tools/list":
                begin = int(params.get("cursor", 0))
                end = begin + self.page
                following = {"nextCursor": "0" if self.repeats_cursor else str(end)}
                more = following if end < len(self.tools) or self.repeats_cursor or self.is_bottomless else {}
                return _result(message["id"], {"tools": self.tools[begin:end], **more})
            case "tools/call" if self.states is not None and self._wants_task(params):
                task_id = uuid4().hex
                self.tasks[task_id] = params["arguments"]
                begun = self._task(task_id, "working")
                return _result(message["id"], {**begun, "resultType": "task"} if self.is_new else {"task": begun})
            case "tools/call":
                return {"jsonrpc": "2.0", "id": message["id"], **self._outcome(params["arguments"])}
            case "tasks/get" | "tasks/result" | "tasks/cancel" if params["taskId"] not in self.tasks:
                return _error(message["id"], -32602, "no such task")
            case "tasks/get":
                return _result(message["id"], self._looked_at(params["taskId"]))
            case "tasks/result" if not self.is_new:
                return {"jsonrpc": "2.0", "id": message["id"], **self._outcome(self.tasks[params["taskId"]])}
            case "tasks/cancel":
                self.canceled.add(params["taskId"])
                return _result(message["id"], {} if self.is_new else self._task(params["taskId"], "cancelled"))
        return _error(message["id"], -32601, f"no method {method}")

    def _wants_task(self, params: Mapping[str, Any]) -> bool:
        """Whether the client takes a task: by its capabilities, or because it asks for one."""
        capabilities = params.get("_meta", {}).get(CAPABILITIES_KEY, {})
        return TASKS in capabilities.get("extensions", {}) if self.is_new else "task" in params

    def _outcome(self, arguments: Any) -> Mapping[str, Any]:
        """The result or the error of a call."""
        if self.answer is not None and "error" in self.answer:
            return self.answer
        return {"result": self.answer or {"content": [{"type": "text", "text": json.dumps(arguments)}]}}

    def _looked_at(self, task_id: str) -> dict[str, Any]:
        """The task at the next look; since 2026-07-28 with its outcome, once it has one."""
        assert self.states is not None
        state = self.states[min(self.looks[task_id], len(self.states) - 1)]
        state = "cancelled" if task_id in self.canceled else state
        self.looks[task_id] += 1
        outcome = self._outcome(self.tasks[task_id]) if self.is_new and state in ("completed", "failed") else {}
        return {**self._task(task_id, state), **outcome}

    def _task(self, task_id: str, state: str) -> dict[str, Any]:
        wait = "pollIntervalMs" if self.is_new else "pollInterval"
        return {"taskId": task_id, "status": state, "statusMessage": f"it is {state}", wait: self.interval}

    async def _responded(self, request: web.Request, response: Any) -> web.StreamResponse:
        if self.wrapping is not None:
            media_type, body = self.wrapping
            return web.Response(body=body % json.dumps(response).encode(), headers={"Content-Type": media_type})
        if not self.streams:
            return web.json_response(response, status=self.status)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        await stream.write(_event(notice))
        try:
            while self.is_endless:
                await stream.write(_event({**notice, "params": {"text": "x" * 65_536}}))
        except ConnectionError:
            return stream
        for method in self.asks:
            self._replied.clear()
            await stream.write(_event({"jsonrpc": "2.0", "id": method, "method": method, "params": {}}))
            await self._replied.wait()
        if self.is_cut:
            return stream
        if not self.is_silent:
            await stream.write(_event(response))
        if self.is_ended:
            return stream
        # A client need not wait for the end of the stream.
        await asyncio.Event().wait()
        return stream


def _event(message: Any) -> bytes:
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
