"""Files in JSON chunks: which bytes are asked for, how they are written, and where the next chunk begins."""

from collections.abc import AsyncIterator

import pytest

from gateway.errors import InvalidParams
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.http_ranges.json_chunks import ChunkRequest, chunk, empty_chunk, file_params, wants_chunk

TEXT = {"_airbyte_response_format": "text"}


def file(body: bytes, status: int = 206, size: int | None = None) -> File:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 3):
            yield body[start : start + 3]

    return File(status, {"Content-Type": "text/plain"}, size, pieces())


@pytest.mark.parametrize(
    ("params", "start", "length", "form"),
    [
        ({}, 0, 49_152, "base64"),
        (TEXT, 0, 15_360, "text"),
        ({"range_header": "bytes=0-65535"}, 0, 65_536, "base64"),
        ({"range_header": "bytes=7-7", **TEXT}, 7, 1, "text"),
    ],
)
def test_a_chunk_is_a_bounded_range(params, start, length, form):
    assert ChunkRequest.of(params) == ChunkRequest(start, length, form)


@pytest.mark.parametrize(
    "stated", ["bytes=0-65536", "bytes=0-", "bytes=-5", "bytes=5-4", "lines=0-1", "bytes=0-1,3-4", "", 5]
)
def test_any_other_range_is_refused_by_name(stated):
    with pytest.raises(InvalidParams) as refused:
        ChunkRequest.of({"range_header": stated})

    assert [fault.field for fault in refused.value.faults] == ["range_header"]
    assert "such as bytes=0-49151" in refused.value.detail


def test_an_unknown_format_is_refused_by_name():
    with pytest.raises(InvalidParams, match="allowed: text, base64"):
        ChunkRequest.of({"_airbyte_response_format": "hex"})


@pytest.mark.parametrize(("stated", "wants"), [("json", True), ("stream", False)])
def test_the_response_type_says_whether_a_chunk_is_wanted(stated, wants):
    assert wants_chunk({"_airbyte_response_type": stated}) is wants
    assert wants_chunk({}) is False


def test_an_unknown_response_type_is_refused_by_name():
    with pytest.raises(InvalidParams, match="allowed: json, stream"):
        wants_chunk({"_airbyte_response_type": "xml"})


def test_the_files_own_params_are_what_is_left():
    params = {"id": 7, "range_header": "bytes=0-1", "_airbyte_response_type": "json", **TEXT}

    assert file_params(params) == {"id": 7, "range_header": "bytes=0-1"}


@pytest.mark.parametrize(
    ("given", "wanted", "content", "following"),
    [
        (file(b"0123", size=10), ChunkRequest(0, 4, "text"), "0123", "bytes=4-7"),
        (file(b"89", size=10), ChunkRequest(8, 4, "text"), "89", None),
        (file(b"6789", size=10), ChunkRequest(6, 4, "text"), "6789", None),
        (file(b"0123"), ChunkRequest(0, 4, "text"), "0123", "bytes=4-7"),
        (file(b"012"), ChunkRequest(0, 4, "text"), "012", None),
        (file(b"0123", size=10), ChunkRequest(0, 4, "base64"), "MDEyMw==", "bytes=4-7"),
        # the whole comes all the same: what lies before is dropped
        (file(b"0123456789", status=200), ChunkRequest(4, 4, "text"), "4567", "bytes=8-11"),
        (file(b"0123456789", status=200, size=10), ChunkRequest(8, 4, "text"), "89", None),
        # a character of three bytes, cut by the end of the range
        (file("aé€".encode()[:4], size=6), ChunkRequest(0, 4, "text"), "aé", "bytes=3-6"),
    ],
)
async def test_a_chunk_says_what_it_holds_and_where_the_next_begins(given, wanted, content, following):
    written = await chunk(given, wanted)

    assert (written["content"], written["next_range_header"]) == (content, following)
    assert written["has_more"] is (following is not None)
    assert written["range_requested"] == wanted.range_header
    assert written["content_type"] == "text/plain"


@pytest.mark.parametrize(
    ("body", "length", "said"), [(b"\xff\xfe", 2, "not text in UTF-8"), ("€".encode()[:2], 2, "at least 4 bytes")]
)
async def test_what_is_no_text_is_not_written_as_text(body, length, said):
    with pytest.raises(InvalidParams, match=said):
        await chunk(file(body, size=9), ChunkRequest(0, length, "text"))


def test_an_empty_file_is_one_empty_chunk():
    written = empty_chunk(ChunkRequest(0, 100, "text"))

    assert (written["content"], written["bytes_returned"], written["has_more"]) == ("", 0, False)
