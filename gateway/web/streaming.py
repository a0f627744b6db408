"""Streams bytes to a caller, no faster than the caller reads them.

If a stream fails, its connection is aborted, so that the reader does not take a part for the whole.
"""

import asyncio
import logging
import socket
import struct
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from aiohttp import web

from gateway.foundation.telemetry.metrics import DOWNLOAD_BYTES, DOWNLOADS
from gateway.web.keys import CALLER, MAY_PAUSE, SERVICES

log = logging.getLogger(__name__)

#: seconds between checks whether the caller is still connected
_POLL_INTERVAL = 0.5
#: seconds after which a caller that reads nothing is disconnected
_TIMEOUT = 300.0
#: a file comes from an application: a browser must neither guess its type nor run it in the gateway's origin
_SAFETY = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache, no-transform",
}


_NO_HEADERS: Mapping[str, str] = {}


@dataclass(slots=True)
class Throughput:
    """The number of bytes of a response that were sent."""

    sent: int = 0
    _reported: int = 0

    def count(self) -> int:
        """Add the bytes since the last count to the metrics."""
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
    """Raise ConnectionResetError within the block if the caller disconnects or reads nothing for _TIMEOUT, and
    Unauthorized when the caller may do less than when the transfer began.
    """
    task = asyncio.current_task()
    assert task is not None
    watch = _CallerWatch(request, task)
    request[MAY_PAUSE] = True
    try:
        async with request.app[SERVICES].standing.held(request[CALLER].client, is_checked=True):
            yield watch.flow
    except asyncio.CancelledError:
        if watch.is_caller_gone and task.uncancel() == 0:
            raise ConnectionResetError("the caller disconnected") from None
        raise
    finally:
        watch.end()


class _CallerWatch:
    """Cancels the task that answers a caller if the caller disconnects or stops reading.

    It checks periodically, without cost for each chunk; aiohttp has no event for a caller that disconnects.
    """

    def __init__(self, request: web.Request, task: "asyncio.Task[Any]") -> None:
        self._request = request
        self._task = task
        self.flow = Throughput()
        self.is_caller_gone = False
        self._unread_since: float | None = None
        self._timer = asyncio.get_running_loop().call_later(_POLL_INTERVAL, self._look)

    def _look(self) -> None:
        if self._is_present():
            self._timer = asyncio.get_running_loop().call_later(_POLL_INTERVAL, self._look)
        else:
            self.is_caller_gone = True
            self._task.cancel()

    def _is_present(self) -> bool:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            return False
        if self.flow.count() or not transport.get_write_buffer_size():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = monotonic()
        elif monotonic() - self._unread_since > _TIMEOUT:
            log.info("a caller stopped reading its file")
            transport.abort()
            return False
        return True

    def end(self) -> None:
        self._timer.cancel()
        self.flow.count()


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


async def stream(
    request: web.Request,
    chunks: AsyncIterator[bytes],
    content_type: str,
    status: int = 200,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> web.StreamResponse:
    """Send text of the gateway in chunks, such as JSON or its lines. If `chunks` raises, or the caller may do less than
    at the beginning, the middleware aborts the connection.
    """
    response = web.StreamResponse(status=status, headers={"Content-Type": content_type, **headers})
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    async with request.app[SERVICES].standing.held(request[CALLER].client):
        async for chunk in chunks:
            await response.write(chunk)
        await response.write_eof()
    return response
