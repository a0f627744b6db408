"""Files out of the application: looked up, their addresses checked, opened, and judged before a byte is passed on."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from multidict import CIMultiDict
from yarl import URL

from gateway.connectors import requests, responses, retries
from gateway.connectors.egress import checked_url
from gateway.connectors.requests import UpstreamRequest, relocated
from gateway.connectors.responses import UpstreamResponse, value_at
from gateway.connectors.run_context import MemoryJournal
from gateway.connectors.transport import UpstreamStream
from gateway.errors import (
    GatewayError,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamFault,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from gateway.http_ranges.integrity import File, judged_file
from gateway.http_ranges.responses import RangeRequest, relayed_reply
from gateway.kinds.catalog import Operation
from gateway.kinds.spec import Download, Effect, JsonPath

if TYPE_CHECKING:
    from gateway.connectors.connector import Connector

#: the action that has no record but bytes
ACTION = "download"
#: redirects followed for one file
REDIRECTS = 3
#: seconds for a whole file, however steadily it comes
LONGEST = 12 * 3600.0

_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_PASSED_ON = frozenset({200, 206, 304, 416}) | _REDIRECTING
#: statuses by which a signed address says that its time is over
_EXPIRED = frozenset({400, 401, 403, 404, 410})
#: bytes of a refusal that are read for the application's own words
_REFUSAL_CAP = 64 << 10
_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Described:
    """What the application's record tells of a file before its bytes come."""

    url: str | None = None
    size: int | None = None
    name: str | None = None
    content_type: str | None = None

    def labels(self) -> dict[str, str]:
        """The record's words in the form of the headers that they stand in for."""
        found = {}
        if self.content_type:
            found["content-type"] = self.content_type
        if self.name:
            found["content-disposition"] = f"attachment; filename*=UTF-8''{quote(self.name, safe='', errors='replace')}"
        return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the bytes are said to be, as the application spells it, and whether credentials may go there."""

    url: URL
    is_trusted: bool
    headers: Mapping[str, str] = field(default_factory=dict)


@asynccontextmanager
async def opened(
    connector: "Connector", operation: Operation, params: Mapping[str, Any], wanted: RangeRequest
) -> AsyncIterator[File]:
    """The file of a download operation, its status and headers judged; closed upstream when the block ends.

    Raises UpstreamError and its kin, RangeNotSatisfiable, and what the application's refusals mean.
    """
    assert operation.action.download is not None
    deadline = asyncio.get_running_loop().time() + operation.action.timeout
    async with AsyncExitStack() as held:
        yield await _Opening(connector, operation, _without_range(operation, params), wanted, held, deadline).file()


@dataclass(frozen=True, slots=True)
class _Opening:
    """One download up to its first byte; at most one answer is held at a time."""

    connector: "Connector"
    operation: Operation
    params: Mapping[str, Any]
    wanted: RangeRequest
    held: AsyncExitStack
    #: when the first byte must have come, by the loop's clock
    deadline: float

    @property
    def _left(self) -> float:
        return max(0.0, self.deadline - asyncio.get_running_loop().time())

    @property
    def _how(self) -> Download:
        assert self.operation.action.download is not None
        return self.operation.action.download

    async def file(self) -> File:
        described = await self._described()
        try:
            stream = await self._stream(described, ranged=True)
        except GatewayError as refused:
            if self._how.url is None or refused.upstream is None or refused.upstream.status not in _EXPIRED:
                raise
            described = await self._described()
            stream = await self._stream(described, ranged=True)
        file = self._judged(described, stream, ranged=True)
        if file is None:
            stream = await self._stream(described, ranged=False)
            file = self._judged(described, stream, ranged=False)
        assert file is not None
        return file

    def _judged(self, described: Described, stream: UpstreamStream, *, ranged: bool) -> File | None:
        headers = CIMultiDict({**described.labels(), **stream.headers})
        reply = relayed_reply(self.wanted, stream.status, headers, size=described.size, ranged=ranged)
        return None if reply is None else judged_file(reply, headers, described.size, stream.pieces())

    async def _described(self) -> Described:
        """The record of the file, read anew each time: its address may be signed for minutes only."""
        request_line = self._how.described_by or (self.operation.action.request if self._how.url else None)
        if request_line is None:
            return Described()
        action = self.operation.action.model_copy(update={"request": request_line, "record": (), "download": None})
        look_up = Operation(self.operation.spec, self.operation.entity_id, self.operation.action_id, action)
        request = self.connector.request(look_up, self.params)
        answer = responses.read(look_up, await self.connector.send(look_up, request, MemoryJournal()))
        return _described(self._how, answer.decoded())

    async def _stream(self, described: Described, *, ranged: bool) -> UpstreamStream:
        """The answer that has the bytes, or that speaks of them, redirects followed by hand."""
        place = self._first_place(described)
        for _ in range(REDIRECTS + 1):
            stream = await self._asked(place, self.wanted.upstream_headers(ranged=ranged))
            if stream.status not in _REDIRECTING:
                return stream
            place = self._next_place(place, stream.headers.get("location"))
        raise UpstreamInvalidResponse(f"the file's address redirects more than {REDIRECTS} times")

    def _first_place(self, described: Described) -> _Place:
        if self._how.url is None:
            request = requests.build(self.operation, self.params, self.connector.environment)
            return _Place(request.url, is_trusted=True, headers=request.headers)
        if described.url is None:
            raise UpstreamNotFound(
                f"{self.operation}: the application has no address for this file; it may lie with another service, "
                "or have been removed"
            )
        url = self._checked(described.url)
        return _Place(url, is_trusted=not self._how.presigned and self._is_own(url))

    def _next_place(self, place: _Place, location: str | None) -> _Place:
        """Where a redirect leads; credentials lost on the way stay lost."""
        if not location:
            raise UpstreamInvalidResponse("the file's address redirects to nowhere")
        url = self._checked(_joined(place.url, location))
        is_trusted = place.is_trusted and self._is_own(url)
        return _Place(url, is_trusted, place.headers if is_trusted else {})

    def _checked(self, url: str) -> URL:
        spec = self.operation.spec
        return checked_url(url, hosts=(*spec.hosts, *spec.file_hosts), override=self.connector.override)

    def _is_own(self, url: URL) -> bool:
        """Whether a URL is at the account's own host, where the credentials come from."""
        home = URL(requests.base_address(self.operation.spec, self.connector.environment), encoded=True)
        override = self.connector.override
        return url.origin() == home.origin() or (override is not None and url.origin() == override.origin())

    async def _asked(self, place: _Place, headers: Mapping[str, str]) -> UpstreamStream:
        """The answer at a place; tried again as any read is, with renewed credentials once."""
        credentials = await self.connector.authorizer.headers() if place.is_trusted else {}
        number, may_renew = 1, place.is_trusted
        while True:
            error = None
            try:
                stream = await self._opened(place, {**place.headers, **headers, **credentials})
                if stream.status in _PASSED_ON:
                    return stream
                error = await self._refusal(place, stream)
            except UpstreamError as lost:
                error = lost
            if may_renew and isinstance(error, ReauthorizationRequired):
                may_renew = False
                renewed = await self.connector.authorizer.renewed(credentials)
                if renewed is not None:
                    credentials = renewed
                    continue
            wait = retries.delay(Effect.READ, retries.Attempt(number, error, was_sent=True), min(self._left, _TIMEOUT))
            if wait is None:
                raise error
            await asyncio.sleep(wait)
            number += 1

    async def _opened(self, place: _Place, headers: Mapping[str, str]) -> UpstreamStream:
        await self.held.aclose()
        request = UpstreamRequest("GET", relocated(place.url, self.connector.override), headers)
        account = self.connector.quota if place.is_trusted else None
        opening = self.connector.transport.open(request, account=account, timeout=LONGEST)
        try:
            async with asyncio.timeout(self._left):
                return await self.held.enter_async_context(opening)
        except TimeoutError as error:
            raise UpstreamTimeout("the application did not begin to send the file in time") from error

    async def _refusal(self, place: _Place, stream: UpstreamStream) -> GatewayError:
        """What an answer without the file means: the application's own words only where it is the application."""
        if not place.is_trusted:
            return _foreign_refusal(stream)
        body = b""
        async for piece in stream.pieces():
            body += piece
            if len(body) > _REFUSAL_CAP:
                break
        response = UpstreamResponse(stream.status, stream.headers, body[:_REFUSAL_CAP])
        error = responses.failure(self.operation.spec.failure, response)
        return error or UpstreamInvalidResponse(f"the application answered a download with status {stream.status}")


def _described(how: Download, document: Any) -> Described:
    def at(place: JsonPath | None) -> Any:
        return None if place is None else value_at(document, place)

    url, size, name, ending, content_type = (
        at(place) for place in (how.url, how.size, how.name, how.extension, how.content_type)
    )
    name = name if isinstance(name, str) else None
    if name and isinstance(ending, str) and ending and not name.lower().endswith(f".{ending.lower()}"):
        name = f"{name}.{ending}"
    return Described(
        url=url if isinstance(url, str) and url else None,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        name=name,
        content_type=content_type if isinstance(content_type, str) else None,
    )


def _foreign_refusal(stream: UpstreamStream) -> GatewayError:
    said = UpstreamFault(status=stream.status)
    words = f"the host of the file answered {stream.status}"
    match stream.status:
        case 404 | 410:
            return UpstreamNotFound(words, upstream=said)
        case 429:
            wait = responses.retry_after(stream.headers) or responses.DEFAULT_RETRY_AFTER
            return UpstreamRateLimited(words, upstream=said, retry_after=wait)
        case status if status >= 500:
            return UpstreamError(words, upstream=said)
        case _:
            return UpstreamInvalidResponse(words, upstream=said)


def _joined(base: URL, location: str) -> str:
    """The address that a Location names, which may be relative (RFC 9110 §10.2.2); still to be checked."""
    try:
        return str(base.join(URL(location, encoded=True)))
    except ValueError as error:
        raise UpstreamInvalidResponse("the file's address redirects to what is no address") from error


def _without_range(operation: Operation, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params that name the file: the range is the request's own business here."""
    ranged = {placement.name for placement in operation.placements if placement.wire.lower() == "range"}
    return {name: value for name, value in params.items() if name not in ranged}
