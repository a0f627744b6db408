"""Ranges of stored results."""

import pytest

from gateway.agents.tools.ranges import part_of_records, part_of_text


async def pieces(*each):
    for piece in each:
        yield piece


LINES = ('{"id":1}\n{"id":2}\n', '{"id":3}\n')


@pytest.mark.parametrize(
    ("offset", "limit", "data", "total", "is_last"),
    [
        (0, None, '{"id":1}\n{"id":2}\n{"id":3}', 3, True),
        (0, 2, '{"id":1}\n{"id":2}', None, False),
        (1, 2, '{"id":2}\n{"id":3}', 3, True),
        (2, 5, '{"id":3}', 3, True),
        (3, 5, "", 3, True),
        (0, 0, "", None, False),
    ],
)
async def test_records_are_read_by_offset_and_limit(offset, limit, data, total, is_last):
    part = await part_of_records(pieces(*LINES), offset, limit)

    assert (part.data, part.total, part.is_last) == (data, total, is_last)


async def test_separators_that_json_allows_within_texts_do_not_end_a_record():
    lines = ('{"body":"a\u2028b\u2029c\x85d"}\n', '{"body":"e"}\n')

    first, second = await part_of_records(pieces(*lines), 0, 1), await part_of_records(pieces(*lines), 1, 1)

    assert (first.data, first.count, first.is_last) == (lines[0].rstrip("\n"), 1, False)
    assert (second.data, second.total, second.is_last) == (lines[1].rstrip("\n"), 2, True)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
async def test_text_is_read_in_parts_of_whole_characters(size):
    whole = '{"name":"Zoë","note":"日本"}'
    encoded, read, offset = whole.encode(), "", 0

    while offset < len(encoded):
        part = await part_of_text(pieces(encoded[:9], encoded[9:]), offset, size)
        read, offset = read + part.data, offset + part.count

    assert (read, part.is_last, part.total) == (whole, True, len(encoded))
