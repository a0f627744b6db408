"""Decodes content codings of responses (RFC 9110 §8.4.1) in small steps, so that a decompression bomb is stopped."""

import zlib
from collections.abc import Iterable, Iterator

from gateway.errors import UpstreamInvalidResponse, UpstreamTruncated

#: the codings that `decoder_of` decodes, for `Accept-Encoding`
ACCEPTED = "gzip, deflate"
#: maximum decoded bytes of one step
STEP = 32 << 10
#: compressed bytes given to zlib at a time; zlib copies those that it has not consumed
_SLICE = 16 << 10
#: maximum gzip members of one response; each costs a copy of the data after it
_MAX_MEMBERS = 100
#: the first four bits of a zlib header (RFC 1950 §2.2), which some servers leave out
_DEFLATE_METHOD = 8
_GZIP_FORMAT, _ZLIB_FORMAT, _RAW_FORMAT = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Identity:
    """A body that was not encoded."""

    def decoded(self, data: bytes) -> Iterable[bytes]:
        """The decoded data, in steps."""
        return (data,)

    def end(self) -> None:
        """Do nothing: HTTP framing detects a truncated body."""


class Inflation:
    """A body in one of zlib's formats; raises UpstreamTruncated for other bytes."""

    def __init__(self, coding: str) -> None:
        self._is_gzip = coding == "gzip"
        self._members = 0
        self._inflating: zlib._Decompress | None = None

    def decoded(self, data: bytes) -> Iterator[bytes]:
        """The decoded data, in steps of at most STEP bytes; each step is decoded when the caller reads it."""
        for start in range(0, len(data), _SLICE):
            yield from self._of_slice(data[start : start + _SLICE])

    def end(self) -> None:
        """Raises UpstreamTruncated if the body ended before its content."""
        if self._inflating is not None and not self._inflating.eof:
            raise UpstreamTruncated("the application's answer was cut short")

    def _of_slice(self, data: bytes) -> Iterator[bytes]:
        while data:
            inflating = self._inflating = self._inflating or self._member(data)
            if inflating.eof:  # of a deflate stream: nothing after it counts
                return
            yield from _steps(inflating, data)
            if not inflating.eof:
                return
            if self._is_gzip:  # members follow each other (RFC 1952 §2.2)
                data, self._inflating = inflating.unused_data, None

    def _member(self, data: bytes) -> "zlib._Decompress":
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise UpstreamInvalidResponse(f"the application's answer has more than {_MAX_MEMBERS} gzip members")
        if self._is_gzip:
            return zlib.decompressobj(_GZIP_FORMAT)
        return zlib.decompressobj(_ZLIB_FORMAT if data[0] & 0xF == _DEFLATE_METHOD else _RAW_FORMAT)


def decoder_of(content_encoding: str) -> Identity | Inflation:
    """The decoder for a `Content-Encoding`; raises UpstreamInvalidResponse for one not in ACCEPTED."""
    match content_encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "gzip" | "x-gzip":
            return Inflation("gzip")
        case "deflate":
            return Inflation("deflate")
        case _:
            raise UpstreamInvalidResponse("the application's answer has a content coding that was not requested")


def _steps(inflating: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    try:
        while step := inflating.decompress(data, STEP):
            yield step
            data = inflating.unconsumed_tail
            if not data and len(step) < STEP:
                return
    except zlib.error as error:
        raise UpstreamTruncated("the application's response was damaged in transit") from error
