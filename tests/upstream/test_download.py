"""Files out of the application: where they are fetched, with which credentials, and when what came is not the file."""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gateway.errors import (
    ConflictingRange,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamTimeout,
    UpstreamTruncated,
)
from gateway.kinds.catalog import Kind
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.kinds.small_kind import SMALL_SPEC
from tests.upstream.wire import CLOSE, SILENCE, Wire
from tests.upstream.wire import answer as said_by

OWN, FOREIGN = "https://api.example.com/files/7", "https://files.example.net/7"
BYTES = b"0123456789"
IN_RECORD = {"url": "url", "size": "size", "name": "name", "content_type": "type"}
IN_ANSWER = {
    "metadata_request": "GET /things/{id}?fields=size,name",
    "size": "size",
    "name": "name",
    "extension": "ext",
}
Connect = Callable[..., UpstreamConnector]


class Renewing:
    """A token that can be renewed once."""

    def __init__(self) -> None:
        self.token = "old"
        self.refusals: list[str] = []

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def renewed(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        if self.token == "new":
            return None
        self.token = "new"
        return await self.headers()

    async def refused(self, credentials: Mapping[str, str], reason: str) -> None:
        self.refusals.append(reason)


@pytest.fixture
def connect(wire: Wire, transport) -> Connect:
    """Connectors of a small kind whose every request goes to the server of the test."""

    def connected(
        download: dict[str, Any] = IN_RECORD,
        path: str = "/things/{id}",
        method: str = "GET",
        timeout: float = 60,
        transport: Transport = transport,
        **spec: Any,
    ) -> UpstreamConnector:
        action = {
            "timeout": timeout,
            "request": f"{method} {path}",
            "effect": "read" if method == "GET" else "write",
            "description": "Downloads.",
            "download": download,
            "params": {"id": {"type": "integer"}},
            "required": ["id"],
        }
        entities = {"things": {"description": "Things.", "actions": {"download": action}}}
        document = {
            **SMALL_SPEC,
            "health_check": "things.download",
            "file_hosts": ["files.example.net", "*.example.org"],
            "failure": {"message": ["error"]},
            **spec,
            "entities": entities,
        }
        kind = Kind(ConnectorSpec.model_validate(document))
        upstreams = Upstreams(transport, {kind.name: wire.origin})
        return upstreams.connector(kind, {}, Renewing(), RateScope(id="small:c-1", kind="small"))

    return connected


def answer(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    """An answer after which the connection closes, as the server of these tests does."""
    return said_by(body, status, "Connection: close", *headers, length=length)


def record(url: str | None = OWN, size: int | None = len(BYTES), **members: Any) -> bytes:
    return answer(json.dumps({"url": url, "size": size, **members}).encode())


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(b"", status, f"Location: {location}")


def part(start: int, body: bytes, total: int = len(BYTES), *headers: str) -> bytes:
    return answer(
        body, "206 Partial Content", f"Content-Range: bytes {start}-{start + len(body) - 1}/{total}", *headers
    )


def unframed(body: bytes, *headers: str) -> bytes:
    """A body that ends where the connection does."""
    return "\r\n".join(["HTTP/1.1 200 OK", "Connection: close", *headers, "", ""]).encode() + body


def chunked(body: bytes, *headers: str, end: bytes = b"0\r\n\r\n") -> bytes:
    head = "\r\n".join(
        ["HTTP/1.1 200 OK", "Connection: close", "Transfer-Encoding: chunked", *headers, "", ""]
    ).encode()
    return head + f"{len(body):x}\r\n".encode() + body + b"\r\n" + end


def paths(wire: Wire) -> list[str]:
    return [head.split(" ")[1] for head in wire.received]


def authorizations(wire: Wire) -> list[bool]:
    return ["Authorization: Bearer" in head for head in wire.received]


async def read(connector: UpstreamConnector, **options: Any) -> bytes:
    async with connector.download("things", {"id": 7}, **options) as file:
        return await file.read()


async def gather(connector: UpstreamConnector, came: list[bytes], range_header: str | None) -> None:
    async with connector.download("things", {"id": 7}, range_header=range_header) as file:
        async for piece in file:
            came.append(piece)


async def test_the_address_in_the_record_is_followed_with_credentials_at_the_own_host(wire, connect):
    wire.says(record(), answer(BYTES, "200 OK", 'ETag: "a"'))

    async with connect().download("things", {"id": 7}) as file:
        body = await file.read()

    assert (file.status, file.size, file.headers["ETag"], body) == (200, 10, '"a"', BYTES)
    assert paths(wire) == ["/v1/things/7", "/files/7"]
    assert authorizations(wire) == [True, True]


async def test_bytes_are_requested_as_they_are(wire, connect):
    wire.says(record(), answer(BYTES))

    await read(connect())

    assert "Accept-Encoding: identity" in wire.received[1]


async def test_credentials_go_to_no_other_host(wire, connect):
    wire.says(record(FOREIGN), answer(BYTES))

    await read(connect())

    assert paths(wire) == ["/v1/things/7", "/7"]
    assert authorizations(wire) == [True, False]


async def test_credentials_never_go_with_an_address_that_carries_its_own_permission(wire, connect):
    wire.says(record(OWN), answer(BYTES))

    await read(connect(IN_RECORD | {"presigned": True}))

    assert authorizations(wire) == [True, False]


@pytest.mark.parametrize(
    ("locations", "trusted"),
    [
        (["/elsewhere"], [True, True]),
        ([f"{OWN}/again"], [True, True]),
        ([FOREIGN], [True, False]),
        (["//files.example.net/7"], [True, False]),
        ([FOREIGN, OWN], [True, False, False]),
        ([FOREIGN, "/relative", "https://cdn.example.org/x"], [True, False, False, False]),
    ],
)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_followed_and_credentials_end_at_the_first_other_host(
    wire, connect, locations, trusted, status
):
    wire.says(record(), *(redirect(location, status) for location in locations), answer(BYTES))

    body = await read(connect())

    assert body == BYTES
    assert authorizations(wire)[1:] == trusted


async def test_the_fourth_redirect_is_refused(wire, connect):
    wire.says(record(), *[redirect("/again")] * 4)

    with pytest.raises(UpstreamInvalidResponse, match="more than 3 times"):
        await read(connect())

    assert len(wire.received) == 5


@pytest.mark.parametrize(
    "address",
    [
        "http://api.example.com/7",
        "https://api.example.com:8443/7",
        "https://user@api.example.com/7",
        "https://other.example.com/7",
        "https://api.example.com.evil.example/7",
        "https://127.0.0.1/7",
        "https://[::1]/7",
        "https://2130706433/7",
        "https://169.254.169.254/latest/meta-data/",
        "https://localhost/7",
        "https://metadata.internal/7",
        "file:///etc/passwd",
        "//api.example.com/7",
        "/things/7",
        "https://api.example.com\\@files.example.net/7",
        "https://",
        "nonsense",
    ],
)
async def test_an_address_that_the_spec_does_not_declare_is_refused(wire, connect, address):
    wire.says(record(address))

    with pytest.raises(UpstreamInvalidResponse):
        await read(connect())

    assert paths(wire) == ["/v1/things/7"]


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/", "https://169.254.169.254/", "https://evil.example/", "gopher://x", ""]
)
async def test_a_redirect_to_such_an_address_is_refused(wire, connect, location):
    wire.says(record(), redirect(location))

    with pytest.raises(UpstreamInvalidResponse):
        await read(connect())

    assert len(wire.received) == 2


async def test_an_address_at_the_operators_override_is_accepted(wire, connect):
    wire.says(record(f"{wire.origin}/here"), answer(BYTES))

    body = await read(connect())

    assert body == BYTES
    assert paths(wire) == ["/v1/things/7", "/here"]


@pytest.mark.parametrize("url", [None, ""])
async def test_a_record_without_an_address_says_so(wire, connect, url):
    wire.says(record(url))

    with pytest.raises(UpstreamNotFound, match="no address for this file"):
        await read(connect())


@pytest.mark.parametrize("status", ["400 Bad", "401 Who", "403 Expired", "404 Not Found", "410 Gone"])
async def test_an_expired_link_is_fetched_anew_once(wire, connect, status):
    wire.says(record(FOREIGN), answer(b"", status), record("https://cdn.example.org/new"), answer(BYTES))

    body = await read(connect())

    assert body == BYTES
    assert paths(wire) == ["/v1/things/7", "/7", "/v1/things/7", "/new"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("403 Expired", UpstreamInvalidResponse),
        ("404 Not Found", UpstreamNotFound),
    ],
)
async def test_a_link_that_is_refused_twice_is_an_error(wire, connect, status, error):
    wire.says(record(FOREIGN), answer(b"", status), record(FOREIGN), answer(b"", status))

    with pytest.raises(error) as refused:
        await read(connect())

    assert refused.value.upstream.status == int(status[:3])


async def test_a_host_of_files_that_wants_credentials_does_not_make_the_connector_need_new_ones(wire, connect):
    wire.says(record(FOREIGN), answer(b"", "401 Who"), record(FOREIGN), answer(b"", "401 Who"))

    with pytest.raises(UpstreamError) as refused:
        await read(connect())

    assert not isinstance(refused.value, ReauthorizationRequired)


async def test_refused_credentials_are_renewed_once(wire, connect):
    connector = connect(IN_ANSWER, "/things/{id}/body")
    wire.says(record(), answer(b"", "401 Who"), answer(BYTES))

    body = await read(connector)

    assert body == BYTES
    assert "Bearer new" in wire.received[2]


async def test_credentials_that_stay_refused_must_be_replaced(wire, connect):
    wire.says(record(), answer(b"", "401 Who"), answer(b'{"error": "no"}', "401 Who"))

    with pytest.raises(ReauthorizationRequired, match="no"):
        await read(connect(IN_ANSWER, "/things/{id}/body"))


async def test_a_file_in_the_answer_itself_is_described_by_its_record(wire, connect):
    wire.says(record(name="report", ext="pdf"), answer(BYTES))

    async with connect(IN_ANSWER, "/things/{id}/body").download("things", {"id": 7}) as file:
        body = await file.read()

    assert paths(wire) == ["/v1/things/7?fields=size,name", "/v1/things/7/body"]
    assert (file.headers["Content-Disposition"], body) == ('attachment; filename="report.pdf"', BYTES)


async def test_the_records_words_stand_in_where_the_answer_has_none(wire, connect):
    wire.says(record(name="a/b\r\nc.txt", type="text/plain"), answer(BYTES))

    async with connect().download("things", {"id": 7}) as file:
        await file.read()

    assert file.headers["Content-Type"] == "text/plain"
    assert file.headers["Content-Disposition"] == 'attachment; filename="bc.txt"'


async def test_only_what_labels_a_file_is_passed_on(wire, connect):
    wire.says(record(), answer(BYTES, "200 OK", "Set-Cookie: a=b", "X-Powered-By: x", "Keep-Alive: timeout=5"))

    async with connect().download("things", {"id": 7}) as file:
        await file.read()

    assert set(file.headers) == {"Content-Type", "Content-Length", "Accept-Ranges"}


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("lost", [CLOSE, answer(b"", "503 Away"), answer(b"", "500 Oops")])
async def test_a_file_that_does_not_begin_is_requested_again(wire, connect, lost):
    wire.says(record(), lost, lost, answer(BYTES))

    body = await read(connect())

    assert body == BYTES


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize(
    ("status", "error"),
    [("500 Oops", UpstreamError), ("429 Slow", UpstreamRateLimited), ("204 Nothing", UpstreamInvalidResponse)],
)
@pytest.mark.parametrize("url", [OWN, FOREIGN])
async def test_a_file_that_never_begins_is_an_error(wire, connect, status, error, url):
    wire.says(record(url), *[answer(b"", status, "Retry-After: 60")] * 3)

    with pytest.raises(error):
        await read(connect())


@pytest.mark.parametrize(
    ("range_header", "said", "status", "body"),
    [
        ("bytes=2-4", part(2, b"234"), 206, b"234"),
        ("bytes=2-4", answer(BYTES), 206, b"234"),
        ("bytes=2-4", unframed(BYTES), 206, b"234"),
        ("bytes=-3", answer(BYTES), 206, b"789"),
        ("bytes=8-99", answer(BYTES), 206, b"89"),
        ("bytes=5-", chunked(BYTES), 206, b"56789"),
        ("bytes=2-4", part(0, b"01234"), 206, b"234"),
        ("bytes=0-1,5-6", answer(BYTES), 200, BYTES),
        ("lines=2-4", answer(BYTES), 200, BYTES),
    ],
)
async def test_a_part_is_what_it_says_whatever_the_application_makes_of_ranges(
    wire, connect, range_header, said, status, body
):
    wire.says(record(), said)

    async with connect().download("things", {"id": 7}, range_header=range_header) as file:
        got = await file.read()

    assert (file.status, got, file.size) == (status, body, 10)


async def test_the_range_goes_with_the_file_and_not_with_its_record(wire, connect):
    wire.says(record(), part(2, b"23"))

    async with connect().download("things", {"id": 7, "range_header": "bytes=2-3"}) as file:
        await file.read()

    assert ["Range: bytes=2-3" in head for head in wire.received] == [False, True]


@pytest.mark.parametrize(
    ("said", "status", "body"),
    [(part(2, b"23"), 206, b"23"), (answer(BYTES), 206, b"23"), (chunked(BYTES), 200, BYTES)],
)
async def test_a_download_by_post_sends_its_body_and_takes_a_range(wire, connect, said, status, body):
    wire.says(said)
    connector = connect({}, "/export", "POST")

    async with connector.download("things", {"id": 7, "range_header": "bytes=2-3"}) as file:
        got = await file.read()

    [head] = wire.received
    assert head.startswith("POST /v1/export HTTP/1.1")
    assert ("Content-Length: 8" in head, "Range: bytes=2-3" in head) == (True, True)  # {"id":7}
    assert (file.status, got) == (status, body)


@pytest.mark.parametrize(
    ("status", "method"), [("302 Found", "GET"), ("303 See Other", "GET"), ("307 Temporary Redirect", "POST")]
)
async def test_a_redirected_download_by_post_keeps_its_method_if_the_status_says_so(wire, connect, status, method):
    wire.says(redirect("/files/7", status), answer(BYTES))

    async with connect({}, "/export", "POST").download("things", {"id": 7}) as file:
        got = await file.read()

    assert (wire.received[1].split(" ")[0], got) == (method, BYTES)
    assert ("Content-Type: application/json" in wire.received[1]) is (method == "POST")


async def test_two_ranges_that_differ_are_refused(wire, connect):
    with pytest.raises(ConflictingRange):
        async with connect().download("things", {"id": 7, "range_header": "bytes=2-3"}, range_header="bytes=4-5"):
            pass

    assert wire.received == []


async def test_a_range_that_the_application_wrongly_refuses_is_cut_out_of_the_whole(wire, connect):
    wire.says(record(), answer(b"", "416 No", f"Content-Range: bytes */{len(BYTES)}"), answer(BYTES))

    body = await read(connect(), range_header="bytes=2-4")

    assert body == b"234"
    assert ["Range:" in head for head in wire.received] == [False, True, False]


GZIPPED = gzip.compress(BYTES, mtime=0)
SMALLER = gzip.compress(BYTES * 100, mtime=0)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(answer(BYTES[:7], length=10), id="fewer bytes than Content-Length"),
        pytest.param(chunked(BYTES, end=b""), id="no last chunk"),
        pytest.param(chunked(BYTES[:5], end=b"5\r\n567"), id="half a chunk"),
        pytest.param(unframed(BYTES[:9]), id="close before the record's size"),
        pytest.param(unframed(b""), id="close before the first byte"),
        pytest.param(answer(BYTES[:9]), id="Content-Length short of the record's size"),
        pytest.param(chunked(BYTES[:9]), id="chunks short of the record's size"),
        pytest.param(answer(GZIPPED[:-9], "200 OK", "Content-Encoding: gzip"), id="half a gzip with its length"),
        pytest.param(chunked(GZIPPED[:-1], "Content-Encoding: gzip"), id="half a gzip in chunks"),
        pytest.param(unframed(GZIPPED[:-1], "Content-Encoding: x-gzip"), id="half a gzip and a close"),
        pytest.param(chunked(gzip.compress(BYTES[:9]), "Content-Encoding: gzip"), id="a gzip of less than the record"),
        pytest.param(part(0, BYTES[:4])[:-1], id="a part that breaks off"),
    ],
)
async def test_a_truncated_file_never_looks_whole(wire, connect, said):
    wire.says(record(), said)
    came: list[bytes] = []

    with pytest.raises(UpstreamTruncated):
        await gather(connect(), came, "bytes=0-3" if b" 206 " in said else None)

    assert b"".join(came) not in (BYTES, BYTES[:4], GZIPPED)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(answer(BYTES + b"x"), id="Content-Length beyond the record's size"),
        pytest.param(chunked(BYTES + b"x"), id="chunks beyond the record's size"),
        pytest.param(unframed(BYTES + b"x"), id="bytes beyond the record's size"),
        pytest.param(part(0, b"0123", total=99), id="a part of a longer file"),
        pytest.param(part(5, b"5678"), id="another part than asked for"),
        pytest.param(answer(b"0123", "206 Partial Content"), id="a part without its place"),
        pytest.param(chunked(b"no gzip", "Content-Encoding: gzip"), id="no gzip"),
        pytest.param(chunked(gzip.compress(BYTES * 2), "Content-Encoding: gzip"), id="a gzip of more than the record"),
    ],
)
async def test_a_file_that_contradicts_its_record_or_itself_is_no_file(wire, connect, said):
    wire.says(record(), said)

    with pytest.raises(UpstreamInvalidResponse):
        await read(connect(), range_header="bytes=0-3" if b" 206 " in said else None)


@pytest.mark.parametrize(
    ("size", "said", "body"),
    [
        (10, answer(BYTES), BYTES),
        (10, chunked(BYTES), BYTES),
        (10, unframed(BYTES), BYTES),
        (None, unframed(BYTES), BYTES),
        (None, chunked(BYTES), BYTES),
        (0, answer(b""), b""),
        (0, unframed(b""), b""),
        (10, answer(GZIPPED, "200 OK", "Content-Encoding: gzip"), GZIPPED),
        (len(GZIPPED), answer(GZIPPED, "200 OK", "Content-Encoding: gzip"), GZIPPED),
        (len(GZIPPED), chunked(GZIPPED, "Content-Encoding: gzip"), GZIPPED),
        (len(SMALLER), chunked(SMALLER, "Content-Encoding: gzip"), SMALLER),
        (20, chunked(GZIPPED * 2, "Content-Encoding: gzip"), GZIPPED * 2),
        (10, answer(zlib.compress(BYTES), "200 OK", "Content-Encoding: deflate"), zlib.compress(BYTES)),
    ],
)
async def test_a_whole_file_comes_through_as_it_is(wire, connect, size, said, body):
    wire.says(record(size=size), said)

    assert await read(connect()) == body


async def test_a_bomb_is_counted_and_never_unpacked(wire, connect):
    bomb = gzip.compress(bytes(4 << 20))
    wire.says(record(size=None), answer(bomb, "200 OK", "Content-Encoding: gzip"))

    assert await read(connect()) == bomb


async def test_an_application_that_does_not_begin_in_time_is_a_timeout(wire, connect):
    wire.says(record(), SILENCE)

    with pytest.raises(UpstreamTimeout, match="did not begin"):
        await read(connect(timeout=0.3))


async def test_an_application_that_falls_silent_within_the_file_is_a_timeout(wire, connect):
    wire.says(record(), said_by(b"{}", length=10))  # two bytes, and the connection stays

    async with Transport(EgressPolicy.of([wire.origin]), idle=0.2) as impatient:
        with pytest.raises(UpstreamTimeout, match="fell silent"):
            await read(connect(transport=impatient))


async def test_a_file_may_be_the_answer_to_a_post_and_its_redirect_is_a_get(wire, connect):
    wire.says(redirect(f"{wire.origin}/made/1"), answer(BYTES))
    connector = connect({}, "/things/export", method="POST")

    async with connector.download("things", {"id": 7}) as file:
        assert b"".join([chunk async for chunk in file]) == BYTES

    assert [head.split(" ")[0] for head in wire.received] == ["POST", "GET"]
    assert "Content-Length: 8" in wire.received[0]
