"""multipart/byteranges, read back by the standard library's own parser."""

from email import message_from_bytes

from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.http_ranges.multipart import Multipart
from gateway.upstream.http_ranges.ranges import Slice, parse_content_range

FILE = bytes(range(256)) * 4


def sent(parts: Multipart) -> bytes:
    return b"".join(
        FILE[segment.start : segment.end + 1] if isinstance(segment, Slice) else segment for segment in parts.body()
    )


def test_parts_are_framed_as_the_rfc_shows():
    parts = Multipart([Slice(0, 1), Slice(65, 67)], size=1024, content_type="text/plain", boundary="SEPARATOR")

    body = sent(parts)

    assert parts.header == "multipart/byteranges; boundary=SEPARATOR"
    assert body == (
        b"--SEPARATOR\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/1024\r\n\r\n\x00\x01"
        b"\r\n--SEPARATOR\r\nContent-Type: text/plain\r\nContent-Range: bytes 65-67/1024\r\n\r\nABC"
        b"\r\n--SEPARATOR--\r\n"
    )
    assert parts.length == len(body)


def test_every_answer_has_a_boundary_of_its_own():
    first, second = (Multipart([Slice(0, 1)], size=2, content_type="text/plain") for _ in range(2))

    assert first.boundary != second.boundary


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 100)), min_size=2, max_size=10))
def test_a_reader_gets_every_slice_back(spans):
    slices = [Slice(start, start + extent) for start, extent in spans]
    parts = Multipart(slices, size=len(FILE), content_type="application/octet-stream")

    body = sent(parts)
    message = message_from_bytes(f"Content-Type: {parts.header}\r\n\r\n".encode() + body)
    stated = [parse_content_range(part["Content-Range"]).bytes for part in message.get_payload()]

    assert parts.length == len(body)
    assert stated == slices
    assert all(FILE[part.start : part.end + 1] in body for part in slices)
