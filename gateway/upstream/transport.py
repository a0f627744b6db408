"""The only module that opens connections; sends one request once, within the limits of its rate scope."""

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

import aiohttp
from aiohttp.connector import Connection
from msgspec.structs import replace
from multidict import CIMultiDictProxy

from gateway.errors import (
    GatewayError,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
)
from gateway.foundation.aio.timeouts import IdleTimeout, Timeouts, Wait
from gateway.foundation.mcp import METHOD
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import MCP_CLIENT_SECONDS, UPSTREAM_ANSWERS, UPSTREAM_SECONDS
from gateway.upstream.auth import Doubts
from gateway.upstream.content_coding import ACCEPTED, STEP, decoder_of
from gateway.upstream.egress import EgressConnector, EgressPolicy, is_forbidden
from gateway.upstream.mcp_messages import Answers
from gateway.upstream.mcp_sessions import McpSessions
from gateway.upstream.permits import Permit, Permits
from gateway.upstream.rate_limits import RateLimiter, RateScope, Unlimited
from gateway.upstream.read_budget import ReadBudget
from gateway.upstream.redaction import NO_SECRETS, Secrets
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import UpstreamResponse
from gateway.upstream.sent_requests import INTERRUPTED, Observe, Received, sent_request

#: maximum bytes of a decoded JSON response; a larger one is an error of the application or of the query
ANSWER_CAP = 32 << 20
#: seconds until a connection must be established
CONNECT_TIMEOUT = 5.0
#: seconds without a byte after which a response has timed out
IDLE_TIMEOUT = 30.0
#: seconds for a whole file
LONGEST_STREAM = 12 * 3600.0
#: bytes; a slow reader holds about ten times this
READ_BUFFER = 64 << 10
#: connections to applications that a process holds at a time
MAX_CONNECTIONS = 10_000
#: seconds that a request waits for a permit
PERMIT_TIMEOUT = 10.0

#: seconds for the answer to a request of an MCP server
_REPLY_TIMEOUT = 5.0

_UNTRUSTED = "is signed by an authority that is not trusted; add the authority's certificate to SSL_CERT_FILE"
#: OpenSSL's codes of certificates that it refuses
_CERTIFICATE_FAULTS = {
    9: "is not valid yet",
    10: "has expired",
    **dict.fromkeys((2, 18, 19, 20, 21), _UNTRUSTED),
    62: "is for another host name",
}
EVENT_STREAM = "text/event-stream"
_NO_HEADERS: Mapping[str, str] = {}
#: headers whose lists are read
_LISTS = ("link", "www-authenticate")
#: the status of a response that was not received
_NO_RESPONSE = UpstreamResponse(0, _NO_HEADERS, b"")


class NotSent(Exception):
    """Wraps the error of a request that certainly did not arrive."""

    def __init__(self, error: GatewayError) -> None:
        self.error = error

    @property
    def code(self) -> str:
        return self.error.code


class _Sending:
    """Whether the first byte of a request was sent."""

    __slots__ = ("_on_send", "has_begun")

    def __init__(self, on_send: Callable[[], None] | None) -> None:
        self._on_send = on_send
        self.has_begun = False

    def begin(self) -> None:
        is_first, self.has_begun = not self.has_begun, True
        if is_first and self._on_send is not None:
            self._on_send()


#: the state of the request that this task sends
_SENDING: ContextVar[_Sending | None] = ContextVar("sending", default=None)


class _ObservedRequest(aiohttp.ClientRequest):
    """Notes that its first byte is sent: aiohttp calls `send` once the connection is open."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        sending = _SENDING.get()
        if sending is not None:
            sending.begin()
        return await super().send(conn)


@dataclass(frozen=True, slots=True)
class UpstreamStream:
    """An answer whose body is still to be read; header names in lower case, the request's secrets masked in them."""

    status: int
    headers: Mapping[str, str]
    #: the body, never decoded, in the chunks the network brings; the application is slowed down while nothing is read.
    #: Reading raises UpstreamTruncated if it ends before its framing says so, UpstreamTimeout if nothing comes
    chunks: AsyncIterator[bytes]
    #: those of the request, to be masked in what errors repeat of the body
    secrets: Secrets = NO_SECRETS


class _Chunks(Wait):
    """The chunks of a body; an iterator, because a generator would make downloads a tenth slower.

    The idle timeout counts only the time spent waiting for the application, not for a slow reader.
    """

    __slots__ = ("_content", "error", "size")

    def __init__(self, content: aiohttp.StreamReader, total: float, idle: float) -> None:
        super().__init__(total, idle)
        self.hold()  # the idle time begins with the first read
        self._content = content
        #: bytes that came, and the code of the error that cut them short
        self.size = 0
        self.error: str | None = None

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        self.touch()
        try:
            chunk = await self._content.readany()
        except TimeoutError as error:
            self.error = UpstreamTimeout.code
            raise UpstreamTimeout("the application fell silent in the middle of the file") from error
        except (aiohttp.ClientError, OSError) as error:
            self.error = UpstreamTruncated.code
            raise UpstreamTruncated("the connection to the application broke before the file was complete") from error
        finally:
            self.hold()
        if not chunk:
            raise StopAsyncIteration
        self.size += len(chunk)
        return chunk

    def expire(self) -> None:
        self._content.set_exception(TimeoutError())


class Transport:
    """One client session for a process; opened by `async with`. Sends a request once: `session` decides about more."""

    def __init__(
        self,
        policy: EgressPolicy | None = None,
        limiter: RateLimiter | None = None,
        *,
        idle: float = IDLE_TIMEOUT,
        max_connections: int = MAX_CONNECTIONS,
        observe: Observe | None = None,
    ) -> None:
        #: takes note of each attempt
        self._observe = observe
        #: the addresses that may be connected
        self.policy = policy or EgressPolicy()
        self.limiter = limiter or Unlimited()
        self._permits = Permits(self.limiter, max_connections)
        #: requests sent or being sent, without streamed ones
        self.under_way = 0
        self.doubts = Doubts()
        self.mcp_sessions = McpSessions()
        #: idle timeout in seconds
        self._idle = idle
        self._client_session: aiohttp.ClientSession | None = None
        self._budget = ReadBudget()
        self._timeouts = Timeouts()

    async def __aenter__(self) -> "Transport":
        self._client_session = aiohttp.ClientSession(
            connector=EgressConnector(self.policy, limit=0, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            request_class=_ObservedRequest,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            read_bufsize=READ_BUFFER,
            headers={"User-Agent": "agent-connector-gateway", "Accept-Encoding": ACCEPTED},
            max_line_size=16 << 10,
            max_field_size=32 << 10,
        )
        # aiohttp would repeat a PUT or DELETE after its connection broke; only `retries` may decide that.
        self._client_session._retry_connection = False
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client_session is not None:
            await self._client_session.close()
            self._client_session = None
        self._timeouts.close()

    async def fetch(
        self,
        request: UpstreamRequest,
        scope: RateScope,
        *,
        credentials: Mapping[str, str] = _NO_HEADERS,
        timeout: float = 60,
        before: Callable[[], Awaitable[None]] | None = None,
        on_send: Callable[[], None] | None = None,
        attempt: int = 1,
    ) -> UpstreamResponse:
        """The complete response to one try, whatever its status; the request's secrets are masked in its headers.

        `credentials` are further headers, which authenticate. `before` is awaited after the permit and before the
        connection; `on_send` is called when the first byte is sent. Raises NotSent if no byte was sent, UpstreamError
        and its subclasses, UpstreamRateLimited without a permit, and Unavailable if no connection is left.
        """
        began, outcome, sending = monotonic(), "", _Sending(on_send)
        response, secrets = _NO_RESPONSE, request.secrets_beside(credentials)
        token = _SENDING.set(sending)
        try:
            async with Permit(self._permits, scope, min(timeout, PERMIT_TIMEOUT)) as permit:
                if before is not None:
                    await before()
                began = monotonic()
                self.under_way += 1
                try:
                    with IdleTimeout(self._timeouts, timeout, self._idle) as idle:
                        if request.stream is not None:
                            request = _paced(request, request.stream, idle)
                        async with await self._sent(request, credentials) as answer:
                            headers = secrets.masked_headers(_lower(answer.headers))
                            body = await self._read(answer, idle, request, credentials)
                            response = UpstreamResponse(answer.status, headers, body, secrets=secrets)
                except TimeoutError as error:
                    raise _translated(error, request.url.host or "", was_sent=sending.has_begun) from error
                finally:
                    self.under_way -= 1
                permit.headers = response.headers
            outcome = str(response.status)
        except (NotSent, UpstreamError) as lost:
            outcome = lost.code
            raise
        finally:
            _SENDING.reset(token)
            if outcome:
                UPSTREAM_ANSWERS.add(scope.kind, outcome)
                UPSTREAM_SECONDS.observe(monotonic() - began, scope.kind)
                if request.mcp_method is not None:
                    error_type = "" if outcome.startswith("2") else outcome
                    MCP_CLIENT_SECONDS.observe(monotonic() - began, request.mcp_method, error_type)
            if outcome or sending.has_begun:
                code = None if response.status else outcome or INTERRUPTED
                received = Received(response.status, response.headers, len(response.body), code)
                self._note(request, scope, secrets, attempt=attempt, began=began, received=received)
        return response

    async def _read(
        self,
        answer: aiohttp.ClientResponse,
        idle: IdleTimeout,
        request: UpstreamRequest,
        credentials: Mapping[str, str],
    ) -> bytes:
        """The decoded body, up to the cap; a decompression bomb is stopped at the cap.

        Of an MCP server the JSON-RPC response in a stream of events, of which nothing is read afterwards.
        """
        coding, content, number = answer.headers.get("Content-Encoding", ""), answer.content, request.message_id
        events = None
        if number is not None and answer.content_type == EVENT_STREAM:
            events = Answers(number, has_requests=METHOD not in request.headers)
        try:
            if not coding and events is None and content.is_eof():
                # It arrived with its headers, as small bodies do.
                return content.read_nowait()
            decoder = decoder_of(coding)
            # It grows in place; joining a list of chunks would need twice the memory.
            body, size = io.BytesIO(), 0
            with self._budget.reading() as reading:
                while chunk := await content.readany():
                    idle.hold()
                    for step in decoder.decoded(chunk):
                        size += len(step)
                        if size > ANSWER_CAP:
                            raise UpstreamTooLarge(
                                f"the application's answer is larger than {ANSWER_CAP >> 20} MiB; ask for less"
                            )
                        await reading.grow(len(step))
                        if events is not None:
                            if (response := await _response_in(events, step)) is not None:
                                return response
                            while events.replies:
                                await self._reply(request, credentials, events.replies.pop(0))
                        elif body.tell():
                            body.write(step)
                        else:
                            body = io.BytesIO(step)
                            body.seek(len(step))
                        if len(step) == STEP:
                            await asyncio.sleep(0)  # let other tasks run while a large body is decoded
                    idle.touch()
                decoder.end()
                if events is not None:
                    raise UpstreamTruncated("the application's stream of events ended before it had a response")
                return body.getvalue()
        except (aiohttp.ClientError, OSError) as error:
            raise _translated(error, answer.url.host or "") from error

    @asynccontextmanager
    async def open(
        self,
        request: UpstreamRequest,
        scope: RateScope,
        *,
        credentials: Mapping[str, str] = _NO_HEADERS,
        timeout: float = LONGEST_STREAM,
        attempt: int = 1,
    ) -> AsyncIterator[UpstreamStream]:
        """An answer to be streamed; the connection is closed when the block ends, read to the end or not.

        `timeout` is for all of it. Raises as `fetch` does.
        """
        extra_headers = {**credentials, "Accept-Encoding": "identity", "Accept": "*/*"}
        secrets = request.secrets_beside(credentials)
        async with Permit(self._permits, scope, PERMIT_TIMEOUT) as permit:
            began, code = monotonic(), INTERRUPTED
            try:
                with IdleTimeout(self._timeouts, timeout, self._idle):
                    answer = await self._sent(request, extra_headers)
                code = ""
            except TimeoutError as error:
                code = UpstreamTimeout.code
                raise _translated(error, request.url.host or "") from error
            except (NotSent, UpstreamError) as lost:
                code = lost.code
                raise
            finally:
                if code:
                    self._note(request, scope, secrets, attempt=attempt, began=began, received=Received(error=code))
            permit.headers = headers = secrets.masked_headers(_lower(answer.headers))
            permit.give_place()  # a limit counts requests, and not the time that a caller takes to read
            chunks = _Chunks(answer.content, timeout, self._idle)
            self._timeouts.add(chunks)
            try:
                async with answer:
                    yield UpstreamStream(answer.status, headers, chunks, secrets)
            finally:
                self._timeouts.remove(chunks)
                received = Received(answer.status, headers, chunks.size, chunks.error)
                self._note(request, scope, secrets, attempt=attempt, began=began, received=received)

    def _note(
        self,
        request: UpstreamRequest,
        scope: RateScope,
        secrets: Secrets,
        *,
        attempt: int,
        began: float,
        received: Received,
    ) -> None:
        if self._observe is not None and scope.connector_id is not None:
            self._observe(
                sent_request(request, scope, secrets=secrets, attempt=attempt, began=began, received=received)
            )

    async def _reply(self, request: UpstreamRequest, credentials: Mapping[str, str], reply: bytes) -> None:
        """Answer what an MCP server asks before it responds to a request, within the permit of the request.

        If the reply does not arrive, the server ends the request as it likes.
        """
        with contextlib.suppress(NotSent, UpstreamError, TimeoutError):
            async with asyncio.timeout(_REPLY_TIMEOUT):
                (await self._sent(replace(request, body=reply), credentials)).release()

    async def _sent(self, request: UpstreamRequest, extra_headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """The answer up to its headers, to a request with further headers, `extra_headers`; the caller closes it."""
        if self._client_session is None:
            raise RuntimeError("the transport is used before it was opened")
        with tracing.span(request.method, "client", **{"server.address": request.url.host or ""}):
            try:
                return await self._client_session.request(
                    request.method,
                    request.url,
                    headers={**request.headers, **extra_headers, **tracing.outgoing()},
                    data=request.body if request.stream is None else request.stream,
                    allow_redirects=False,
                )
            except (aiohttp.ClientError, OSError) as error:
                sending = _SENDING.get()
                was_sent = sending is None or sending.has_begun
                raise _translated(error, request.url.host or "", was_sent=was_sent) from error


def _paced(request: UpstreamRequest, stream: AsyncIterable[bytes], idle: IdleTimeout) -> UpstreamRequest:
    """The request; its idle timeout does not count the time spent waiting for the caller's data."""

    async def chunks(source: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        idle.hold()
        async for chunk in source:
            idle.touch()
            yield chunk
            idle.hold()
        idle.touch()

    return replace(request, stream=chunks(stream))


async def _response_in(events: Answers, data: bytes) -> bytes | None:
    """The response in the events that the data completes, None if it comes later; other tasks run in between."""
    for start in range(0, len(data), STEP):
        if start:
            await asyncio.sleep(0)
        if (response := events.response_in(data[start : start + STEP])) is not None:
            return response
    return None


def _lower(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """The headers with names in lower case; bytes that are not UTF-8 become replacement characters.

    aiohttp decodes such bytes as lone surrogates, which neither JSON nor PostgreSQL can hold. A list that comes in
    several headers is one list (RFC 9110 §5.3).
    """
    lower = {name.lower(): value if value.isascii() else _without_surrogates(value) for name, value in headers.items()}
    for name in _LISTS:
        if name in lower:
            lower[name] = _without_surrogates(", ".join(headers.getall(name)))
    return lower


def _without_surrogates(value: str) -> str:
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _translated(error: Exception, host: str, *, was_sent: bool = True) -> Exception:
    """The gateway's error for one of aiohttp's; NotSent if no byte of the request was sent."""
    match error:
        case aiohttp.ClientConnectorError():
            return NotSent(_unreachable(error, host))
        case TimeoutError() if not was_sent or isinstance(error, aiohttp.ConnectionTimeoutError):
            return NotSent(UpstreamTimeout(f"{host} cannot be reached: the connection timed out"))
        case TimeoutError():
            return UpstreamTimeout("the application did not answer in time")
        case aiohttp.ClientPayloadError():
            return UpstreamTruncated("the application's answer was cut short")
        case aiohttp.ClientResponseError():
            return UpstreamInvalidResponse("the application's answer is not valid HTTP")
        case _:
            broken = UpstreamError("the connection to the application broke")
            return broken if was_sent else NotSent(broken)


def _unreachable(error: aiohttp.ClientConnectorError, host: str) -> GatewayError:
    """The error that names the host and the reason; it never contains the IP address."""
    if is_forbidden(error):
        return UpstreamInvalidResponse(f"{host} cannot be reached: its address is not on the public Internet")
    return UpstreamError(f"{host} cannot be reached: {_cause(error)}")


def _cause(error: aiohttp.ClientConnectorError) -> str:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its name is not found (DNS)"
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError(verify_code=code)):
            return f"its TLS certificate {_CERTIFICATE_FAULTS.get(code, 'is not valid')}"
        case aiohttp.ClientConnectorCertificateError():
            return "its TLS certificate is not valid"
        case aiohttp.ClientSSLError():
            return "the TLS handshake failed"
        case _ if isinstance(error.os_error, ConnectionRefusedError):
            return "the connection is refused"
        case _:
            return "the connection failed"
