"""Converts schemas of OpenAPI 3.0, 3.1 and Swagger 2 to the JSON Schema of params, without references. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.foundation.texts import is_visible
from gateway.kinds.importing.model import Node
from gateway.kinds.importing.references import Document, reference_of
from gateway.kinds.importing.words import phrase, plain
from gateway.kinds.patterns import is_pattern

Schema = dict[str, Any]

#: levels of members that are tried for a param, and the maximum number of schemas in it; deeper members accept any JSON
_DEPTHS, _MAX_PARTS = (6, 5, 4, 3, 2, 1), 150
#: the maximum number of schemas on the first level; of a param with more no member is known
_MAX_MEMBERS = 1_000
#: maximum nesting of `allOf`, `oneOf` and `anyOf`
_MAX_NESTED = 12
#: formats with the same meaning in JSON Schema
_FORMATS = ("date-time", "date", "time", "email", "uuid", "uri", "ipv4", "ipv6", "hostname")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "object": ("minProperties", "maxProperties"),
    "integer": _BOUNDS,
    "number": _BOUNDS,
}
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
#: values of an enumeration, and the characters of each and of all of them; a longer one is left out
_MAX_ENUM, _MAX_VALUE, _MAX_VALUES = 300, 500, 20_000
#: maximum characters of a member's name
_MAX_NAME = 200
#: maximum characters of an example or a default
_MAX_SHOWN = 60


class Schemas:
    """Converts the schemas of one document; results are cached by node and depth."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._read: dict[tuple[int | str, int], Schema] = {}
        self._parts: dict[int, int] = {}
        #: patterns of params that are left out, each once, in their order
        self.unused_patterns: dict[str, None] = {}

    def of_param(self, schema: object, name: str, description: object = "") -> Schema:
        """The schema of a param or member of a request; read-only members are left out."""
        for depth in _DEPTHS:
            found = self._converted(schema, depth)
            if self._size(found) <= _MAX_PARTS:
                break
        if self._size(found) > _MAX_MEMBERS:
            found = self._converted(schema, 0)
        return described(found, name, plain(description))

    def _size(self, schema: Schema) -> int:
        """The number of schemas in one, itself included; cached by `id`, because this object keeps all schemas."""
        size = self._parts.get(id(schema))
        if size is None:
            inner = [*schema.get("properties", {}).values(), *_listed(schema.get("items"))]
            size = 1 + sum(self._size(each) for each in inner if each)
        return size

    def _converted(self, schema: object, depth: int, nested: int = 0) -> Schema:
        # References to one schema share its conversion, so that memory follows the schemas of a document.
        key = (reference_of(schema) or id(schema), depth)
        known = self._read.get(key)
        if known is None:
            known = self._fresh(schema, depth, nested)
            if isinstance(schema, Mapping):
                self._read[key] = known
        return known

    def _fresh(self, schema: object, depth: int, nested: int) -> Schema:
        node = self._document.resolved(schema)
        if nested > _MAX_NESTED:
            return {}
        parts = [self._converted(each, depth, nested + 1) for each in _listed(node.get("allOf"))]
        own = self._own(node, depth)
        choices = [each for name in ("oneOf", "anyOf") for each in _listed(node.get(name))]
        if choices:
            parts.append(union([self._converted(each, depth, nested + 1) for each in choices]))
        found = merged([*parts, own]) if parts else own
        if node.get("nullable") is True:
            found = _nullable(found)
        return found

    def _own(self, node: Node, depth: int) -> Schema:
        """The schema's own keywords, without `allOf`, `oneOf` and `anyOf`."""
        types = _types(node)
        found: Schema = {}
        if types:
            found["type"] = types[0] if len(types) == 1 else types
        description = plain(node.get("description")) or plain(node.get("title"))
        if description:
            found["description"] = description
        values = _enumeration(node, types)
        if values:
            found["enum"] = values
        for type_ in types:
            found |= {name: value for name in _OF_TYPE.get(type_, ()) if (value := _assertion(node, name)) is not None}
        pattern = node.get("pattern")
        if "string" in types and isinstance(pattern, str) and "pattern" not in found and not _is_encoded(node):
            self.unused_patterns[pattern] = None
        if "object" in types:
            found |= self._members(node, depth)
        if "array" in types and depth > 0:
            found["items"] = self._converted(node.get("items"), depth - 1)
        return {**found, **_annotations(node)}

    def _members(self, node: Node, depth: int) -> Schema:
        if depth <= 0:
            return {}
        properties: dict[str, Schema] = {}
        members = self._document.members(node, "properties")
        for name, value in members.items():
            if self._document.resolved(value).get("readOnly") is not True and _is_name(str(name)):
                properties[str(name)] = described(self._converted(value, depth - 1), str(name))
        found: Schema = {"properties": properties} if properties else {}
        required = [each for each in _listed(node.get("required")) if each in properties]
        if required:
            found["required"] = list(dict.fromkeys(required))
        if node.get("additionalProperties") is False and properties and all(map(_is_name, map(str, members))):
            found["additionalProperties"] = False
        return found


def _listed(value: object) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, list) else ()


def _types(node: Node) -> list[str]:
    """The types that a schema names, else those that its members imply."""
    named = node.get("type")
    types = [each for each in ([named] if isinstance(named, str) else named or ()) if each in _TYPES]
    if named == "file":
        types = ["string"]
    if not types:
        implied = {"object": ("properties", "additionalProperties"), "array": ("items",)}
        types = [type_ for type_, members in implied.items() if any(member in node for member in members)]
    if not types and node.get("enum") and all(isinstance(each, str) for each in node["enum"]):
        types = ["string"]
    return list(dict.fromkeys(types))


def _enumeration(node: Node, types: Sequence[str]) -> list[Any]:
    values = [node["const"]] if "const" in node else list(_listed(node.get("enum")))
    if types == ["string"]:
        values = [_text_of(each) for each in values if each is not None]
    elif types in (["integer"], ["number"]):
        values = [each for each in map(_number_of, values) if each is not None]
    is_plain = all(isinstance(each, str | int | float | bool | None) for each in values)
    return list(dict.fromkeys(values)) if is_plain and len(values) <= _MAX_ENUM and _are_shown(values) else []


def _are_shown(values: Sequence[object]) -> bool:
    """Whether the texts of an enumeration are short, and have no characters that a reader does not see."""
    texts = [each for each in values if isinstance(each, str)]
    is_short = sum(map(len, texts)) <= _MAX_VALUES and all(len(each) <= _MAX_VALUE for each in texts)
    return is_short and all(map(is_visible, texts))


def _is_name(name: str) -> bool:
    return len(name) <= _MAX_NAME and is_visible(name)


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number_of(value: object) -> int | float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,15}", value) else None


def _assertion(node: Node, name: str) -> Any:
    """The value of a keyword in JSON Schema 2020-12; None if the keyword is left out."""
    value: Any = node.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _COUNTS:
        return value if is_number and value >= 0 and value % 1 == 0 else None
    if name == "format":
        return value if value in _FORMATS else None
    if name == "pattern":
        return value if isinstance(value, str) and not _is_encoded(node) and is_pattern(value) else None
    if name == "uniqueItems":
        return True if value is True else None
    if name in ("minimum", "maximum") and node.get(f"exclusive{name.capitalize()}") is True:
        return None
    if name.startswith("exclusive") and value is True:
        return node.get(name[9:].lower())
    if name == "multipleOf":  # for a fraction the validator computes exactly, which takes up to 70 µs
        return value if is_number and value > 0 and value % 1 == 0 else None
    return value if is_number else None


def _is_encoded(node: Node) -> bool:
    """Whether a text is a file in base64, which may be long: its pattern says no more."""
    return node.get("format") in ("byte", "binary", "base64") or "contentEncoding" in node


def _annotations(node: Node) -> Schema:
    """The keywords `deprecated`, `default` and `examples` of a schema."""
    found: Schema = {"deprecated": True} if node.get("deprecated") is True else {}
    if _is_shown(node.get("default")):
        found["default"] = node["default"]
    example = node.get("example", next(iter(_listed(node.get("examples"))), None))
    if _is_shown(example):
        found["examples"] = [example]
    return found


def _is_shown(value: object) -> bool:
    return isinstance(value, str | int | float | bool) and 0 < len(str(value)) <= _MAX_SHOWN and is_visible(str(value))


def _nullable(schema: Schema) -> Schema:
    types = schema.get("type")
    if types is None:
        return schema
    listed = [types] if isinstance(types, str) else types
    found = {**schema, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        found["enum"] = [*schema["enum"], None]
    return found


def described(schema: Schema, name: str, description: str = "") -> Schema:
    """The schema with a description: the given one, its own, else the words of its name."""
    text = description or schema.get("description") or phrase(name) or "value"
    return schema if schema.get("description") == text else {**schema, "description": text}


def merged(schemas: Iterable[Schema]) -> Schema:
    """One schema for `allOf`: it has the members of all; later assertions replace earlier ones."""
    found: Schema = {}
    for schema in schemas:
        properties = {**found.get("properties", {}), **schema.get("properties", {})}
        required = list(dict.fromkeys([*found.get("required", ()), *schema.get("required", ())]))
        closed = found.get("additionalProperties") is False and schema.get("additionalProperties") is False
        found = {**found, **schema}
        found.pop("additionalProperties", None)
        for name, value in (("properties", properties), ("required", required)):
            if value:
                found[name] = value
        if closed:
            found["additionalProperties"] = False
    return found


def union(schemas: Sequence[Schema]) -> Schema:
    """One schema for `oneOf` or `anyOf`: it accepts every value that one of them accepts, and perhaps others."""
    if len(schemas) == 1:
        return schemas[0]
    types = list(dict.fromkeys(type_ for schema in schemas for type_ in types_in(schema)))
    if not types or any("type" not in schema for schema in schemas):
        return {}
    found: Schema = {"type": types[0] if len(types) == 1 else types}
    valued = [schema for schema in schemas if schema["type"] != "null"]
    if valued and all("enum" in schema for schema in valued):
        values = [value for schema in valued for value in schema["enum"]]
        found["enum"] = list(dict.fromkeys([*values, *([None] if "null" in types else [])]))
    objects = [schema for schema in schemas if "object" in types_in(schema)]
    if objects:
        found |= _any_object(objects)
    lists = [schema.get("items") or {} for schema in schemas if "array" in types_in(schema)]
    if lists:
        found["items"] = union(lists)
    return found


def types_in(schema: Schema) -> list[str]:
    """The types that `type` names; none without it."""
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


def _any_object(schemas: Sequence[Schema]) -> Schema:
    properties: dict[str, list[Schema]] = {}
    for schema in schemas:
        for name, member in schema.get("properties", {}).items():
            properties.setdefault(name, []).append(member)
    found: Schema = {}
    if properties:
        found["properties"] = {
            name: members[0] if all(each == members[0] for each in members) else described(union(members), name)
            for name, members in properties.items()
        }
    required = set.intersection(*(set(schema.get("required", ())) for schema in schemas))
    if required:
        found["required"] = [name for name in properties if name in required]
    return found
