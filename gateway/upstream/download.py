"""Downloads files: reads the file's record, checks its URL, opens it, and checks the response before passing it on."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from time import monotonic
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace
from yarl import URL

from gateway.errors import GatewayError, UpstreamInvalidResponse, UpstreamNotFound
from gateway.kinds.members import value_at
from gateway.kinds.requests import Download
from gateway.upstream.egress import checked_url
from gateway.upstream.http_ranges.integrity import File, judged_file
from gateway.upstream.http_ranges.ranges import RangeRequest
from gateway.upstream.http_ranges.responses import relayed_reply
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import UpstreamRequest, base_address, relocated
from gateway.upstream.session import UpstreamSession
from gateway.upstream.transport import UpstreamStream

#: the action whose result is a file instead of records
ACTION = "download"
#: redirects followed for one file
REDIRECTS = 3

#: stands for a path that the application named
_ANY_PATH = "/…"
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})
_PASSED_ON = frozenset({200, 206, 304, 416}) | _REDIRECTING
#: statuses of an expired signed URL
_EXPIRED = frozenset({400, 401, 403, 404, 410})


@dataclass(frozen=True, slots=True)
class Described:
    """A file's metadata from the application's record, known before the download begins."""

    url: str | None = None
    size: int | None = None
    name: str | None = None
    content_type: str | None = None

    def headers(self) -> dict[str, str]:
        """The metadata as response headers."""
        headers = {}
        if self.content_type:
            headers["content-type"] = self.content_type
        if self.name:
            headers["content-disposition"] = (
                f"attachment; filename*=UTF-8''{quote(self.name, safe='', errors='replace')}"
            )
        return headers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """The URL of the file's bytes as the application wrote it, and whether credentials may be sent there."""

    url: URL
    is_trusted: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes | None = None
    #: the path that the request log has, where the application named the URL: such a path may be the key to the file
    logged_path: str | None = None


@asynccontextmanager
async def open_file(session: UpstreamSession, call: PreparedCall, range_request: RangeRequest) -> AsyncIterator[File]:
    """Open the file of a download operation and check its status and headers; it is closed when the block ends.

    Raises UpstreamError and its subclasses, RangeNotSatisfiable, and the errors of the application's refusals.
    """
    deadline = monotonic() + call.operation.action.timeout
    how = call.operation.action.download
    assert how is not None
    async with AsyncExitStack() as exit_stack:
        yield await _Opening(
            session=session,
            call=_without_range(call),
            how=how,
            range_request=range_request,
            exit_stack=exit_stack,
            deadline=deadline,
        ).file()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """Opens one download; at most one response is open at a time."""

    session: UpstreamSession
    call: PreparedCall
    how: Download
    range_request: RangeRequest
    exit_stack: AsyncExitStack
    #: the time, of the monotonic clock, by which the response headers must have arrived
    deadline: float

    async def file(self) -> File:
        described = await self._described()
        try:
            stream = await self._stream(described, ranged=True)
        except GatewayError as refused:
            if self.how.url is None or refused.upstream is None or refused.upstream.status not in _EXPIRED:
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
        headers = {**described.headers(), **stream.headers}
        reply = relayed_reply(self.range_request, stream.status, headers, size=described.size, ranged=ranged)
        return None if reply is None else judged_file(reply, described.size, stream.chunks)

    async def _described(self) -> Described:
        """The file's metadata; each call reads the record again, because its URL may be valid for minutes only."""
        operation = self.call.operation.file_description
        if operation is None:
            return Described()
        answer = await self.session.call(PreparedCall.of(operation, self.call.params))
        return _described(self.how, answer.decoded())

    async def _stream(self, described: Described, *, ranged: bool) -> UpstreamStream:
        """The response with the file, or with status 304 or 416, after up to REDIRECTS redirects."""
        target, headers = self._first_target(described), self.range_request.upstream_headers(ranged=ranged)
        for _ in range(REDIRECTS + 1):
            url = relocated(target.url, self.session.override)
            stream = await self.session.stream(
                UpstreamRequest(
                    method=target.method,
                    url=url,
                    headers={**target.headers, **headers},
                    body=target.body,
                    effect=self.call.effect,
                    operation=self.call.operation.name,
                    logged_path=target.logged_path,
                ),
                self.exit_stack,
                deadline=self.deadline,
                is_trusted=target.is_trusted,
                accepted=_PASSED_ON,
            )
            if stream.status not in _REDIRECTING:
                return stream
            target = self._next_target(target, stream)
        raise UpstreamInvalidResponse(f"the file's address redirects more than {REDIRECTS} times")

    def _first_target(self, described: Described) -> _Target:
        if self.how.url is None:
            server = self.call.variant.action.server
            request = self.call.request(base_address(self.session.spec, self.session.environment, None, server))
            return _Target(
                url=request.url, is_trusted=True, headers=request.headers, method=request.method, body=request.body
            )
        if described.url is None:
            raise UpstreamNotFound(
                f"{self.call.operation}: the application has no address for this file; "
                "another service may store it, or it was removed"
            )
        url = self._checked(described.url)
        is_trusted = not self.how.presigned and url.origin() in self.session.own_origins
        return _Target(url=url, is_trusted=is_trusted, logged_path=_ANY_PATH)

    def _next_target(self, target: _Target, stream: UpstreamStream) -> _Target:
        """The target of a redirect; after one redirect to another host no credentials are sent any more.

        The request keeps its method and body only if the status says so (RFC 9110 §15.4) and the host is trusted.
        """
        location = stream.headers.get("location")
        if not location:
            raise UpstreamInvalidResponse("the file's address redirects without a Location")
        url = self._checked(_joined(target.url, location))
        is_trusted = target.is_trusted and url.origin() in self.session.own_origins
        if is_trusted and stream.status in _KEEPS_METHOD:
            return replaced(target, url=url, logged_path=_ANY_PATH)
        headers = {name: value for name, value in target.headers.items() if name.lower() != "content-type"}
        return _Target(url=url, is_trusted=is_trusted, headers=headers if is_trusted else {}, logged_path=_ANY_PATH)

    def _checked(self, url: str) -> URL:
        spec = self.session.spec
        return checked_url(url, hosts=(*spec.hosts, *spec.file_hosts), override=self.session.override)


def _described(how: Download, document: Any) -> Described:
    url, size, name, extension, content_type = (
        None if path is None else value_at(document, path)
        for path in (how.url, how.size, how.name, how.extension, how.content_type)
    )
    name = name if isinstance(name, str) else None
    if name and isinstance(extension, str) and extension and not name.lower().endswith(f".{extension.lower()}"):
        name = f"{name}.{extension}"
    return Described(
        url=url if isinstance(url, str) and url else None,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        name=name,
        content_type=content_type if isinstance(content_type, str) else None,
    )


def _joined(base: URL, location: str) -> str:
    """The address that a Location names, which may be relative (RFC 9110 §10.2.2); still to be checked."""
    try:
        return str(base.join(URL(location, encoded=True)))
    except ValueError as error:
        raise UpstreamInvalidResponse("the file's address redirects to an invalid URL") from error


def _without_range(call: PreparedCall) -> PreparedCall:
    """The call with only the params that name the file; the range is sent as a header."""
    ranged = {placement.name for placement in call.operation.placements if placement.wire.lower() == "range"}
    return replace(call, params={name: value for name, value in call.params.items() if name not in ranged})
