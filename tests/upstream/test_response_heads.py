"""What a server sends before the body of a response is bounded, on every connection that the gateway opens."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientError
from yarl import URL

from gateway.errors import UpstreamInvalidResponse
from gateway.upstream.egress import EgressPolicy, bounded_response
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.response_heads import MAX_HEAD, MAX_INTERIM
from gateway.upstream.transport import Transport
from tests.harness.blocked_loop import never_blocked
from tests.harness.waiting import PATIENCE

EARLY_HINTS = b"HTTP/1.1 103 E\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def fetched(url: URL, policy: EgressPolicy) -> bytes:
    async with Transport(policy) as transport:
        return (
            await transport.fetch(UpstreamRequest(method="GET", url=url, headers={}), RateScope(id="a", kind="b"))
        ).body


async def streamed(url: URL, policy: EgressPolicy) -> bytes:
    async with (
        Transport(policy) as transport,
        transport.open(UpstreamRequest(method="GET", url=url, headers={}), RateScope(id="a", kind="b")) as answer,
    ):
        return b"".join([chunk async for chunk in answer.chunks])


async def read_document(url: URL, policy: EgressPolicy) -> bytes:
    return (await bounded_response(policy, "GET", url, {}, timeout=PATIENCE, max_bytes=100))[1]


WAYS = pytest.mark.parametrize("way", [fetched, streamed, read_document])


@asynccontextmanager
async def server(*said: bytes, again: bytes = b"") -> AsyncIterator[tuple[URL, EgressPolicy, asyncio.Future[int]]]:
    """A server that answers with these bytes, then sends `again` until the connection is closed, and counts it."""
    sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = 0
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"".join(said))
            while again:
                writer.write(again)
                size += len(again)
                await writer.drain()
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            sent.set_result(size)

    listener = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        yield URL(f"http://127.0.0.1:{port}"), EgressPolicy(frozenset({("127.0.0.1", port)})), sent
        listener.close()


def endless() -> Iterator[tuple[str, tuple[bytes, ...], bytes]]:
    yield "interim responses", (), EARLY_HINTS * 1000
    yield "large interim responses", (), b"HTTP/1.1 103 E\r\nLink: " + b"x" * 8000 + b"\r\n\r\n"
    yield "a head", (b"HTTP/1.1 200 OK\r\n",), b"".join(b"X-%d: %s\r\n" % (n, b"x" * 2000) for n in range(50))
    yield "a field", (b"HTTP/1.1 200 OK\r\nX: ",), b"x" * 10_000
    yield "empty lines", (), b"\r\n" * 10_000


@WAYS
@pytest.mark.parametrize(("said", "again"), [each[1:] for each in endless()], ids=[each[0] for each in endless()])
async def test_bytes_without_end_before_the_body_end_the_connection(way, said: tuple[bytes, ...], again: bytes):
    async with asyncio.timeout(PATIENCE), server(*said, again=again) as (url, policy, sent):
        with never_blocked(), pytest.raises((UpstreamInvalidResponse, ClientError)):
            await way(url, policy)

        assert await sent < 8 << 20  # what the buffers of the sockets hold


@WAYS
@pytest.mark.parametrize(
    "said",
    [
        EARLY_HINTS * MAX_INTERIM + OK,
        b"".join([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", b"X: y\r\n" * 100, b"\r\n{}"]),
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
        + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 8000) for n in range(12))
        + b"\r\n{}",
    ],
    ids=["interim responses", "many fields", "large fields"],
)
async def test_a_head_within_the_limits_is_read(way, said: bytes):
    assert MAX_HEAD > 12 * 8000
    async with server(said) as (url, policy, _):
        assert await way(url, policy) == b"{}"


async def test_responses_without_a_request_close_a_connection_that_is_kept():
    async with server(OK, again=OK * 1000) as (url, policy, sent), Transport(policy) as transport:
        await transport.fetch(UpstreamRequest(method="GET", url=url, headers={}), RateScope(id="a", kind="b"))
        async with asyncio.timeout(PATIENCE):
            assert await sent < 8 << 20


@WAYS
async def test_a_large_body_after_the_head_is_whole(way):
    body = bytes(range(256)) * 4000
    async with server(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body) as (url, policy, _):
        content = await way(url, policy)

    assert content == body[: len(content)]
    assert len(content) == len(body) or way is read_document
