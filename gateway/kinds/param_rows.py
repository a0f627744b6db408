"""The params of an operation as rows of a table, including the members of objects: pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PREFIX = "#/$defs/"


@dataclass(frozen=True, slots=True)
class ParamRow:
    """A param, or a member within one: `ticket.comment.body`, and `[]` for the items of an array."""

    name: str
    type: str
    is_required: bool
    meaning: str


def param_rows(schema: Mapping[str, Any]) -> Iterator[ParamRow]:
    """Every param of a JSON Schema of params, each followed by its members; recursive definitions are entered once."""
    yield from _members(schema, "", schema.get("$defs", {}), frozenset())


def _members(
    schema: Mapping[str, Any], prefix: str, definitions: Mapping[str, Any], entered: frozenset[str]
) -> Iterator[ParamRow]:
    required = {*schema.get("required", ()), *_required_by_all_of(schema)}
    for name, member in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        reference = str(member.get("$ref", "")).removeprefix(_PREFIX)
        resolved = {**definitions.get(reference, {}), **member}
        yield ParamRow(path, type_name(resolved), name in required, str(resolved.get("description", "")))
        if reference not in entered:
            yield from _within(resolved, path, definitions, entered | ({reference} if reference else set()))


def _within(
    schema: Mapping[str, Any], path: str, definitions: Mapping[str, Any], entered: frozenset[str]
) -> Iterator[ParamRow]:
    """The members of an object, or of the objects in an array."""
    items = schema.get("items", {})
    reference = str(items.get("$ref", "")).removeprefix(_PREFIX)
    if reference in entered:
        return
    yield from _members(schema, f"{path}.", definitions, entered)
    within = entered | ({reference} if reference else set())
    yield from _members({**definitions.get(reference, {}), **items}, f"{path}[].", definitions, within)


def _required_by_all_of(schema: Mapping[str, Any]) -> Iterator[str]:
    for part in schema.get("allOf", ()):
        yield from part.get("required", ())


def type_name(schema: Mapping[str, Any]) -> str:
    """The type in words: `open | closed`, `array of string`, `string or null`."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    declared = schema.get("type", "any")
    name = declared if isinstance(declared, str) else " or ".join(declared)
    return f"array of {type_name(schema['items'])}" if name == "array" and schema.get("items") else name
