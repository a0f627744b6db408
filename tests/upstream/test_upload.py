"""A file into an application: what lies around it, that it streams, and what is said where it does not arrive."""

import tracemalloc
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.errors import (
    InvalidParams,
    MalformedRequest,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import Kind, Operation
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.prepared import prepare
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.responses import OperationResult
from gateway.upstream.transport import Transport
from gateway.upstream.upload import SourceFile, with_file
from gateway.upstream.upstreams import Upstreams
from tests.kinds.small_kind import small_operation
from tests.upstream.test_connector import Renewing

FILE = {
    "type": "object",
    "properties": {
        "content": {"type": "string", "contentEncoding": "base64"},
        "filename": {"type": "string"},
        "content_type": {"type": "string"},
    },
}
TEXT = {"type": "string", "contentEncoding": "base64"}
MULTIPART = {"content_type": "multipart/form-data", "params": {"note": {}, "count": {"type": "integer"}, "file": FILE}}
RELATED = {
    "content_type": "multipart/related",
    "params": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "type": {"type": "string"},
        "bytes": {**TEXT, "contentMediaType": "{type}"},
    },
}
RAW = {"content_type": "application/octet-stream", "request_body": "bytes", "params": {"bytes": TEXT}}
MEBIBYTE = 1 << 20


def operation_of(action: dict[str, Any]) -> Operation:
    return small_operation({"request": "POST /files", "effect": "write", "description": "Takes a file.", **action})


class Application:
    """Takes files, keeps what lies around large ones out, and answers with what the test wants."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.sizes: list[int] = []
        self.headers: list[Any] = []
        self.answers: list[int] = []
        #: whether the connection is closed in place of an answer
        self.is_silent = False

    async def handle(self, request: web.Request) -> web.Response:
        size, body = 0, b""
        async for chunk in request.content.iter_any():
            size += len(chunk)
            body += chunk if size < MEBIBYTE else b""
        self.bodies.append(body)
        self.sizes.append(size)
        self.headers.append(request.headers)
        if self.is_silent and request.transport is not None:
            request.transport.abort()
        return web.json_response({"id": 7}, status=self.answers.pop(0) if self.answers else 200)


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
async def send(application):
    """`await send(action, params, b"…")`: the upload of an action, by a connector with a token to renew."""
    app = web.Application()
    app.router.add_post("/{path:.*}", application.handle)
    async with TestServer(app) as server:
        origin = server.make_url("/").origin()
        async with Transport(EgressPolicy.of([origin])) as transport:

            async def sent(
                action: dict[str, Any],
                params: dict[str, Any],
                chunks: AsyncIterator[bytes],
                size: int,
                renewing: Renewing | None = None,
            ) -> OperationResult:
                operation = operation_of(action)
                upstreams = Upstreams(transport, {operation.spec.kind: origin})
                scope = RateScope(id="small:c-1", kind="small")
                connector = upstreams.connector(Kind(operation.spec), {}, renewing or Renewing(0), scope)
                file = SourceFile("a b.txt", "text/markdown", size, chunks)
                return await connector.upload(prepare(operation, with_file(operation, params, file)), file)

            yield sent


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_file_is_a_part_of_a_multipart_form(send, application):
    answered = await send(MULTIPART, {"note": "x", "count": "2"}, pieces(b"he", b"llo"), 5)

    [body], [headers] = application.bodies, application.headers
    boundary = headers["Content-Type"].partition("boundary=")[2]
    assert answered.decoded() == {"id": 7}
    assert body.decode() == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="note"\r\n\r\nx\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="count"\r\n\r\n2\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a b.txt"\r\n'
        f"Content-Type: text/markdown\r\n\r\nhello\r\n--{boundary}--\r\n"
    )
    assert headers["Content-Length"] == str(len(body))
    assert "Transfer-Encoding" not in headers


async def test_a_file_follows_its_metadata(send, application):
    await send(RELATED, {"tags": '["a"]'}, pieces(b"hello"), 5)

    assert b'{"name":"a b.txt","tags":["a"]}' in application.bodies[0]
    assert b"Content-Type: text/markdown\r\n\r\nhello\r\n" in application.bodies[0]


async def test_a_file_is_the_whole_body(send, application):
    await send(RAW, {}, pieces(b"he", b"llo"), 5)

    assert application.bodies == [b"hello"]


async def test_an_empty_file_arrives(send, application):
    await send(RAW, {}, pieces(), 0)

    assert application.bodies == [b""]


async def test_a_large_file_is_never_in_memory_whole(send, application):
    async def large() -> AsyncIterator[bytes]:
        for _ in range(512):
            yield bytes(64 << 10)

    tracemalloc.start()
    try:
        await send(MULTIPART, {}, large(), 32 * MEBIBYTE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert application.sizes[0] > 32 * MEBIBYTE
    assert peak < 8 * MEBIBYTE


async def test_an_upload_whose_answer_is_lost_has_an_unknown_outcome(send, application):
    application.is_silent = True

    with pytest.raises(UpstreamError) as lost:
        await send(RAW, {}, pieces(b"hello"), 5)

    assert lost.value.is_outcome_unknown
    assert application.bodies == [b"hello"]


@pytest.mark.parametrize(("size", "message"), [(9, "ended after 5 of 9 bytes"), (3, "longer than its 3 bytes")])
async def test_a_file_of_another_size_is_the_callers_fault(send, application, size, message):
    with pytest.raises(MalformedRequest, match=message):
        await send(RAW, {}, pieces(b"he", b"llo"), size)

    assert application.bodies == []


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(("status", "error"), [(429, UpstreamRateLimited), (400, UpstreamRejected)])
async def test_a_file_that_was_refused_is_not_sent_again(send, application, status, error):
    application.answers = [status]

    with pytest.raises(error):
        await send(RAW, {}, pieces(b"hello"), 5)

    assert len(application.bodies) == 1


async def test_a_token_that_was_refused_is_renewed_for_the_next_try(send, application):
    application.answers, renewing = [401], Renewing(1)

    with pytest.raises(UpstreamError, match="has been renewed; send the file again"):
        await send(RAW, {}, pieces(b"hello"), 5, renewing)
    await send(RAW, {}, pieces(b"hello"), 5, renewing)

    assert [headers["Authorization"] for headers in application.headers] == ["Bearer token-1", "Bearer token-2"]
    assert renewing.refusals == []


async def test_credentials_that_cannot_be_renewed_are_refused(send, application):
    application.answers, renewing = [401], Renewing(0)

    with pytest.raises(ReauthorizationRequired):
        await send(RAW, {}, pieces(b"hello"), 5, renewing)

    assert renewing.refusals == ["the application answered 401"]


@pytest.mark.parametrize(
    ("action", "params", "message"),
    [
        ({"params": {"note": {}}}, {}, "takes no file"),
        ({"params": {"one": TEXT, "two": TEXT}}, {}, "takes no file"),
        (RAW, {"bytes": b64encode(b"x").decode()}, "leave it out of the query"),
    ],
)
def test_an_operation_without_a_place_for_the_file_refuses_it(action, params, message):
    file = SourceFile("a", "text/plain", 0, pieces())

    with pytest.raises(InvalidParams, match=message):
        with_file(operation_of(action), params, file)


def test_a_param_of_the_query_that_is_nested_too_deeply_is_left_to_the_checks():
    nested = "[" * 5_000

    params = with_file(operation_of(MULTIPART), {"count": nested}, SourceFile("a", "text/plain", 0, pieces()))

    assert params["count"] == nested
