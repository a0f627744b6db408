"""Files of the sandbox over HTTP: any size, in ranges, always the same bytes."""

import hashlib

import pytest
from yarl import URL

from gateway.sandbox import files
from gateway.sandbox.files import Span, Unsatisfiable

AUTH = {"Authorization": "Bearer token"}
HUNDRED = files.number_for(100)
PATH = f"/attachments/token/{HUNDRED}/"


@pytest.mark.parametrize(
    ("number", "size"), [(0, 0), (1, 1 << 20), (64, 64 << 20), (498_483, 498_483), (1_000_000_100, 100)]
)
def test_the_number_of_a_file_determines_its_size(number, size):
    assert files.size_of(number) == size


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("bytes=0-9", Span(0, 10)),
        ("bytes=90-", Span(90, 100)),
        ("bytes=90-200", Span(90, 100)),
        ("bytes=-10", Span(90, 100)),
        ("bytes=-200", Span(0, 100)),
        ("bytes=9-0", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("", None),
    ],
)
def test_a_range_is_read_as_rfc_9110_requires(asked, span):
    assert files.requested_span({"range": asked}, HUNDRED) == span


@pytest.mark.parametrize("asked", ["bytes=100-", "bytes=-0", "bytes=200-300"])
def test_a_range_beyond_the_file_is_not_satisfiable(asked):
    with pytest.raises(Unsatisfiable):
        files.requested_span({"range": asked}, HUNDRED)


@pytest.mark.parametrize(
    ("condition", "is_current"),
    [
        (files.etag_of(HUNDRED), True),
        ("Wed, 01 Oct 2025 12:00:00 GMT", True),
        ('"other"', False),
        (f"W/{files.etag_of(HUNDRED)}", False),
        ("Wed, 01 Oct 2025 12:00:01 GMT", False),
    ],
)
def test_a_conditional_range_needs_the_current_file(condition, is_current):
    span = files.requested_span({"range": "bytes=0-0", "if-range": condition}, HUNDRED)

    assert span == (Span(0, 1) if is_current else None)


def test_parts_of_a_file_fit_together():
    whole = b"".join(map(bytes, files.chunks(3, Span(0, 3 << 20))))

    parts = [
        b"".join(map(bytes, files.chunks(3, span)))
        for span in (Span(0, 1_000_001), Span(1_000_001, 2_999_999), Span(2_999_999, 3 << 20))
    ]

    assert b"".join(parts) == whole
    assert hashlib.sha256(whole).hexdigest() == files.sha256_of(3)
    assert whole[: 1 << 20] != whole[1 << 20 : 2 << 20]


async def test_a_complete_file_has_its_metadata_in_headers(http):
    async with http.get(f"/_sandbox/files/{HUNDRED}") as answer:
        known = await answer.json()

    async with http.get(PATH) as answer:
        body = await answer.read()

    assert (answer.status, len(body)) == (200, known["size"])
    assert answer.headers["ETag"] == known["etag"]
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="file-{HUNDRED}.bin"'
    assert hashlib.sha256(body).hexdigest() == known["sha256"]


async def test_a_range_request_returns_that_part_of_the_file(http):
    async with http.get(PATH) as answer:
        whole = await answer.read()

    async with http.get(PATH, headers={"Range": "bytes=10-19"}) as answer:
        part = await answer.read()

    assert (answer.status, answer.headers["Content-Range"]) == (206, "bytes 10-19/100")
    assert part == whole[10:20]


async def test_an_unsatisfiable_range_is_answered_with_the_size(http):
    async with http.get(PATH, headers={"Range": "bytes=100-"}) as answer:
        told = answer.headers["Content-Range"]

    assert (answer.status, told) == (416, "bytes */100")


async def test_head_returns_the_size_and_no_body(http):
    async with http.head(PATH) as answer:
        body = await answer.read()

    assert (answer.status, answer.headers["Content-Length"], body) == (200, "100", b"")


async def test_the_record_of_an_attachment_has_the_url_of_its_file(connect, http):
    record = (await connect("support-desk").execute("attachments", "get", {"attachment_id": 1})).decoded()

    async with http.get(URL(record["content_url"]).path_qs) as answer:
        body = await answer.read()

    assert len(body) == record["size"] == 1 << 20


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/services/data/v59.0/sobjects/Attachment/00P000000000001AAA/Body", 1 << 20),
        ("/services/data/v59.0/sobjects/ContentVersion/068000000010100AAA/VersionData", 10_100),
    ],
)
async def test_files_of_the_crm_need_credentials(http, path, size):
    async with http.get(path) as answer:
        refused = answer.status
    async with http.get(path, headers=AUTH) as answer:
        body = await answer.read()

    assert (refused, len(body)) == (401, size)


async def test_a_signed_url_refuses_credentials(connect, http):
    record = (await connect("work-management").execute("attachments", "get", {"attachment_gid": "10100"})).decoded()
    address = URL(record["download_url"])

    statuses = []
    for path, headers in ((address.path_qs, {}), (address.path_qs, AUTH), (address.path, {})):
        async with http.get(path, headers=headers) as answer:
            statuses.append(answer.status)

    assert record["size"] == 10_100
    assert statuses == [200, 400, 403]


async def test_files_of_articles_have_the_size_of_their_record(connect, http):
    desk = connect("support-desk")
    article = (await desk.execute("articles", "list", {})).decoded()[0]
    listed = (await desk.execute("article_attachments", "list", {"article_id": article["id"]})).decoded()

    async with http.get(URL(listed[0]["content_url"]).path) as answer:
        body = await answer.read()

    assert len(body) == listed[0]["size"]
