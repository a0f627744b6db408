"""Resolves the references of a document on demand, so that cyclic references are allowed."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from gateway.kinds.importing.model import Node

#: maximum references that lead to references; more are taken as a cycle
_MAX_CHAIN = 20
#: maximum levels of objects and arrays within each other
MAX_LEVELS = 400


#: members whose members have names that the document chooses
_MAPS = frozenset({
    "properties", "patternProperties", "schemas", "responses", "parameters", "headers", "paths", "callbacks", "content",
    "definitions", "$defs", "requestBodies", "mediaTypes", "pathItems", "dependentSchemas", "securitySchemes",
})  # fmt: skip
#: members in which the standards have no references, or in which an import needs none
_WITHOUT_REFERENCES = frozenset({
    "example", "examples", "default", "enum", "const", "tags", "info", "externalDocs", "links", "discriminator",
})  # fmt: skip


def node_of(value: object) -> Node:
    """The value if it is a mapping, else an empty mapping, because documents contain mistakes."""
    return value if isinstance(value, Mapping) else {}


def is_too_deep(value: object) -> bool:
    """Whether the value has members or items below `MAX_LEVELS` levels, which the import does not follow."""
    level, found = 0, [value]
    while found and level <= MAX_LEVELS:
        found = [each for node in found for each in _containers_in(node)]
        level += 1
    return bool(found)


def _containers_in(node: object) -> Iterator[object]:
    inner = node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ()
    return (each for each in inner if isinstance(each, Mapping | list))


def reference_of(value: object) -> str | None:
    """The reference that a node is, if it has nothing beside it."""
    reference = value.get("$ref") if isinstance(value, Mapping) and len(value) == 1 else None
    return reference if isinstance(reference, str) else None


class Document:
    """An OpenAPI document; every `$ref` in it is local (`#/…`)."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._found: dict[str, Any] = {}
        #: schemas by their ids as `responses.flattened` returns them; the first of a pair keeps the id in use
        self.flat: dict[int | str, tuple[object, Node]] = {}
        #: references that led nowhere
        self.missing: set[str] = set()

    def resolved(self, value: object) -> Node:
        """A node, or the one that its `$ref` names; members beside the reference win (OpenAPI 3.1)."""
        node = node_of(value)
        beside: dict[str, Any] = {}
        for _ in range(_MAX_CHAIN):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return {**node, **beside} if beside else node
            beside = {**{name: each for name, each in node.items() if name != "$ref"}, **beside}
            found = self.at(reference)
            if found is None:
                self.missing.add(reference)
            node = node_of(found)
        return {}

    @cached_property
    def says_link_header(self) -> bool:
        """Whether the description of the document says that responses have a Link header."""
        text = str(node_of(self.root.get("info")).get("description") or "")
        return re.search(r"\blink\b[`*'\"\s-]*(response )?header|rel=[\\`'\"]*next", text, re.I) is not None

    def listed(self, value: object) -> list[Any]:
        """A list, or the one that a reference in its place names; empty for anything else."""
        if isinstance(value, Mapping) and isinstance(value.get("$ref"), str):
            value = self.at(value["$ref"])
        return value if isinstance(value, list) else []

    def members(self, node: Node, name: str) -> Node:
        """The map that a member is, or the one that a reference in its place names."""
        return self.resolved(node.get(name))

    def at(self, reference: str) -> Any:
        """The node at a local reference (RFC 6901); None if there is none."""
        if reference not in self._found:
            self._found[reference] = _at(self.root, reference)
        return self._found[reference]


def _at(root: Any, reference: str) -> Any:
    if reference != "#" and not reference.startswith("#/"):
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


def references_in(root: Any, *, is_part: bool = False) -> Iterator[dict[str, Any]]:
    """Every mapping with a `$ref` where OpenAPI and JSON Schema have references; a shared node is visited once.

    In a map, such as `properties`, each member has a name of the document's own: `example` is a property there. A part
    of a document in a file of its own (`is_part`) may be a map or not.
    """
    # with each node: whether it may be a map, and whether it may be an object of the standards
    pending, seen = [(root, is_part, True)], {id(root)}
    while pending:
        node, is_map, is_object = pending.pop()
        inner: list[tuple[Any, bool]] = []
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node
            inner = [
                (each, is_object and name in _MAPS)
                for name, each in node.items()
                if is_map or not (name in _WITHOUT_REFERENCES or str(name).startswith("x-"))
            ]
        elif isinstance(node, list):
            inner = [(each, False) for each in node]
        for each, is_named in inner:
            if isinstance(each, dict | list) and id(each) not in seen:
                seen.add(id(each))
                is_inner_map = is_named and isinstance(each, dict)
                pending.append((each, is_inner_map, not is_inner_map))
