"""RFC 9110 ranges in every corner, the same three ways: by POST, as a plain resource, and out of storage."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import pytest

from gateway.sandbox import files
from gateway.sandbox.files import Span
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.sandbox import fault
from tests.harness.up import Running

SIZE = 1000
NUMBER = files.number_for(SIZE)
WHOLE = (200, None, 0, SIZE)
#: asks one of the ways with these headers, by this method
Ask = Callable[..., Awaitable[Answer]]


@cache
def content() -> bytes:
    return b"".join(files.chunks(NUMBER, Span(0, SIZE)))


async def posted(api: Api, connector: ConnectorApi) -> Ask:
    async def ask(headers: Mapping[str, str], method: str = "POST") -> Answer:
        return await connector.send("attachments", "download", {"attachment_id": NUMBER}, headers=dict(headers))

    return ask


async def plain(api: Api, connector: ConnectorApi) -> Ask:
    async def ask(headers: Mapping[str, str], method: str = "GET") -> Answer:
        return await api.call(
            method, f"{connector.path}/download/attachments?attachment_id={NUMBER}", headers=dict(headers)
        )

    return ask


async def stored(api: Api, connector: ConnectorApi) -> Ask:
    job = await connector.submit("attachments", "download", {"attachment_id": NUMBER})
    result = f"/api/v1/jobs/{job['id']}/result?wait=30"

    async def ask(headers: Mapping[str, str], method: str = "GET") -> Answer:
        return await api.call(method, result, headers=dict(headers))

    return ask


@pytest.fixture(params=[posted, plain, stored])
async def ask(request: pytest.FixtureRequest, api: Api, support_desk: ConnectorApi) -> Ask:
    return await request.param(api, support_desk)


@pytest.fixture(params=[plain, stored])
async def resource(request: pytest.FixtureRequest, api: Api, support_desk: ConnectorApi) -> Ask:
    return await request.param(api, support_desk)


#: Range → status, Content-Range, first byte, length
RANGES: dict[str, tuple[int, str | None, int, int]] = {
    "bytes=0-0": (206, "bytes 0-0/1000", 0, 1),
    "bytes=10-19": (206, "bytes 10-19/1000", 10, 10),
    "bytes=0-999": (206, "bytes 0-999/1000", 0, 1000),
    "bytes=0-": (206, "bytes 0-999/1000", 0, 1000),
    "bytes=990-": (206, "bytes 990-999/1000", 990, 10),
    "bytes=990-2000": (206, "bytes 990-999/1000", 990, 10),
    "bytes=999-99999999999999999999": (206, "bytes 999-999/1000", 999, 1),
    "bytes=-1": (206, "bytes 999-999/1000", 999, 1),
    "bytes=-5000": (206, "bytes 0-999/1000", 0, 1000),
    "BYTES=10-19": (206, "bytes 10-19/1000", 10, 10),
    "bytes= 10-19 ,": (206, "bytes 10-19/1000", 10, 10),
    # not satisfiable
    "bytes=1000-": (416, "bytes */1000", 0, 0),
    "bytes=1000-1001": (416, "bytes */1000", 0, 0),
    "bytes=-0": (416, "bytes */1000", 0, 0),
    "bytes=1000-1001,2000-": (416, "bytes */1000", 0, 0),
    # malformed, or of other units: as if there were none
    "bytes=": WHOLE,
    "bytes=-": WHOLE,
    "bytes=abc": WHOLE,
    "bytes=20-10": WHOLE,
    "bytes=1-2-3": WHOLE,
    "bytes 1-2": WHOLE,
    "bytes=0x1-0x2": WHOLE,
    "lines=1-2": WHOLE,
    "none": WHOLE,
    # overlapping, or more than ten
    "bytes=0-10,5-15": WHOLE,
    "bytes=0-,0-": WHOLE,
    ",".join(["bytes=0-0", *(f"{n * 2}-{n * 2}" for n in range(1, 11))]): WHOLE,
}


@pytest.mark.parametrize("asked", RANGES)
async def test_a_range_is_answered_as_the_rfc_says(ask: Ask, asked: str):
    status, content_range, first, length = RANGES[asked]

    answer = await ask({"Range": asked})

    assert (answer.status, answer.headers.get("Content-Range")) == (status, content_range)
    assert status == 416 or answer.body == content()[first : first + length]
    assert int(answer.headers["Content-Length"]) == len(answer.body)


@pytest.fixture
async def rangeless(running: Running) -> AsyncIterator[None]:
    """The application answers every range with the whole file."""
    async with fault(running.sandbox_url, ignore_range=True, path_prefix="/attachments/"):
        yield


@pytest.mark.usefixtures("rangeless")
@pytest.mark.parametrize("asked", RANGES)
async def test_a_range_is_answered_alike_where_the_application_ignores_it(ask: Ask, asked: str):
    status, content_range, first, length = RANGES[asked]

    answer = await ask({"Range": asked})

    assert (answer.status, answer.headers.get("Content-Range")) == (status, content_range)
    assert status == 416 or answer.body == content()[first : first + length]


async def test_several_ranges_never_come_as_one_part_labelled_as_all(ask: Ask):
    answer = await ask({"Range": "bytes=0-9,500-509"})

    assert (answer.status, answer.body == content()) == (200, True) or _parts(answer) == [
        ("bytes 0-9/1000", content()[:10]),
        ("bytes 500-509/1000", content()[500:510]),
    ]


def _parts(answer: Answer) -> list[tuple[str, bytes]]:
    """What the parts of a multipart answer say of themselves, and hold."""
    boundary = answer.headers["Content-Type"].partition("boundary=")[2].encode()
    found = []
    for part in answer.body.split(b"--" + boundary)[1:-1]:
        head, _, body = part.strip(b"\r\n").partition(b"\r\n\r\n")
        found.append((head.decode().partition("Content-Range: ")[2], body))
    return found


async def test_stored_files_give_several_ranges_as_parts(api: Api, support_desk: ConnectorApi):
    ask = await stored(api, support_desk)

    answer = await ask({"Range": "bytes=0-9,500-509"})

    assert answer.status == 206
    assert answer.headers["Content-Type"].startswith("multipart/byteranges; boundary=")
    assert _parts(answer) == [("bytes 0-9/1000", content()[:10]), ("bytes 500-509/1000", content()[500:510])]


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("{etag}", 206),
        ("W/{etag}", 200),
        ('"another"', 200),
        ("{date}", 206),
        ("Thu, 01 Jan 2015 00:00:00 GMT", 200),
        ("nonsense", 200),
    ],
)
async def test_a_range_is_given_only_of_the_file_that_the_caller_has(ask: Ask, condition: str, status: int):
    whole = await ask({})
    named = condition.format(etag=whole.headers["ETag"], date=whole.headers["Last-Modified"])

    answer = await ask({"Range": "bytes=10-19", "If-Range": named})

    assert answer.status == status
    assert answer.body == (content()[10:20] if status == 206 else content())


@pytest.mark.parametrize("held", ["{etag}", "W/{etag}", '"a", {etag}', "*"])
async def test_a_file_that_the_caller_has_is_not_sent_again(resource: Ask, held: str):
    whole = await resource({})

    answer = await resource({"If-None-Match": held.format(etag=whole.headers["ETag"])})

    assert (answer.status, answer.body, answer.headers["ETag"]) == (304, b"", whole.headers["ETag"])


async def test_another_file_than_the_caller_has_is_sent(resource: Ask):
    answer = await resource({"If-None-Match": '"another"'})

    assert (answer.status, answer.body) == (200, content())


async def test_head_says_what_get_would_say_of_the_whole(resource: Ask):
    whole = await resource({})

    answer = await resource({"Range": "bytes=10-19"}, "HEAD")

    assert (answer.status, answer.body) == (200, b"")
    for name in ("Content-Length", "Content-Type", "ETag", "Last-Modified", "Accept-Ranges", "Content-Disposition"):
        assert answer.headers[name] == whole.headers[name]


async def test_header_and_param_that_differ_are_refused(support_desk: ConnectorApi):
    params: dict[str, Any] = {"attachment_id": NUMBER, "range_header": "bytes=0-1"}

    answer = await support_desk.send("attachments", "download", params, headers={"Range": "bytes=0-2"})

    assert (answer.status, answer.json()["code"]) == (400, "conflicting_range")
