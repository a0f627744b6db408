"""Long answers read in parts by the tool `read`."""

import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from gateway.agents.tools.addresses import ResultAddress
from gateway.agents.tools.backend import Part
from gateway.agents.tools.ranges import part_of_file, part_of_records, part_of_text
from gateway.agents.tools.stored_results import StoredResults
from gateway.errors import InvalidParams


async def pieces(*each: Any):
    for piece in each:
        yield piece


class Stored:
    """A backend with one result."""

    def __init__(self, content: Any, media_type: str | None = None) -> None:
        self._content = content
        self._media_type = media_type

    async def part(self, caller: Any, result_id: str, offset: int, limit: int | None) -> Part:
        if self._media_type is not None:
            content = self._content
            return await part_of_file(
                len(content), self._media_type, offset, limit, lambda part: pieces(content[part.start : part.end + 1])
            )
        if isinstance(self._content, list):
            lines = "".join(msgspec.json.encode(record).decode() + "\n" for record in self._content)
            return await part_of_records(pieces(lines), offset, limit)
        return await part_of_text(pieces(msgspec.json.encode(self._content)), offset, limit)


async def read(stored: Stored, **arguments: Any) -> dict[str, Any]:
    results: Any = StoredResults(stored)  # type: ignore[arg-type]
    result = await results.read(SimpleNamespace(caller=None), {"operation": "gateway://results/r", **arguments})
    document: dict[str, Any] = msgspec.json.decode(result["structuredContent"])
    return document


ROWS = [{"id": number, "body": "b" * 300} for number in range(10)]


async def test_records_are_read_up_to_max_bytes_and_the_hint_is_the_next_call():
    part = await read(Stored(ROWS), offset=2, max_bytes=700)

    assert part["result"] == ROWS[2:4]
    assert part["hint"] == 'next part: read {"operation":"gateway://results/r","offset":4,"max_bytes":700}'


async def test_a_record_may_have_separators_within_its_texts():
    rows = [{"body": "line\u2028separator"}, {"body": "next\x85line"}]

    assert await read(Stored(rows)) == {"offset": 0, "result": rows}


async def test_the_last_part_has_no_hint():
    assert await read(Stored(ROWS), offset=8) == {"offset": 8, "result": ROWS[8:]}


async def test_an_offset_after_the_last_record_is_an_empty_last_part():
    assert await read(Stored(ROWS), offset=10**30) == {"offset": 10**30, "result": []}


async def test_selected_fields_are_not_shortened():
    part = await read(Stored([{"id": 1, "body": "b" * 5000}] * 2), fields=["body"], max_bytes=500)

    assert part["result"] == [{"body": "b" * 5000}]
    assert '"fields":["body"]' in part["hint"]


async def test_a_record_that_is_too_long_is_shortened_with_advice():
    part = await read(Stored([{"id": 1, "body": "b" * 5000}] * 2), max_bytes=500)

    assert len(part["result"][0]["body"]) < 300
    assert "name fields" in part["shortened"]


async def test_the_error_for_an_unknown_field_names_the_nearest():
    with pytest.raises(InvalidParams, match="body"):
        await read(Stored(ROWS), fields=["bdy"])


async def test_a_document_is_returned_whole_if_it_fits_else_as_text_in_parts():
    document = {"id": 1, "body": "b" * 900}

    assert (await read(Stored(document)))["result"] == document
    part = await read(Stored(document), max_bytes=500)
    assert len(part["text"]) == 500
    assert '"offset":500' in part["hint"]
    assert (await read(Stored(document), max_bytes=500, fields=["id"]))["result"] == {"id": 1}


@pytest.mark.parametrize(
    ("content", "media_type", "member", "expected"),
    [
        (b"name,age", "text/csv", "text", "name"),
        (b"\x89PNG\r\n", "image/png", "base64", "iVBORw=="),
        (b'{"id":1}\n{"id":2}\n', "application/x-ndjson", "text", '{"id'),
        (b"[1,", "application/json", "text", "[1,"),
    ],
)
async def test_a_file_is_text_or_base64(content, media_type, member, expected):
    part = await read(Stored(content, media_type), limit=4)

    assert (part[member], part["bytes"], part["media_type"]) == (expected, len(content), media_type)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("gateway://kinds/r", "not the address of a result"),
        ("gateway://results/r?offset=-1", "at least 0"),
        ("gateway://results/r?limit=0", "at least 1"),
        ("gateway://results/r?limit=" + "9" * 5000, "up to 15 digits"),
    ],
)
def test_a_uri_that_is_not_of_a_result_is_refused(uri, words):
    with pytest.raises(InvalidParams, match=words):
        ResultAddress.of(uri)


def test_a_uri_may_have_a_range():
    assert ResultAddress.of("gateway://results/r?offset=20&limit=5") == ResultAddress("r", 20, 5)


async def test_a_field_that_no_record_has_is_compared_with_some_names_of_a_record_only():
    wide = {f"{number * 7919:x}": number for number in range(200_000)}
    started = time.process_time()

    with pytest.raises(InvalidParams, match="no record has nothing; ") as refused:
        await read(Stored([wide]), fields=["nothing"])

    assert len(refused.value.detail) < 20_000
    assert time.process_time() - started < 5.0
