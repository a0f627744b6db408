"""A session with one application for one account: sends each request, interprets its response and retries it.

`upstreams` opens sessions. Refused credentials are renewed once; if that does not help, the session calls
`Authorizer.refused`, which makes a stored connector `needs_reauth`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import monotonic
from typing import TypeVar

import msgspec
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.mcp import VERSIONS, has_handshake
from gateway.kinds.failures import Failure
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream import failures, mcp_messages, mcp_sessions, refusals, responses, retries
from gateway.upstream.auth import QUERY_PREFIX, Authorizer
from gateway.upstream.challenges import challenge_in
from gateway.upstream.mcp_results import LARGE_CONTENT
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.redaction import Secrets
from gateway.upstream.requests import UpstreamRequest, base_address, with_query_credentials, with_variables
from gateway.upstream.responses import Exchange, OperationResult, UpstreamResponse
from gateway.upstream.run_context import RunContext
from gateway.upstream.transport import LONGEST_STREAM, NotSent, Transport, UpstreamStream
from gateway.upstream.upload import SourceFile, streamed

#: longest delay before a retry, in seconds; a longer `Retry-After` becomes an error
_LONGEST_WAIT = 10.0
#: bytes of an error response that are read for the application's message
_REFUSAL_CAP = 64 << 10
#: bytes of an answer that is read in a thread
_LARGE = 2 << 20
#: and of a refusal, which is decoded
_LARGE_REFUSAL = 64 << 10

Outcome = TypeVar("Outcome")
#: the status of a GraphQL response with data, whether or not it has errors too
_OK = 200
#: the status of a response to a token with too few scopes (RFC 6750 §3.1)
_FORBIDDEN = 403
#: (credentials, timeout in seconds, number of the try from 1) → the outcome of one try and its error, if any
Attempt = Callable[[Mapping[str, str], float, int], Awaitable[tuple[Outcome, GatewayError | None]]]


@dataclass(frozen=True, kw_only=True)
class UpstreamSession:
    """One account at one application: its address, its credentials and its rate scope."""

    spec: ConnectorSpec
    environment: Mapping[str, str]
    authorizer: Authorizer
    scope: RateScope
    transport: Transport
    #: the operator's replacement of scheme, host and port of every URL of the kind
    override: URL | None = None
    #: how to recognize an error response, if it differs from the rest of the kind
    failure: Failure | None = None

    def in_background(self) -> "UpstreamSession":
        """The same account for background requests."""
        return replace(self, scope=self.scope.in_background())

    async def secrets(self) -> Secrets:
        """The secrets to mask in the application's messages."""
        return Secrets.of_headers(value for headers in await self.authorizer.used() for value in headers.values())

    @cached_property
    def address(self) -> str:
        """The application's, or the override's in its place; raises ConnectorNotReady while a variable is missing."""
        return base_address(self.spec, self.environment, self.override)

    @cached_property
    def own_origins(self) -> frozenset[URL]:
        """The origins that may get the credentials: the application's for this account, and the operator's override."""
        home = URL(base_address(self.spec, self.environment), encoded=True).origin()
        return frozenset({home} if self.override is None else {home, self.override.origin()})

    def request(self, call: PreparedCall) -> UpstreamRequest:
        """The exact request of a call, credentials not yet on it."""
        request = call.request(self.address_of(call))
        headers, query = call.variant.variable_headers, call.variant.variable_query
        return with_variables(request, headers, query, self.environment) if headers or query else request

    def address_of(self, call: PreparedCall) -> str:
        """The URL that the call's request begins with."""
        server = call.variant.action.server
        return self.address if server is None else base_address(self.spec, self.environment, self.override, server)

    async def call(self, call: PreparedCall, run_context: RunContext | None = None) -> OperationResult:
        """Send one request and return its result; raises the error that the application's failure means."""
        request, timeout = self.request(call), call.operation.action.timeout
        exchange = await self._exchange_of(request, timeout, run_context)
        if exchange.error is not None:
            page = _without_records(call, exchange.error) or await _partial(call, exchange)
            if page is not None:
                return page
            if isinstance(exchange.error, InvalidParams):
                exchange.error.extra.setdefault("example", call.operation.example)
            raise exchange.error
        return await _answered(call, request, exchange.response)

    async def greet(self, url: URL, *, timeout: float = 60) -> None:
        """Say hello to the MCP server at a URL; raises what is wrong with it or with the credentials."""
        protocol = self.spec.mcp or VERSIONS[0]
        method = "ping" if has_handshake(protocol) else "server/discover"
        await self.ask(mcp_messages.message(url, method, {}, protocol), timeout=timeout)

    async def ask(self, request: UpstreamRequest, *, timeout: float = 60) -> UpstreamResponse:
        """The response of an MCP server to a request that is no call of a tool; raises its error."""
        return (await self._exchange_of(request, timeout, None)).succeeded()

    async def _exchange_of(self, request: UpstreamRequest, timeout: float, run_context: RunContext | None) -> Exchange:
        """One exchange; a tool of an MCP server is called within a session, if the server has sessions."""
        protocol = self.spec.mcp
        if protocol is None or not has_handshake(protocol):
            return await self.exchange(request, timeout=timeout, run_context=run_context)
        return await mcp_sessions.in_session(
            self.send(timeout, run_context),
            self.send(timeout),
            request,
            self.transport.mcp_sessions,
            self.scope.id,
            await self.authorizer.headers(),
            protocol,
        )

    def send(self, timeout: float, run_context: RunContext | None = None) -> mcp_sessions.Send:
        """Sends requests with these options."""
        return partial(self.exchange, timeout=timeout, run_context=run_context)

    async def upload(self, call: PreparedCall, file: SourceFile) -> OperationResult:
        """Send one request that streams a file in its body, and return its result.

        It is repeated only while no byte of the file was read. Raises as `call` does, and the errors of the file.
        """
        request = streamed(self.request(call), file)
        try:
            exchange = await self.exchange(request, timeout=LONGEST_STREAM, may_repeat=lambda: not file.has_begun)
            return await _answered(call, request, exchange.succeeded())
        except GatewayError:
            if file.error is not None:  # the application has a part of the file, which is not a file
                raise file.error from None
            raise

    async def exchange(
        self,
        request: UpstreamRequest,
        *,
        timeout: float,
        run_context: RunContext | None = None,
        accepted: Collection[int] = (),
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Exchange:
        """Send and judge, with as many tries as the effect class and `may_repeat` allow within `timeout` seconds.

        `accepted` statuses are not failures. A write is marked as in flight right before each try. A refusal is in the
        exchange; UpstreamError and its subclasses are raised. If the answer to a write was lost, the error says that
        its outcome is unknown.
        """
        run_context = None if request.effect is Effect.READ else run_context
        before = None if run_context is None else run_context.mark_in_flight
        on_send = None if run_context is None else run_context.first_byte_sent

        async def attempt(
            credentials: Mapping[str, str], remaining: float, number: int
        ) -> tuple[Exchange, GatewayError | None]:
            sent, headers = _authenticated(request, credentials)
            if sent.mcp_method is not None:
                sent = mcp_messages.numbered(sent)
            response = await self.transport.fetch(
                sent,
                self.scope,
                credentials=headers,
                timeout=remaining,
                before=before,
                on_send=on_send,
                attempt=number,
            )
            if response.status in accepted:
                return Exchange(response), None
            message_id, foreign, is_to_request = sent.message_id, None, False
            if message_id is not None:
                foreign = await _read(partial(_foreign, message_id), response)
            if request.reads_outcome:
                response = msgspec.structs.replace(response, body=mcp_messages.outcome_in(response.body), _members=None)
            large = _LARGE_REFUSAL if response.status >= 300 else _LARGE
            error = await _read(self._failure, response, large) or foreign
            if error is not None and request.is_mutation and await _read(failures.was_executed, response):
                error = UpstreamInvalidResponse(error.detail, upstream=error.upstream)
            if message_id is not None and error is not None:
                is_to_request = mcp_messages.is_to_request(response.body, message_id)
            return Exchange(response, error, is_to_request), error

        deadline = monotonic() + timeout
        return await self._repeat(attempt, request.effect, deadline, run_context, may_repeat=may_repeat)

    async def stream(
        self,
        request: UpstreamRequest,
        exit_stack: AsyncExitStack,
        *,
        deadline: float,
        is_trusted: bool,
        accepted: Collection[int],
    ) -> UpstreamStream:
        """Open a response with an accepted status until `exit_stack` is closed; raises the error of any other status.

        Credentials are sent only if `is_trusted`. The headers must arrive by `deadline`, of the monotonic clock.
        """

        async def attempt(
            credentials: Mapping[str, str], remaining: float, number: int
        ) -> tuple[UpstreamStream, GatewayError | None]:
            await exit_stack.aclose()
            scope = self.scope if is_trusted else self.scope.at_host(request.url.host or "")
            sent, headers = _authenticated(request, credentials)
            opening = self.transport.open(sent, scope, credentials=headers, attempt=number)
            try:
                async with asyncio.timeout(remaining):
                    stream = await exit_stack.enter_async_context(opening)
            except TimeoutError as error:
                raise UpstreamTimeout("the application did not begin to send the file in time") from error
            if stream.status in accepted:
                return stream, None
            if not is_trusted:
                return stream, failures.foreign_failure(stream.status, stream.headers)
            return stream, await self._refusal(stream)

        return await self._repeat(attempt, request.effect, deadline, None, is_trusted=is_trusted)

    async def _repeat(
        self,
        attempt: Attempt[Outcome],
        effect: Effect,
        deadline: float,
        run_context: RunContext | None,
        *,
        is_trusted: bool = True,
        may_repeat: Callable[[], bool] = lambda: True,
    ) -> Outcome:
        """The outcome of the last try; refused credentials are renewed once. A try can make `may_repeat` false."""
        credentials = await self.authorizer.headers() if is_trusted else {}
        number, may_renew = 1, is_trusted
        sent = 0
        while True:
            sent += 1
            outcome, error, was_sent = None, None, True
            try:
                outcome, error = await attempt(credentials, max(0.0, deadline - monotonic()), sent)
            except NotSent as unsent:
                error, was_sent = _without_frames(unsent.error), False
            except UpstreamError as lost:
                error = _without_frames(lost)
            if error is None:
                assert outcome is not None
                return outcome
            if isinstance(error, UpstreamRateLimited) and is_trusted:
                self.transport.limiter.pause(self.scope, float(error.retry_after or 1))
            if run_context is not None:
                await retries.note(run_context, error, was_sent=was_sent)
            if isinstance(error, ReauthorizationRequired) and is_trusted:
                if missing := error.extra.get("scopes"):  # a renewal would not add any
                    await self.authorizer.needs_scopes(missing)
                    raise error
                renewed = await self.authorizer.renewed(credentials) if may_renew else None
                if renewed is not None and not may_repeat():
                    raise UpstreamError("the access token was refused and has been renewed; send the file again")
                if renewed is not None:
                    credentials, may_renew = renewed, False
                    continue
                await self.authorizer.refused(credentials, error.detail)
            elif may_renew and may_repeat() and self._is_doubtful(error):
                may_renew, renewed = False, await self._renewed_in_doubt(credentials)
                if renewed is not None:
                    credentials = renewed
                    continue
            failed = retries.Attempt(number, error, was_sent)
            wait = retries.delay(effect, failed, min(deadline - monotonic(), _LONGEST_WAIT)) if may_repeat() else None
            if wait is None:
                if isinstance(outcome, Exchange) and not isinstance(error, UpstreamError):
                    return outcome
                raise retries.final(effect, failed)
            await asyncio.sleep(wait)
            number += 1

    def _is_doubtful(self, error: GatewayError) -> bool:
        """Whether the application may mean that the access token has expired."""
        oauth, status = self.spec.oauth, error.upstream and error.upstream.status
        return oauth is not None and status in oauth.expired_statuses

    async def _renewed_in_doubt(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        """Newer credentials than the refused ones; None if there are none, and no renewal is possible or due now."""
        doubts = self.transport.doubts
        if doubts.is_settled(self.scope.id):
            current = await self.authorizer.headers()
            return None if current == refused else current
        try:
            return await self.authorizer.renewed(refused)
        except ReauthorizationRequired:
            raise
        except GatewayError:
            return None
        finally:
            doubts.settle(self.scope.id)

    def _failure(self, response: UpstreamResponse) -> GatewayError | None:
        if self.spec.oauth is not None and self.spec.mcp is not None and response.status == _FORBIDDEN:
            challenge = challenge_in(response.headers)
            if challenge.error == "insufficient_scope" and challenge.scopes:
                return failures.scopes_missing(response, challenge.scopes)
        if self.failure is not None:
            return failures.failure(self.failure, response)
        limit = self.spec.rate_limit
        return failures.failure(self.spec.failure, response, limit.allowances if limit else ())

    async def _refusal(self, stream: UpstreamStream) -> GatewayError:
        """The error for a response that does not contain the file."""
        body = b""
        async for chunk in stream.chunks:
            body += chunk
            if len(body) > _REFUSAL_CAP:
                break
        response = UpstreamResponse(stream.status, stream.headers, body[:_REFUSAL_CAP], secrets=stream.secrets)
        error = self._failure(response)
        return error or UpstreamInvalidResponse(f"the application answered a download with status {stream.status}")


def _foreign(message_id: int, response: UpstreamResponse) -> GatewayError | None:
    """The error of an MCP server's message that is not the response to the request with the id."""
    if mcp_messages.is_response(response.body, message_id):
        return None
    error = UpstreamInvalidResponse("the server's answer is not the JSON-RPC response to the request")
    error.upstream = failures.fault_of(response)
    return error


async def answer_of(call: PreparedCall, response: UpstreamResponse) -> OperationResult:
    """The answer in a successful response; a large one is read in a thread. Raises UpstreamInvalidResponse."""
    is_checked = call.variant.action.output_schema is not None
    return await _read(call.answer, response, LARGE_CONTENT if is_checked else _LARGE)


async def _read(
    reader: Callable[[UpstreamResponse], Outcome], response: UpstreamResponse, large: int = _LARGE
) -> Outcome:
    """What the reader finds in a response; one of more than `large` bytes is read in a thread."""
    return await in_thread(reader, response) if len(response.body) > large else reader(response)


async def _answered(call: PreparedCall, request: UpstreamRequest, response: UpstreamResponse) -> OperationResult:
    """The answer in a successful response; the error of an unreadable one names the response."""
    try:
        return await answer_of(call, response)
    except UpstreamInvalidResponse as error:
        error.upstream = failures.fault_of(response)
        raise retries.answer_lost(request.effect, error) from error


def _without_records(call: PreparedCall, error: GatewayError) -> OperationResult | None:
    """The page of a list that the application refuses with the words that it has no records; else None."""
    words = error.upstream.message if isinstance(error, UpstreamNotFound) and error.upstream else None
    if not call.variant.is_list or not refusals.says_no_records(call.variant.spec.failure, words):
        return None
    return call.page(responses.no_records(call.variant))


async def _partial(call: PreparedCall, exchange: Exchange) -> OperationResult | None:
    """The page of a GraphQL list whose response has errors beside records, and names what is missing; else None."""
    action, status = call.variant.action, exchange.response.status
    if action.graphql is None or action.effect is not Effect.READ or not call.variant.is_list or status != _OK:
        return None
    try:
        page = await answer_of(call, exchange.response)
    except GatewayError:
        return None
    reason = f"the application returned a part of the page: {exchange.error}"
    incomplete = reason if page.incomplete is None else f"{page.incomplete}; {reason}"
    return msgspec.structs.replace(page, incomplete=incomplete) if page.items else None


def _authenticated(
    request: UpstreamRequest, credentials: Mapping[str, str]
) -> tuple[UpstreamRequest, Mapping[str, str]]:
    """The request with the credentials that belong in its query, and those that are headers."""
    for name in credentials:
        if name.startswith(QUERY_PREFIX):
            return with_query_credentials(request, credentials)
    return request, credentials


def _without_frames(error: GatewayError) -> GatewayError:
    """The error and its causes without tracebacks, whose frames would keep the read bytes in a reference cycle."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error
