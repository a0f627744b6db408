"""Sends replies: complete, in ranges, or truncated by a fault."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from aiohttp import web

from gateway.sandbox import files
from gateway.sandbox.calls import FileReply, Reply
from gateway.sandbox.faults import Fault
from gateway.sandbox.files import Span, Unsatisfiable
from gateway.sandbox.journal import CallJournal, ReceivedRequest

#: seconds between polls of an idle connection
_POLL_INTERVAL = 0.05
_ENCODER = msgspec.json.Encoder()


async def send(
    request: web.Request, reply: Reply | FileReply, fault: Fault | None, journal: CallJournal, received: ReceivedRequest
) -> web.StreamResponse:
    """Send the reply, changed by the fault if there is one."""
    if fault is not None and fault.reset:
        journal.answered(received, 0)
        return _reset(request)
    if isinstance(reply, FileReply):
        return await _send_file(request, reply, fault, journal, received)
    body = _encoded(reply.body)
    headers = {**reply.headers, **_fault_headers(fault)}
    response: web.StreamResponse
    if fault is None or (fault.truncate_after_bytes is None and fault.stall_after_bytes is None):
        response = web.Response(status=reply.status, body=body, headers=headers, content_type=reply.content_type)
        journal.answered(received, reply.status)
        journal.bytes_sent += len(body)
        return response
    response = web.StreamResponse(status=reply.status, headers={**headers, "Content-Type": reply.content_type})
    response.content_length = len(body)
    journal.answered(received, reply.status)
    return await _stream(request, response, iter((memoryview(body),)), fault, journal)


async def _send_file(
    request: web.Request, reply: FileReply, fault: Fault | None, journal: CallJournal, received: ReceivedRequest
) -> web.StreamResponse:
    headers: Mapping[str, str] = {name.lower(): value for name, value in request.headers.items()}
    if fault is not None and fault.ignore_range:
        headers = {}
    size = files.size_of(reply.number)
    described = {
        "Content-Type": reply.content_type,
        **files.headers_of(reply.number, reply.name),
        **_fault_headers(fault),
    }
    try:
        span = files.requested_span(headers, reply.number)
    except Unsatisfiable:
        journal.answered(received, 416)
        return web.Response(status=416, headers={"Content-Range": f"bytes */{size}"})
    response = web.StreamResponse(status=200 if span is None else 206, headers=described)
    if span is not None:
        response.headers["Content-Range"] = f"bytes {span.first}-{span.end - 1}/{size}"
    span = span or Span(0, size)
    response.content_length = span.end - span.first
    journal.answered(received, response.status)
    return await _stream(request, response, files.chunks(reply.number, span), fault, journal)


async def _stream(
    request: web.Request,
    response: web.StreamResponse,
    chunks: Iterator[memoryview],
    fault: Fault | None,
    journal: CallJournal,
) -> web.StreamResponse:
    """Write chunk by chunk, at most as fast as the client reads; a truncating fault closes the connection."""
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    journal.open_downloads += 1
    try:
        for chunk in _truncated(chunks, fault):
            await response.write(chunk)
            journal.bytes_sent += len(chunk)
        if fault is not None and fault.stall_after_bytes is not None:
            await _until_closed(request)
        if fault is not None and fault.truncate_after_bytes is not None:
            return _reset(request, response)
        await response.write_eof()
    finally:
        journal.open_downloads -= 1
    return response


def _fault_headers(fault: Fault | None) -> Mapping[str, str]:
    """Headers that a fault adds to the usual response; they replace headers of the same name."""
    return {} if fault is None or fault.replaces_answer else fault.headers


def _truncated(chunks: Iterable[memoryview], fault: Fault | None) -> Iterator[memoryview]:
    left = None
    if fault is not None:
        left = fault.truncate_after_bytes if fault.truncate_after_bytes is not None else fault.stall_after_bytes
    for chunk in chunks:
        if left is None:
            yield chunk
        elif left > 0:
            yield chunk[:left]
            left -= len(chunk[:left])


async def _until_closed(request: web.Request) -> None:
    """Wait until the client closes the connection."""
    # aiohttp has no event for a client that disconnects.
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
        await asyncio.sleep(_POLL_INTERVAL)


def _reset(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """Close the connection; what was written before still arrives."""
    if request.transport is not None:
        request.transport.close()
    return response or web.Response()


def _encoded(body: object) -> bytes:
    match body:
        case None:
            return b""
        case bytes():
            return body
        case str():
            return body.encode()
        case _:
            return _ENCODER.encode(body)
