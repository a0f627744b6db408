"""Responses of Server-Sent Events (WHATWG HTML §9.2)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from aiohttp import web

from gateway.errors import MalformedRequest
from gateway.foundation.aio.idle import with_idle_marks
from gateway.web.bodies import whole_number

#: seconds without an event after which a comment line shows that the stream is alive
KEEP_ALIVE = 15.0
_COMMENT = b": alive\n\n"
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event of a stream; `data` has no line breaks."""

    id: int
    event: str
    data: str

    def encoded(self) -> bytes:
        return f"id: {self.id}\nevent: {self.event}\ndata: {self.data}\n\n".encode()


async def stream_events(request: web.Request, events: AsyncGenerator[ServerSentEvent, None]) -> web.StreamResponse:
    """Stream the events until there are no more."""
    response = web.StreamResponse(headers=_HEADERS)
    await response.prepare(request)
    await response.write(b"retry: 1000\n\n")
    async with aclosing(with_idle_marks(events, KEEP_ALIVE)) as marked:
        async for event in marked:
            await response.write(_COMMENT if event is None else event.encoded())
    await response.write_eof()
    return response


def last_event_id(request: web.Request) -> int | None:
    """The id in `Last-Event-ID`, after which a stream continues; None without one. Raises MalformedRequest."""
    text = request.headers.get("Last-Event-ID", "").strip()
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise MalformedRequest("Last-Event-ID must be the id of an event of this stream")
    return number
