"""Generated files of any size: the number of a file determines its size and its bytes; nothing is stored."""

import hashlib
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

MIB = 1 << 20
#: numbers below the first are sizes in MiB, numbers below the second are sizes in bytes; for larger numbers the size is
#: the number minus the second, so that any size has a number: 64 is 64 MiB, 498483 is as many bytes, 1000000100 is 100
_BYTES_FROM, _REST_FROM = 10_000, 1_000_000_000
_DIGITS = 10
#: bytes of one chunk
_CHUNK = 256 << 10
#: bytes of the repeated pattern; a prime, so that no two MiB of a file are equal and a swapped or repeated chunk
#: changes the checksum
_PERIOD = 1_048_573
_LAST_MODIFIED = datetime(2025, 10, 1, 12, 0, 0, tzinfo=UTC)
_PATTERN = memoryview(random.Random("sandbox files").randbytes(_PERIOD) * 2)  # noqa: S311 - not a secret


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from `first` up to but not including `end`."""

    first: int
    end: int


class Unsatisfiable(Exception):
    """The requested range has no byte of the file."""


def is_number(text: str) -> bool:
    """Whether an id is the number of a file, not an id of the application's records."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def size_of(number: int) -> int:
    """The size in bytes of the file with a number."""
    if number < _BYTES_FROM:
        return number * MIB
    return number if number < _REST_FROM else number - _REST_FROM


def number_for(size: int) -> int:
    """The number of a file of this many bytes."""
    return _REST_FROM + size


def chunks(number: int, span: Span) -> Iterator[memoryview]:
    """The bytes of a span in chunks."""
    for start in range(span.first, span.end, _CHUNK):
        at = (start + number) % _PERIOD
        yield _PATTERN[at : at + min(_CHUNK, span.end - start)]


def sha256_of(number: int) -> str:
    digest = hashlib.sha256()
    for chunk in chunks(number, Span(0, size_of(number))):
        digest.update(chunk)
    return digest.hexdigest()


def etag_of(number: int) -> str:
    return f'"sandbox-{number}"'


def headers_of(number: int, name: str) -> dict[str, str]:
    """The response headers that describe a file."""
    return {
        "ETag": etag_of(number),
        "Last-Modified": format_datetime(_LAST_MODIFIED, usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{name}"',
    }


def requested_span(headers: Mapping[str, str], number: int) -> Span | None:
    """The one range of a request (RFC 9110 §14), or None for the complete file; raises Unsatisfiable."""
    size = size_of(number)
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", headers.get("range", "").replace(" ", ""))
    if match is None or match.group(0) == "bytes=-" or not _is_current(headers.get("if-range"), number):
        return None
    first, last = match.groups()
    if first == "":
        first, last = str(max(0, size - int(last))), ""
        if size == 0 or int(match.group(2)) == 0:
            raise Unsatisfiable
    if last != "" and int(last) < int(first):
        return None
    if int(first) >= size:
        raise Unsatisfiable
    return Span(int(first), min(size, int(last) + 1) if last else size)


def _is_current(condition: str | None, number: int) -> bool:
    """Whether an If-Range matches the file: its ETag or exactly its date (RFC 9110 §13.1.5); true without If-Range."""
    if condition is None or condition == etag_of(number):
        return True
    try:
        return parsedate_to_datetime(condition) == _LAST_MODIFIED
    except ValueError:
        return False
