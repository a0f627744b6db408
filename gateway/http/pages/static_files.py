"""Style, scripts and icons, read once; browsers may cache them for ever, because addresses have a hash."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

PREFIX = "/static/"
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
    """One file as it is served."""

    content: bytes
    content_type: str
    digest: str

    @cached_property
    def compressed(self) -> bytes:
        """The content as gzip."""
        return gzip.compress(self.content, mtime=0)

    def packed(self) -> "StaticFile":
        """Itself, compressed already."""
        _ = self.compressed
        return self

    @classmethod
    def of(cls, name: str, content: bytes) -> "StaticFile":
        """The file of this content; raises KeyError for an unknown file type."""
        return cls(content, _TYPES[name.rpartition(".")[2].lower()], sha256(content).hexdigest()[:16])


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Every file of the package by its name below `/static/`."""
    return dict(_below(files("gateway.http.pages") / "static", ""))


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
    """The address of a file; raises KeyError for one that is not there."""
    return f"{PREFIX}{name}?v={static_files()[name].digest}"
