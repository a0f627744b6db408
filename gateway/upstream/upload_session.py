"""Uploads a file in pieces: `SessionUpload` continues at the offset that the application reports.

At most one piece is in memory, a smaller one while many files are uploaded. The URL of a session is a secret: it lets
its holder write the file.
"""

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import (
    InternalError,
    UploadExpired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRejected,
    UpstreamTooLarge,
)
from gateway.kinds.upload_session import UploadSession
from gateway.upstream import retries
from gateway.upstream.egress import checked_url
from gateway.upstream.encoding import header_text
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import UpstreamRequest, relocated
from gateway.upstream.responses import OperationResult, UpstreamResponse
from gateway.upstream.session import UpstreamSession, answer_of
from gateway.upstream.upload import SourceFile

#: bytes of the largest piece; pieces are multiples of `UploadSession.multiple`
PIECE = 2 << 20
#: bytes of the smallest piece
_SMALLEST = 256 << 10
#: seconds for the request of a piece
_TIMEOUT = 300.0
#: seconds of the longest pause before a piece is sent again
_LONGEST_WAIT = 10.0
#: characters of the shortest value in the query of a session's URL that is a secret by itself
_SHORTEST_SECRET = 12
#: the status of a session that waits for further bytes
_INCOMPLETE = 308
_NOT_STORED = "the application stores no further byte of the file; continue the upload later"
_STORED = re.compile(r"bytes=0-(\d{1,18})")


class OffsetMoved(UpstreamInvalidResponse):
    """The application has stored more than was sent: a piece of another request arrived late."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the application has {offset} bytes of the file, more than were sent")
        #: the bytes that are stored
        self.offset = offset


@dataclass(frozen=True, slots=True)
class SessionUpload:
    """One upload in an open session of the application."""

    session: UpstreamSession
    call: PreparedCall
    #: the URL of the session, as the application wrote it
    url: str
    #: bytes of the whole file
    size: int

    @classmethod
    def at(cls, session: UpstreamSession, call: PreparedCall, url: str, size: int) -> "SessionUpload":
        """An upload at the URL that the application names. It must be on the operation's server: it gets credentials.

        Raises UpstreamInvalidResponse for any other URL.
        """
        found = checked_url(url, hosts=session.spec.hosts, override=session.override)
        own = URL(session.address_of(call), encoded=True)
        if relocated(found, session.override).origin() != own.origin():
            raise UpstreamInvalidResponse(
                "address refused: the session of an upload must be at the application's own host"
            )
        return cls(session, call, str(found), size)

    @property
    def how(self) -> UploadSession:
        how = self.call.operation.action.upload_session
        assert how is not None
        return how

    async def state(self) -> int | OperationResult:
        """The number of bytes that the application has stored, or its answer if it has the whole file.

        Raises UploadExpired if the session has ended.
        """
        return await self._put(None, f"bytes */{self.size}", Effect.READ)

    async def send(
        self, file: SourceFile, offset: int, before_piece: Callable[[], Awaitable[None]] | None = None
    ) -> int | OperationResult:
        """Send a part of the file that begins at `offset`; the bytes that are stored then, or the answer at the end.

        `before_piece` is awaited before each piece. Raises what reading the part raises, and UpstreamError if the
        application cannot be reached: the bytes that it has stored remain. Raises OffsetMoved if a piece of another
        request is stored too, and Unavailable if there is no memory for a piece.
        """
        multiple = self.how.multiple
        with file.memory(min(max(multiple, _SMALLEST), file.size), min(PIECE, file.size)) as size:
            async for parts in _pieces(file.read(), max(multiple, size - size % multiple)):
                if before_piece is not None:
                    await before_piece()
                reached = await self._sent(parts, offset)
                if isinstance(reached, OperationResult):
                    return reached
                offset = reached
        return offset if offset < self.size else await self.state()

    async def _sent(self, parts: Sequence[bytes], start: int) -> int | OperationResult:
        """Send one piece until it is stored; after a failure the application says where to continue."""
        end = start + sum(map(len, parts))
        reached, number = start, 0
        while True:
            piece, error = _Piece(parts, reached - start, end - reached), UpstreamError(_NOT_STORED)
            try:
                answer = await self._put(piece, f"bytes {reached}-{end - 1}/{self.size}", Effect.WRITE)
            except (UpstreamInvalidResponse, UpstreamTooLarge):
                raise
            except UpstreamError as lost:
                error, answer = UpstreamError(_NOT_STORED, upstream=lost.upstream), await self.state()
            except UpstreamRejected:
                # The bytes may be stored already: a request that was cut off has a last piece on its way.
                answer = await self.state()
                if answer == reached:
                    raise
            if isinstance(answer, OperationResult) or answer == end:
                return answer
            if answer > end:
                raise OffsetMoved(answer)
            if answer < start:
                raise UpstreamInvalidResponse(
                    f"the application reports {answer} bytes of the file, but it had {start} before"
                )
            number = 1 if answer > reached else number + 1
            reached = answer
            wait = retries.delay(Effect.READ, retries.Attempt(number, error, was_sent=True), _LONGEST_WAIT)
            if wait is None:
                raise error
            await asyncio.sleep(wait)

    async def _put(self, piece: "_Piece | None", content_range: str, effect: Effect) -> int | OperationResult:
        size = 0 if piece is None else piece.size
        request = UpstreamRequest(
            method="PUT",
            url=relocated(URL(self.url, encoded=True), self.session.override),
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Length": str(size),
                "Content-Range": content_range,
            },
            effect=effect,
            operation=str(self.call.operation),
            stream=piece,
            size=size,
            logged_path=self.call.operation.upload_start.path,
            secrets=_secrets_of(self.url),
        )
        exchange = await self.session.exchange(request, timeout=_TIMEOUT, accepted=(_INCOMPLETE,))
        if isinstance(exchange.error, UpstreamNotFound):
            raise UploadExpired(
                "the application has ended the upload's session; start again and send the file from its beginning",
                upstream=exchange.error.upstream,
            )
        response = exchange.succeeded()
        if response.status != _INCOMPLETE:
            try:
                return await answer_of(self.call, response)
            except UpstreamInvalidResponse as error:  # the application has the whole file
                raise retries.answer_lost(Effect.WRITE, error) from error
        stored = _stored(response)
        if stored > self.size:
            raise UpstreamInvalidResponse(f"the application reports {stored} bytes of a file of {self.size}")
        return stored


async def open_session(session: UpstreamSession, call: PreparedCall, file: SourceFile) -> SessionUpload:
    """Begin an upload of `file.size` bytes at the application; no byte is sent yet."""
    operation = call.operation.upload_start
    params = {name: value for name, value in call.params.items() if name in operation.action.params}
    how = call.operation.action.upload_session
    assert how is not None
    request = session.request(PreparedCall.of(operation, params))
    announced = ((how.size_header, str(file.size)), (how.type_header, _type_of(call, file)))
    headers = {**request.headers, **{name: text for name, text in announced if name}}
    exchange = await session.exchange(replace(request, headers=headers), timeout=operation.action.timeout)
    url = exchange.succeeded().headers.get(how.url_header.lower())
    if not url:
        raise UpstreamInvalidResponse(f"{call.operation}: the application opened no session for the upload")
    return SessionUpload.at(session, replace(call, params=params), url, file.size)


async def send_whole(session: UpstreamSession, call: PreparedCall, file: SourceFile) -> OperationResult:
    """Upload a file by a session that is not kept; if the response to its end is lost, its outcome is unknown."""
    upload = await open_session(session, call, file)
    try:
        return completed(await upload.send(file, 0))
    except UpstreamError as error:
        raise (retries.answer_lost(Effect.WRITE, error) if file.is_read else error) from error


def completed(answer: int | OperationResult) -> OperationResult:
    """The result of a complete upload; raises UpstreamInvalidResponse if the application reports only stored bytes."""
    if isinstance(answer, int):
        raise UpstreamInvalidResponse("the application has received the complete file, but its response has no result")
    return answer


class _Piece:
    """Bytes of the file that are sent in one request, perhaps once more."""

    def __init__(self, parts: Sequence[bytes], skipped: int, size: int) -> None:
        self._parts, self._skipped, self.size = parts, skipped, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        skipped = self._skipped
        for part in self._parts:
            if skipped < len(part):
                yield part[skipped:]
            skipped = max(0, skipped - len(part))


async def _pieces(chunks: AsyncIterable[bytes], size: int) -> AsyncIterator[Sequence[bytes]]:
    """The bytes in pieces of `size`, the last one of what is left; each piece in the parts that came."""
    parts: list[bytes] = []
    held = 0
    async for part in chunks:
        rest = part
        while held + len(rest) >= size:
            cut = size - held
            parts.append(rest[:cut])
            yield parts
            parts, held, rest = [], 0, rest[cut:]
        if rest:
            parts.append(rest)
            held += len(rest)
    if parts:
        yield parts


def _stored(response: UpstreamResponse) -> int:
    """The bytes that a session has stored; without a `Range` there are none."""
    stated = response.headers.get("range")
    if stated is None:
        return 0
    found = _STORED.fullmatch(stated.replace(" ", ""))
    if found is None:
        raise UpstreamInvalidResponse("the application's answer does not say how many bytes of the file it has")
    return int(found[1]) + 1


def _type_of(call: PreparedCall, file: SourceFile) -> str:
    """The type of the bytes, as the param for it says, else as the caller's request does."""
    operation, name = call.operation, call.operation.file_param
    if name is None:
        raise InternalError
    named = operation.action.param_in(operation.resolved(operation.action.params[name]).get("contentMediaType"))
    text = str(call.params.get(named, file.content_type)) if named else file.content_type
    return header_text(text)


def _secrets_of(url: str) -> tuple[str, ...]:
    """The parts of a session's URL that let its holder write: the whole, and long values of its query."""
    query = URL(url, encoded=True).query
    return (url, *(value for value in query.values() if len(value) >= _SHORTEST_SECRET))
