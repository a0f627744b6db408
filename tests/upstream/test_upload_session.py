"""A file into an application in pieces: each continues where the application stands, whatever was lost before."""

import re
import tracemalloc
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.errors import (
    MalformedRequest,
    ReauthorizationRequired,
    UploadExpired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRejected,
)
from gateway.kinds.catalog import Kind, Operation
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.prepared import prepare
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.sent_requests import SentRequest
from gateway.upstream.transport import Transport
from gateway.upstream.upload import SourceFile, with_file
from gateway.upstream.upload_session import PIECE, OffsetMoved, SessionUpload, open_session
from gateway.upstream.upstreams import Upstreams
from tests.kinds.small_kind import small_operation
from tests.upstream.test_connector import Renewing

KIBIBYTE = 1 << 10
UNIT = 256 * KIBIBYTE
SECRET = "session-9f8e7d6c5b4a"
SESSION = f"https://api.example.com/sessions/{SECRET}?uploadType=resumable&upload_id={SECRET}"
ACTION = {
    "request": "POST /files",
    "effect": "write",
    "description": "Takes a file.",
    "content_type": "multipart/related",
    "params": {
        "name": {"type": "string"},
        "type": {"type": "string"},
        "bytes": {"type": "string", "contentEncoding": "base64", "contentMediaType": "{type}"},
    },
    "upload_session": {
        "request": "POST /files",
        "constant_query": {"uploadType": "resumable"},
        "content_type": "application/json",
        "size_header": "X-Upload-Content-Length",
        "type_header": "X-Upload-Content-Type",
        "multiple": UNIT,
        "lifetime": 604_800,
    },
}


class Application:
    """Keeps the bytes of one session; each PUT has the trouble that the test wants, in their order."""

    def __init__(self) -> None:
        self.session = SESSION
        self.size = 0
        self.stored = bytearray()
        self.began: list[tuple[dict[str, str], bytes]] = []
        self.ranges: list[str] = []
        self.tokens: list[str] = []
        #: `ok`, `lost` (stored without an answer), `half` (half of it stored), `late` (a piece of another request,
        #: which was cut off, is stored before it), a status, or a text of a 400
        self.trouble: list[str | int] = []
        self.late = b""
        self.keeps_bytes = True
        self.received = 0

    async def begin(self, request: web.Request) -> web.Response:
        self.began.append((dict(request.headers), await request.read()))
        self.size = int(request.headers["X-Upload-Content-Length"])
        return web.Response(headers={"Location": self.session})

    async def put(self, request: web.Request) -> web.Response:
        content = await request.read()
        self.ranges.append(request.headers["Content-Range"])
        self.tokens.append(request.headers.get("Authorization", ""))
        trouble = self.trouble.pop(0) if self.trouble else "ok"
        if isinstance(trouble, int):
            return web.json_response({"id": "none"}, status=trouble)
        if trouble == "late":
            self._store(self.received, self.late)
            return web.json_response({"error": f"the next piece must begin at {self.received}"}, status=400)
        if trouble not in ("ok", "lost", "half", "reset"):
            return web.json_response({"error": trouble}, status=400)
        if trouble == "reset" and request.transport is not None:
            request.transport.abort()
        stated = re.fullmatch(r"bytes (\d+)-(\d+)/\d+", request.headers["Content-Range"])
        if stated is not None and trouble != "reset":
            self._store(int(stated[1]), content[: len(content) // 2] if trouble == "half" else content)
        if trouble == "lost" and request.transport is not None:
            request.transport.abort()
        if self.received == self.size:
            return web.json_response({"id": "file-1"})
        headers = {"Range": f"bytes=0-{self.received - 1}"} if self.received else {}
        return web.Response(status=308, headers=headers)

    def _store(self, first: int, content: bytes) -> None:
        assert first == self.received
        self.received += len(content)
        if self.keeps_bytes:
            self.stored += content


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def noted() -> list[SentRequest]:
    """What the request log takes note of."""
    return []


@pytest.fixture
async def connector(application, noted) -> AsyncIterator[UpstreamConnector]:
    """A connector whose token can be renewed once."""
    app = web.Application(client_max_size=8 << 20)
    app.router.add_post("/v1/files", application.begin)
    app.router.add_put("/sessions/{id}", application.put)
    async with TestServer(app) as server:
        origin = URL(str(server.make_url("/"))).origin()
        async with Transport(EgressPolicy.of([origin]), observe=noted.append) as transport:
            operation = small_operation(ACTION)
            scope = RateScope(id="small:c-1", kind="small", connector_id=uuid4())
            yield Upstreams(transport, {"small": origin}).connector(Kind(operation.spec), {}, Renewing(1), scope)


def operation_of(connector: UpstreamConnector) -> Operation:
    return connector.kind.operation("things", "act")


async def pieces(content: bytes, size: int = 64 * KIBIBYTE) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


def file_of(content: bytes) -> SourceFile:
    return SourceFile("a.txt", "text/markdown", len(content), pieces(content))


async def upload(connector: UpstreamConnector, content: bytes, file: SourceFile | None = None) -> object:
    file = file or file_of(content)
    call = prepare(operation_of(connector), with_file(operation_of(connector), {"name": "n"}, file))
    return (await connector.upload(call, file)).decoded()


async def opened(connector: UpstreamConnector, size: int) -> SessionUpload:
    file = SourceFile("a.txt", "text/markdown", size, pieces(b""))
    call = prepare(operation_of(connector), with_file(operation_of(connector), {}, file))
    return await open_session(connector.session, call, file)


def content_of(size: int) -> bytes:
    return bytes(number % 251 for number in range(1021)) * (size // 1021 + 1)


CONTENT = content_of(5 << 20)[: 5 << 20]


async def test_a_file_goes_in_pieces_after_its_metadata(connector, application):
    answer = await upload(connector, CONTENT)

    [(headers, body)] = application.began
    assert answer == {"id": "file-1"}
    assert application.stored == CONTENT
    assert body == b'{"name":"n"}'
    assert headers["X-Upload-Content-Length"] == str(len(CONTENT))
    assert headers["X-Upload-Content-Type"] == "text/markdown"
    assert application.ranges == [
        f"bytes 0-{PIECE - 1}/{len(CONTENT)}",
        f"bytes {PIECE}-{2 * PIECE - 1}/{len(CONTENT)}",
        f"bytes {2 * PIECE}-{len(CONTENT) - 1}/{len(CONTENT)}",
    ]


async def test_an_empty_file_ends_with_the_question_for_its_state(connector, application):
    assert await upload(connector, b"") == {"id": "file-1"}
    assert application.ranges == ["bytes */0"]


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(["ok", "lost"], id="the response to a stored piece is lost"),
        pytest.param(["ok", "reset"], id="the connection breaks before the piece is stored"),
        pytest.param(["half"], id="half of a piece is stored"),
        pytest.param(["ok", "half", "half"], id="half of a piece, and half of its rest"),
        pytest.param([503], id="the application fails before the first piece"),
        pytest.param(["ok", 502, 503], id="the question for the state fails once too"),
        pytest.param(["ok", "ok", "lost"], id="the response to the last piece is lost"),
        pytest.param([429], id="the application refuses a piece for its limit"),
    ],
)
async def test_an_upload_continues_where_the_application_stopped(connector, application, trouble):
    application.trouble = trouble

    assert await upload(connector, CONTENT) == {"id": "file-1"}
    assert application.stored == CONTENT


@pytest.mark.usefixtures("skipped_pauses")
async def test_a_piece_that_is_never_stored_is_an_error_of_the_application(connector, application):
    application.trouble = [503, "ok"] * 4

    with pytest.raises(UpstreamError) as failed:
        await upload(connector, CONTENT)

    assert not failed.value.is_outcome_unknown
    assert application.received == 0


@pytest.mark.usefixtures("skipped_pauses")
async def test_the_outcome_is_unknown_where_the_end_and_every_question_for_it_are_lost(connector, application):
    application.trouble = ["ok", "ok", "lost", 503, 503, 503]

    with pytest.raises(UpstreamError) as lost:
        await upload(connector, CONTENT)

    assert lost.value.is_outcome_unknown


@pytest.mark.parametrize("status", [404, 410])
async def test_a_session_that_is_gone_says_to_start_again(connector, application, status):
    application.trouble = ["ok", status]

    with pytest.raises(UploadExpired, match="start again and send the file from its beginning"):
        await upload(connector, CONTENT)


async def test_a_session_continues_at_an_offset_in_another_process(connector, application):
    begun = await opened(connector, len(CONTENT))
    assert await begun.send(file_of(CONTENT[:UNIT]), 0) == UNIT

    again = SessionUpload(connector.session, begun.call, begun.url, begun.size)
    assert await again.state() == UNIT
    answer = await again.send(file_of(CONTENT[UNIT:]), UNIT)

    assert not isinstance(answer, int)
    assert application.stored == CONTENT


async def test_bytes_that_the_application_does_not_have_are_not_left_out(connector, application):
    begun = await opened(connector, len(CONTENT))
    application.trouble = [308]

    with pytest.raises(UpstreamInvalidResponse, match=f"reports 0 bytes of the file, but it had {UNIT} before"):
        await begun.send(file_of(CONTENT[UNIT:]), UNIT)


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("late", [UNIT, PIECE])
async def test_a_piece_of_a_request_that_was_cut_off_may_arrive_late(connector, application, late):
    begun = await opened(connector, len(CONTENT))
    application.trouble, application.late = ["late"], CONTENT[:late]

    answer = await begun.send(file_of(CONTENT), 0)

    assert not isinstance(answer, int)
    assert application.stored == CONTENT


async def test_a_late_piece_that_is_longer_than_the_one_that_was_sent_says_where_to_go_on(connector, application):
    begun = await opened(connector, len(CONTENT))
    application.trouble, application.late = ["late"], CONTENT[: 2 * PIECE]

    with pytest.raises(OffsetMoved) as moved:
        await begun.send(file_of(CONTENT), 0)

    assert moved.value.offset == 2 * PIECE


async def test_a_piece_that_the_application_refuses_is_not_sent_again(connector, application):
    application.trouble = ["ok", "the file is infected"]

    with pytest.raises(UpstreamRejected, match="the file is infected"):
        await upload(connector, CONTENT)

    assert application.ranges[2:] == [f"bytes */{len(CONTENT)}"]


async def test_an_application_that_claims_more_bytes_than_the_file_has_is_not_believed(connector, application):
    begun = await opened(connector, UNIT)
    application.received = UNIT + 1

    with pytest.raises(UpstreamInvalidResponse, match=f"reports {UNIT + 1} bytes of a file of {UNIT}"):
        await begun.state()


async def test_a_token_that_was_refused_in_the_middle_is_renewed(connector, application):
    application.trouble = ["ok", 401]

    assert await upload(connector, CONTENT) == {"id": "file-1"}
    assert application.tokens == ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2"]


async def test_credentials_that_cannot_be_renewed_end_the_upload(connector, application):
    application.trouble = ["ok", 401, 401]

    with pytest.raises(ReauthorizationRequired):
        await upload(connector, CONTENT)


async def test_a_file_that_ends_early_stores_nothing_that_is_whole(connector, application):
    file = SourceFile("a", "text/plain", len(CONTENT), pieces(CONTENT[: 3 << 20]))

    with pytest.raises(MalformedRequest, match="ended after"):
        await upload(connector, CONTENT, file)

    assert application.received == PIECE


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere.example.org/files?upload_id=1",
        "http://api.example.com/files?upload_id=1",
        "https://api.example.com.evil.test/files",
        "https://api.example.com:8443/files",
    ],
)
async def test_a_session_at_another_host_gets_nothing(connector, application, address):
    application.session = address

    with pytest.raises(UpstreamInvalidResponse, match="address refused"):
        await upload(connector, CONTENT)

    assert application.ranges == []


async def test_a_session_at_another_host_of_the_kind_gets_no_credentials():
    operation = small_operation(ACTION, hosts=["api.example.com", "other.example.com"])
    async with Transport() as transport:
        scope = RateScope(id="small:c-1", kind="small")
        connector = Upstreams(transport, {}).connector(Kind(operation.spec), {}, Renewing(0), scope)
        file = file_of(b"x")
        call = prepare(operation, with_file(operation, {}, file))

        with pytest.raises(UpstreamInvalidResponse, match="at the application's own host"):
            SessionUpload.at(connector.session, call, "https://other.example.com/files", 1)


async def test_the_sessions_url_is_in_no_error_and_not_in_the_request_log(connector, application, noted):
    application.trouble = [f"no such upload {SECRET} at {SESSION}"]

    with pytest.raises(UpstreamRejected) as refused:
        await upload(connector, CONTENT)

    assert SECRET not in f"{refused.value.detail} {refused.value.upstream} {noted}"
    assert {sent.path for sent in noted} == {"/v1/files", "/files"}


async def test_one_piece_is_in_memory_at_a_time(connector, application):
    async def large() -> AsyncIterator[bytes]:
        for _ in range(1024):
            yield bytes(64 * KIBIBYTE)

    application.keeps_bytes = False
    file = SourceFile("a", "text/plain", 64 << 20, large())

    tracemalloc.start()
    try:
        await upload(connector, b"", file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert application.received == 64 << 20
    # The piece here, what the application of the test reads of it, and what is on its way between them.
    assert peak < 6 * PIECE
