"""Guarded connections, byte by byte: malformed HTTP, slow senders, and too many connections."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.settings import Settings
from gateway.web.keys import MAY_PAUSE
from gateway.web.pages.brand import Brand
from gateway.web.pages.rendering import PAGES, Pages
from gateway.web.server.connection_guard import ConnectionLimits, GuardedRunner, pause_sender
from tests.harness.waiting import eventually

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\n"
WHOLE = HEAD + b"Content-Length: 5\r\n\r\nhello"


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


@asynccontextmanager
async def guarded(handler: Handler = echo, pages: Pages | None = None, **limits: float) -> AsyncIterator[int]:
    """The port of an application on guarded connections."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    if pages is not None:
        app[PAGES] = pages
    runner = GuardedRunner(app, ConnectionLimits(**limits), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def said(port: int, request: bytes) -> bytes:
    """All bytes received until the connection is closed."""
    async with connected(port) as (reader, writer), asyncio.timeout(10):
        writer.write(request)
        return await reader.read()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="two framings"),
        pytest.param(HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", id="two lengths"),
        pytest.param(HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", id="one length twice"),
        pytest.param(HEAD + b"Content-Length: 5, 5\r\n\r\nhello", id="a list of lengths"),
        pytest.param(HEAD + b"Content-Length: +5\r\n\r\nhello", id="a signed length"),
        pytest.param(HEAD + b"Content-Length: -5\r\n\r\nhello", id="a negative length"),
        pytest.param(HEAD + b"Content-Length: 0x5\r\n\r\nhello", id="a length in hex"),
        pytest.param(HEAD + b"Content-Length: 1_0\r\n\r\nhellohello", id="a length as Python writes it"),
        pytest.param(HEAD + b"Content-Length : 5\r\n\r\nhello", id="space before the colon"),
        pytest.param(HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="an unknown coding"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", id="chunked is not the last"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", id="two codings"
        ),
        pytest.param(HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", id="a vertical tab"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", id="a negative chunk"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", id="a chunk size in hex with 0x"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n", id="a chunk extension with a bare LF"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX0\r\n", id="a chunk without its end"),
        pytest.param(HEAD + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n", id="a folded header"),
        pytest.param(HEAD + b"X: a\rContent-Length: 5\r\n\r\nhello", id="a bare CR"),
        pytest.param(HEAD.replace(b"\r\n", b"\n") + b"\n", id="bare LFs"),
        pytest.param(HEAD + b"X: a\x00b\r\n\r\n", id="a NUL"),
        pytest.param(HEAD + b": a\r\n\r\n", id="a header without a name"),
        pytest.param(HEAD + b"Host: b\r\n\r\n", id="two hosts"),
        pytest.param(b"POST /x HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"POST /x y HTTP/1.1\r\nHost: a\r\n\r\n", id="a space in the path"),
        pytest.param(b"POST /x HTTP/9.9\r\nHost: a\r\n\r\n", id="an unknown version"),
        pytest.param(b"POST /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", id="a path beyond 8 KiB"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="TLS"),
    ],
)
async def test_malformed_http_gets_a_problem_document_and_the_connection_is_closed(request_: bytes):
    async with guarded() as port:
        answer = await said(port, request_ + WHOLE)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0].endswith(b"400 Bad Request")
    assert b"Content-Type: application/problem+json" in head
    assert b"aiohttp" not in head
    assert json.loads(body)["code"] == "malformed_request"
    assert f"X-Request-Id: {json.loads(body)['request_id']}".encode() in head


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(b"Cookie: a=" + b"a" * 9000 + b"\r\n", id="a cookie beyond 8 KiB"),
        pytest.param(b"a" * 9000 + b": a\r\n", id="a name beyond 8 KiB"),
        pytest.param(b"X: a\r\n" * 1000, id="a thousand headers"),
        pytest.param((b"X: " + b"a" * 8000 + b"\r\n") * 60, id="sixty long headers"),
    ],
)
async def test_headers_that_are_too_large_are_named(headers: bytes):
    async with guarded() as port:
        answer = await said(port, HEAD + headers + b"\r\n" + WHOLE)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0].endswith(b"431 Request Header Fields Too Large")
    assert json.loads(body)["code"] == "headers_too_large"


async def test_headers_that_are_too_large_are_refused_before_their_end():
    async with guarded(head=60) as port:
        answer = await said(port, HEAD + (b"X: " + b"a" * 8000 + b"\r\n") * 5)

    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_the_head_of_a_further_request_is_limited_while_the_first_is_handled():
    began, ends = asyncio.Event(), asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        began.set()
        await ends.wait()
        return web.Response()

    async with guarded(wait) as port, connected(port) as (reader, writer), asyncio.timeout(10):
        writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
        await began.wait()
        writer.write(HEAD + (b"X: " + b"a" * 8000 + b"\r\n") * 5)

        assert await reader.read() == b""
        ends.set()


async def test_a_body_is_not_counted_as_a_head():
    body = b"x" * (1 << 20)
    async with guarded() as port:
        answer = await said(port, HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    assert answer.endswith(body)


BROWSER = b"Host: a\r\nAccept: text/html,*/*;q=0.8\r\n"
LONG = b"Cookie: " + b"a" * 9000 + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "is_page"),
    [
        pytest.param([b"GET /console HTTP/1.1\r\n", BROWSER + LONG], True, id="a browser, in two parts"),
        pytest.param([b"GET /console/jobs?a=b HTTP/1.1\r\n" + BROWSER + LONG], True, id="a browser"),
        pytest.param([b"GET /console HTTP/1.1\r\nAccept: */*\r\n" + LONG], False, id="a program"),
        pytest.param([b"GET /api/v1/jobs HTTP/1.1\r\n" + BROWSER + LONG], False, id="the API"),
    ],
)
async def test_a_browser_at_the_console_gets_a_card_for_headers_that_are_too_large(parts: list[bytes], is_page: bool):
    async with (
        guarded(pages=Pages(Brand.of(Settings()))) as port,
        connected(port) as (reader, writer),
        asyncio.timeout(10),
    ):
        for part in parts:
            writer.write(part)
            await writer.drain()
        answer = await reader.read()

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0].endswith(b"431 Request Header Fields Too Large")
    assert (b"Content-Type: text/html" in head, b"delete its cookies" in body) == (is_page, True)
    [request_id] = re.findall(rb"X-Request-Id: (\w+)", head)
    assert (b"<code>" + request_id + b"</code>" in body) == is_page


async def test_a_connection_is_closed_if_the_head_of_a_request_is_late():
    async with guarded(head=0.2) as port:
        assert await said(port, b"POST /x HTTP/1.1\r\nHos") == b""


async def test_a_silent_connection_is_closed():
    async with guarded(head=0.2) as port:
        assert await said(port, b"") == b""


async def test_a_connection_is_closed_if_the_head_of_a_second_request_is_late():
    async with guarded(head=0.2, body=60) as port, connected(port) as (reader, writer), asyncio.timeout(10):
        writer.write(WHOLE)
        await reader.readuntil(b"hello")
        writer.write(b"POST /x HTTP/1.1\r\nHos")

        assert await reader.read() == b""


async def test_a_connection_is_closed_if_a_body_is_late():
    async with guarded(body=0.2) as port:
        assert await said(port, WHOLE[:-1]) == b""


class Large:
    """Handlers whose responses no buffer of the kernel holds; it notes the sockets of its callers."""

    def __init__(self, body: Callable[[], object]) -> None:
        self._body = body
        self.sockets: list[socket.socket] = []

    async def answer(self, request: web.Request) -> web.Response:
        self._note(request)
        return web.Response(body=self._body())

    async def file(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        request[MAY_PAUSE] = True
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(SIZE >> 20):
            await response.write(bytes(1 << 20))
        return response

    def _note(self, request: web.Request) -> None:
        assert request.transport is not None
        self.sockets.append(request.transport.get_extra_info("socket"))

    def is_closed(self) -> bool:
        return bool(self.sockets) and self.sockets[0].fileno() == -1


SIZE = 16 << 20
LARGE = {"written at once": lambda: bytes(SIZE), "written as it is read": lambda: BytesIO(bytes(SIZE))}


@asynccontextmanager
async def requesting(port: int, buffer: int = 4096) -> AsyncIterator[socket.socket]:
    """A connection on which a response was requested and is not read."""
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        caller.setblocking(False)
        await asyncio.get_running_loop().sock_connect(caller, ("127.0.0.1", port))
        caller.send(WHOLE)
        yield caller


@pytest.mark.parametrize("body", LARGE)
async def test_a_caller_that_reads_nothing_of_its_response_is_disconnected(body: str):
    handler = Large(LARGE[body])
    async with guarded(handler.answer, unread=0.2) as port, requesting(port):
        await eventually(handler.is_closed, within=10)


async def test_a_caller_that_reads_a_byte_now_and_then_is_disconnected():
    handler, loop = Large(LARGE["written as it is read"]), asyncio.get_running_loop()
    async with guarded(handler.answer, unread=0.2) as port, requesting(port) as caller, asyncio.timeout(10):
        while not handler.is_closed():
            await loop.sock_recv(caller, 1)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("body", LARGE)
async def test_a_caller_that_reads_slowly_gets_its_whole_response(body: str):
    loop, received = asyncio.get_running_loop(), 0
    async with guarded(Large(LARGE[body]).answer, unread=0.3) as port, requesting(port, 1 << 20) as caller:
        async with asyncio.timeout(30):
            while received < SIZE:
                await asyncio.sleep(0.02)
                data = await loop.sock_recv(caller, 200_000)
                assert data, "the connection was closed"
                received += len(data)


async def test_a_reader_of_a_file_may_pause():
    handler = Large(bytes)
    async with guarded(handler.file, unread=0.05) as port, requesting(port) as caller:
        await asyncio.sleep(0.5)

        assert not handler.is_closed()
        assert await asyncio.get_running_loop().sock_recv(caller, 100)


async def test_an_idle_connection_is_kept_for_the_next_request():
    async with guarded(head=0.2, body=0.2) as port, connected(port) as (reader, writer):
        writer.write(WHOLE)
        await reader.readuntil(b"hello")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.5)
        writer.write(WHOLE)

        assert await reader.readuntil(b"hello")


async def test_a_connection_beyond_the_limit_gets_a_503():
    async with guarded(connections=1) as port, connected(port) as (reader, writer):
        writer.write(WHOLE)
        await reader.readuntil(b"hello")

        refused = await said(port, b"")

    head, _, body = refused.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"Retry-After: 1" in head
    assert json.loads(body)["code"] == "unavailable"


async def test_a_closed_connection_makes_room_for_another():
    async with guarded(connections=1) as port:
        async with connected(port) as (reader, writer):
            writer.write(HEAD + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello")
            await reader.read()

        answer = await said(port, HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi")

    assert answer.endswith(b"\r\n\r\nhi")


async def test_a_caller_that_disconnects_within_a_body_is_no_internal_error(caplog: pytest.LogCaptureFixture):
    began, ended = asyncio.Event(), asyncio.Event()

    async def reading(request: web.Request) -> web.Response:
        began.set()
        try:
            return await echo(request)
        finally:
            ended.set()

    async with guarded(reading) as port, asyncio.timeout(10):
        async with connected(port) as (_, writer):
            writer.write(WHOLE[:-1])
            await began.wait()
        await ended.wait()

    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_refused_sender_is_read_again_after_the_pause():
    async def refuse(request: web.Request) -> web.Response:
        pause_sender(request, 0.2)
        return web.Response(status=503)

    async with guarded(refuse) as port, connected(port) as (reader, writer), asyncio.timeout(10):
        asked_at, loop = [], asyncio.get_running_loop()
        for _ in range(3):
            writer.write(WHOLE)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 503")
            asked_at.append(loop.time())

    assert asked_at[1] - asked_at[0] >= 0.15
    assert asked_at[2] - asked_at[1] >= 0.15


async def test_the_rest_of_a_refused_requests_body_is_read_at_once():
    async def refuse(request: web.Request) -> web.Response:
        pause_sender(request, 3600)
        return web.Response(status=503)

    async with guarded(refuse) as port, connected(port) as (reader, writer), asyncio.timeout(10):
        writer.write(HEAD + b"Content-Length: 10\r\n\r\nhello")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"world" + WHOLE)

        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 503")


async def test_a_request_that_arrives_as_its_idle_connection_is_closed_is_answered():
    protocols: list[asyncio.BaseProtocol] = []

    async def noted(request: web.Request) -> web.Response:
        assert request.protocol is not None
        protocols.append(request.protocol)
        return await echo(request)

    async with guarded(noted) as port, asyncio.timeout(10):
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.setblocking(False)
            loop = asyncio.get_running_loop()
            sender.send(WHOLE)
            first = await loop.sock_recv(sender, 4096)

            sender.send(WHOLE)
            protocols[0].close()
            second = await loop.sock_recv(sender, 4096)

    assert (first[-5:], second[-5:]) == (b"hello", b"hello")


@asynccontextmanager
async def stopping_after(
    part: bytes, has_begun: Callable[[GuardedRunner, asyncio.StreamReader], object]
) -> AsyncIterator[Connection]:
    """A connection on which a part of a request was sent before the server began to stop."""
    stops = asyncio.Event()

    async def stop(_: web.Application) -> None:
        stops.set()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", echo)
    app.on_shutdown.append(stop)
    runner = GuardedRunner(app, ConnectionLimits(), shutdown_timeout=5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with connected(runner.addresses[0][1]) as (reader, writer), asyncio.timeout(10):
        writer.write(part)
        await eventually(lambda: has_begun(runner, reader))
        stopping = asyncio.create_task(runner.cleanup())
        await stops.wait()
        yield reader, writer
        await stopping


@pytest.mark.parametrize("part", [pytest.param(b"", id="nothing"), pytest.param(WHOLE[:20], id="a part of the head")])
async def test_a_request_on_a_new_connection_of_a_stopping_server_is_answered(part: bytes):
    async with stopping_after(part, _has_connection) as (reader, writer):
        writer.write(WHOLE[len(part) :])

        assert (await reader.read()).endswith(b"hello")


async def test_a_body_that_arrives_while_the_server_stops_is_read_completely():
    async with stopping_after(WHOLE[:-2], _has_request) as (reader, writer):
        writer.write(WHOLE[-2:])

        assert (await reader.read()).endswith(b"hello")


async def test_a_request_on_a_connection_that_was_used_just_now_is_answered_while_the_server_stops():
    async with stopping_after(WHOLE, _is_answered) as (reader, writer):
        writer.write(WHOLE)

        assert (await reader.read()).endswith(b"hello")


async def test_a_silent_connection_does_not_delay_the_stop_of_a_server():
    async with stopping_after(b"", _has_connection) as (reader, _):
        assert await reader.read() == b""


def _has_connection(runner: GuardedRunner, _: asyncio.StreamReader) -> bool:
    assert runner.server is not None
    return bool(runner.server.connections)


def _has_request(runner: GuardedRunner, _: asyncio.StreamReader) -> bool:
    assert runner.server is not None
    return runner.server.requests_count > 0


async def _is_answered(_: GuardedRunner, reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"hello")
