"""Checks that a file arrived complete, so that a truncated file is never taken for the whole."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from gateway.errors import UpstreamInvalidResponse, UpstreamTruncated
from gateway.upstream.http_ranges.responses import FileResponse

#: maximum decoded bytes of one step; they are counted and discarded
_WINDOW = 64 << 10
_YIELD_EVERY = 1 << 20
_GZIP = zlib.MAX_WBITS | 16
_GZIP_NAMES = ("gzip", "x-gzip")


@dataclass(frozen=True, slots=True)
class File:
    """A file, or the requested part of it, while it is downloaded: iterate over its bytes, once."""

    status: int
    headers: Mapping[str, str]
    #: bytes of the whole file, None where the application does not say
    size: int | None
    _chunks: AsyncIterator[bytes]

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Chunks as they arrive; raises UpstreamTruncated in place of the last chunk if the file is truncated."""
        return self._chunks

    async def read(self) -> bytes:
        """All the bytes at once, for files known to be small."""
        return b"".join([chunk async for chunk in self])


def judged_file(reply: FileResponse, size: int | None, chunks: AsyncIterator[bytes]) -> File:
    """The file of a response; `size` is the record's size of the plain bytes.

    Raises UpstreamTruncated and UpstreamInvalidResponse where the answer and the record contradict each other.
    """
    coding = reply.headers.get("Content-Encoding", "").lower()
    part, length = reply.stated.content_range, reply.stated.length
    total = part.total if part is not None else length
    is_body = reply.status in (200, 206)
    if is_body and not coding and not reply.stated.is_in_parts:
        _compare(total, size)
    if is_body and part is None and coding in _GZIP_NAMES:
        chunks = _checked_gzip(chunks, size)
    file_size = (total if total is not None else size) if not coding else None
    if reply.skip or reply.length != length:  # otherwise HTTP framing detects a truncated body
        ends_with_record = part is None and length is None and reply.skip == 0 and reply.status == 200
        chunks = _cut_to_size(chunks, reply, ends_with_record)
    return File(reply.status, reply.headers, file_size, chunks)


def _compare(total: int | None, size: int | None) -> None:
    if total is None or size is None or total == size:
        return
    error = UpstreamTruncated if total < size else UpstreamInvalidResponse
    raise error(f"the application sends {total} bytes, but the file's record says {size}")


async def _cut_to_size(
    chunks: AsyncIterator[bytes], reply: FileResponse, ends_with_record: bool
) -> AsyncIterator[bytes]:
    """Exactly the bytes that the reply announces."""
    skip, left = reply.skip, reply.length
    async for chunk in chunks:
        if skip:
            dropped = min(skip, len(chunk))
            skip -= dropped
            chunk = chunk[dropped:]
            if not chunk:
                continue
        if left is None:
            yield chunk
        elif len(chunk) < left:
            left -= len(chunk)
            yield chunk
        else:
            if ends_with_record and (len(chunk) > left or await _has_more(chunks)):
                raise UpstreamInvalidResponse("the file is longer than its record says")
            if left:
                yield chunk[:left]
            return
    if left:
        raise UpstreamTruncated(f"the file ended {left} bytes too early")


async def _has_more(chunks: AsyncIterator[bytes]) -> bool:
    async for chunk in chunks:
        if chunk:
            return True
    return False


async def _checked_gzip(chunks: AsyncIterator[bytes], size: int | None) -> AsyncIterator[bytes]:
    """The chunks as they are; the last is held back until the gzip stream has proved whole (RFC 1952)."""
    check, last = _GzipCheck(size), b""
    async for chunk in chunks:
        await check.feed(chunk)
        if last:
            yield last
        last = chunk
    check.finish()
    if last:
        yield last


class _GzipCheck:
    """Decodes a gzip stream and discards the output, to find where the stream ends.

    The record may state the size of the decoded bytes, or of the bytes as they are stored.
    """

    def __init__(self, size: int | None) -> None:
        self._expected = size
        self._decoded = self._encoded = 0
        self._decoder = zlib.decompressobj(_GZIP)

    async def feed(self, chunk: bytes) -> None:
        before = self._decoded
        self._encoded += len(chunk)
        while chunk:
            if self._decoder.eof:
                self._decoder = zlib.decompressobj(_GZIP)
            self._count(chunk)
            chunk = self._decoder.unconsumed_tail or self._decoder.unused_data
            if self._decoded - before >= _YIELD_EVERY:  # a small chunk may decode to a thousand times its size
                before = self._decoded
                await asyncio.sleep(0)

    def finish(self) -> None:
        while not self._decoder.eof and self._count(b""):
            pass
        is_expected = self._expected in (None, self._decoded, self._encoded)
        if not self._decoder.eof or (not is_expected and self._decoded < (self._expected or 0)):
            raise UpstreamTruncated("the compressed file is cut short")
        if not is_expected:
            raise UpstreamInvalidResponse("the compressed file is longer than its record says")

    def _count(self, chunk: bytes) -> int:
        try:
            count = len(self._decoder.decompress(chunk, _WINDOW))
        except zlib.error as error:
            raise UpstreamInvalidResponse("the file is not compressed as its headers say") from error
        self._decoded += count
        if self._expected is not None and min(self._decoded, self._encoded) > self._expected:
            raise UpstreamInvalidResponse("the compressed file is longer than its record says")
        return count
