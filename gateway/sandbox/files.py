"""Files of any size without storing any: the number of a file says how long it is and what its bytes are."""

import hashlib
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

MIB = 1 << 20
#: numbers below the first are sizes in MiB, those below the second in bytes; above it the rest is, so that any
#: size has a number: 64 is 64 MiB, 498483 is as many bytes, 1000000100 is 100 bytes
_BYTES_FROM, _REST_FROM = 10_000, 1_000_000_000
_DIGITS = 10
#: bytes handed to the socket at a time
_CHUNK = 256 << 10
#: a prime, so that no two MiB of a file are alike: a swapped or repeated chunk changes the checksum
_PERIOD = 1_048_573
_LAST_MODIFIED = datetime(2025, 10, 1, 12, 0, 0, tzinfo=UTC)
_PATTERN = memoryview(random.Random("sandbox files").randbytes(_PERIOD) * 2)  # noqa: S311 - not a secret


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `first` up to, not including, `end`."""

    first: int
    end: int


class Unsatisfiable(Exception):
    """No byte of the file lies in the range asked for."""


def is_number(text: str) -> bool:
    """Whether an id is the number of a file rather than a name of the application's own making."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def size_of(number: int) -> int:
    """Bytes of the file with a number."""
    if number < _BYTES_FROM:
        return number * MIB
    return number if number < _REST_FROM else number - _REST_FROM


def number_for(size: int) -> int:
    """The number of a file of this many bytes."""
    return _REST_FROM + size


def chunks(number: int, span: Span) -> Iterator[memoryview]:
    """The bytes of a span, a chunk at a time."""
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
    """The application's metadata of a file."""
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
    """Whether an If-Range names the file as it is: its ETag, or exactly its date (RFC 9110 §13.1.5)."""
    if condition is None or condition == etag_of(number):
        return True
    try:
        return parsedate_to_datetime(condition) == _LAST_MODIFIED
    except ValueError:
        return False
