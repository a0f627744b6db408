"""Files in JSON chunks, for callers that read only JSON: a range of bytes per call, as text or base64."""

import base64
import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.errors import FieldError, InvalidParams
from gateway.upstream.http_ranges.integrity import File

#: bytes of one chunk at most
LARGEST = 64 << 10
TEXT, BASE64 = "text", "base64"
#: bytes of a chunk if the caller names no range
_DEFAULT_LENGTH = {TEXT: 15 << 10, BASE64: 48 << 10}
_TYPE, _FORMAT, _RANGE = "_airbyte_response_type", "_airbyte_response_format", "range_header"
_BOUNDED = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """Which bytes of a file, and how they are written into JSON."""

    start: int
    length: int
    format: str

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "ChunkRequest":
        """The chunk that a caller's params name; raises InvalidParams."""
        encoding = params.get(_FORMAT, BASE64)
        if encoding not in _DEFAULT_LENGTH:
            raise _invalid(_FORMAT, "enum", f"{_FORMAT} is {encoding!r}; allowed: {TEXT}, {BASE64}")
        stated = params.get(_RANGE)
        if stated is None:
            return cls(0, _DEFAULT_LENGTH[encoding], encoding)
        match = _BOUNDED.fullmatch(stated) if isinstance(stated, str) else None
        start, end = map(int, match.groups()) if match else (0, -1)
        if not 0 <= end - start < LARGEST:
            text = f"{_RANGE} is {str(stated)[:60]!r}; a chunk is a bounded range of at most {LARGEST} bytes"
            raise _invalid(_RANGE, "range", f"{text}, such as bytes=0-{_DEFAULT_LENGTH[encoding] - 1}")
        return cls(start, end - start + 1, encoding)

    @property
    def range_header(self) -> str:
        return _header(self.start, self.length)


def wants_chunk(params: Mapping[str, Any]) -> bool:
    """Whether the params ask for JSON; raises InvalidParams for a response type that there is not."""
    stated = params.get(_TYPE, "stream")
    if stated not in ("json", "stream"):
        raise _invalid(_TYPE, "enum", f"{_TYPE} is {str(stated)[:60]!r}; allowed: json, stream")
    return bool(stated == "json")


def file_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of the file itself."""
    return {name: value for name, value in params.items() if name not in (_TYPE, _FORMAT)}


async def chunk(file: File, request: ChunkRequest) -> dict[str, Any]:
    """The chunk as callers get it; `next_range_header` asks for the one after it. Raises InvalidParams for bad text."""
    # An application that ignores ranges and states no length sends the whole file: skip the bytes before the chunk.
    skip = request.start if file.status == 200 else 0
    body = b""
    async for data in file:
        dropped = min(skip, len(data))
        skip -= dropped
        body += data[dropped:]
        if len(body) > request.length:
            break
    is_full, body = len(body) >= request.length, body[: request.length]
    content, returned = _written(body, request.format)
    following = request.start + returned
    has_more = following < file.size if file.size is not None else is_full
    return {
        **empty_chunk(request),
        "content": content,
        "bytes_returned": returned,
        "next_range_header": _header(following, request.length) if has_more else None,
        "has_more": has_more,
        "content_type": file.headers.get("Content-Type"),
    }


def empty_chunk(request: ChunkRequest) -> dict[str, Any]:
    """The one chunk of an empty file."""
    return {
        "content": "",
        "encoding": "utf-8" if request.format == TEXT else BASE64,
        "bytes_returned": 0,
        "range_requested": request.range_header,
        "next_range_header": None,
        "has_more": False,
        "content_type": None,
    }


def _written(body: bytes, form: str) -> tuple[str, int]:
    """The bytes as a JSON string, and how many of them it holds: a character cut in two is left for the next chunk."""
    if form == BASE64:
        return base64.b64encode(body).decode("ascii"), len(body)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(body)
    except UnicodeDecodeError as error:
        message = f"the file is not text in UTF-8; request it with {_FORMAT}={BASE64}"
        raise _invalid(_FORMAT, "encoding", message) from error
    held_back = len(decoder.getstate()[0])
    if held_back and held_back == len(body):
        raise _invalid(_RANGE, "range", f"{_RANGE} is too small to hold one character; ask for at least 4 bytes")
    return text, len(body) - held_back


def _header(start: int, length: int) -> str:
    return f"bytes={start}-{start + length - 1}"


def _invalid(name: str, code: str, message: str) -> InvalidParams:
    return InvalidParams(message, faults=[FieldError(f"/params/{name}", name, code, message)])
