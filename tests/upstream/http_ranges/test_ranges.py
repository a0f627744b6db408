"""Range headers in every corner (RFC 9110 §14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RangeNotSatisfiable
from gateway.upstream.http_ranges.ranges import (
    BEYOND,
    ByteRange,
    ContentRange,
    Slice,
    content_range,
    parse,
    parse_content_range,
    range_header,
    resolve,
    unsatisfied_range,
)


@pytest.mark.parametrize(
    ("header", "ranges"),
    [
        ("bytes=0-0", [(0, 0)]),
        ("bytes=0-499", [(0, 499)]),
        ("bytes=500-", [(500, None)]),
        ("bytes=-500", [(None, 500)]),
        ("bytes=-0", [(None, 0)]),
        ("bytes=007-010", [(7, 10)]),
        ("BYTES=0-1", [(0, 1)]),
        ("  bytes=0-1\t", [(0, 1)]),
        ("bytes=0-1,3-4", [(0, 1), (3, 4)]),
        ("bytes=3-4,0-1", [(3, 4), (0, 1)]),
        ("bytes=0-1 ,\t3-4", [(0, 1), (3, 4)]),
        ("bytes=,0-1,,3-4,", [(0, 1), (3, 4)]),
        ("bytes=0-1,2-3", [(0, 1), (2, 3)]),
        ("bytes=0-1,-2", [(0, 1), (None, 2)]),
        ("bytes=5-,-2", [(5, None), (None, 2)]),
        ("bytes=0-99999999999999999999999", [(0, BEYOND)]),
        ("bytes=" + "9" * 5000 + "-", [(BEYOND, None)]),
        ("bytes=-" + "9" * 5000, [(None, BEYOND)]),
        ("bytes=" + "0" * 5000 + "1-2", [(1, 2)]),
        ("bytes=" + ",".join(f"{n}-{n}" for n in range(0, 20, 2)), [(n, n) for n in range(0, 20, 2)]),
    ],
)
def test_a_well_formed_header_is_read(header, ranges):
    assert parse(header) == tuple(ByteRange(*asked) for asked in ranges)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=--1",
        "bytes=-1-",
        "bytes=5-4",
        "bytes=0",
        "bytes=a-b",
        "bytes=0x0-0x1",
        "bytes=+0-1",
        "bytes=0-1.5",
        "bytes=0 - 1",
        "bytes= =0-1",
        "bytes =0-1",
        "bytes:0-1",
        "bytes=0-1;2-3",
        "bytes=0-1,x",
        "bytes=0-1,5-4",
        "bytes=\u0661-\u0662",
        "bytes=0-1\n",
        "items=0-1",
        "0-1",
        "bytes=0-1,bytes=3-4",
        "bytes=0-1,0-1",
        "bytes=0-5,5-9",
        "bytes=5-9,0-5",
        "bytes=0-,5-6",
        "bytes=-1,-2",
        "bytes=0-9,2-3,20-21",
        "bytes=" + ",".join(f"{n}-{n}" for n in range(0, 22, 2)),
    ],
)
def test_anything_else_means_the_whole(header):
    assert parse(header) is None


@pytest.mark.parametrize(
    ("header", "size", "slices"),
    [
        ("bytes=0-0", 10, [(0, 0)]),
        ("bytes=0-9", 10, [(0, 9)]),
        ("bytes=0-", 10, [(0, 9)]),
        ("bytes=3-5", 10, [(3, 5)]),
        ("bytes=9-9", 10, [(9, 9)]),
        ("bytes=9-", 10, [(9, 9)]),
        ("bytes=5-99", 10, [(5, 9)]),
        ("bytes=0-" + "9" * 40, 10, [(0, 9)]),
        ("bytes=-1", 10, [(9, 9)]),
        ("bytes=-10", 10, [(0, 9)]),
        ("bytes=-11", 10, [(0, 9)]),
        ("bytes=-" + "9" * 40, 10, [(0, 9)]),
        ("bytes=0-1,8-9", 10, [(0, 1), (8, 9)]),
        ("bytes=8-9,0-1", 10, [(8, 9), (0, 1)]),
        ("bytes=0-1,-2", 10, [(0, 1), (8, 9)]),
        ("bytes=0-1,20-30", 10, [(0, 1)]),
        ("bytes=0-1,-0", 10, [(0, 1)]),
        ("bytes=0-8,-2", 10, None),
        ("bytes=2-,-2", 10, None),
        ("bytes=-5", 0, None),
        ("bytes=0-,-5", 0, None),
    ],
)
def test_ranges_resolve_to_slices_or_the_whole(header, size, slices):
    ranges = parse(header)

    resolved = resolve(ranges, size)

    assert resolved == (slices and tuple(Slice(*part) for part in slices))


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("bytes=10-", 10),
        ("bytes=10-20", 10),
        ("bytes=-0", 10),
        ("bytes=20-30,40-", 10),
        ("bytes=" + "9" * 40 + "-", 10),
        ("bytes=0-", 0),
        ("bytes=0-0", 0),
        ("bytes=-0", 0),
    ],
)
def test_a_range_without_bytes_is_not_satisfiable_and_the_size_is_reported(header, size):
    ranges = parse(header)

    with pytest.raises(RangeNotSatisfiable) as refusal:
        resolve(ranges, size)

    assert refusal.value.extra == {"size": size}


@pytest.mark.parametrize("header", ["bytes=0-0", "bytes=500-", "bytes=-500", "bytes=0-1,3-4,-1"])
def test_ranges_are_spelt_as_they_were_asked(header):
    assert range_header(parse(header)) == header


def test_content_ranges_are_spelt_as_the_rfc_says():
    assert content_range(0, 499, 1234) == "bytes 0-499/1234"
    assert content_range(0, 499, None) == "bytes 0-499/*"
    assert unsatisfied_range(1234) == "bytes */1234"


@pytest.mark.parametrize(
    ("header", "part", "total"),
    [
        ("bytes 0-499/1234", (0, 499), 1234),
        ("Bytes 0-499/1234", (0, 499), 1234),
        (" bytes 0-499/1234 ", (0, 499), 1234),
        ("bytes 42-1233/*", (42, 1233), None),
        ("bytes */1234", None, 1234),
        ("bytes */0", None, 0),
    ],
)
def test_a_content_range_is_read(header, part, total):
    assert parse_content_range(header) == ContentRange(part and Slice(*part), total)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "bytes",
        "bytes 0-499",
        "bytes=0-499/1234",
        "bytes 499-0/1234",
        "bytes 0-1234/1234",
        "bytes 0-0/0",
        "bytes */*",
        "bytes 0-/10",
        "bytes -5/10",
        "bytes a-b/c",
        "items 0-1/2",
        "bytes 0-1/2, bytes 0-1/2",
        "bytes 0-" + "9" * 5000 + "/*",
    ],
)
def test_a_content_range_that_contradicts_itself_is_none(header):
    assert parse_content_range(header) is None


BODY = bytes(range(256))
POSITIONS = st.integers(0, 300)


@given(size=st.integers(1, 256), first=POSITIONS, extent=st.integers(0, 300))
def test_slices_from_a_range_are_those_of_python(size, first, extent):
    file = BODY[:size]
    last = min(first, size - 1) + extent

    [part] = resolve(parse(f"bytes={min(first, size - 1)}-{last}"), size)

    assert file[part.start : part.end + 1] == file[min(first, size - 1) : last + 1]
    assert part.length == len(file[min(first, size - 1) : last + 1])


@given(size=st.integers(1, 256), length=st.integers(1, 300))
def test_the_last_bytes_are_those_of_python(size, length):
    file = BODY[:size]

    [part] = resolve(parse(f"bytes=-{length}"), size)

    assert file[part.start : part.end + 1] == file[-length:]


@given(header=st.text() | st.from_regex(r"bytes=[0-9 ,\-]{0,40}", fullmatch=True))
def test_no_header_breaks_the_reading(header):
    ranges = parse(header)

    assert ranges is None or parse(range_header(ranges)) == ranges
