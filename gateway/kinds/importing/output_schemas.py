"""The output schema of an MCP server's tool, as far as results are checked against it at a bounded cost. Pure.

The schema is a stranger's. What is made of it has no references, patterns or formats, and a bounded number of parts. It
accepts every value that the server's schema accepts: what is left out of it only makes it accept more.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.kinds.importing.model import Node
from gateway.kinds.importing.references import Document
from gateway.kinds.importing.schemas import Schema

#: levels of members and choices that are tried; deeper members accept any JSON
_DEPTHS: Final = (8, 6, 5, 4, 3, 2, 1)
#: the maximum number of schemas, and of bytes, in what is made, and of parts that one attempt looks at
_MAX_PARTS, _MAX_BYTES, _MAX_VISITS = 150, 64 << 10, 2_000
#: items of a list such as `enum`, and references that lead to references
_MAX_ITEMS, _MAX_CHAIN = 300, 20
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_COUNTS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
#: as choices, both accept what `anyOf` accepts: a choice that accepts more than the server's then refuses no value
_CHOICES: Final = ("anyOf", "oneOf")


def output_schema(stated: object) -> Schema | None:
    """The schema of the structured content of a tool's results; None if the tool does not state one."""
    if not isinstance(stated, Mapping):
        return None
    document = Document(stated)
    for depth in _DEPTHS:
        conversion = _Conversion(document)
        found = conversion.of(stated, depth)
        if conversion.is_within_bounds and len(msgspec.json.encode(found)) <= _MAX_BYTES:
            return found
    return {}


class _Conversion:
    """One attempt; what is beyond the bounds accepts any JSON."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._parts = self._visits = 0

    @property
    def is_within_bounds(self) -> bool:
        return self._parts <= _MAX_PARTS and self._visits <= _MAX_VISITS

    def of(self, stated: object, depth: int) -> Schema:
        """The schema of a part, to a depth of members and choices."""
        self._visits += 1
        if depth <= 0 or not self.is_within_bounds:
            return {}
        return _all_of([self._own(node, depth) for node in self._nodes(stated)])

    def _nodes(self, stated: object) -> list[Node]:
        """The node, and those that its references lead to; none if they do not end."""
        found: list[Node] = []
        for _ in range(_MAX_CHAIN):
            # References below the id of a part are relative to it.
            if not isinstance(stated, Mapping) or ("$id" in stated and stated is not self._document.root):
                return found
            found.append(stated)
            reference = stated.get("$ref")
            if not isinstance(reference, str):
                return found
            stated = self._document.at(reference)
        return []

    def _own(self, node: Node, depth: int) -> Schema:
        found = {**dict(_assertions(node)), **self._members(node, depth - 1)}
        combined = self._combined(node, depth - 1)
        self._parts += bool(found)
        return _all_of([found, *combined])

    def _members(self, node: Node, depth: int) -> Schema:
        """`properties`, `additionalProperties` and `items`."""
        found: Schema = {}
        stated, others = node.get("properties"), node.get("additionalProperties")
        properties = stated if isinstance(stated, Mapping) else {}
        names_all = "patternProperties" not in node
        is_closed = names_all and others is False and _required(node) <= properties.keys()
        of_others = self.of(others, depth) if names_all else {}
        converted = {str(name): self.of(each, depth) for name, each in properties.items()}
        kept = {name: each for name, each in converted.items() if each or is_closed or of_others}
        if kept:
            found["properties"] = kept
        if is_closed or of_others:
            found["additionalProperties"] = of_others or False
        if "prefixItems" not in node and (schema := self.of(node.get("items"), depth)):
            found["items"] = schema
        return found

    def _combined(self, node: Node, depth: int) -> list[Schema]:
        """The schemas of `allOf`, and one for the choices of `anyOf` and of `oneOf`."""
        found = [self.of(each, depth) for each in _listed(node, "allOf")]
        for name in _CHOICES:
            choices = [self.of(each, depth) for each in _listed(node, name)]
            found.append({"anyOf": choices} if all(choices) and choices else {})
        return found


def _all_of(schemas: list[Schema]) -> Schema:
    """One schema for the conjunction of several."""
    asserting = [each for each in schemas if each]
    return {"allOf": asserting} if len(asserting) > 1 else asserting[0] if asserting else {}


def _assertions(node: Node) -> Iterator[tuple[str, Any]]:
    """The keywords that concern the value itself, if their own values are well formed."""
    types = _listed(node, "type") or [str(node.get("type"))]
    if all(isinstance(each, str) for each in types) and _TYPES.issuperset(types):
        yield "type", types[0] if len(types) == 1 else list(dict.fromkeys(types))
    yield from _values(node, types)
    for name in _COUNTS:
        if _is_number(node.get(name)) and isinstance(node[name], int) and node[name] >= 0:
            yield name, node[name]
    for name in _BOUNDS:
        if _is_number(node.get(name)):
            yield name, node[name]
    if node.get("uniqueItems") is True:
        yield "uniqueItems", True
    if required := _required(node):
        yield "required", sorted(required)


def _values(node: Node, types: list[str]) -> Iterator[tuple[str, Any]]:
    """`enum`, if it has texts, numbers, booleans and null only."""
    values = [node["const"]] if "const" in node else _listed(node, "enum")
    if types == ["string"]:
        values = [each for each in values if isinstance(each, str)]
    if values and all(isinstance(each, str | bool | None) or _is_number(each) for each in values):
        yield "enum", values


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _required(node: Node) -> set[str]:
    return {each for each in _listed(node, "required") if isinstance(each, str)}


def _listed(node: Node, name: str) -> list[Any]:
    """The list of a keyword; an empty one, which asserts nothing, if it is too long or no list."""
    value = node.get(name)
    return value if isinstance(value, list) and len(value) <= _MAX_ITEMS else []
