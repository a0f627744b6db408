"""Reads documents from files and URLs, with the documents that they refer to; no other module of an import reads."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import msgspec
import yaml
from yarl import URL

from gateway.kinds.importing.model import UNREAD, ImportFailed
from gateway.kinds.importing.references import references_in

#: maximum bytes of one document, and of all together
MAX_BYTES, _MAX_TOTAL = 64 << 20, 128 << 20
#: maximum documents in one import
_MAX_DOCUMENTS = 5_000
#: the member of the bundle that holds the referenced documents
_BUNDLED = "x-bundled"


Reader = Callable[[str], Awaitable[bytes]]


class Fetch(Protocol):
    """Fetches the document at a URL of a host; raises ImportFailed."""

    async def __call__(self, url: str, host: str) -> bytes: ...


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the loader in C, if PyYAML has it
    """YAML 1.2's core schema, as OpenAPI requires: `on`, `no` and dates are strings."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:timestamp",)]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    if first not in "yYnNoO"
}


def parse(content: bytes, name: str) -> Any:
    """Parse a document in JSON or YAML; raises ImportFailed with the place of the error."""
    if content.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ImportFailed(f"{name} is not JSON: {error}") from error
    try:
        return _plain(yaml.load(content, Loader=_Loader))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f" line {mark.line + 1}" if mark else ""
        raise ImportFailed(f"{name}{at} is not YAML: {getattr(error, 'problem', None) or error}") from error


def _plain(document: Any) -> Any:
    """The document with all names of members as strings; YAML reads `200:` as a number."""
    pending, seen = [document], {id(document)}
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for name in [name for name in node if not isinstance(name, str)]:
                node[str(name)] = node.pop(name)
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        for each in inner:
            if isinstance(each, dict | list) and id(each) not in seen:
                seen.add(id(each))
                pending.append(each)
    return document


def is_url(source: str) -> bool:
    return source.startswith(("https://", "http://"))


async def load(source: str, fetch: Fetch | None = None) -> dict[str, Any]:
    """The document at a path or an https URL; the documents that it refers to are put into it.

    References may lead to files below the document's folder, or to the document's host. `fetch` is needed for a URL.
    Raises ImportFailed.
    """
    if not is_url(source):
        folder, uri = _file(source)
        return await _bundled(uri, source, _below(folder))
    if fetch is None:
        raise ImportFailed(f"{source} is a URL; only files can be read here")
    return await _bundled(source, source, partial(fetch, host=urlsplit(source).hostname or ""))


def _mapping(content: bytes, name: str) -> dict[str, Any]:
    document = parse(content, name)
    if not isinstance(document, dict):
        raise ImportFailed(f"{name} is not an OpenAPI document: it must be a mapping")
    return document


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ImportFailed(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror}") from error


def _below(folder: Path) -> Reader:
    """Reads `file:` URIs below a folder."""

    async def read(uri: str) -> bytes:
        return _read_below(folder, uri)

    return read


def _read_below(folder: Path, uri: str) -> bytes:
    path = Path(URL(uri).path).resolve()
    if urlsplit(uri).scheme != "file" or not path.is_relative_to(folder):
        raise ImportFailed(f"the reference to {uri} leads outside the folder {folder}; put the file below it")
    return _read(path)


def _file(source: str) -> tuple[Path, str]:
    """The folder of a file, and its URI."""
    path = Path(source).resolve()
    return path.parent, path.as_uri()


async def _bundled(uri: str, name: str, read: Reader) -> dict[str, Any]:
    """The document at a URI: the documents that it refers to are put into it, and `UNREAD` has those that failed."""
    root = _mapping(await read(uri), name)
    bundled: dict[str, Any] = {}
    unread: dict[str, str] = {}
    total, known, pending = 0, {uri: "#"}, [(uri, root)]
    while pending:
        place, document = pending.pop()
        for node in references_in(document, is_part=document is not root):
            target, _, fragment = urljoin(place, node["$ref"]).partition("#")
            if target not in known:
                if len(known) > _MAX_DOCUMENTS:
                    raise ImportFailed(f"the document refers to more than {_MAX_DOCUMENTS} others")
                try:
                    content = await read(target)
                    parsed = parse(content, target)
                except ImportFailed as failed:
                    known[target], unread[target] = target, str(failed)
                else:
                    total += len(content)
                    known[target] = f"#/{_BUNDLED}/{len(bundled)}"
                    bundled[str(len(bundled))] = parsed
                    pending.append((target, parsed))
                if total > _MAX_TOTAL:
                    raise ImportFailed(f"the documents together are larger than {_MAX_TOTAL >> 20} MiB")
            node["$ref"] = f"{known[target]}#{fragment}" if target in unread else known[target] + fragment
    parts = {_BUNDLED: bundled, UNREAD: unread}
    return {**root, **{name: part for name, part in parts.items() if part}}
