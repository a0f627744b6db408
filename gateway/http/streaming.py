"""Bytes out to a caller, no faster than the caller reads.

A stream that fails ends in an aborted connection: a reader must not take a part for the whole.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from gateway.telemetry.metrics import DOWNLOAD_BYTES, DOWNLOADS

log = logging.getLogger(__name__)

#: seconds between looks whether the caller is still there
_POLL_INTERVAL = 0.5
#: seconds that a caller may leave the bytes for it untouched
_TIMEOUT = 300.0
#: a file is of others' making: a browser must neither guess its type nor run it under our name
_SAFETY = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache, no-transform",
}


@dataclass(slots=True)
class Throughput:
    """How much of an answer has gone out."""

    sent: int = 0
    _reported: int = 0

    def count(self) -> int:
        """The bytes since the last count, told to the metrics."""
        added, self._reported = self.sent - self._reported, self.sent
        DOWNLOAD_BYTES.add(by=added)
        return added


async def send(
    request: web.Request, status: int, headers: Mapping[str, str], chunks: AsyncIterable[bytes], flow: Throughput
) -> web.StreamResponse:
    """Send the bytes under these headers. If `chunks` raises, the middleware aborts the connection."""
    response = web.StreamResponse(status=status, headers={**headers, **_SAFETY})
    await response.prepare(request)
    if request.method == "HEAD" or status == 304:
        return response
    with DOWNLOADS.one_more():
        async for chunk in chunks:
            await response.write(chunk)
            flow.sent += len(chunk)
        await response.write_eof()
    return response


@asynccontextmanager
async def caller_present(request: web.Request) -> AsyncIterator[Throughput]:
    """The block ends with ConnectionResetError within a second of the caller's going away, or when it reads no more."""
    task = asyncio.current_task()
    assert task is not None
    flow = Throughput()
    watching = asyncio.create_task(_until_disconnected(request, flow), name="caller present")
    watching.add_done_callback(lambda watch: watch.cancelled() or task.cancel())
    try:
        yield flow
    except asyncio.CancelledError:
        if watching.done() and task.uncancel() == 0:
            raise ConnectionResetError("the caller went away") from None
        raise
    finally:
        watching.cancel()
        flow.count()


async def _until_disconnected(request: web.Request, flow: Throughput) -> None:
    """Checks periodically, which costs a chunk nothing; aiohttp has no event for a caller that disconnects."""
    unread_since = None
    clock = asyncio.get_running_loop().time
    while (transport := request.transport) is not None and not transport.is_closing():
        if flow.count() or not transport.get_write_buffer_size():
            unread_since = None
        elif unread_since is None:
            unread_since = clock()
        elif clock() - unread_since > _TIMEOUT:
            log.info("a caller left its file unread")
            transport.abort()
            return
        await asyncio.sleep(_POLL_INTERVAL)


def abort(request: web.BaseRequest, stream: web.StreamResponse) -> None:
    """Close the connection in the middle of the body, so that the reader sees that the body is not complete."""
    transport = request.transport
    if transport is None:
        return
    # Without Content-Length and chunks (HTTP/1.0) a FIN is the end of the body (RFC 9112 §6.3); an RST is an error.
    if stream.content_length is None and not stream.chunked:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
