"""Saves a file by ranges: resumed where it stopped, checked, and renamed into place only when it is complete."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol

import aiohttp

from gateway.errors import GatewayError, RangeNotSatisfiable, Unavailable, UpstreamTruncated
from gateway.saving.partial import Partial

#: called with the number of bytes that are stored, and the size of the file if it is known
Progress = Callable[[int, int | None], object]
#: broken connections in a row without a byte, after which a download fails
_BREAKS = 5


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A file that is whole and in place."""

    path: Path
    size: int
    #: hexadecimal digest of the bytes
    sha256: str
    content_type: str | None
    #: bytes that an earlier attempt left
    resumed_from: int


@dataclass(frozen=True, slots=True)
class IncomingPart:
    """A response with bytes of the file, and what its headers say of them."""

    start: int
    #: bytes of the whole file
    total: int | None
    #: identifies the content: a strong entity tag, else the date
    validator: str | None
    content_type: str | None
    #: pieces as they come
    chunks: AsyncIterator[bytes]

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> "IncomingPart":
        """The part of the file in a 200 or a 206, from its headers (RFC 9110 §14.4)."""
        tag = headers.get("ETag", "")
        validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
        content_type = headers.get("Content-Type", "").partition(";")[0].strip() or None
        span = re.fullmatch(r"bytes ([0-9]+)-[0-9]+/([0-9]+|\*)", headers.get("Content-Range", ""))
        if status == 206 and span is not None:
            return cls(int(span[1]), None if span[2] == "*" else int(span[2]), validator, content_type, chunks)
        length = headers.get("Content-Length")
        return cls(0, None if length is None else int(length), validator, content_type, chunks)


class FileOrigin(Protocol):
    """The source of a file."""

    @property
    def label(self) -> str:
        """Identifies the file: the beginning of another one is not resumed."""

    @property
    def interruptions(self) -> tuple[type[GatewayError], ...]:
        """The errors after which the rest is requested again."""

    async def name(self) -> str | None:
        """The file's name at the source."""

    def open(self, headers: Mapping[str, str]) -> AbstractAsyncContextManager[IncomingPart]:
        """A successful response to a request with these headers, for as long as the block lasts."""

    def pause(self, breaks: int) -> float:
        """Seconds to wait after that many broken connections."""


async def save(
    source: FileOrigin, to: str | PathLike[str], *, sha256: str | None = None, on_progress: Progress | None = None
) -> Downloaded:
    """The file at `to`, or in it when that is a folder; raises UpstreamTruncated when the bytes are not those expected.

    Bytes that came stay beside it as `….part`: the next call, also of another process, resumes after them if the file
    is still the same (RFC 9110 §13.1.5).
    """
    target = await _target(source, Path(to))
    partial = await asyncio.to_thread(Partial.beside, target, source.label)
    resumed_from, breaks = partial.size, 0
    while True:
        before = partial.size
        try:
            part = await _receive(source, partial, on_progress)
            break
        except source.interruptions:
            # only connections that brought no byte count: a slow one may break any number of times
            breaks = breaks + 1 if partial.size <= before else 0
            if breaks >= _BREAKS:
                raise
            await asyncio.sleep(source.pause(breaks + 1))
    digest = await asyncio.to_thread(partial.sha256)
    if sha256 is not None and digest != sha256.lower():
        await asyncio.to_thread(partial.discard)
        raise UpstreamTruncated(f"the file's SHA-256 is {digest} and not {sha256}; nothing was kept, download it again")
    await asyncio.to_thread(partial.complete)
    return Downloaded(target, partial.size, digest, part.content_type, resumed_from if part.start else 0)


def file_name_of(headers: Mapping[str, str]) -> str | None:
    """The name in Content-Disposition (RFC 6266)."""
    return aiohttp.content_disposition_filename(
        aiohttp.parse_content_disposition(headers.get("Content-Disposition"))[1]
    )


async def _target(source: FileOrigin, to: Path) -> Path:
    """The file to write: `to`, or within it the name that the application gives the file."""
    if not await asyncio.to_thread(to.is_dir):
        return to
    return to / _safe_name(await source.name())


def _safe_name(name: str | None) -> str:
    """A name that stays in its folder and is not hidden."""
    return re.sub(r"[/\\\x00-\x1f\x7f]", "_", name or "").lstrip(".") or "download"


async def _receive(source: FileOrigin, partial: Partial, on_progress: Progress | None) -> IncomingPart:
    """Write one response to the file; bytes that arrived before a broken connection stay."""
    try:
        return await _append(source, partial, partial.resuming_headers, on_progress)
    except RangeNotSatisfiable:
        await asyncio.to_thread(partial.start_over)
        return await _append(source, partial, {}, on_progress)


async def _append(
    source: FileOrigin, partial: Partial, headers: Mapping[str, str], on_progress: Progress | None
) -> IncomingPart:
    async with source.open(headers) as part:
        await asyncio.to_thread(partial.begin, part.start, part.validator)
        _report(on_progress, partial, part)
        async for chunk in part.chunks:
            await asyncio.to_thread(partial.append, chunk)
            _report(on_progress, partial, part)
    if part.total is not None and partial.size != part.total:
        raise Unavailable(f"only {partial.size} of the file's {part.total} bytes came; download it again to continue")
    return part


def _report(on_progress: Progress | None, partial: Partial, part: IncomingPart) -> None:
    if on_progress is not None:
        on_progress(partial.size, part.total)
