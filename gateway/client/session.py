"""Sends the client's requests to the gateway, with a token, and repeats those that are safe to repeat."""

import asyncio
import math
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

import aiohttp
import msgspec

from gateway.client.browser_sign_in import StoredTokens, is_usable, refresh_form, with_tokens
from gateway.client.problems import error_of
from gateway.client.profiles import Profiles
from gateway.client.retries import RetryPolicy
from gateway.client.settings import ClientSettings
from gateway.contract.members import PageOf
from gateway.contract.oauth import TOKEN
from gateway.errors import GatewayError, RequestError, Unauthorized, Unavailable
from gateway.foundation import payloads
from gateway.foundation.aio.bodies import read_body
from gateway.foundation.aio.clock import CLOCK

T = TypeVar("T")
Model = TypeVar("Model")
View = TypeVar("View")

_TOKEN_PATH = "/api/v1/account/applications/token"
#: a token is renewed this many seconds before it expires
_SKEW = 30.0
#: seconds that one read may take, in addition to `wait` of the request
_IDLE = 120.0
_CONNECT = 10.0
#: maximum bytes that are read of an error's body
_PROBLEM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request to the gateway."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: seconds that the request asks the gateway to wait
    wait: float = 0.0
    #: whether a POST changes nothing
    is_read: bool = False
    #: NDJSON, in place of `body`
    lines: bytes | None = None
    #: the fields of a form, in place of `body`
    form: Mapping[str, str] | None = None
    #: a file, in place of `body`, sent from the byte `offset` on
    file: Path | None = None
    offset: int = 0

    @property
    def is_safe(self) -> bool:
        """Whether sending it twice has the same effect as sending it once."""
        return self.is_read or self.method in ("GET", "HEAD") or "Idempotency-Key" in self.headers


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response with its complete body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def into(self, model: type[Model]) -> Model:
        return payloads.typed(self.body, model)


@dataclass(slots=True)
class _Token:
    value: str
    #: by `time.monotonic`
    ends_at: float

    @property
    def is_valid(self) -> bool:
        return time.monotonic() < self.ends_at - _SKEW


class Session:
    """A connection pool, an access token, and retries."""

    def __init__(self, settings: ClientSettings, policy: RetryPolicy) -> None:
        self.settings = settings
        self.policy = policy
        self._http: aiohttp.ClientSession | None = None
        self._token: _Token | None = None
        self._renewal = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def fetch(self, call: ApiRequest) -> ApiResponse:
        """The response with its complete body; raises the error in it."""
        return await self._with_retries(call, self._once)

    async def views(
        self, path: str, query: Mapping[str, Any], page_type: type[PageOf[View]], limit: int | None = None
    ) -> AsyncGenerator[View, None]:
        """The items of a list, at most `limit`; fetches page after page. The query's `limit` is the size of a page."""
        cursor, remaining = None, limit
        while True:
            call = ApiRequest(method="GET", path=path, query={**query, "cursor": cursor})
            page = (await self.fetch(call)).into(page_type)
            for view in page.data[:remaining]:
                yield view
            cursor = page.next_cursor
            remaining = None if remaining is None else remaining - len(page.data)
            if cursor is None or (remaining is not None and remaining <= 0):
                return

    async def open(self, call: ApiRequest) -> aiohttp.ClientResponse:
        """A successful response whose body has not been read; the caller closes it."""
        return await self._with_retries(call, self._open)

    async def _with_retries(self, call: ApiRequest, send: Callable[[ApiRequest], Awaitable[T]]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await send(call)
            except GatewayError as error:
                pause = self.policy.pause(error, attempt, is_safe=call.is_safe)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _once(self, call: ApiRequest) -> ApiResponse:
        async with await self._open(call) as response:
            try:
                return ApiResponse(response.status, response.headers, await response.read())
            except (aiohttp.ClientError, OSError) as error:
                raise connection_lost(error) from error

    async def _open(self, call: ApiRequest) -> aiohttp.ClientResponse:
        return await _successful(await self.exchange(call))

    async def exchange(self, call: ApiRequest) -> aiohttp.ClientResponse:
        """The response to a request with a token, with any status; a refused token is renewed once."""
        token = await self.token()
        response = await self.send(call, token)
        if response.status == 401:
            response.release()
            response = await self.send(call, await self.token(refused=token))
        return response

    async def token(self, refused: str | None = None) -> str:
        """A bearer token that is valid for at least 30 seconds; raises Unauthorized and Unavailable.

        Concurrent callers without a valid token share the request for it.
        """
        async with self._renewal:
            if self._token is None or not self._token.is_valid or self._token.value == refused:
                self._token = await self._new_token(refused)
            return self._token.value

    async def _new_token(self, refused: str | None) -> _Token:
        if self.settings.token is not None:
            if refused is not None:
                raise Unauthorized("the token has expired or was revoked; open a new session")
            return _Token(self.settings.token, math.inf)
        if self.settings.tokens_of is not None:
            return await self._renew(self.settings.tokens_of, refused)
        secrets = {"client_id": self.settings.client_id, "client_secret": self.settings.client_secret}
        issued = await self.issued(ApiRequest(method="POST", path=_TOKEN_PATH, body=secrets))
        return _Token(issued["access_token"], time.monotonic() + issued.get("expires_in", 900))

    async def _renew(self, name: str, refused: str | None) -> _Token:
        """The access token of a profile, renewed if it has expired; raises Unauthorized if the sign-in has ended."""
        async with (tokens := StoredTokens(Profiles(), name)) as profile:
            if not is_usable(profile, refused):
                try:
                    issued = await self.issued(ApiRequest(method="POST", path=TOKEN, form=refresh_form(profile)))
                except RequestError as error:
                    login = f"gateway login {profile.base_url} --profile {name}"
                    raise Unauthorized(f"the sign-in of the profile {name!r} has ended; run `{login}`") from error
                profile = with_tokens(profile, issued)
                tokens.store(profile)
        assert profile.access_token is not None
        assert profile.access_token_ends_at is not None
        seconds = (profile.access_token_ends_at - CLOCK.now()).total_seconds()
        return _Token(profile.access_token, time.monotonic() + seconds)

    async def issued(self, call: ApiRequest) -> dict[str, Any]:
        """The document that an endpoint without a token, such as the token endpoint, returns.

        Its errors have `extra["sent"] = False`: the caller's own request has not been sent.
        """
        try:
            async with await _successful(await self.send(call)) as response:
                issued: dict[str, Any] = msgspec.json.decode(await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise connection_lost(error, is_sent=False) from error
        except Unavailable as error:
            # the caller's own request has not been sent yet, so that it may be repeated whatever its effect
            error.extra["sent"] = False
            raise
        return issued

    async def send(self, call: ApiRequest, token: str | None = None) -> aiohttp.ClientResponse:
        """The response to a request, with any status; the caller closes it."""
        try:
            return await self._pool().request(
                call.method,
                self.settings.base_url.joinpath(call.path.lstrip("/"), encoded=True),
                params={name: str(value) for name, value in call.query.items() if value is not None},
                data=_data(call),
                headers=self._headers(call, token),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_IDLE + call.wait),
            )
        except aiohttp.ClientSSLError as error:
            raise Unavailable(
                f"the TLS connection to {self.settings.base_url} failed; if the gateway serves plain HTTP, use http:// "
                "in GATEWAY_URL",
                extra={"sent": False},
            ) from error
        except aiohttp.ClientConnectorError as error:
            raise Unavailable(
                f"cannot reach the gateway at {self.settings.base_url}: {_reason(error)}; "
                "start it with `gateway up` or set GATEWAY_URL",
                extra={"sent": False},
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise connection_lost(error) from error

    def _headers(self, call: ApiRequest, token: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "gateway-client"}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        elif call.lines is not None:
            headers["Content-Type"] = "application/x-ndjson"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if self.settings.organization_id is not None:
            headers["X-Organization-Id"] = self.settings.organization_id
        return {**headers, **call.headers}

    def _pool(self) -> aiohttp.ClientSession:
        """The connection pool, created when a loop runs: unlimited, without cookies and without environment proxies."""
        if self._http is None or self._http.closed:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._http


def _data(call: ApiRequest) -> Mapping[str, str] | BinaryIO | bytes | None:
    """The body. NDJSON is a file object, because aiohttp sends a file in chunks, and closes it."""
    if call.form is not None:
        return call.form
    if call.file is not None:
        file = call.file.open("rb")
        file.seek(call.offset)
        return file
    if call.lines is not None:
        return BytesIO(call.lines)
    return None if call.body is None else msgspec.json.encode(call.body)


def _reason(error: aiohttp.ClientConnectorError) -> str:
    number = error.os_error.errno
    return os.strerror(number) if number and number > 0 else str(error.os_error)


def connection_lost(error: Exception, *, is_sent: bool = True) -> Unavailable:
    """The error for a broken connection. If the request was sent, the gateway may have executed it."""
    reason = str(error) or type(error).__name__
    return Unavailable(f"the connection to the gateway was lost: {reason}", extra={"sent": is_sent})


async def _successful(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    """The response, if it is successful or a 304; otherwise raises its error."""
    if response.status < 300 or response.status == 304:
        return response
    async with response:
        try:
            body = await read_body(response.content, _PROBLEM_BYTES)
        except (aiohttp.ClientError, OSError) as error:
            raise connection_lost(error) from error
    refusal = error_of(response.status, response.headers, body)
    if isinstance(refusal, Unauthorized) and response.url.path.endswith(_TOKEN_PATH):
        raise Unauthorized(f"{refusal.detail}; check GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET", extra=refusal.extra)
    raise refusal
