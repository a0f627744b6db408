"""Decides the response to a request for a file before a byte is sent, and checks what the application answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multidict import CIMultiDict

from gateway.errors import RangeNotSatisfiable, UpstreamInvalidResponse
from gateway.upstream.http_ranges import ranges
from gateway.upstream.http_ranges.headers import (
    as_stored,
    content_length,
    if_range_matches,
    is_multipart,
    is_not_modified,
    representation_headers,
)
from gateway.upstream.http_ranges.multipart import Multipart
from gateway.upstream.http_ranges.ranges import ByteRange, ContentRange, RangeRequest, Slice


@dataclass(frozen=True, slots=True)
class StatedBody:
    """The application's headers about its body; None for a missing one."""

    #: the Content-Length
    length: int | None = None
    content_range: ContentRange | None = None
    #: whether it is parts of a file, each with headers of its own
    is_in_parts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResponse:
    """The response to send from an application's body."""

    status: int
    headers: Mapping[str, str]
    #: the application's headers about its body
    stated: StatedBody
    #: bytes to read and drop from the beginning of its body
    skip: int = 0
    #: bytes to send after those; None for the rest of the body
    length: int | None = None


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """The response to send from a stored file: framing bytes and slices to read."""

    status: int
    headers: Mapping[str, str]
    body: Sequence[bytes | Slice] = ()


def relayed_reply(
    range_request: RangeRequest,
    status: int,
    headers: Mapping[str, str],
    *,
    size: int | None = None,
    ranged: bool = True,
) -> FileResponse | None:
    """The response, given the application's status and headers (names in any case).

    `size` is the file's size in the application's record, `ranged` whether the request had a range. None: send the
    request again without one. Raises RangeNotSatisfiable, and UpstreamInvalidResponse for contradictory headers.
    """
    headers = CIMultiDict(headers)
    length, content_range = content_length(headers), ranges.parse_content_range(headers.get("Content-Range"))
    file_headers = representation_headers(headers)
    if size is not None and size == (length if content_range is None else content_range.total):
        file_headers = as_stored(file_headers)
    if status in (200, 206) and is_not_modified(range_request.if_none_match, headers.get("ETag")):
        status = 304
    stated = StatedBody(length, content_range, is_multipart(file_headers))
    byte_ranges = range_request.ranges if ranged else None
    match status:
        case 200:
            return _reply_from_complete(range_request, headers, file_headers, stated, size)
        case 206 if byte_ranges:
            return _reply_from_part(byte_ranges, range_request, headers, file_headers, stated)
        case 304 if range_request.if_none_match:
            return FileResponse(status=304, headers=_validators(file_headers), stated=stated, length=0)
        case 416 if byte_ranges:
            _judge_refusal(byte_ranges, range_request, stated, size)
            return None
    raise UpstreamInvalidResponse(f"the application answered a download with the unexpected status {status}")


def stored_reply(range_request: RangeRequest, size: int, file_headers: Mapping[str, str]) -> StoredResponse:
    """The response from a stored file of this size with these headers; raises RangeNotSatisfiable."""
    if is_not_modified(range_request.if_none_match, file_headers.get("ETag")):
        return StoredResponse(304, _validators(file_headers))
    slices = _slices(range_request, file_headers, size)
    headers = {**file_headers, "Accept-Ranges": "bytes"}
    if slices is None:
        complete = [Slice(0, size - 1)] if size else []
        return StoredResponse(200, headers | {"Content-Length": str(size)}, complete)
    if len(slices) == 1:
        return StoredResponse(206, headers | ranges.part_headers(slices[0], size), slices)
    parts = Multipart(slices, size, file_headers["Content-Type"])
    several = {"Content-Type": parts.header, "Content-Length": str(parts.length)}
    return StoredResponse(206, headers | several, tuple(parts.body()))


def _reply_from_complete(
    range_request: RangeRequest,
    headers: Mapping[str, str],
    file_headers: dict[str, str],
    stated: StatedBody,
    size: int | None,
) -> FileResponse:
    """206 with a part of the body if one range is requested and the length is known; else 200 (§14.2)."""
    complete = stated.length
    if complete is None and "Content-Encoding" not in file_headers:  # a record states the size of the plain bytes
        complete = size
    _refuse_part_as_complete(stated, complete)
    if complete is None:
        return FileResponse(
            status=200,
            headers=file_headers | {"Accept-Ranges": "bytes" if _takes_ranges(headers) else "none"},
            stated=stated,
        )
    ranged_headers = file_headers | {"Accept-Ranges": "bytes"}
    slices = _slices(range_request, file_headers, complete)
    if slices is None or len(slices) > 1:
        return FileResponse(
            status=200, headers=ranged_headers | {"Content-Length": str(complete)}, stated=stated, length=complete
        )
    part = slices[0]
    return FileResponse(
        status=206,
        headers=ranged_headers | ranges.part_headers(part, complete),
        stated=stated,
        skip=part.start,
        length=part.length,
    )


def _reply_from_part(
    byte_ranges: Sequence[ByteRange],
    range_request: RangeRequest,
    headers: Mapping[str, str],
    file_headers: dict[str, str],
    stated: StatedBody,
) -> FileResponse | None:
    # An application may ignore If-Range. A part without the client's validator may be of a newer file.
    if not if_range_matches(range_request.if_range, file_headers):
        return None
    ranged_headers = file_headers | {"Accept-Ranges": "bytes"}
    if len(byte_ranges) > 1 and stated.is_in_parts and "Content-Range" not in headers:
        length = {} if stated.length is None else {"Content-Length": str(stated.length)}
        return FileResponse(status=206, headers=ranged_headers | length, stated=stated, length=stated.length)
    content_range = stated.content_range
    if content_range is None or content_range.bytes is None or stated.is_in_parts:
        raise UpstreamInvalidResponse("the application sent a part of the file without a valid Content-Range")
    if stated.length not in (None, content_range.bytes.length):
        raise UpstreamInvalidResponse("the length of the part that the application sent differs from its Content-Range")
    relayed = ranges.resolve_in_part(byte_ranges, content_range, content_range.bytes)
    skip = relayed.start - content_range.bytes.start
    part_headers = ranges.part_headers(relayed, content_range.total)
    return FileResponse(
        status=206, headers=ranged_headers | part_headers, stated=stated, skip=skip, length=relayed.length
    )


def _judge_refusal(
    byte_ranges: Sequence[ByteRange], range_request: RangeRequest, stated: StatedBody, size: int | None
) -> None:
    """Raise RangeNotSatisfiable if the file's size confirms the 416; otherwise the caller requests the whole file."""
    if range_request.if_range is not None:  # the file may have changed, and then the client needs the whole file
        return
    total = stated.content_range.total if stated.content_range is not None else size
    if total is None:
        raise RangeNotSatisfiable("the application has none of the requested bytes")
    ranges.resolve(byte_ranges, total)


def _slices(range_request: RangeRequest, file_headers: Mapping[str, str], size: int) -> tuple[Slice, ...] | None:
    if not range_request.ranges or not if_range_matches(range_request.if_range, file_headers):
        return None
    return ranges.resolve(range_request.ranges, size)


def _refuse_part_as_complete(stated: StatedBody, complete: int | None) -> None:
    content_range = stated.content_range
    if content_range is None or content_range.bytes is None:
        return
    if (
        content_range.bytes.start
        or content_range.total != content_range.bytes.length
        or complete not in (None, content_range.total)
    ):
        raise UpstreamInvalidResponse("the application sent only a part of the file, with the status of a complete one")


def _takes_ranges(headers: Mapping[str, str]) -> bool:
    return headers.get("Accept-Ranges", "").strip().lower() == "bytes"


def _validators(file_headers: Mapping[str, str]) -> dict[str, str]:
    return {name: file_headers[name] for name in ("ETag", "Last-Modified") if name in file_headers}
