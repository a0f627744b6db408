"""Saves a file: resumes an interrupted download by a range request, checks the file, and renames it when complete."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol

import aiohttp

from gateway.errors import GatewayError, RangeNotSatisfiable, Unavailable, UpstreamTruncated
from gateway.foundation.saving.partial import Partial
from gateway.foundation.saving.special_files import is_special, opened

#: called with the number of bytes that are stored, and the size of the file if it is known
Progress = Callable[[int, int | None], object]
#: consecutive broken connections without a byte, after which a download fails
_BREAKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """A complete file at its path."""

    path: Path
    size: int
    #: hexadecimal digest of the bytes
    sha256: str
    content_type: str | None
    #: bytes from an earlier, interrupted download
    resumed_from: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingPart:
    """A response with bytes of the file, and the facts in its headers."""

    start: int
    #: bytes of the complete file
    total: int | None
    #: identifies the content: a strong entity tag, else the date of the last modification
    validator: str | None
    content_type: str | None
    #: the bytes as they arrive
    chunks: AsyncIterator[bytes]

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], chunks: AsyncIterator[bytes]) -> "IncomingPart":
        """The part of the file in a 200 or a 206, from its headers (RFC 9110 §14.4)."""
        tag = headers.get("ETag", "")
        validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
        content_type = headers.get("Content-Type", "").partition(";")[0].strip() or None
        span = re.fullmatch(r"bytes ([0-9]+)-[0-9]+/([0-9]+|\*)", headers.get("Content-Range", ""))
        if status == 206 and span is not None:
            return cls(
                start=int(span[1]),
                total=None if span[2] == "*" else int(span[2]),
                validator=validator,
                content_type=content_type,
                chunks=chunks,
            )
        length = headers.get("Content-Length")
        return cls(
            start=0,
            total=None if length is None else int(length),
            validator=validator,
            content_type=content_type,
            chunks=chunks,
        )


class FileOrigin(Protocol):
    """The source of a file."""

    @property
    def label(self) -> str:
        """Identifies the file: a partial file with another label is not resumed."""

    @property
    def interruptions(self) -> tuple[type[GatewayError], ...]:
        """The errors after which the rest of the file is requested."""

    async def name(self) -> str | None:
        """The file's name at the source."""

    def open(self, headers: Mapping[str, str]) -> AbstractAsyncContextManager[IncomingPart]:
        """Open a successful response to a request with these headers; it is closed when the block ends."""

    def pause(self, breaks: int) -> float:
        """Seconds to wait after that many consecutive broken connections."""


async def save(
    source: FileOrigin, to: str | PathLike[str], *, sha256: str | None = None, on_progress: Progress | None = None
) -> Downloaded:
    """Save a file to the path `to`, or in the folder `to`; raises UpstreamTruncated if its SHA-256 is not `sha256`.

    After an interruption the received bytes stay in its folder as `….part`. The next call, also of another process,
    resumes after them if the file has not changed (RFC 9110 §13.1.5). A FIFO or a device is written to as the bytes
    arrive.
    """
    target = await _target(source, Path(to))
    if await asyncio.to_thread(is_special, target):
        return await _written_through(source, target, sha256, on_progress)
    partial = await asyncio.to_thread(Partial.beside, target, source.label)
    resumed_from, breaks = partial.size, 0
    while True:
        before = partial.size
        try:
            part = await _receive(source, partial, on_progress)
            break
        except source.interruptions:
            # Only consecutive connections without a byte count: a download that advances may break any number of times.
            breaks = breaks + 1 if partial.size <= before else 0
            if breaks >= _BREAKS:
                raise
            await asyncio.sleep(source.pause(breaks + 1))
    digest = await asyncio.to_thread(partial.sha256)
    if _differs(digest, sha256):
        await asyncio.to_thread(partial.discard)
        message = f"the file's SHA-256 is {digest} and not {sha256}; the download was deleted, download it again"
        raise UpstreamTruncated(message)
    await asyncio.to_thread(partial.complete)
    return Downloaded(
        path=target,
        size=partial.size,
        sha256=digest,
        content_type=part.content_type,
        resumed_from=resumed_from if part.start else 0,
    )


def _differs(digest: str, sha256: str | None) -> bool:
    return sha256 is not None and digest != sha256.lower()


async def _written_through(
    source: FileOrigin, target: Path, sha256: str | None, on_progress: Progress | None
) -> Downloaded:
    """Write the file to a FIFO or a device; an interruption is an error, because written bytes cannot be read again."""
    descriptor, size, hashed = await opened(target), 0, hashlib.sha256()
    with os.fdopen(descriptor, "wb") as file:
        async with source.open({}) as part:
            async for chunk in part.chunks:
                await asyncio.to_thread(file.write, chunk)
                hashed.update(chunk)
                size += len(chunk)
                if on_progress is not None:
                    on_progress(size, part.total)
    if part.total not in (None, size):
        raise Unavailable(f"only {size} of the file's {part.total} bytes arrived; download it again")
    if _differs(hashed.hexdigest(), sha256):
        raise UpstreamTruncated(f"the file's SHA-256 is {hashed.hexdigest()} and not {sha256}; download it again")
    return Downloaded(path=target, size=size, sha256=hashed.hexdigest(), content_type=part.content_type, resumed_from=0)


def file_name_of(headers: Mapping[str, str]) -> str | None:
    """The name in Content-Disposition (RFC 6266)."""
    return aiohttp.content_disposition_filename(
        aiohttp.parse_content_disposition(headers.get("Content-Disposition"))[1]
    )


async def _target(source: FileOrigin, to: Path) -> Path:
    """The path to write: `to`, or if it is a folder, a file in it with the name from the source."""
    if not await asyncio.to_thread(to.is_dir):
        return to
    return to / (safe_name(await source.name()) or "download")


def safe_name(name: str | None) -> str:
    """The name without folder and drive, control characters and leading dots; may be empty."""
    last = re.split(r"[/\\:]", name or "")[-1]
    return re.sub(r"[\x00-\x1f\x7f]", "", last).lstrip(".")


async def _receive(source: FileOrigin, partial: Partial, on_progress: Progress | None) -> IncomingPart:
    """Write one response to the partial file; bytes that arrived before a broken connection stay."""
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
        raise Unavailable(f"only {partial.size} of the file's {part.total} bytes arrived; download it again to resume")
    return part


def _report(on_progress: Progress | None, partial: Partial, part: IncomingPart) -> None:
    if on_progress is not None:
        on_progress(partial.size, part.total)
