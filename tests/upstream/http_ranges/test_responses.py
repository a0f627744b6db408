"""The answer to a request for a file, over what applications make of ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from gateway.errors import ConflictingRange, RangeNotSatisfiable, UpstreamInvalidResponse
from gateway.upstream.http_ranges import ranges
from gateway.upstream.http_ranges.ranges import RangeRequest, Slice
from gateway.upstream.http_ranges.responses import (
    FileResponse,
    StatedBody,
    StoredResponse,
    relayed_reply,
    stored_reply,
)

DATE = "Tue, 15 Nov 1994 12:45:26 GMT"
FILE = bytes(range(256))


def wanted(range_header: str | None = None, **conditions: str) -> RangeRequest:
    return RangeRequest(ranges.parse(range_header), **conditions)


def answer(reply: FileResponse, body: bytes) -> bytes:
    end = None if reply.length is None else reply.skip + reply.length
    return body[reply.skip : end]


@pytest.mark.parametrize(
    ("asked", "answered", "status", "content_range", "skip", "length"),
    [
        # the application honours the range
        ("bytes=0-4", (206, "bytes 0-4/10", 5), 206, "bytes 0-4/10", 0, 5),
        ("bytes=5-", (206, "bytes 5-9/10", 5), 206, "bytes 5-9/10", 0, 5),
        ("bytes=-3", (206, "bytes 7-9/10", 3), 206, "bytes 7-9/10", 0, 3),
        ("bytes=5-99", (206, "bytes 5-9/10", 5), 206, "bytes 5-9/10", 0, 5),
        ("bytes=0-4", (206, "bytes 0-4/*", 5), 206, "bytes 0-4/*", 0, 5),
        ("bytes=5-", (206, "bytes 5-9/*", None), 206, "bytes 5-9/*", 0, 5),
        ("bytes=-3", (206, "bytes 7-9/*", 3), 206, "bytes 7-9/*", 0, 3),
        # it gives less or more than asked, from where it was asked
        ("bytes=0-4", (206, "bytes 0-1/10", 2), 206, "bytes 0-1/10", 0, 2),
        ("bytes=5-", (206, "bytes 5-6/10", 2), 206, "bytes 5-6/10", 0, 2),
        ("bytes=2-4", (206, "bytes 0-9/10", 10), 206, "bytes 2-4/10", 2, 3),
        ("bytes=2-4", (206, "bytes 2-9/10", 8), 206, "bytes 2-4/10", 0, 3),
        ("bytes=2-8", (206, "bytes 1-5/10", 5), 206, "bytes 2-5/10", 1, 4),
        # it ignores the range
        ("bytes=0-4", (200, None, 10), 206, "bytes 0-4/10", 0, 5),
        ("bytes=5-", (200, None, 10), 206, "bytes 5-9/10", 5, 5),
        ("bytes=-3", (200, None, 10), 206, "bytes 7-9/10", 7, 3),
        ("bytes=0-", (200, None, 10), 206, "bytes 0-9/10", 0, 10),
        ("bytes=5-99", (200, "bytes 0-9/10", 10), 206, "bytes 5-9/10", 5, 5),
        ("bytes=5-", (200, None, None), 200, None, 0, None),
        ("bytes=-5", (200, None, 0), 200, None, 0, 0),
        ("bytes=0-1,4-5", (200, None, 10), 200, None, 0, 10),
        ("bytes=0-1,20-30", (200, None, 10), 206, "bytes 0-1/10", 0, 2),
        # one part for several ranges is labelled as what it is
        ("bytes=0-1,4-5", (206, "bytes 0-5/10", 6), 206, "bytes 0-5/10", 0, 6),
        ("bytes=0-1,4-5", (206, "bytes 4-5/10", 2), 206, "bytes 4-5/10", 0, 2),
        # no range, or one that means the whole
        (None, (200, None, 10), 200, None, 0, 10),
        (None, (200, None, 0), 200, None, 0, 0),
        (None, (200, None, None), 200, None, 0, None),
        ("items=0-4", (200, None, 10), 200, None, 0, 10),
        ("bytes=0-5,5-9", (200, None, 10), 200, None, 0, 10),
    ],
)
def test_status_and_labels_are_those_of_the_bytes_sent(asked, answered, status, content_range, skip, length):
    upstream_status, stated_range, stated_length = answered
    stated = {"Content-Range": stated_range, "Content-Length": stated_length and str(stated_length)}
    headers = {name: value for name, value in stated.items() if value is not None}
    headers |= {"Content-Length": "0"} if stated_length == 0 else {}

    reply = relayed_reply(wanted(asked), upstream_status, headers)

    assert (reply.status, reply.skip, reply.length) == (status, skip, length)
    assert reply.headers.get("Content-Range") == content_range
    assert reply.headers.get("Content-Length") == (None if length is None else str(length))


@pytest.mark.parametrize(
    ("asked", "status", "headers"),
    [
        # 206 unasked
        (None, 206, {"Content-Range": "bytes 0-9/10"}),
        ("items=0-4", 206, {"Content-Range": "bytes 0-4/10"}),
        # other bytes
        ("bytes=0-4", 206, {"Content-Range": "bytes 5-9/10"}),
        ("bytes=5-", 206, {"Content-Range": "bytes 0-4/10"}),
        ("bytes=5-6", 206, {"Content-Range": "bytes 6-7/10"}),
        ("bytes=-3", 206, {"Content-Range": "bytes 0-2/10"}),
        ("bytes=-3", 206, {"Content-Range": "bytes 0-3/*"}),
        ("bytes=20-30", 206, {"Content-Range": "bytes 0-9/10"}),
        ("bytes=1-2,4-5", 206, {"Content-Range": "bytes 7-9/10"}),
        # a part that is not labelled, or labelled wrongly
        ("bytes=0-4", 206, {}),
        ("bytes=0-4", 206, {"Content-Range": "bytes */10"}),
        ("bytes=0-4", 206, {"Content-Range": "0-4/10"}),
        ("bytes=0-4", 206, {"Content-Range": "bytes 0-10/10"}),
        ("bytes=0-4", 206, {"Content-Range": "bytes 0-4/10", "Content-Length": "10"}),
        ("bytes=0-4", 206, {"Content-Range": "bytes 0-4/10", "Content-Length": "five"}),
        ("bytes=0-4", 206, {"Content-Type": "multipart/byteranges; boundary=x"}),
        ("bytes=0-4", 206, {"Content-Type": "multipart/byteranges; boundary=x", "Content-Range": "bytes 0-4/10"}),
        ("bytes=0-1,4-5", 206, {"Content-Type": "multipart/byteranges; boundary=x", "Content-Range": "bytes 0-1/10"}),
        # a part as the whole
        ("bytes=5-", 200, {"Content-Range": "bytes 5-9/10", "Content-Length": "5"}),
        (None, 200, {"Content-Range": "bytes 0-4/10", "Content-Length": "5"}),
        (None, 200, {"Content-Range": "bytes 0-4/*", "Content-Length": "5"}),
        (None, 200, {"Content-Range": "bytes 0-4/5", "Content-Length": "10"}),
        (None, 200, {"Content-Length": "-1"}),
        (None, 200, {"Content-Length": "\u0661"}),
        # unasked answers
        (None, 304, {}),
        (None, 416, {"Content-Range": "bytes */10"}),
        (None, 204, {}),
        (None, 203, {"Content-Length": "10"}),
        ("bytes=0-4", 302, {}),
    ],
)
def test_an_answer_that_contradicts_itself_or_the_request_is_invalid(asked, status, headers):
    with pytest.raises(UpstreamInvalidResponse):
        relayed_reply(wanted(asked), status, headers)


def test_several_parts_are_relayed_as_they_are():
    headers = {"Content-Type": 'multipart/byteranges; boundary="a b"', "Content-Length": "300", "ETag": '"a"'}

    reply = relayed_reply(wanted("bytes=0-1,4-5"), 206, headers)

    assert reply == FileResponse(
        status=206, headers=headers | {"Accept-Ranges": "bytes"}, stated=StatedBody(300, is_in_parts=True), length=300
    )


@pytest.mark.parametrize(
    ("asked", "status", "headers", "size", "told"),
    [
        ("bytes=10-", 416, {"Content-Range": "bytes */10"}, None, {"size": 10}),
        ("bytes=10-", 416, {}, 10, {"size": 10}),
        ("bytes=10-", 416, {}, None, {}),
        ("bytes=10-", 416, {"Content-Range": "nonsense"}, None, {}),
        ("bytes=-0", 416, {"Content-Range": "bytes */10"}, None, {"size": 10}),
        ("bytes=10-", 200, {"Content-Length": "10"}, None, {"size": 10}),
        ("bytes=0-", 200, {"Content-Length": "0"}, None, {"size": 0}),
        ("bytes=20-21,30-31", 200, {"Content-Length": "10"}, None, {"size": 10}),
    ],
)
def test_a_range_past_the_end_is_not_satisfiable(asked, status, headers, size, told):
    with pytest.raises(RangeNotSatisfiable) as refusal:
        relayed_reply(wanted(asked), status, headers, size=size)

    assert refusal.value.extra == told


@pytest.mark.parametrize(
    ("request_", "status", "headers"),
    [
        (wanted("bytes=0-4"), 416, {"Content-Range": "bytes */10"}),
        (wanted("bytes=-5"), 416, {"Content-Range": "bytes */0"}),
        (wanted("bytes=20-", if_range='"a"'), 416, {"Content-Range": "bytes */10"}),
        (wanted("bytes=0-4", if_range='"a"'), 206, {"Content-Range": "bytes 0-4/10", "ETag": '"b"'}),
        (wanted("bytes=0-4", if_range='"a"'), 206, {"Content-Range": "bytes 0-4/10"}),
        (wanted("bytes=0-4", if_range='W/"a"'), 206, {"Content-Range": "bytes 0-4/10", "ETag": 'W/"a"'}),
        (wanted("bytes=0-4", if_range=DATE), 206, {"Content-Range": "bytes 0-4/10", "ETag": '"b"'}),
    ],
)
def test_the_whole_is_requested_where_a_part_would_be_wrong(request_, status, headers):
    assert relayed_reply(request_, status, headers) is None


@pytest.mark.parametrize("status", [206, 416])
def test_the_whole_is_requested_once_only(status):
    with pytest.raises(UpstreamInvalidResponse):
        relayed_reply(wanted("bytes=0-4"), status, {"Content-Range": "bytes 0-4/10"}, ranged=False)


@pytest.mark.parametrize(
    ("if_range", "headers", "status"),
    [
        ('"a"', {"ETag": '"a"'}, 206),
        (DATE, {"Last-Modified": DATE, "ETag": '"b"'}, 206),
        ('"a"', {"ETag": '"b"'}, 200),
        ('"a"', {"ETag": 'W/"a"'}, 200),
        ('"a"', {}, 200),
        (DATE, {"Last-Modified": "Tue, 15 Nov 1994 12:45:27 GMT"}, 200),
    ],
)
def test_a_whole_file_is_sliced_only_where_if_range_holds(if_range, headers, status):
    reply = relayed_reply(wanted("bytes=2-4", if_range=if_range), 200, headers | {"Content-Length": "10"})

    assert reply.status == status


def test_a_changed_file_is_given_whole_even_where_the_range_is_past_its_end():
    reply = relayed_reply(
        wanted("bytes=20-", if_range='"a"'), 200, {"ETag": '"b"', "Content-Length": "10"}, ranged=False
    )

    assert (reply.status, reply.length) == (200, 10)


@pytest.mark.parametrize("status", [200, 206, 304])
def test_a_file_that_the_client_holds_is_answered_with_304_and_no_body(status):
    headers = {"ETag": 'W/"a"', "Content-Length": "10", "Content-Type": "text/plain", "Set-Cookie": "a=b"}

    reply = relayed_reply(wanted("bytes=0-4", if_none_match='"a"'), status, headers)

    assert reply == FileResponse(status=304, headers={"ETag": 'W/"a"'}, stated=StatedBody(10), length=0)


def test_the_size_of_the_record_stands_in_for_a_missing_length():
    whole = relayed_reply(wanted(), 200, {}, size=10)
    part = relayed_reply(wanted("bytes=5-"), 200, {}, size=10)

    assert (whole.status, whole.headers["Content-Length"], whole.length) == (200, "10", 10)
    assert (part.status, part.headers["Content-Range"], part.skip) == (206, "bytes 5-9/10", 5)


@pytest.mark.parametrize(
    "named",
    [
        {"Content-Type": "application/gzip"},
        {"Content-Disposition": 'attachment; filename="a b.tar.gz"'},
        {"content-disposition": "attachment; filename*=UTF-8''%C3%A9.tgz"},
    ],
)
def test_the_coding_of_a_gzip_file_of_the_stored_size_is_the_file(named):
    coded = {"Content-Encoding": "gzip", "Content-Length": "10", **named}

    whole = relayed_reply(RangeRequest(), 200, coded, size=10)
    part = relayed_reply(
        wanted("bytes=5-"), 206, {**coded, "Content-Length": "5", "Content-Range": "bytes 5-9/10"}, size=10
    )
    other = relayed_reply(RangeRequest(), 200, coded, size=11)

    assert "Content-Encoding" not in whole.headers
    assert (part.status, "Content-Encoding" in part.headers) == (206, False)
    assert other.headers["Content-Encoding"] == "gzip"


def test_the_coding_of_another_file_of_the_stored_size_stays():
    coded = {"Content-Encoding": "gzip", "Content-Length": "10", "Content-Type": "text/csv"}

    assert relayed_reply(RangeRequest(), 200, coded, size=10).headers["Content-Encoding"] == "gzip"


def test_the_size_of_the_record_says_nothing_of_coded_bytes():
    reply = relayed_reply(wanted("bytes=5-"), 200, {"Content-Encoding": "gzip"}, size=10)

    assert (reply.status, reply.length) == (200, None)
    assert reply.headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("headers", "accepts"),
    [
        ({"Content-Length": "10"}, "bytes"),
        ({"Content-Length": "10", "Accept-Ranges": "none"}, "bytes"),
        ({"Accept-Ranges": "bytes"}, "bytes"),
        ({"Accept-Ranges": "none"}, "none"),
        ({}, "none"),
    ],
)
def test_ranges_are_offered_where_they_will_be_honoured(headers, accepts):
    assert relayed_reply(wanted(), 200, headers).headers["Accept-Ranges"] == accepts


@given(
    size=st.integers(1, 256),
    first=st.integers(0, 300),
    last=st.none() | st.integers(0, 300),
    before=st.integers(0, 20),
    after=st.integers(0, 20),
    is_honoured=st.booleans(),
)
def test_the_bytes_sent_are_always_those_that_the_label_names(size, first, last, before, after, is_honoured):
    file = FILE[:size]
    first = min(first, size - 1)
    last = None if last is None else max(first, last)
    end = size - 1 if last is None else min(last, size - 1)
    given_part = Slice(max(0, first - before), min(size - 1, end + after))
    whole = (200, {"Content-Length": str(size)}, file)
    part = (
        206,
        {"Content-Range": ranges.content_range(given_part.start, given_part.end, size)},
        file[given_part.start : given_part.end + 1],
    )
    status, headers, body = part if is_honoured else whole

    reply = relayed_reply(wanted(f"bytes={first}-{'' if last is None else last}"), status, headers)

    assert reply.headers["Content-Range"] == f"bytes {first}-{end}/{size}"
    assert answer(reply, body) == file[first : end + 1]


def test_the_application_is_asked_for_what_the_client_wants():
    request = wanted("Bytes= 0-4 , 8-", if_range='"a"', if_none_match='"b"')

    assert request.upstream_headers() == {
        "Accept-Encoding": "identity",
        "Range": "bytes=0-4,8-",
        "If-Range": '"a"',
        "If-None-Match": '"b"',
    }
    assert request.upstream_headers(ranged=False) == {"Accept-Encoding": "identity", "If-None-Match": '"b"'}


def test_names_of_headers_are_understood_in_any_case():
    request = RangeRequest.of({"RANGE": "bytes=2-4", "if-range": '"a"'})

    reply = relayed_reply(request, 206, {"content-range": "bytes 2-4/10", "content-length": "3", "ETAG": '"a"'})

    assert (reply.status, reply.headers["Content-Range"], reply.headers["ETag"]) == (206, "bytes 2-4/10", '"a"')


def test_a_range_that_means_the_whole_is_not_passed_on():
    assert wanted("bytes=0-5,5-9", if_range='"a"').upstream_headers() == {"Accept-Encoding": "identity"}


@pytest.mark.parametrize(
    ("headers", "method", "param", "range_header"),
    [
        ({}, "GET", None, None),
        ({"Range": "bytes=0-4"}, "GET", None, "bytes=0-4"),
        ({"Range": "bytes=0-4"}, "POST", "bytes=0-4", "bytes=0-4"),
        ({"Range": "bytes=0-4"}, "HEAD", None, None),
        ({}, "POST", " bytes=0-4", "bytes=0-4"),
    ],
)
def test_the_range_is_taken_from_the_header_or_the_param(headers, method, param, range_header):
    assert RangeRequest.of(headers, method=method, range_header=param).ranges == ranges.parse(range_header)


@pytest.mark.parametrize(
    ("header", "param"), [(["bytes=0-4"], "bytes=0-5"), (["bytes=0-4", "bytes=0-5"], None), (["", "bytes=0-5"], None)]
)
def test_ranges_that_differ_are_refused(header, param):
    with pytest.raises(ConflictingRange):
        RangeRequest.of(CIMultiDict(("Range", each) for each in header), range_header=param)


LABELS = {"Content-Type": "text/plain", "ETag": '"sha"', "Last-Modified": DATE}


def stored(reply: StoredResponse, file: bytes) -> bytes:
    return b"".join(
        file[segment.start : segment.end + 1] if isinstance(segment, Slice) else segment for segment in reply.body
    )


@pytest.mark.parametrize(
    ("request_", "size", "status", "content_range", "body"),
    [
        (wanted(), 10, 200, None, FILE[:10]),
        (wanted(), 0, 200, None, b""),
        (wanted("bytes=2-4"), 10, 206, "bytes 2-4/10", FILE[2:5]),
        (wanted("bytes=-4"), 10, 206, "bytes 6-9/10", FILE[6:10]),
        (wanted("bytes=8-99"), 10, 206, "bytes 8-9/10", FILE[8:10]),
        (wanted("bytes=0-1,20-"), 10, 206, "bytes 0-1/10", FILE[0:2]),
        (wanted("bytes=5-,-2"), 10, 200, None, FILE[:10]),
        (wanted("bytes=-1"), 0, 200, None, b""),
        (wanted("bytes=2-4", if_range='"sha"'), 10, 206, "bytes 2-4/10", FILE[2:5]),
        (wanted("bytes=2-4", if_range='"other"'), 10, 200, None, FILE[:10]),
        (wanted("bytes=20-", if_range='"other"'), 10, 200, None, FILE[:10]),
        (wanted("bytes=2-4", if_none_match='"other"'), 10, 206, "bytes 2-4/10", FILE[2:5]),
    ],
)
def test_a_stored_file_is_given_whole_or_in_part(request_, size, status, content_range, body):
    reply = stored_reply(request_, size, LABELS)

    assert reply.status == status
    assert reply.headers.get("Content-Range") == content_range
    assert reply.headers["Content-Length"] == str(len(body))
    assert reply.headers["Accept-Ranges"] == "bytes"
    assert stored(reply, FILE) == body


def test_several_ranges_of_a_stored_file_are_several_parts():
    reply = stored_reply(wanted("bytes=0-1,-2"), 10, LABELS)

    body = stored(reply, FILE)

    assert reply.status == 206
    assert reply.headers["Content-Type"].startswith("multipart/byteranges; boundary=")
    assert "Content-Range" not in reply.headers
    assert reply.headers["Content-Length"] == str(len(body))
    assert body.count(b"Content-Type: text/plain\r\n") == 2
    assert b"bytes 0-1/10\r\n\r\n\x00\x01\r\n" in body
    assert b"bytes 8-9/10\r\n\r\n\x08\x09\r\n" in body


def test_a_stored_file_that_the_client_holds_is_answered_with_304():
    reply = stored_reply(wanted("bytes=0-1", if_none_match='"sha"'), 10, LABELS)

    assert reply == StoredResponse(304, {"ETag": '"sha"', "Last-Modified": DATE})


def test_a_range_past_the_end_of_a_stored_file_has_its_size():
    with pytest.raises(RangeNotSatisfiable) as refusal:
        stored_reply(wanted("bytes=10-"), 10, LABELS)

    assert refusal.value.extra == {"size": 10}
