"""What to answer to a request for a file: decided before a byte is sent, truthful whatever the application answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multidict import CIMultiDict

from gateway.errors import ConflictingRange, RangeNotSatisfiable, UpstreamInvalidResponse
from gateway.http_ranges import ranges
from gateway.http_ranges.headers import if_range_matches, is_not_modified, labels
from gateway.http_ranges.multipart import Multipart
from gateway.http_ranges.ranges import ByteRange, ContentRange, Slice


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Which bytes the client asks for, and on which conditions; the default is the whole file, in any case."""

    ranges: tuple[ByteRange, ...] | None = None
    if_range: str | None = None
    if_none_match: str | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str], *, method: str = "GET", range_header: str | None = None) -> "RangeRequest":
        """What a request's headers and its `range_header` param ask; raises ConflictingRange."""
        headers = CIMultiDict(headers)
        stated = headers.get("Range", range_header)
        if range_header is not None and range_header.strip() != (stated or "").strip():
            raise ConflictingRange("the Range header and params.range_header differ; send one of them")
        asked = None if method == "HEAD" else ranges.parse(stated)  # §14.2: HEAD has no ranges
        return cls(asked, headers.get("If-Range"), headers.get("If-None-Match"))

    def upstream_headers(self, *, ranged: bool = True) -> dict[str, str]:
        """What the application is asked with, for plain bytes; `ranged=False` asks it for the whole."""
        range_header = ranges.range_header(self.ranges) if self.ranges and ranged else None
        found = {
            "Accept-Encoding": "identity",
            "Range": range_header,
            "If-Range": self.if_range if range_header else None,
            "If-None-Match": self.if_none_match,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class FileResponse:
    """The answer to give from an application's body."""

    status: int
    headers: Mapping[str, str]
    #: bytes to read and drop from the beginning of its body
    skip: int = 0
    #: bytes to send then, no more and, unless it was cut short, no less; None is all until its end
    length: int | None = None


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The answer to give from a stored file: framing as it is, and slices to read."""

    status: int
    headers: Mapping[str, str]
    pieces: Sequence[bytes | Slice] = ()


def relayed_reply(
    wanted: RangeRequest, status: int, headers: Mapping[str, str], *, size: int | None = None, ranged: bool = True
) -> FileResponse | None:
    """What to answer, given the application's status and headers, their names in any case.

    `size` is what its record states of the file, `ranged` whether it was asked with the range. None: ask it again
    without. Raises RangeNotSatisfiable, and UpstreamInvalidResponse for what contradicts itself or the request.
    """
    headers = CIMultiDict(headers)
    if status in (200, 206) and is_not_modified(wanted.if_none_match, headers.get("ETag")):
        status = 304
    asked = wanted.ranges if ranged else None
    match status:
        case 200:
            return _reply_from_whole(wanted, headers, size)
        case 206 if asked:
            return _reply_from_part(asked, wanted, headers)
        case 304 if wanted.if_none_match:
            return FileResponse(304, _validators(labels(headers)), length=0)
        case 416 if asked:
            _judge_refusal(asked, wanted, headers, size)
            return None
    raise UpstreamInvalidResponse(f"the application answered a download with status {status}, which was not asked for")


def stored_reply(wanted: RangeRequest, size: int, found: Mapping[str, str]) -> StoredResponse:
    """What to answer from a stored file of this size and labels; raises RangeNotSatisfiable."""
    if is_not_modified(wanted.if_none_match, found.get("ETag")):
        return StoredResponse(304, _validators(found))
    slices = _slices(wanted, found, size)
    headers = {**found, "Accept-Ranges": "bytes"}
    if slices is None:
        whole = [Slice(0, size - 1)] if size else []
        return StoredResponse(200, headers | {"Content-Length": str(size)}, whole)
    if len(slices) == 1:
        return StoredResponse(206, headers | _part_headers(slices[0], size), slices)
    parts = Multipart(slices, size, found["Content-Type"])
    several = {"Content-Type": parts.header, "Content-Length": str(parts.length)}
    return StoredResponse(206, headers | several, tuple(parts.pieces()))


def _reply_from_whole(wanted: RangeRequest, headers: Mapping[str, str], size: int | None) -> FileResponse:
    """A part of it where one range is asked and its length is known; several ranges get the whole (§14.2)."""
    found = labels(headers)
    is_coded = "Content-Encoding" in found
    complete = _content_length(headers)
    if complete is None and not is_coded:  # a record states the size of the plain bytes
        complete = size
    _refuse_part_as_whole(headers, complete)
    if complete is None:
        return FileResponse(200, found | {"Accept-Ranges": "bytes" if _takes_ranges(headers) else "none"})
    slices = _slices(wanted, found, complete)
    if slices is None or len(slices) > 1:
        return FileResponse(200, found | {"Accept-Ranges": "bytes", "Content-Length": str(complete)}, length=complete)
    part = slices[0]
    return FileResponse(
        206, found | {"Accept-Ranges": "bytes"} | _part_headers(part, complete), part.start, part.length
    )


def _reply_from_part(
    asked: Sequence[ByteRange], wanted: RangeRequest, headers: Mapping[str, str]
) -> FileResponse | None:
    found = labels(headers) | {"Accept-Ranges": "bytes"}
    # An application may ignore If-Range: a part that does not prove to be of the client's file is not given.
    if not _is_of_same_file(wanted, found):
        return None
    length = _content_length(headers)
    if len(asked) > 1 and is_multipart(found) and "Content-Range" not in headers:
        return FileResponse(206, found if length is None else found | {"Content-Length": str(length)}, length=length)
    got = ranges.parse_content_range(headers.get("Content-Range"))
    if got is None or got.bytes is None or is_multipart(found):
        raise UpstreamInvalidResponse("the application sent a part of the file without saying which")
    if length is not None and length != got.bytes.length:
        raise UpstreamInvalidResponse("the application sent a part of another length than it says")
    served = _served(asked, got, got.bytes)
    skip = served.start - got.bytes.start
    return FileResponse(206, found | _part_headers(served, got.total), skip, served.length)


def _judge_refusal(
    asked: Sequence[ByteRange], wanted: RangeRequest, headers: Mapping[str, str], size: int | None
) -> None:
    """Raises RangeNotSatisfiable where the file's size bears the refusal out; otherwise the whole can be asked for."""
    if wanted.if_range is not None:  # the file may be another by now, and then the whole of it is wanted
        return
    got = ranges.parse_content_range(headers.get("Content-Range"))
    total = got.total if got is not None else size
    if total is None:
        raise RangeNotSatisfiable("the application has none of the bytes asked for")
    ranges.resolve(asked, total)


def _slices(wanted: RangeRequest, found: Mapping[str, str], size: int) -> tuple[Slice, ...] | None:
    if not wanted.ranges or not _is_of_same_file(wanted, found):
        return None
    return ranges.resolve(wanted.ranges, size)


def _served(asked: Sequence[ByteRange], got: ContentRange, part: Slice) -> Slice:
    """What of the part answers the request: from the first byte asked for, as far as it reaches."""
    fitting = [
        Slice(meant.start, min(meant.end, part.end))
        for meant in (_meant(one, got, part) for one in asked)
        if meant is not None and part.start <= meant.start <= part.end
    ]
    if not fitting:
        raise UpstreamInvalidResponse("the application sent other bytes of the file than were asked for")
    # One part for several ranges is the application's choice (§15.3.7.2), and labelled as what it is.
    return fitting[0] if len(asked) == 1 else part


def _meant(asked: ByteRange, got: ContentRange, part: Slice) -> Slice | None:
    """The bytes asked for; where the total is unknown, a suffix is whatever the application says it is."""
    if got.total is not None:
        return asked.within(got.total)
    if asked.first is None:
        return part if part.length <= (asked.last or 0) else None
    return Slice(asked.first, part.end if asked.last is None else asked.last)


def _refuse_part_as_whole(headers: Mapping[str, str], complete: int | None) -> None:
    got = ranges.parse_content_range(headers.get("Content-Range"))
    if got is None or got.bytes is None:
        return
    if got.bytes.start or got.total != got.bytes.length or complete not in (None, got.total):
        raise UpstreamInvalidResponse("the application sent a part of the file as if it were the whole")


def _is_of_same_file(wanted: RangeRequest, found: Mapping[str, str]) -> bool:
    return if_range_matches(wanted.if_range, found.get("ETag"), found.get("Last-Modified"))


def is_multipart(headers: Mapping[str, str]) -> bool:
    """Whether a body is parts of a file, each with headers of its own."""
    return headers.get("Content-Type", "").lower().startswith("multipart/byteranges")


def _takes_ranges(headers: Mapping[str, str]) -> bool:
    return headers.get("Accept-Ranges", "").strip().lower() == "bytes"


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise UpstreamInvalidResponse("the application states a length that is no number")
    return int(text)


def _part_headers(part: Slice, total: int | None) -> dict[str, str]:
    return {"Content-Length": str(part.length), "Content-Range": ranges.content_range(part.start, part.end, total)}


def _validators(found: Mapping[str, str]) -> dict[str, str]:
    return {name: found[name] for name in ("ETag", "Last-Modified") if name in found}
