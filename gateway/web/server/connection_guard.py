"""Guards connections: slow senders, too many connections and malformed HTTP are refused.

aiohttp's parser refuses malformed requests, which prevents request smuggling. This module answers them with problem
documents, or with a card if a browser requests a page of the console.
"""

import asyncio
import fcntl
import logging
import termios
from array import array
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.hdrs import ACCEPT
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_server import Server

from gateway.errors import GatewayError, HeadersTooLarge, InternalError, MalformedRequest, Unavailable
from gateway.web.admission.load_shedding import ANSWER_MEMORY, LOAD_SHEDDING, LoadShedding
from gateway.web.errors import problem_response
from gateway.web.keys import ENDS_WITH_CALLER, MAY_PAUSE, STREAM
from gateway.web.pages.error_card import CONSOLE, error_card, is_for_page, is_head_of_page
from gateway.web.pages.rendering import PAGES, Pages
from gateway.web.streaming import abort

log = logging.getLogger(__name__)

#: seconds that an idle connection is kept; longer than the minute after which proxies usually close theirs
KEEP_ALIVE = 75.0
#: seconds to read the rest of a refused body, so that its sender receives the response
_LINGER = 2.0
#: seconds for which a stopping server keeps a connection after its last response, or for the rest of a head
_SETTLE = 2.0
#: bytes of all headers of a request together; aiohttp takes 128 of 8 KiB
MAX_HEAD = 32 << 10
#: bytes that a caller reads at least before the limit of what it has not read ends
_LEAST_READ = 16 << 10
#: bytes of the beginning of a head that tell whether a browser requests a page
_BEGINNING = 2048


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of connections."""

    #: maximum open connections
    connections: int = 10_000
    #: seconds for the head of a request, from its first byte; for the first request, from the connection
    head: float = 10.0
    #: seconds for the body after the head
    body: float = 30.0
    #: seconds of waiting for each MiB of a file
    mebibyte: float = 60.0
    #: seconds for the caller to read what is buffered of a response; files have a limit of their own
    unread: float = 60.0


class GuardedServer(Server):
    """Creates a guarded protocol for each connection."""

    def __init__(
        self, server: Server, limits: ConnectionLimits, shedding: LoadShedding | None, pages: Pages | None
    ) -> None:
        super().__init__(
            server.request_handler if shedding is None else shedding.wrapped(server.request_handler, pause_sender),
            request_factory=server.request_factory,
            handler_cancellation=server.handler_cancellation,
            loop=server._loop,
            **server._kwargs,
        )
        self.limits = limits
        self.pages = pages
        self.open = 0

    def __call__(self) -> RequestHandler:
        return _GuardedProtocol(self, loop=self._loop, **self._kwargs)


class GuardedRunner(web.AppRunner):
    """Runs an application on guarded connections."""

    def __init__(self, app: web.Application, limits: ConnectionLimits, **options: Any) -> None:
        options.setdefault("keepalive_timeout", KEEP_ALIVE)
        # Bodies are not decompressed: a megabyte can expand to a gigabyte, and the sender may have no token. A handler
        # that may change something continues when its caller disconnects; `connection_lost` cancels the others.
        options |= {"auto_decompress": False, "lingering_time": _LINGER, "handler_cancellation": False}
        super().__init__(app, access_log=None, **options)
        self._limits = limits

    async def _make_server(self) -> Server:
        return GuardedServer(
            await super()._make_server(), self._limits, self.app.get(LOAD_SHEDDING), self.app.get(PAGES)
        )


class _GuardedProtocol(RequestHandler):
    """A connection that is closed if its sender is too slow."""

    __slots__ = (
        "_begun", "_body_limit", "_connection", "_guard", "_head_bytes", "_head_limit", "_is_counted",
        "_is_head_refused", "_is_page_refused", "_unread_limit",
    )  # fmt: skip

    def __init__(self, guard: GuardedServer, **options: Any) -> None:
        super().__init__(guard, **options)
        self._guard = guard
        self._is_counted = False
        #: the beginning of a head whose rest has not arrived
        self._begun = b""
        #: bytes of a head whose rest has not arrived
        self._head_bytes = 0
        self._is_page_refused = False
        #: what arrives is dropped
        self._is_head_refused = False
        self._head_limit: asyncio.TimerHandle | None = None
        self._body_limit: asyncio.TimerHandle | None = None
        #: kept until it is lost, while the base class forgets a transport that it closes
        self._connection: asyncio.Transport | None = None
        self._unread_limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._guard.open >= self._guard.limits.connections:
            self._force_close = True
            refused = cast(asyncio.Transport, transport)
            refused.write(_FULL)
            refused.close()
            return
        self._guard.open += 1
        self._is_counted = True
        self._connection = cast(asyncio.Transport, transport)
        super().connection_made(transport)
        self._head_limit = self._loop.call_later(self._guard.limits.head, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._is_counted:
            self._guard.open -= 1
        for limit in (self._head_limit, self._body_limit, self._unread_limit):
            if limit is not None:
                limit.cancel()
        self._connection = None
        request, handling = self._current_request, self._task_handler
        super().connection_lost(exc)
        if request is not None and handling is not None and request.get(ENDS_WITH_CALLER):
            handling.cancel()

    def close(self) -> None:
        """Close the connection once no request is in progress or in transit.

        The sender cannot know that the server stops. So a connection that is new or was used just now is kept for one
        more request, whose response tells the sender to close it (RFC 9112 §9.5, §9.6).
        """
        seconds = self._settles_in()
        if seconds > 0:
            self._loop.call_later(seconds, self._close_settled)
        else:
            self._close_settled()

    def _settles_in(self) -> float:
        """Seconds until the connection can be closed."""
        if self._waiter is None:
            return 0
        if self._head_limit is not None or self._has_unread():
            return _SETTLE
        used_at = self._next_keepalive_close_time - self.keepalive_timeout
        return used_at + _SETTLE - self._loop.time()

    def _close_settled(self) -> None:
        if self._waiter is None:
            super().close()
        else:
            self.force_close()

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """Wait for the request in progress before the base class drops whatever arrives."""
        if self._task_handler is not None:
            await asyncio.wait([self._task_handler], timeout=timeout)
        await super().shutdown(timeout)

    def _has_unread(self) -> bool:
        sock = None if self.transport is None else self.transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0:
            return False
        unread = array("i", [0])
        fcntl.ioctl(sock.fileno(), termios.FIONREAD, unread)
        return unread[0] > 0

    def data_received(self, data: bytes) -> None:
        if self._is_head_refused:
            return
        before, is_in_head = self._request_count, self._is_in_head()
        # The base class would drop the rest of a body as well, so that its request is never complete.
        is_closing, self._close = self._close, False
        super().data_received(data)
        self._close |= is_closing
        if not data:  # a call of aiohttp itself, to parse what it has buffered
            return
        if self._request_count == before:
            if is_in_head:
                self._head_bytes += len(data)
                if self._head_bytes > MAX_HEAD:
                    self._refuse_head()
                    return
            # No handler runs, so these bytes begin a head: a handler runs while the bytes of its body arrive.
            if self._waiter is not None:
                self._begun = self._begun or data[:_BEGINNING]
                if self._head_limit is None:
                    self._head_limit = self._loop.call_later(self._guard.limits.head, self.force_close)
            return
        begun, self._begun, self._head_bytes = self._begun or data[:_BEGINNING], b"", 0
        if self._messages and not isinstance(self._messages[-1][0], RawRequestMessage):
            self._is_page_refused = is_head_of_page(begun)
        if self._head_limit is not None:
            self._head_limit.cancel()
            self._head_limit = None
        body = self._messages[-1][1] if self._messages else None
        if body is not None and not body.is_eof():
            self.limit_body(body)

    def _is_in_head(self) -> bool:
        """Whether the bytes that arrive belong to a head: no request is in progress, or its body is complete."""
        request = self._current_request
        is_complete = request is not None and not self._messages and request.content.is_eof()
        return self._waiter is not None or is_complete

    def _refuse_head(self) -> None:
        """Answer, and close once the sender has ended or _LINGER has passed: a close before what it sends is read would
        reset the connection, and the sender would not see the answer (RFC 9112 §9.6).
        """
        if self._connection is None or self._waiter is None:
            self.force_close()
            return
        self._is_head_refused = True
        self._connection.write(_HEAD_TOO_LARGE)
        self._connection.write_eof()
        self._loop.call_later(_LINGER, self.force_close)

    def limit_body(self, body: StreamReader) -> None:
        """Close the connection unless the body is complete within its time limit from now."""
        if self._body_limit is not None:
            self._body_limit.cancel()
        self._body_limit = self._loop.call_later(self._guard.limits.body, self._close_unless_complete, body)

    def end_body_limit(self) -> float:
        if self._body_limit is not None:
            self._body_limit.cancel()
            self._body_limit = None
        return self._guard.limits.mebibyte

    def pause_for(self, seconds: float) -> None:
        """Read nothing from the connection for `seconds`; the sender's further requests wait."""
        if self.transport is not None:
            self.transport.pause_reading()
            self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _close_unless_complete(self, body: StreamReader) -> None:
        if not body.is_eof():
            self.force_close()

    def pause_writing(self) -> None:
        """The caller reads more slowly than its response is written."""
        super().pause_writing()
        self._limit_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_limit is not None:
            self._unread_limit.cancel()
            self._unread_limit = None

    def _limit_unread(self) -> None:
        """Abort the connection unless its caller reads what is buffered. A close would wait for the caller."""
        left = 0 if self._connection is None else self._connection.get_write_buffer_size()
        if left and self._unread_limit is None:
            self._unread_limit = self._loop.call_later(self._guard.limits.unread, self._abort_unread, left)

    def _abort_unread(self, before: int) -> None:
        self._unread_limit = None
        assert self._connection is not None
        has_read = before - self._connection.get_write_buffer_size() >= _LEAST_READ
        if has_read or (self._current_request is not None and self._current_request.get(MAY_PAUSE)):
            self._limit_unread()
        elif self._connection.get_write_buffer_size():
            log.info("a caller did not read its response")
            self._connection.abort()

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response, and give back its memory: aiohttp keeps a response until the connection's next request."""
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._limit_unread()
            if isinstance(resp, web.Response):
                resp.body = None
            if ANSWER_MEMORY in request:
                request[ANSWER_MEMORY].release()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer an error outside the application, such as malformed HTTP, with a problem document or a card."""
        stream = request.get(STREAM)
        if stream is not None:
            abort(request, stream)
        if stream is not None or request.writer.output_size > 0:
            raise ConnectionError("the response had begun when the request failed")
        if self.transport is None and isinstance(exc, ConnectionError):
            raise exc  # the caller disconnected in the middle of the body, so no response can be sent
        if status == 400:
            error: GatewayError = _refusal(exc)
            is_page = self._is_page_refused
            log.info("refused a malformed request", extra={"reason": type(exc).__name__})
        else:
            error = InternalError()
            is_page = is_for_page(request.path, request.headers.get(ACCEPT, ""))
            log.error("a request failed outside the application", exc_info=exc)
        request_id = token_hex(16)
        response = problem_response(error, request_id)
        if is_page and self._guard.pages is not None:
            response = error_card(self._guard.pages, error, response.status, request_id, CONSOLE)
        response.headers["X-Request-Id"] = request_id
        response.headers["Server"] = "gateway"  # replaces aiohttp's value, which contains versions
        response.force_close()
        return response


def _refusal(exc: BaseException | None) -> GatewayError:
    """The error for a head that aiohttp's parser refuses."""
    # Of a line that is too long, the parser names the beginning: of the target as a bytearray, of a header as bytes.
    if isinstance(exc, LineTooLong) and not isinstance(exc.args[0], bytearray):
        return HeadersTooLarge("a header of the request is longer than 8190 bytes; in a browser, delete its cookies")
    if isinstance(exc, BadHttpMessage) and exc.message == "Too many headers received":
        return HeadersTooLarge("the request has too many headers")
    return MalformedRequest("the request is not valid HTTP/1.1, or its first line is too long")


def extend_body_limit(request: BaseRequest) -> None:
    """Restart the time limit of a long body, because a large part of it has arrived."""
    if isinstance(request.protocol, _GuardedProtocol):
        request.protocol.limit_body(request.content)


def end_body_limit(request: BaseRequest) -> float:
    """End the time limit of a file; returns the seconds that its reader may wait for each MiB instead."""
    if isinstance(request.protocol, _GuardedProtocol):
        return request.protocol.end_body_limit()
    return ConnectionLimits().mebibyte


def pause_sender(request: BaseRequest, seconds: float) -> None:
    """Read nothing more from the sender of a refused request for `seconds`.

    A sender that obeys `Retry-After` is not affected.
    """
    protocol = request.protocol
    is_complete = not request.body_exists or request.content.is_eof()
    if isinstance(protocol, _GuardedProtocol) and is_complete:
        protocol.pause_for(seconds)


def _raw(response: web.Response, reason: str) -> bytes:
    """The bytes of a response for a connection that is refused before it has a handler."""
    assert isinstance(response.body, bytes)
    headers = {**response.headers, "Content-Length": str(len(response.body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {response.status} {reason}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + response.body


_HEAD_TOO_LARGE = _raw(
    problem_response(HeadersTooLarge(f"the headers of the request are longer than {MAX_HEAD} bytes together"), "none"),
    "Request Header Fields Too Large",
)
_FULL = _raw(
    problem_response(Unavailable("too many connections; try again", retry_after=1), "none"), "Service Unavailable"
)
