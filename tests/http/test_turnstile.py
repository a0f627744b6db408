"""Refusing at the door: plain whole requests only, probes never, the connection stays."""

import asyncio
from math import inf

import pytest
from aiohttp import web

from gateway.http.admission import Limits
from gateway.http.connection_guard import ConnectionLimits, DoorRunner
from gateway.http.turnstile import Turnstile, is_whole
from gateway.settings import Settings

HEAD = b"POST /api/v1/x HTTP/1.1\r\nHost: gateway\r\n"
REQUEST = HEAD + b"Content-Length: 2\r\n\r\n{}"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        REQUEST,
        HEAD + b"content-length:2\r\n\r\n{}",
        b"GET /api/v1/jobs?limit=1 HTTP/1.1\r\nHost: gateway\r\n\r\n",
        HEAD + b"\r\n",
    ],
)
def test_one_request_in_one_piece_is_whole(data: bytes):
    assert is_whole(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        REQUEST[:-1],
        REQUEST + b"G",
        REQUEST + REQUEST,
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Content-Length: -2\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Connection: close\r\n\r\n",
        HEAD + b"Upgrade: websocket\r\n\r\n",
        HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /api/v1/x HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b'{"body of": "an earlier request"}\r\n\r\n',
    ],
)
def test_whatever_else_is_let_through_to_be_judged_behind_the_door(data: bytes):
    assert not is_whole(data)


class Behind:
    """An application behind the door, and a caller in front of it."""

    def __init__(self, limits: Limits, turnstile: Turnstile, runner: DoorRunner, is_asked: asyncio.Event) -> None:
        self.limits = limits
        self.is_asked = is_asked
        self._runner = runner
        self.turnstile = turnstile

    async def overload(self) -> None:
        """From here on, and with every connection at rest, there is more to do than can be done."""
        await _until(lambda: all(each._waiter is not None for each in self._runner.server.connections))
        self.limits.overload.most = 0

    async def connect(self) -> "Caller":
        return Caller(*await asyncio.open_connection(*self._runner.addresses[0]))


class Caller:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        self._writer.write(data)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers, await self._reader.readexactly(int(headers["content-length"]))

    def leave(self) -> None:
        self._writer.transport.abort()


@pytest.fixture
async def behind():
    is_asked = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        is_asked.set()
        return web.Response(body=await request.read() or b"ok")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    limits = Limits(Settings())
    turnstile = Turnstile(limits)
    runner = DoorRunner(app, ConnectionLimits(), turnstile)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield Behind(limits, turnstile, runner, is_asked)
    await runner.cleanup()


async def test_in_an_overload_a_request_is_refused_as_any_other_and_its_connection_stays(behind: Behind):
    caller = await behind.connect()
    before = await caller.ask(REQUEST)

    await behind.overload()
    refused = await caller.ask(REQUEST)
    behind.limits.overload.most = inf
    after = await caller.ask(REQUEST)

    caller.leave()
    assert before[0] == after[0] == 200
    assert refused[0] == 503
    assert refused[1]["retry-after"] == "1"
    assert refused[1]["content-type"].startswith("application/problem+json")
    assert refused[1]["x-request-id"].encode() in refused[2]
    assert b'"code":"unavailable"' in refused[2]


async def test_in_an_overload_probes_are_answered(behind: Behind):
    caller = await behind.connect()
    await caller.ask(PROBE)

    await behind.overload()
    answered = await caller.ask(PROBE)

    caller.leave()
    assert answered[0] == 200


async def test_in_an_overload_a_body_in_pieces_is_no_request_of_its_own(behind: Behind):
    caller = await behind.connect()
    await caller.ask(PROBE)

    await behind.overload()
    behind.is_asked.clear()
    body = b"GET /smuggled HTTP/1.1\r\n\r\n"
    caller._writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
    await behind.is_asked.wait()
    answered = await caller.ask(body)

    caller.leave()
    assert answered == (200, answered[1], body)


async def test_a_caller_who_leaves_while_it_is_held_back_leaves_nothing_behind(behind: Behind):
    caller = await behind.connect()
    await caller.ask(PROBE)
    await behind.overload()

    caller._writer.write(REQUEST)
    await _until(lambda: behind.turnstile.held == 1)
    caller.leave()
    await _until(lambda: behind.turnstile.held == 0)

    other = await behind.connect()
    assert (await other.ask(PROBE))[0] == 200
    other.leave()


async def _until(is_so) -> None:
    async with asyncio.timeout(5):
        while not is_so():  # noqa: ASYNC110  the door has no event for it
            await asyncio.sleep(0.01)
