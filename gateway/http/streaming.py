"""Bytes out to a caller, no faster than it reads: a body that breaks off ends in a cut connection, never in an end."""

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from gateway.errors import GatewayError
from gateway.http.keys import REQUEST_ID
from gateway.metrics import DOWNLOAD_BYTES, DOWNLOADS

log = logging.getLogger(__name__)

#: seconds between looks whether the caller is still there
_LOOK = 0.5
#: seconds that a caller may leave the bytes for it untouched
_PATIENCE = 300.0
#: a file is of others' making: a browser must neither guess its type nor run it under our name
_SAFETY = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache, no-transform",
}


async def sent(
    request: web.Request, status: int, headers: Mapping[str, str], pieces: AsyncIterable[bytes]
) -> web.StreamResponse:
    """Send the bytes under these labels; GatewayError while they come cuts the connection."""
    response = web.StreamResponse(status=status, headers={**headers, **_SAFETY, "X-Request-Id": request[REQUEST_ID]})
    if request.method == "HEAD" or status == 304:
        await response.prepare(request)
        return response
    async with _caller_present(request):
        DOWNLOADS.values[()] += 1
        try:
            await response.prepare(request)
            async for piece in pieces:
                async with asyncio.timeout(_PATIENCE):
                    await response.write(piece)
                DOWNLOAD_BYTES.add(by=len(piece))
            await response.write_eof()
        except GatewayError as error:
            log.warning(
                "a file broke off: %s", error.detail, extra={"request_id": request[REQUEST_ID], "code": error.code}
            )
            _cut(request, response)
        except TimeoutError:
            log.info("a caller left its file unread", extra={"request_id": request[REQUEST_ID]})
            _cut(request, response)
        finally:
            DOWNLOADS.values[()] -= 1
    return response


@asynccontextmanager
async def _caller_present(request: web.Request) -> AsyncIterator[None]:
    """The block ends with ConnectionResetError within a second of the caller's going away."""
    task = asyncio.current_task()
    assert task is not None
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        # aiohttp has no event for a caller that goes away.
        while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)
        is_gone = True
        task.cancel()

    watching = asyncio.create_task(watch(), name="caller present")
    try:
        yield
    except asyncio.CancelledError:
        if is_gone and task.uncancel() == 0:
            raise ConnectionResetError("the caller went away") from None
        raise
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


def _cut(request: web.Request, response: web.StreamResponse) -> None:
    """Close the connection in the middle of the body, so that no reader can take it for the end."""
    transport = request.transport
    if transport is None:
        return
    # To HTTP/1.0 readers the close itself is the end where no length was told; a reset is not.
    if response.content_length is None and not response.chunked:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
