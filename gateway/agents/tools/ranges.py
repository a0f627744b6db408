"""Reads ranges of stored results and files, of limited size."""

from collections.abc import AsyncIterator, Callable

from gateway.agents.tools.backend import Part, ResultForm
from gateway.upstream.http_ranges.ranges import Slice

#: records of a range: the default and the maximum
_RECORDS, _MAX_RECORDS = 100, 1000
#: bytes of a range: the default and the maximum
_BYTES, _MAX_BYTES = 65_536, 1 << 20
#: media types of the records of a list, and of any other document
NDJSON, JSON = "application/x-ndjson", "application/json"
_TEXTUAL = ("text/", "application/json", "application/xml", "application/x-ndjson")


def lines_of(text: str) -> list[str]:
    """The lines of NDJSON. They end with a newline only: JSON allows U+2028 and other separators within texts."""
    return text.removesuffix("\n").split("\n") if text else []


async def part_of_records(lines: AsyncIterator[str], offset: int, limit: int | None) -> Part:
    """A range of the records of a list, as NDJSON; `lines` yields complete lines."""
    count = min(_RECORDS if limit is None else limit, _MAX_RECORDS)
    rows_of_part: list[str] = []
    position, is_last = 0, True
    async for part in lines:
        rows = lines_of(part)
        rows_of_part += rows[max(offset - position, 0) : max(offset + count - position, 0)]
        position += len(rows)
        if position > offset + count:
            is_last = False
            break
    data = "\n".join(rows_of_part)
    return Part(
        form=ResultForm.RECORDS,
        data=data,
        media_type=NDJSON,
        offset=offset,
        count=len(rows_of_part),
        total=position if is_last else None,
        is_last=is_last,
    )


async def part_of_text(chunks: AsyncIterator[bytes], offset: int, limit: int | None) -> Part:
    """A range of a JSON document, in bytes; a range ends after a whole character, so that it may be 3 bytes longer."""
    count = min(_BYTES if limit is None else limit, _MAX_BYTES)
    content, position = bytearray(), 0
    async for chunk in chunks:
        content += chunk[max(offset - position, 0) : max(offset + count + 4 - position, 0)]
        position += len(chunk)
    end = count
    while end < len(content) and _continues(content[end]):
        end += 1
    data = bytes(content[:end])
    text = data.decode(errors="replace")
    return Part(
        form=ResultForm.DOCUMENT,
        data=text,
        media_type=JSON,
        offset=offset,
        count=len(data),
        total=position,
        is_last=offset + len(data) >= position,
    )


async def part_of_file(
    size: int, media_type: str, offset: int, limit: int | None, read: Callable[[Slice], AsyncIterator[bytes]]
) -> Part:
    """A range of a file, in bytes; `read` returns the bytes of a slice."""
    count = min(_BYTES if limit is None else limit, _MAX_BYTES)
    end = min(offset + count, size)
    data = b"".join([chunk async for chunk in read(Slice(offset, end - 1))]) if end > offset else b""
    return Part(
        form=ResultForm.FILE,
        data=_text(data, media_type),
        media_type=media_type,
        offset=offset,
        count=len(data),
        total=size,
        is_last=end >= size,
    )


def _text(data: bytes, media_type: str) -> str | bytes:
    """The data as text, if the media type is textual and the bytes are complete UTF-8."""
    if not media_type.startswith(_TEXTUAL):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80
