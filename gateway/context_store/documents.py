"""Records as JSON bytes, which are parsed only if necessary."""

import hashlib
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.foundation import payloads

#: a larger integer is in no double
_LARGEST = int(sys.float_info.max)
#: levels of a cleaned record; those below are null
_DEPTH = 100

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
    members = payloads.members(document.encode())
    return msgspec.Raw(
        msgspec.json.encode(
            {
                name: _pruned(payloads.value(members[name]), inside) if inside else members[name]
                for name, inside in tree.items()
                if name in members
            }
        )
    )


def cleaned(document: bytes) -> bytes:
    """The record without what PostgreSQL cannot store: NUL, lone surrogates, invalid UTF-8 and huge numbers.

    Such a character becomes U+FFFD, so that one malformed record does not stop the synchronization of the others.
    """
    return msgspec.json.encode(_storable(payloads.value(document.decode("utf-8", "replace").encode())))


def _pruned(value: Any, tree: Projection) -> Any:
    if isinstance(value, list):
        return [_pruned(element, tree) for element in value]
    if not tree or not isinstance(value, dict):
        return value
    return {name: _pruned(value[name], inside) for name, inside in tree.items() if name in value}


def _storable(value: Any, depth: int = _DEPTH) -> Any:
    if isinstance(value, str):
        return payloads.storable(value)
    if isinstance(value, list) and depth:
        return [_storable(element, depth - 1) for element in value]
    if isinstance(value, dict) and depth:
        return {payloads.storable(name): _storable(member, depth - 1) for name, member in value.items()}
    is_storable = value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) <= _LARGEST)
    return value if is_storable else None
