"""Makes the values of an example call and checks them against their schemas. Pure."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from gateway.kinds.importing.schemas import Schema
from gateway.kinds.patterns import OPTIONS, validator_of

_TEXTS: Mapping[str, str] = {
    "date-time": "2026-01-31T09:00:00Z",
    "date": "2026-01-31",
    "time": "09:00:00Z",
    "email": "person@example.com",
    "uuid": "6b1f6f0e-6a0e-4a43-9a3c-0f7f6d8f2a11",
    "uri": "https://example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
}
#: keywords that a generated value may not satisfy
_HARD = ("pattern", "format", "uniqueItems", "multipleOf")
_DEEPEST = 8


def with_example(schema: Schema) -> tuple[Schema, Any]:
    """The schema and a value that it accepts; assertions that no generated value satisfies are removed from it."""
    for found in (schema, _without(schema, _HARD), {name: schema[name] for name in ("description",) if name in schema}):
        value = example_of(found)
        if validator_of(found).is_valid(value):
            return found, value
    return {"description": schema.get("description", "value")}, "example"


def _without(schema: Schema, keywords: tuple[str, ...]) -> Schema:
    found = {name: value for name, value in schema.items() if name not in keywords}
    if "properties" in found:
        found["properties"] = {name: _without(each, keywords) for name, each in found["properties"].items()}
    if isinstance(found.get("items"), dict):
        found["items"] = _without(found["items"], keywords)
    return found


def example_of(schema: Schema, depth: int = 0) -> Any:
    """The example of the schema that is valid, else a generated value."""
    for value in (*schema.get("examples", ()), *schema.get("enum", ())):
        if jsonschema_rs.Draft202012Validator(schema, pattern_options=OPTIONS).is_valid(value):
            return value
    types = schema.get("type", "string")
    match types if isinstance(types, str) else types[0]:
        case "integer" | "number" as type_:
            return _number(schema, type_)
        case "boolean":
            return True
        case "array":
            count = max(schema.get("minItems", 1), 1) if depth < _DEEPEST else schema.get("minItems", 0)
            return [example_of(schema.get("items") or {}, depth + 1)] * min(count, schema.get("maxItems", count))
        case "object":
            return _object(schema, depth)
        case "null":
            return None
    return _text(schema)


def _text(schema: Schema) -> str:
    text = _TEXTS.get(schema.get("format", ""), "example")
    if len(text) < schema.get("minLength", 0):
        text = text + "x" * (schema["minLength"] - len(text))
    return text[: schema.get("maxLength", len(text))]


def _number(schema: Schema, type_: str) -> int | float:
    step = schema.get("multipleOf", 1)
    if "exclusiveMinimum" in schema:
        value = schema["exclusiveMinimum"] + step
    else:
        value = max(schema.get("minimum", step), min(step, schema.get("maximum", step)))
    return int(value) if type_ == "integer" else value


def _object(schema: Schema, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    names = list(schema.get("required", ()))
    missing = schema.get("minProperties", 0) - len(names)
    names += [name for name in properties if name not in names][: max(missing, 0)]
    return {name: example_of(properties.get(name, {}), depth + 1) for name in names}
