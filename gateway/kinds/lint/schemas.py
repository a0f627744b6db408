"""Errors in the JSON Schemas of a spec; JSON Schema itself ignores most mistakes silently."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.kinds.patterns import MAX_CLASSES, is_slow, validator_of
from gateway.kinds.placements import json_schema
from gateway.kinds.requests import DefaultTime
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import did_you_mean, nearest

#: the moment of a call whose default times are checked
_A_MOMENT = datetime(2026, 1, 31, 9, tzinfo=UTC)
#: a place in the spec and what is wrong there
PlacedError = tuple[tuple[str, ...], str]

_ONE_SCHEMA = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_SCHEMAS_BY_NAME = ("dependentSchemas", "patternProperties", "properties")
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_ASSERTIONS = (
    *("type", "enum", "const", "format", "pattern", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "uniqueItems", "required", "minProperties", "maxProperties", "dependentRequired"),
)
_ANNOTATIONS = (
    *("$ref", "title", "description", "default", "examples", "deprecated"),
    *("contentEncoding", "contentMediaType", "readOnly", "writeOnly"),
)
_SLOW = f"has more than {MAX_CLASSES} escapes such as \\d or \\w; write ranges such as [0-9]"
KEYWORDS = (*_ONE_SCHEMA, *_SCHEMAS_BY_NAME, *_LISTS_OF_SCHEMAS, *_ASSERTIONS, *_ANNOTATIONS)


def of_param(spec: ConnectorSpec, place: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[PlacedError]:
    """As `of_schema`, for the schema of a param, which may also have `ADDED_KEYWORDS`."""
    plain = json_schema(schema)
    if "default_time" in schema:
        plain["default"] = DefaultTime(**schema["default_time"]).at(_A_MOMENT)
    return of_schema(spec, place, plain)


def of_schema(spec: ConnectorSpec, place: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[PlacedError]:
    """Misspelt keywords, missing definitions, wrong values of keywords, defaults that the schema does not accept."""
    errors = [error for at, part in parts(schema) for error in _of_keywords(spec, (*place, *at), part)]
    errors += [((*place, *at, "pattern"), _SLOW) for at, part in parts(schema) if any(map(is_slow, _patterns(part)))]
    yield from errors
    if errors:
        return
    try:
        validator = validator_of({**schema, "$defs": spec.definitions})
    except ValueError as error:
        where = map(str, getattr(error, "instance_path", ()))
        yield (*place, *where), f"is not JSON Schema: {getattr(error, 'message', error)}"
        return
    for at, part in parts(schema):
        yield from _of_values((*place, *at), part)
    if "default" in schema and not validator.is_valid(schema["default"]):
        yield (*place, "default"), f"{schema['default']!r} is not a value that the param accepts"


def _patterns(schema: Mapping[str, Any]) -> Iterator[str]:
    """The patterns of a schema, without those of schemas within it."""
    named = schema.get("patternProperties")
    found = (schema.get("pattern"), *(named if isinstance(named, Mapping) else ()))
    yield from (each for each in found if isinstance(each, str))


def parts(schema: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """A schema and every schema within it, each with its place."""
    yield at, schema
    for keyword, value in schema.items():
        if keyword in _ONE_SCHEMA and isinstance(value, dict):
            yield from parts(value, (*at, keyword))
        elif keyword in _SCHEMAS_BY_NAME and isinstance(value, dict):
            for name, inner in value.items():
                yield from parts(inner if isinstance(inner, dict) else {}, (*at, keyword, str(name)))
        elif keyword in _LISTS_OF_SCHEMAS and isinstance(value, list):
            for position, inner in enumerate(value):
                yield from parts(inner if isinstance(inner, dict) else {}, (*at, keyword, str(position)))


def undescribed(
    spec: ConnectorSpec, place: tuple[str, ...], schema: Mapping[str, Any], *, is_param: bool = True
) -> Iterator[PlacedError]:
    """An error for a param, or a member within it, without a description; that of a definition counts."""
    for at, part in parts(schema):
        is_named = at[-2:-1] == ("properties",) if at else is_param
        if is_named and not str(resolved(spec, part).get("description", "")).strip():
            yield (*place, *at), "has no description; write in a few words what it means"


def resolved(spec: ConnectorSpec, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with the definition that it refers to."""
    return {**spec.definitions.get(str(schema.get("$ref", "")).removeprefix("#/$defs/"), {}), **schema}


def references(schema: Mapping[str, Any]) -> Iterator[str]:
    """The `$ref`s in a schema."""
    return (part["$ref"] for _, part in parts(schema) if isinstance(part.get("$ref"), str))


def _of_keywords(spec: ConnectorSpec, place: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[PlacedError]:
    for keyword, value in schema.items():
        if keyword not in KEYWORDS:
            yield (*place, str(keyword)), _unknown(str(keyword), value)
        elif keyword in _LISTS_OF_SCHEMAS and not (isinstance(value, list) and all(isinstance(v, dict) for v in value)):
            yield (*place, keyword), "must be a list of schemas, such as [{required: [name]}]"
    defined = [f"#/$defs/{name}" for name in spec.definitions]
    if "$ref" in schema and schema["$ref"] not in defined:
        yield (*place, "$ref"), f"there is no {schema['$ref']}; {did_you_mean(str(schema['$ref']), defined)}"


def _of_values(place: tuple[str, ...], schema: Mapping[str, Any]) -> Iterator[PlacedError]:
    if schema.get("type") == "string":
        for value in schema.get("enum", ()):
            if not isinstance(value, str):
                yield (*place, "enum"), f"{value!r} is not a string: YAML reads yes, no, on and 1.0 as values; quote it"
    properties = schema.get("properties", {})
    if properties and schema.get("additionalProperties") is False:
        for name in schema.get("required", ()):
            if name not in properties:
                yield (*place, "required"), f"{name} is not among the properties; {did_you_mean(name, properties)}"


def _unknown(keyword: str, value: Any) -> str:
    if value is None:
        return "has no value: in {…} a comma ends the text before it; put the text between quotes"
    suggestion = nearest(keyword, KEYWORDS)
    return f"is not a JSON Schema keyword; {f'did you mean {suggestion}?' if suggestion else 'remove it'}"
