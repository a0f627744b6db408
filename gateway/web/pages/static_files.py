"""Styles, scripts and icons, read once; browsers may cache them forever, because their URLs have a hash."""

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

from gateway.upstream.http_ranges.headers import is_not_modified
from gateway.web.weights import weights_of

PREFIX = "/static/"
#: bytes of a file above which it is compressed
_LARGE = 100_000
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "json": "application/json",
}


@dataclass(frozen=True)
class StaticFile:
    """A file with its media type and hash."""

    content: bytes
    content_type: str
    digest: str

    @cached_property
    def compressed(self) -> bytes:
        """The content as gzip."""
        return gzip.compress(self.content, mtime=0)

    def packed(self) -> "StaticFile":
        """The same file, compressed now instead of at the first request."""
        _ = self.compressed
        return self

    @classmethod
    def of(cls, name: str, content: bytes) -> "StaticFile":
        """The file of this content; raises KeyError for an unknown file type."""
        return cls(content, _TYPES[name.rpartition(".")[2].lower()], sha256(content).hexdigest()[:16])


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Every file of the package by its name below `/static/`."""
    return dict(_below(files("gateway.web.pages") / "static", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for entry in folder.iterdir():
        name = prefix + entry.name
        if entry.is_dir():
            found += _below(entry, name + "/")
        elif entry.name.rpartition(".")[2] in _TYPES:
            found.append((name, StaticFile.of(name, entry.read_bytes())))
    return found


def static_url(name: str) -> str:
    """The URL of a file with its hash; raises KeyError for an unknown file."""
    return f"{PREFIX}{name}?v={static_files()[name].digest}"


async def file_response(request: web.Request, file: StaticFile, headers: Mapping[str, str]) -> web.Response:
    """A static file, compressed if the client accepts gzip; each coding has its own entity tag (RFC 9110 §8.8.3)."""
    accepted = weights_of(request.headers.get("Accept-Encoding", ""))
    is_compressed = len(file.content) > _LARGE and accepted.get("gzip", 0.0) > 0
    tag = f'"{file.digest}{"-gzip" if is_compressed else ""}"'
    headers = {**headers, "ETag": tag, "Vary": "Accept-Encoding"}
    if is_not_modified(request.headers.get("If-None-Match"), tag):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = file.content_type
    if is_compressed:
        compressed = await asyncio.to_thread(lambda: file.compressed)
        return web.Response(body=compressed, headers={**headers, "Content-Encoding": "gzip"})
    return web.Response(body=file.content, headers=headers)
