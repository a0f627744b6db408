"""Files to disk: resumed where they stopped, checked, and in place only when whole."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import aiohttp

from gateway.client.partial import Partial
from gateway.client.session import ApiRequest, Session, lost
from gateway.errors import RangeNotSatisfiable, Unavailable, UpstreamTruncated

#: told how many bytes are there, and of how many when that is known
Progress = Callable[[int, int | None], object]
#: bytes handed to the disk at a time
_CHUNK = 1 << 20
#: breaks without a byte gained between them, after which a download has failed
_BREAKS = 5


@dataclass(frozen=True, slots=True)
class Resource:
    """A file as the gateway serves it."""

    path: str
    query: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A file that is whole and in place."""

    path: Path
    size: int
    #: hexadecimal digest of the bytes
    sha256: str
    content_type: str | None
    #: bytes that an earlier try had left
    resumed_from: int


@dataclass(frozen=True, slots=True)
class _Part:
    """What an answer says of the bytes that come with it."""

    start: int
    #: bytes of the whole file
    total: int | None
    #: names this very content: a strong entity tag, else its date
    validator: str | None
    content_type: str | None


async def download(
    session: Session,
    resource: Resource,
    to: str | PathLike[str],
    *,
    sha256: str | None = None,
    on_progress: Progress | None = None,
) -> Downloaded:
    """The file at `to`, or in it when that is a folder; raises UpstreamTruncated when the bytes are not those expected.

    Bytes that came stay beside it as `….part`: the next call, also of another process, goes on after them if the
    file is still the same (RFC 9110 §13.1.5).
    """
    target = await _target(session, resource, Path(to))
    partial = await asyncio.to_thread(Partial.beside, target, str(resource))
    resumed_from, breaks = partial.size, 0
    while True:
        before = partial.size
        try:
            part = await _receive(session, resource, partial, on_progress)
            break
        except Unavailable:
            # only breaks that gained nothing count: a slow link may break as often as it likes
            breaks = breaks + 1 if partial.size <= before else 0
            if breaks >= _BREAKS:
                raise
            await asyncio.sleep(session.policy.growing_pause(breaks + 1))
    digest = await asyncio.to_thread(partial.sha256)
    if sha256 is not None and digest != sha256.lower():
        await asyncio.to_thread(partial.discard)
        raise UpstreamTruncated(f"the file's SHA-256 is {digest} and not {sha256}; nothing was kept, download it again")
    await asyncio.to_thread(partial.complete)
    return Downloaded(target, partial.size, digest, part.content_type, resumed_from if part.start else 0)


async def chunks(session: Session, resource: Resource) -> AsyncGenerator[bytes, None]:
    """The file's bytes as they come; raises Unavailable when they end too early."""
    async with await session.open(_call(resource)) as response:
        async for chunk in _bytes(response):
            yield chunk


async def _target(session: Session, resource: Resource, to: Path) -> Path:
    """The file to write: `to`, or within it the name that the application gives the file."""
    if not await asyncio.to_thread(to.is_dir):
        return to
    async with await session.open(_call(resource, method="HEAD")) as response:
        named = response.content_disposition
    return to / _safe_name(named.filename if named else None)


def _safe_name(name: str | None) -> str:
    """A name that stays in its folder and is not hidden."""
    return re.sub(r"[/\\\x00-\x1f\x7f]", "_", name or "").lstrip(".") or "download"


async def _receive(session: Session, resource: Resource, partial: Partial, on_progress: Progress | None) -> _Part:
    """One answer to its end; what came of it before a break is kept."""
    try:
        response = await session.open(_call(resource, partial.resuming_headers))
    except RangeNotSatisfiable:
        await asyncio.to_thread(partial.start_over)
        response = await session.open(_call(resource))
    async with response:
        part = _part_of(response)
        await asyncio.to_thread(partial.begin, part.start, part.validator)
        _tell(on_progress, partial, part)
        async for chunk in _bytes(response):
            await asyncio.to_thread(partial.append, chunk)
            _tell(on_progress, partial, part)
    if part.total is not None and partial.size != part.total:
        raise Unavailable(f"only {partial.size} of the file's {part.total} bytes came; download it again to go on")
    return part


def _call(resource: Resource, headers: Mapping[str, str] | None = None, method: str = "GET") -> ApiRequest:
    everything = {"Accept": "*/*", "Accept-Encoding": "identity", **(headers or {})}
    return ApiRequest(method, resource.path, resource.query, headers=everything)


def _part_of(response: aiohttp.ClientResponse) -> _Part:
    headers = response.headers
    tag = headers.get("ETag", "")
    validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
    span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", headers.get("Content-Range", ""))
    if response.status == 206 and span is not None:
        total = None if span[2] == "*" else int(span[2])
        return _Part(int(span[1]), total, validator, response.content_type)
    return _Part(0, response.content_length, validator, response.content_type)


async def _bytes(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise lost(error) from error


def _tell(on_progress: Progress | None, partial: Partial, part: _Part) -> None:
    if on_progress is not None:
        on_progress(partial.size, part.total)
