"""The Streamable HTTP transport: a POST gets a JSON response or a stream of events; closing the stream cancels."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mcp_types as types
from aiohttp import web

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.headers import check_names, version_of
from gateway.agents.mcp.messages import RpcError, error_response, id_of, message_of, response
from gateway.agents.mcp.server import Server
from gateway.foundation.large_json import LARGE, encoded
from gateway.foundation.mcp import HANDSHAKE_VERSIONS

_EVENTS = "text/event-stream"
#: notifications that wait until the client reads; a request that sends more of them waits too
_UNSENT = 16
#: seconds between checks whether the client is connected
_POLL_INTERVAL = 0.5
#: seconds without an event after which a stream sends a keep-alive
_KEEP_ALIVE = 10.0
#: seconds without a response after which it becomes a stream, so that proxies do not time out
_TIMEOUT = 5.0


async def handle(
    request: web.Request,
    server: Server,
    document: Any,
    *,
    caller: Any = None,
    streaming: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> web.StreamResponse:
    """The response to one POST with a parsed body."""
    try:
        message = message_of(document)
        if message.is_notification:
            return web.Response(status=202)
        version = version_of(message, request.headers)
        if version not in HANDSHAKE_VERSIONS:
            check_names(message, request.headers)
    except RpcError as error:
        return await _json(error_response(id_of(document), error), error)
    pending: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue(_UNSENT)
    context = Context(
        message=message,
        version=version,
        send=pending.put,
        caller=caller,
        headers=request.headers,
        streaming=streaming,
    )
    return await _Exchange(request, server, context, pending).answered()


async def parse_error() -> web.Response:
    """The response to a body that is not JSON."""
    error = RpcError(types.PARSE_ERROR, "the body is not JSON")
    return await _json(error_response(None, error), error)


class _Exchange:
    """One request in progress. The response is JSON if it is ready soon and has no notifications, else a stream."""

    def __init__(
        self, request: web.Request, server: Server, context: Context, pending: asyncio.Queue[Mapping[str, Any] | None]
    ) -> None:
        self._request = request
        self._message = context.message
        #: notifications; None wakes the reader at the end
        self._pending = pending
        self._serving = asyncio.create_task(server.serve(context))
        self._serving.add_done_callback(self._wake)
        self._stream: web.StreamResponse | None = None
        self._streams = _EVENTS in request.headers.get("Accept", "")

    async def answered(self) -> web.StreamResponse:
        """The response; a stream was sent completely. Raises ConnectionError if the client disconnects."""
        try:
            await self._follow()
            document, error = self._outcome()
            if self._stream is None:
                return await _json(document, error)
            await self._write(document)
            await self._stream.write_eof()
            return self._stream
        finally:
            await _ended(self._serving)

    def _wake(self, _: object) -> None:
        if not self._pending.full():
            self._pending.put_nowait(None)

    def _outcome(self) -> tuple[dict[str, Any], RpcError | None]:
        try:
            return response(self._message.id, self._serving.result()), None
        except RpcError as error:
            return error_response(self._message.id, error), error

    async def _follow(self) -> None:
        """Send notifications until the result is ready."""
        clock = asyncio.get_running_loop().time
        last = clock()
        while not (self._serving.done() and self._pending.empty()):
            try:
                async with asyncio.timeout(_POLL_INTERVAL):
                    notification = await self._pending.get()
            except TimeoutError:
                self._require_client()
                if self._streams and clock() - last > (_KEEP_ALIVE if self._stream else _TIMEOUT):
                    await (await self._opened()).write(b": alive\n\n")
                    last = clock()
                continue
            if notification is not None and self._streams:
                await self._write(notification)
                last = clock()

    def _require_client(self) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client closed the stream, which cancels the request")

    async def _opened(self) -> web.StreamResponse:
        if self._stream is None:
            headers = {"Content-Type": _EVENTS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            self._stream = web.StreamResponse(headers=headers)
            await self._stream.prepare(self._request)
        return self._stream

    async def _write(self, document: Mapping[str, Any]) -> None:
        text = await encoded(document)
        stream = await self._opened()
        if len(text) <= LARGE:
            await stream.write(b"event: message\ndata: " + text + b"\n\n")
            return
        await stream.write(b"event: message\ndata: ")
        for begin in range(0, len(text), LARGE):
            await stream.write(text[begin : begin + LARGE])
        await stream.write(b"\n\n")


async def _json(document: Mapping[str, Any], error: RpcError | None) -> web.Response:
    """The document as a JSON response, with the status and the headers of its error."""
    status, headers = (200, None) if error is None else (error.status, error.headers)
    body = await encoded(document)
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


async def _ended(task: "asyncio.Task[Any]") -> None:
    """Wait until the task has ended; cancel it if it has not."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
