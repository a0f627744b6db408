"""An error aborts a response that has begun; no second head is written into the stream."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from gateway.errors import NotFound, Unavailable
from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.raw_http import STATUS_LINE, head_of, received, sent
from tests.harness.sandbox import faults

PATIENCE = 30.0
PART = b"the beginning of a body"
ERRORS = {
    "unavailable": Unavailable("PostgreSQL is away"),
    "not_found": NotFound("the organization was disabled"),
    "bug": RuntimeError("a bug"),
    "timeout": TimeoutError(),
    "http": web.HTTPServiceUnavailable(),
    "connection": ConnectionError("a store's connection broke"),
}


async def stream(request: web.Request) -> web.StreamResponse:
    """A stream that fails after or before its first bytes with the error named in its query."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    if "length" in request.query:
        response.content_length = 1000
    await response.prepare(request)
    if "early" not in request.query:
        await response.write(PART)
    raise ERRORS[request.query["error"]]


@pytest.fixture(scope="module")
async def front(tmp_path_factory: pytest.TempPathFactory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    folder: Path = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, [web.get("/stream", stream)]) as opened:
        yield opened


async def broken_off(front: FrontEnd, api: Api, query: str, version: str = "1.1") -> tuple[bytes, bool]:
    """The bytes of the response, and whether the connection was reset."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await sent(front.base_url, head_of("GET", f"/stream?{query}", api.headers, version))
        data, is_reset = await received(reader)
    writer.close()
    return data, is_reset


@pytest.mark.parametrize("length", ["", "&length"])
@pytest.mark.parametrize("error", ERRORS)
async def test_an_error_in_a_stream_aborts_the_connection_without_a_second_head(front, api, error, length):
    data, _ = await broken_off(front, api, f"error={error}{length}")

    assert data.count(STATUS_LINE) == 1
    assert PART in data
    assert b"0\r\n\r\n" not in data.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("error", ERRORS)
async def test_an_error_right_after_the_head_is_no_complete_response(front, api, error):
    data, _ = await broken_off(front, api, f"error={error}&early")

    assert data.count(STATUS_LINE) <= 1
    assert b"0\r\n\r\n" not in data.partition(b"\r\n\r\n")[2]
    assert b"problem+json" not in data


@pytest.mark.parametrize("error", ERRORS)
async def test_an_aborted_http_1_0_response_is_reset(front, api, error):
    data, is_reset = await broken_off(front, api, f"error={error}", "1.0")

    assert data.count(STATUS_LINE) <= 1
    assert is_reset


@pytest.mark.parametrize("version", ["1.1", "1.0"])
async def test_a_truncated_download_has_one_head_and_no_end(front, api, version):
    connector = await api.connector()
    path = f"{connector.path}/download/attachments?attachment_id=1"
    async with faults(front.sandbox_url, path_prefix="/attachments/") as fault, asyncio.timeout(PATIENCE):
        await fault(truncate_after_bytes=100)
        reader, writer = await sent(front.base_url, head_of("GET", path, api.headers, version))
        data, _ = await received(reader)
    writer.close()

    head, _, body = data.partition(b"\r\n\r\n")
    assert data.count(STATUS_LINE) == 1
    assert b" 200 " in head
    assert len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
