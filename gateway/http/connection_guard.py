"""Our own door: slow senders, too many connections and requests that are not plainly HTTP get no further.

aiohttp's parser refuses the forms that smuggle requests past proxies; here they are answered in our words.
"""

import asyncio
import logging
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_server import Server

from gateway.errors import InternalError, MalformedRequest, Unavailable
from gateway.http.errors import problem_response
from gateway.http.turnstile import Turnstile, refusal

log = logging.getLogger(__name__)

#: seconds that an idle connection is kept; longer than the minute after which proxies usually give theirs up
KEPT_SECONDS = 75.0
#: seconds to take in the rest of a body that nobody wants, so that its sender sees the answer
_LINGER = 2.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a sender may take."""

    #: connections at a time
    connections: int = 10_000
    #: seconds for the head of a request from its first byte on, the first one's from the connection on
    head: float = 10.0
    #: seconds for its body after that
    body: float = 30.0


class Door(Server):
    """Makes a guarded protocol for each connection."""

    def __init__(self, behind: Server, limits: ConnectionLimits, turnstile: Turnstile | None) -> None:
        super().__init__(
            behind.request_handler,
            request_factory=behind.request_factory,
            handler_cancellation=behind.handler_cancellation,
            loop=behind._loop,
            **behind._kwargs,
        )
        self.limits = limits
        self.turnstile = turnstile
        self.open = 0

    def __call__(self) -> RequestHandler:
        return _Guarded(self, loop=self._loop, **self._kwargs)


class DoorRunner(web.AppRunner):
    """Runs an application behind the door."""

    def __init__(
        self, app: web.Application, limits: ConnectionLimits, turnstile: Turnstile | None = None, **options: Any
    ) -> None:
        options.setdefault("keepalive_timeout", KEPT_SECONDS)
        # Nothing is unpacked: a megabyte can be a thousand of them, and whoever sends it need not even have a token.
        options |= {"auto_decompress": False, "lingering_time": _LINGER, "handler_cancellation": False}
        super().__init__(app, access_log=None, **options)
        self._limits = limits
        self._turnstile = turnstile

    async def _make_server(self) -> Server:
        return Door(await super()._make_server(), self._limits, self._turnstile)


class _Guarded(RequestHandler):
    """A connection whose sender must not dawdle."""

    __slots__ = ("_body_limit", "_door", "_head_limit", "_is_between", "_is_let_in", "_refusing")

    def __init__(self, door: Door, **options: Any) -> None:
        super().__init__(door, **options)
        self._door = door
        self._is_let_in = False
        self._head_limit: asyncio.TimerHandle | None = None
        self._body_limit: asyncio.TimerHandle | None = None
        # whether what comes next is the beginning of a request
        self._is_between = True
        self._refusing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._door.open >= self._door.limits.connections:
            self._force_close = True
            refused = cast(asyncio.Transport, transport)
            refused.write(_FULL)
            refused.close()
            return
        self._door.open += 1
        self._is_let_in = True
        super().connection_made(transport)
        self._head_limit = self._loop.call_later(self._door.limits.head, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._is_let_in:
            self._door.open -= 1
        if self._refusing is not None:
            self._told_off()
        for limit in (self._head_limit, self._body_limit):
            if limit is not None:
                limit.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        turnstile = self._door.turnstile
        if turnstile is not None and data and self._is_at_rest and turnstile.turns_away(data):
            self._hold_back(turnstile)
            return
        before = self._request_count
        super().data_received(data)
        if not data:  # aiohttp's own call, to go on with what it has
            return
        self._is_between = False
        if self._request_count == before:
            # No handler runs, so these bytes begin a head; a body's are for a handler that waits for them.
            if self._waiter is not None and self._head_limit is None:
                self._head_limit = self._loop.call_later(self._door.limits.head, self.force_close)
            return
        if self._head_limit is not None:
            self._head_limit.cancel()
            self._head_limit = None
        body = self._messages[-1][1] if self._messages else None
        self._is_between = body is None or body.is_eof()
        if body is not None and not body.is_eof():
            if self._body_limit is not None:
                self._body_limit.cancel()
            self._body_limit = self._loop.call_later(self._door.limits.body, self._close_unless_whole, body)

    @property
    def _is_at_rest(self) -> bool:
        """Whether the last answer is out, and what comes is the beginning of the next request."""
        return self._is_between and self._current_request is None and not self._messages

    def _hold_back(self, turnstile: Turnstile) -> None:
        """Answer in a moment, and read nothing until then."""
        transport = cast(asyncio.Transport, self.transport)
        transport.pause_reading()
        turnstile.held += 1
        self._refusing = self._loop.call_later(turnstile.hold, self._refuse, transport)

    def _refuse(self, transport: asyncio.Transport) -> None:
        self._told_off()
        transport.write(refusal())
        transport.resume_reading()

    def _told_off(self) -> None:
        """The refusal is no longer held back: it goes out, or nobody is there to hear it."""
        assert self._refusing is not None
        assert self._door.turnstile is not None
        self._refusing.cancel()
        self._refusing = None
        self._door.turnstile.held -= 1

    def _close_unless_whole(self, body: StreamReader) -> None:
        if not body.is_eof():
            self.force_close()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Whatever goes wrong below the application leaves in the shape of every other error."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer had begun when it failed")
        if self.transport is None and isinstance(exc, ConnectionError):
            raise exc  # the caller has gone in the middle of the body, and nobody is there to be told
        if status == 400:
            error: MalformedRequest | InternalError = MalformedRequest(
                "the request is not valid HTTP/1.1, or one of its lines or its head is too long"
            )
            log.info("refused what is no HTTP", extra={"reason": type(exc).__name__})
        else:
            error = InternalError()
            log.error("a request failed below the application", exc_info=exc)
        response = problem_response(error, token_hex(16))
        response.headers["Server"] = "gateway"  # in place of aiohttp's own, which tells versions
        response.force_close()
        return response


def _raw(response: web.Response, reason: str) -> bytes:
    """An answer for a connection that is not let in to have one of its own."""
    assert isinstance(response.body, bytes)
    headers = {**response.headers, "Content-Length": str(len(response.body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {response.status} {reason}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + response.body


_FULL = _raw(
    problem_response(Unavailable("too many connections; try again", retry_after=1), "none"), "Service Unavailable"
)
