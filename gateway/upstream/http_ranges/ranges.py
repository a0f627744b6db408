"""Byte ranges (RFC 9110 §14): parses Range and Content-Range, resolves ranges against a file's size or a part of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from multidict import CIMultiDict

from gateway.errors import ConflictingRange, RangeNotSatisfiable, UpstreamInvalidResponse

#: ranges in one request beyond which the whole is given (§14.2 warns of many small or overlapping ones)
MAX_RANGES = 10
#: the value of every number of more than 19 digits; no file is so long, and int() refuses thousands of digits
BEYOND = 10**19

_RANGE = re.compile(r"([0-9]*)-([0-9]*)")
_CONTENT_RANGE = re.compile(r"bytes +(?:([0-9]{1,19})-([0-9]{1,19})|\*)/([0-9]{1,19}|\*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """Bytes of a file by position, both ends included, as on the wire."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """How many bytes it holds, at least one."""
        return self.end - self.start + 1


@dataclass(frozen=True, slots=True)
class ByteRange:
    """One range as asked: `first-last`, `first-` (no last), or `-last` for the last so many bytes (no first)."""

    first: int | None
    last: int | None

    def within(self, size: int) -> Slice | None:
        """The range's bytes in a file of this size, or None if the file has none of them."""
        if self.first is None:
            length = min(self.last or 0, size)
            return Slice(size - length, size - 1) if length else None
        end = size - 1 if self.last is None else min(self.last, size - 1)
        return Slice(self.first, end) if self.first < size else None

    def __str__(self) -> str:
        return f"{'' if self.first is None else self.first}-{'' if self.last is None else self.last}"


@dataclass(frozen=True, slots=True)
class ContentRange:
    """A parsed Content-Range: the bytes (None for `*`: not satisfiable) and the total size (None if unknown)."""

    bytes: Slice | None
    total: int | None


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Which bytes the client asks for, and on which conditions; the default is the whole file, unconditionally."""

    ranges: tuple[ByteRange, ...] | None = None
    if_range: str | None = None
    if_none_match: str | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str], *, method: str = "GET", range_header: str | None = None) -> "RangeRequest":
        """From a request's headers and its `range_header` param; raises ConflictingRange."""
        headers = CIMultiDict(headers)
        given = [*headers.getall("Range", ()), *([] if range_header is None else [range_header])]
        if len({each.strip() for each in given}) > 1:
            raise ConflictingRange("the Range header and params.range_header differ; send one of them, once")
        stated = given[0] if given else None
        byte_ranges = None if method == "HEAD" else parse(stated)  # §14.2: HEAD has no ranges
        return cls(byte_ranges, headers.get("If-Range"), headers.get("If-None-Match"))

    def upstream_headers(self, *, ranged: bool = True) -> dict[str, str]:
        """The headers for the request to the application, with `identity` coding; `ranged=False` omits the range."""
        spelt = range_header(self.ranges) if self.ranges and ranged else None
        headers = {
            "Accept-Encoding": "identity",
            "Range": spelt,
            "If-Range": self.if_range if spelt else None,
            "If-None-Match": self.if_none_match,
        }
        return {name: value for name, value in headers.items() if value is not None}


def parse(header: str | None) -> tuple[ByteRange, ...] | None:
    """The ranges of a Range header; None for the whole: absent, malformed, other units, too many or overlapping."""
    unit, _, specs = (header or "").strip(" \t").partition("=")
    if unit.lower() != "bytes":
        return None
    # §5.6.1: empty members of a list are ignored
    ranges = [_parse_one(spec) for spec in (member.strip(" \t") for member in specs.split(",")) if spec]
    readable = tuple(byte_range for byte_range in ranges if byte_range is not None)
    if not readable or len(readable) < len(ranges) or len(readable) > MAX_RANGES or _certainly_overlap(readable):
        return None
    return readable


def range_header(ranges: Sequence[ByteRange]) -> str:
    """The Range header that asks for these ranges, in normal form."""
    return f"bytes={','.join(map(str, ranges))}"


def resolve(ranges: Sequence[ByteRange], size: int) -> tuple[Slice, ...] | None:
    """The requested slices, in order; None for the whole file. Raises RangeNotSatisfiable, with `size` in `extra`."""
    slices = tuple(slice_ for byte_range in ranges if (slice_ := byte_range.within(size)))
    if slices:
        return None if _overlap(slices) else slices
    # The last n bytes of an empty file are satisfiable (§14.1.2), yet Content-Range cannot express an empty range.
    if size == 0 and any(byte_range.first is None and byte_range.last for byte_range in ranges):
        return None
    raise RangeNotSatisfiable(f"the file has {size} bytes and none of those asked for", extra={"size": size})


def resolve_in_part(ranges: Sequence[ByteRange], content_range: ContentRange, part: Slice) -> Slice:
    """The bytes of the part that answer the request, beginning with the first requested byte."""
    fitting = [
        Slice(requested.start, min(requested.end, part.end))
        for requested in (_requested_slice(one, content_range, part) for one in ranges)
        if requested is not None and part.start <= requested.start <= part.end
    ]
    if not fitting:
        raise UpstreamInvalidResponse("the application sent other bytes of the file than the requested ones")
    # One part for several ranges is the application's choice (§15.3.7.2), and its headers say which part it is.
    return fitting[0] if len(ranges) == 1 else part


def content_range(start: int, end: int, total: int | None) -> str:
    """The Content-Range of a part (§14.4); both ends included, total None when unknown."""
    return f"bytes {start}-{end}/{'*' if total is None else total}"


def part_headers(part: Slice, total: int | None) -> dict[str, str]:
    """The headers of a response that is one part of a file; `total` None when unknown."""
    return {"Content-Length": str(part.length), "Content-Range": content_range(part.start, part.end, total)}


def unsatisfied_range(size: int) -> str:
    """The Content-Range that goes with 416 (§15.5.17)."""
    return f"bytes */{size}"


def parse_content_range(header: str | None) -> ContentRange | None:
    """Parse a Content-Range; None if it is absent, malformed or contradicts itself."""
    match = _CONTENT_RANGE.fullmatch((header or "").strip(" \t"))
    if match is None:
        return None
    start, end, size = match.groups()
    total = None if size == "*" else int(size)
    if start is None:
        return None if total is None else ContentRange(None, total)
    part = Slice(int(start), int(end))
    is_sound = part.start <= part.end and (total is None or part.end < total)
    return ContentRange(part, total) if is_sound else None


def _requested_slice(byte_range: ByteRange, content_range: ContentRange, part: Slice) -> Slice | None:
    """The requested bytes; if the total is unknown, a suffix range is the part that the application sent."""
    if content_range.total is not None:
        return byte_range.within(content_range.total)
    if byte_range.first is None:
        return part if part.length <= (byte_range.last or 0) else None
    return Slice(byte_range.first, part.end if byte_range.last is None else byte_range.last)


def _parse_one(spec: str) -> ByteRange | None:
    match = _RANGE.fullmatch(spec)
    if match is None or spec == "-":
        return None
    first, last = (_number(digits) for digits in match.groups())
    is_backwards = first is not None and last is not None and first > last
    return None if is_backwards else ByteRange(first, last)


def _number(digits: str) -> int | None:
    if not digits:
        return None
    significant = digits.lstrip("0")
    return BEYOND if len(significant) > 19 else int(significant or "0")


def _certainly_overlap(ranges: Sequence[ByteRange]) -> bool:
    """Whether the ranges overlap for every file size; two suffixes always do."""
    suffixes = [byte_range for byte_range in ranges if byte_range.first is None]
    slices = [
        Slice(byte_range.first, BEYOND if byte_range.last is None else byte_range.last)
        for byte_range in ranges
        if byte_range.first is not None
    ]
    return len(suffixes) > 1 or _overlap(slices)


def _overlap(slices: Sequence[Slice]) -> bool:
    ordered = sorted(slices)
    return any(later.start <= earlier.end for earlier, later in pairwise(ordered))
