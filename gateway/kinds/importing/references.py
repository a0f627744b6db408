"""Resolves the references of a document on demand, so that cyclic references are allowed."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from gateway.kinds.importing.model import Node

#: maximum references that lead to references; more are taken as a cycle
_MAX_CHAIN = 20


def node_of(value: object) -> Node:
    """The value if it is a mapping, else an empty mapping, because documents contain mistakes."""
    return value if isinstance(value, Mapping) else {}


class Document:
    """An OpenAPI document; every `$ref` in it is local (`#/…`)."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._found: dict[str, Any] = {}

    def resolved(self, value: object) -> Node:
        """A node, or the one that its `$ref` names; members beside the reference win (OpenAPI 3.1)."""
        node = node_of(value)
        beside: dict[str, Any] = {}
        for _ in range(_MAX_CHAIN):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return {**node, **beside} if beside else node
            beside = {**{name: each for name, each in node.items() if name != "$ref"}, **beside}
            node = node_of(self.at(reference))
        return {}

    def at(self, reference: str) -> Any:
        """The node at a local reference (RFC 6901); None if there is none."""
        if reference not in self._found:
            self._found[reference] = _at(self.root, reference)
        return self._found[reference]


def _at(root: Any, reference: str) -> Any:
    if not reference.startswith("#"):
        return None
    node = root
    for part in pointer_parts(reference[1:]):
        if isinstance(node, Mapping):
            node = node.get(part)
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return None
    return node


def pointer_parts(pointer: str) -> list[str]:
    """The members that a JSON pointer in a URI fragment names."""
    parts = unquote(pointer).split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def references_in(root: Any) -> Iterator[dict[str, Any]]:
    """Every mapping with a `$ref` in a tree; a shared node is visited once.

    Specification extensions (`x-…`) are left out: OpenAPI does not define their content.
    """
    pending, seen = [root], {id(root)}
    while pending:
        node = pending.pop()
        inner = node
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node
            inner = [each for name, each in node.items() if not str(name).startswith("x-")]
        for each in inner:
            if isinstance(each, dict | list) and id(each) not in seen:
                seen.add(id(each))
                pending.append(each)
