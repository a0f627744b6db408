"""Records as JSON bytes, which are parsed only if necessary."""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])

#: a tree of the members to select; an empty one selects the whole value
Projection = dict[str, "Projection"]


def digest(document: bytes) -> int:
    """A hash of 64 bits, which shows whether a record has changed."""
    return int.from_bytes(hashlib.blake2b(document, digest_size=8).digest(), "big", signed=True)


def projection(paths: Sequence[tuple[str, ...]]) -> Projection:
    """The paths as a tree in their order; a path includes all longer ones that begin with it."""
    tree: Projection = {}
    shortest = [path for path in paths if not any(path[:length] in paths for length in range(1, len(path)))]
    for path in shortest:
        branch = tree
        for segment in path:
            branch = branch.setdefault(segment, {})
    return tree


def projected(document: str, tree: Projection) -> msgspec.Raw:
    """The record with the selected members only; in an array, those of each element."""
    members = _MEMBERS.decode(document)
    return msgspec.Raw(
        msgspec.json.encode(
            {
                name: _pruned(msgspec.json.decode(members[name]), inside) if inside else members[name]
                for name, inside in tree.items()
                if name in members
            }
        )
    )


def cleaned(document: bytes) -> bytes:
    """The record without what PostgreSQL cannot store: NUL, lone surrogates, invalid UTF-8 and huge numbers.

    Such a character becomes U+FFFD, so that one malformed record does not stop the synchronization of the others.
    """
    value = json.loads(document.decode("utf-8", "replace"), parse_float=_finite, parse_int=_finite_int)
    text = json.dumps(_without_nul(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def _pruned(value: Any, tree: Projection) -> Any:
    if isinstance(value, list):
        return [_pruned(element, tree) for element in value]
    if not tree or not isinstance(value, dict):
        return value
    return {name: _pruned(value[name], inside) for name, inside in tree.items() if name in value}


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_without_nul(element) for element in value]
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(member) for name, member in value.items()}
    return value


def _finite(text: str) -> float | None:
    return number if math.isfinite(number := float(text)) else None


def _finite_int(text: str) -> int | None:
    return int(text) if len(text) <= 300 else None
