"""Ranges of what is kept, read a piece at a time, whatever its size."""

from collections.abc import AsyncIterator, Callable
from itertools import islice

from gateway.agent_tools.backend import Part
from gateway.http_ranges.ranges import Slice

#: records, and bytes of anything else, that one read answers unless told otherwise, and at most
_RECORDS, _MAX_RECORDS = 100, 1000
_BYTES, _MAX_BYTES = 65_536, 1 << 20
_TEXTUAL = ("text/", "application/json", "application/xml", "application/x-ndjson")


async def part_of_records(lines: AsyncIterator[str], offset: int, limit: int | None) -> Part:
    """Records of a list, one a line (NDJSON)."""
    count = min(_RECORDS if limit is None else limit, _MAX_RECORDS)
    taken: list[str] = []
    seen, is_last = 0, True
    async for part in lines:
        rows = part.splitlines()
        taken += islice(rows, max(offset - seen, 0), max(offset + count - seen, 0))
        seen += len(rows)
        if seen > offset + count:
            is_last = False
            break
    data = "\n".join(taken)
    return Part(data, "application/x-ndjson", offset, len(taken), seen if is_last else None, is_last)


async def part_of_text(pieces: AsyncIterator[bytes], offset: int, limit: int | None) -> Part:
    """Bytes of a JSON document; a character that a boundary would cut belongs to the part in which it begins."""
    count = min(_BYTES if limit is None else limit, _MAX_BYTES)
    whole, seen = bytearray(), 0
    async for piece in pieces:
        whole += piece[max(offset - seen, 0) : max(offset + count + 4 - seen, 0)]
        seen += len(piece)
    end = count
    while end < len(whole) and _continues(whole[end]):
        end += 1
    data = bytes(whole[:end])
    return Part(data.decode(errors="replace"), "application/json", offset, len(data), seen, offset + len(data) >= seen)


async def part_of_file(
    size: int, media_type: str, offset: int, limit: int | None, read: Callable[[Slice], AsyncIterator[bytes]]
) -> Part:
    """Bytes of a file; `read` gives those of a slice."""
    count = min(_BYTES if limit is None else limit, _MAX_BYTES)
    end = min(offset + count, size)
    data = b"".join([piece async for piece in read(Slice(offset, end - 1))]) if end > offset else b""
    return Part(_text(data, media_type), media_type, offset, len(data), size, end >= size)


def _text(data: bytes, media_type: str) -> str | bytes:
    """Text as text where it is whole characters of UTF-8."""
    if not media_type.startswith(_TEXTUAL):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80
