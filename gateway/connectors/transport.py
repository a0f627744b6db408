"""The only module that opens a connection: sends requests, holds to limits, repeats what may be repeated."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from gateway.connectors import responses, retries
from gateway.connectors.egress import EgressConnector, EgressPolicy, is_forbidden
from gateway.connectors.requests import UpstreamRequest
from gateway.connectors.responses import UpstreamResponse
from gateway.connectors.run_context import Journal
from gateway.errors import (
    GatewayError,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
)
from gateway.kinds.spec import Failure, RateLimit
from gateway.telemetry import tracing
from gateway.telemetry.metrics import UPSTREAM_ANSWERS, UPSTREAM_SECONDS

#: bytes of a decoded JSON answer; more is a mistake of the application or of the query
ANSWER_CAP = 32 << 20
#: seconds
CONNECT_TIMEOUT, IDLE_TIMEOUT = 5.0, 30.0
#: a slow reader holds about ten times this
READ_BUFFER = 64 << 10
#: connections kept open for use by all requests; and to one host
_CONNECTIONS, _PER_HOST = 2000, 200
#: an application that limits for longer than this gets an error to the caller rather than a wait
_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Account:
    """What an application limits: the account behind one connector, and what is published of its limits."""

    id: str = ""
    limit: RateLimit | None = None
    #: whether nobody waits for the request
    is_background: bool = False
    #: the kind that its requests are counted under
    kind: str = "oauth"


class Gate(Protocol):
    """What may go out when: concurrency and rate budgets of the accounts behind connectors."""

    def pass_through(self, account: Account, timeout: float) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for a place; raises UpstreamRateLimited when none comes within `timeout` seconds."""

    def learn(self, account: Account, status: int, headers: Mapping[str, str]) -> None:
        """Take note of what the application's answer says about its limits."""

    def pause(self, account: Account, seconds: float) -> None:
        """Let nothing through for so long: the application limits."""


class OpenGate:
    """Lets everything through."""

    @asynccontextmanager
    async def pass_through(self, account: Account, timeout: float) -> AsyncIterator[None]:
        yield

    def learn(self, account: Account, status: int, headers: Mapping[str, str]) -> None:
        """Nothing to learn."""

    def pause(self, account: Account, seconds: float) -> None:
        """Nothing to pause."""


_NOBODY = Account()
_NO_HEADERS: Mapping[str, str] = {}


class NotSent(Exception):
    """Carries an error of a request that certainly did not arrive."""

    def __init__(self, error: GatewayError) -> None:
        self.error = error


@dataclass(frozen=True, slots=True)
class UpstreamStream:
    """An answer whose body is still to be read; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    _content: aiohttp.StreamReader

    def pieces(self) -> AsyncIterator[bytes]:
        """The body, never decoded, in the pieces the network brings; reading no further holds the application back.

        Raises UpstreamTruncated where it ends before its framing says so, UpstreamTimeout where nothing comes.
        """
        return _Pieces(self._content)


class _Pieces:
    """An iterator rather than a generator, which would cost a tenth of the speed of a file."""

    __slots__ = ("_content",)

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __aiter__(self) -> "_Pieces":
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._content.readany()
        except TimeoutError as error:
            raise UpstreamTimeout("the application fell silent in the middle of the file") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UpstreamTruncated("the file was cut short on its way from the application") from error
        if not piece:
            raise StopAsyncIteration
        return piece


class Transport:
    """One client session for a process; opened by `async with`."""

    def __init__(
        self, policy: EgressPolicy | None = None, gate: Gate | None = None, *, idle: float = IDLE_TIMEOUT
    ) -> None:
        self._policy = policy or EgressPolicy()
        self._gate = gate or OpenGate()
        #: seconds of an application's silence
        self._idle = idle
        self._opened: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Transport":
        self._opened = aiohttp.ClientSession(
            connector=EgressConnector(self._policy, limit=_CONNECTIONS, limit_per_host=_PER_HOST, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=True,
            read_bufsize=READ_BUFFER,
            headers={"User-Agent": "agent-connector-gateway"},
            max_line_size=16 << 10,
            max_field_size=32 << 10,
        )
        # aiohttp would by itself send a PUT or DELETE again on a connection that broke; `retries` alone decides that.
        self._opened._retry_connection = False
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            raise RuntimeError("the transport is used before it was opened")
        return self._opened

    async def send(
        self,
        request: UpstreamRequest,
        *,
        failure: Failure,
        credentials: Mapping[str, str] = _NO_HEADERS,
        account: Account = _NOBODY,
        timeout: float = 60,
        journal: Journal | None = None,
    ) -> UpstreamResponse:
        """The whole answer, be it a refusal, after as many tries as its effect class allows within `timeout` seconds.

        `credentials` are headers that prove who calls; they go out with the request's own.
        Each try is noted in the journal once its place at the gate is sure, right before it goes out. Raises
        UpstreamError and its kin; that of a write whose answer was lost says that its outcome is unknown.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout
        number = 1
        while True:
            left = deadline - clock()
            was_sent, response, began = True, None, clock()
            try:
                async with self._gate.pass_through(account, min(left, _TIMEOUT)):
                    if journal is not None:
                        await journal.sending()
                    began = clock()
                    response = await self._try(request, credentials, left)
                _count(account, str(response.status), clock() - began)
                self._gate.learn(account, response.status, response.headers)
                error = responses.failure(failure, response)
                if error is None:
                    return response
            except NotSent as unsent:
                was_sent, error = False, unsent.error
                _count(account, error.code, clock() - began)
            except UpstreamError as lost:
                error = lost
                _count(account, error.code, clock() - began)
            if isinstance(error, UpstreamRateLimited):
                self._gate.pause(account, float(error.retry_after or 1))
            if journal is not None and (not was_sent or isinstance(error, UpstreamRateLimited)):
                journal.not_done()
            attempt = retries.Attempt(number, error, was_sent)
            wait = retries.delay(request.effect, attempt, min(deadline - clock(), _TIMEOUT))
            if wait is None:
                if response is not None and not isinstance(error, UpstreamError):
                    return response
                raise retries.final(request.effect, attempt)
            await asyncio.sleep(wait)
            number += 1

    async def _try(self, request: UpstreamRequest, credentials: Mapping[str, str], timeout: float) -> UpstreamResponse:
        async with await self._asked(request, {**request.headers, **credentials}, timeout) as answer:
            return UpstreamResponse(answer.status, _lower(answer.headers), await _read_capped(answer))

    @asynccontextmanager
    async def open(
        self, request: UpstreamRequest, *, account: Account | None = None, timeout: float | None = None
    ) -> AsyncIterator[UpstreamStream]:
        """An answer to be streamed; the connection is closed when the block ends, read to the end or not.

        `account` counts the request as its own: None for hosts that are not the application's. Raises UpstreamError.
        """
        plain = {**request.headers, "Accept-Encoding": "identity", "Accept": "*/*"}
        try:
            async with self._place(account):
                answer = await self._asked(request, plain, timeout, decompress=False)
        except NotSent as unsent:
            raise unsent.error from unsent
        async with answer:
            headers = _lower(answer.headers)
            if account is not None:
                self._gate.learn(account, answer.status, headers)
            yield UpstreamStream(answer.status, headers, answer.content)

    def _place(self, account: Account | None) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext() if account is None else self._gate.pass_through(account, _TIMEOUT)

    async def _asked(
        self, request: UpstreamRequest, headers: Mapping[str, str], timeout: float | None, *, decompress: bool = True
    ) -> aiohttp.ClientResponse:
        """One try, up to the headers of its answer; whoever asked closes it."""
        with tracing.span(request.method, "client", **{"server.address": request.url.host or ""}):
            try:
                return await self._session.request(
                    request.method,
                    request.url,
                    headers={**headers, **tracing.outgoing()},
                    data=request.body,
                    timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_TIMEOUT, sock_read=self._idle),
                    allow_redirects=False,
                    auto_decompress=decompress,
                )
            except (aiohttp.ClientError, OSError) as error:
                raise _translated(error) from error


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _count(account: Account, outcome: str, seconds: float) -> None:
    UPSTREAM_ANSWERS.add(account.kind, outcome)
    UPSTREAM_SECONDS.observe(seconds, account.kind)


def _translated(error: Exception) -> Exception:
    """Our error for one of aiohttp's; what was certainly not sent says so."""
    match error:
        case aiohttp.ClientConnectorError():
            return NotSent(_unreachable(error))
        case aiohttp.ConnectionTimeoutError():
            return NotSent(UpstreamTimeout("the application could not be reached in time"))
        case TimeoutError():
            return UpstreamTimeout("the application did not answer in time")
        case aiohttp.ClientPayloadError():
            return UpstreamTruncated("the application's answer was cut short")
        case aiohttp.ClientResponseError():
            return UpstreamInvalidResponse("the application's answer is not valid HTTP")
        case _:
            return UpstreamError("the connection to the application broke")


def _unreachable(error: aiohttp.ClientConnectorError) -> GatewayError:
    if is_forbidden(error):
        return UpstreamInvalidResponse("the application's address is not allowed: it is not on the public Internet")
    return UpstreamError("the application cannot be reached")


async def _read_capped(answer: aiohttp.ClientResponse) -> bytes:
    """The body, decoded, up to the cap; a compressed bomb is dropped on the way."""
    pieces, size = [], 0
    try:
        while piece := await answer.content.readany():
            size += len(piece)
            if size > ANSWER_CAP:
                raise UpstreamTooLarge(f"the application's answer is larger than {ANSWER_CAP >> 20} MiB; ask for less")
            pieces.append(piece)
    except (aiohttp.ClientError, OSError) as error:
        raise _translated(error) from error
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
