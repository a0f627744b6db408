"""A form for the params of an operation, and the params of a filled-in form. Pure."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway.errors import FieldError, InvalidParams
from gateway.kinds.columns import weight

#: prefix of field names, which separates params from the form's other fields
PREFIX = "p."
#: maximum nesting of arrays and objects
_MAX_DEPTH = 50


def fields_of(
    schema: Mapping[str, Any],
    params: Mapping[str, Any],
    faults: Sequence[FieldError] = (),
    typed: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """A field for each param, the required ones first, with the messages of `faults`.

    The values are those of `params`, or of the form's fields in `typed`, valid or not.
    """
    required = set(schema.get("required", ()))
    errors: dict[str, str] = {}
    for fault in faults:
        errors.setdefault(fault.field.partition(".")[0], fault.message)
    names = sorted(schema.get("properties", {}), key=lambda name: name not in required)
    definitions = schema.get("$defs", {})
    fields = []
    for name in names:
        member, value = resolved(schema["properties"][name], definitions), params.get(name)
        field = _field(PREFIX + name, name, member, value, typed)
        field |= {"required": name in required, "error": errors.get(name)}
        fields.append(_group(field, member, value, typed, definitions) if _has_members(member) else field)
    return fields


def _field(
    name: str, label: str, schema: Mapping[str, Any], value: Any, typed: Mapping[str, str] | None
) -> dict[str, Any]:
    """An optional field without an error."""
    field = {"name": name, "label": label, "required": False, "error": None, **_control(schema, value)}
    return field if typed is None else {**field, "value": typed.get(name, "")}


def resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema, with its `$ref` replaced by the definition."""
    reference = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if reference not in definitions:
        return schema
    return {**definitions[reference], **{name: value for name, value in schema.items() if name != "$ref"}}


def _has_members(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("properties")) and _type(schema) == "object"


def _group(
    field: dict[str, Any],
    schema: Mapping[str, Any],
    value: Any,
    typed: Mapping[str, str] | None,
    definitions: Mapping[str, Any],
) -> dict[str, Any]:
    """A field for each member of an object, and one for further members as JSON."""
    given = value if isinstance(value, Mapping) else {}
    members = [
        _field(f"{field['name']}.{name}", name, resolved(each, definitions), given.get(name), typed)
        for name, each in schema["properties"].items()
    ]
    others = {name: each for name, each in given.items() if name not in schema["properties"]}
    label = f"Further members of {field['label']}, as JSON"
    rest = _field(field["name"], label, {"type": "object"}, others or None, typed)
    return {**field, "control": "group", "members": [*members, rest]}


def _control(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """The control of a field and its value: a choice, a number, a text, or JSON for objects and arrays."""
    text = _text(value)
    options: list[str] = []
    if "enum" in schema and all(isinstance(each, str | int | bool) for each in schema["enum"]):
        control, options = "select", ["", *map(_text, schema["enum"])]
    else:
        match _type(schema):
            case "boolean":
                control, options = "select", ["", "true", "false"]
            case "integer" | "number":
                control = "number"
            case "object" | "array":
                control, text = "json", "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)
            case _:
                control = "text"
    return {"control": control, "options": options, "value": text, "description": str(schema.get("description", ""))}


def _type(schema: Mapping[str, Any]) -> str:
    type_ = schema.get("type", "string" if "properties" not in schema else "object")
    types = [type_] if isinstance(type_, str) else [each for each in type_ if each != "null"]
    if "$ref" in schema or "anyOf" in schema or "oneOf" in schema:
        return "object"
    return types[0] if len(types) == 1 else "string"


def params_of(schema: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """The params of the filled-in fields, converted by the schema's types; raises InvalidParams for invalid values."""
    texts = {name.removeprefix(PREFIX): text for name, text in fields.items() if name.startswith(PREFIX)}
    faults: list[FieldError] = []
    params: dict[str, Any] = {}
    properties, definitions = schema.get("properties", {}), schema.get("$defs", {})
    for path, text in texts.items():
        name, _, inner = path.partition(".")
        member = properties.get(path, properties.get(name))
        if member is None or not text.strip():
            continue
        member = resolved(member, definitions)
        if path not in properties:
            member = resolved(member.get("properties", {}).get(inner, {}), definitions)
        try:
            value = _value(member, text.strip())
        except ValueError:
            faults.append(FieldError(f"/params/{path}", path, "format", f"{path}: {_expected(member)}"))
            continue
        if path in properties:
            params[path] = {**value, **params[path]} if path in params and isinstance(value, dict) else value
        elif isinstance(params.setdefault(name, {}), dict):
            params[name][inner] = value
    if faults:
        raise InvalidParams(faults=faults)
    return params


def _value(schema: Mapping[str, Any], text: str) -> Any:
    match _type(schema):
        case "boolean":
            return {"true": True, "false": False}.get(text, text)
        case "integer":
            return int(text)
        case "number":
            return _finite(float(text))
        case "object" | "array":
            return json_value(text)
        case _:
            return _chosen(schema, text)


def json_value(text: str) -> Any:
    """The JSON in a text; raises ValueError for other text, or if it is nested too deeply."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise ValueError("the JSON is nested too deeply")
        level = [member for each in level for member in _members(each)]
    return value


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(number: float) -> float:
    return number if math.isfinite(number) else _no_number(str(number))


def _chosen(schema: Mapping[str, Any], text: str) -> Any:
    """The value of an enum, of any type, with this text; the text if there is none."""
    return next((each for each in schema.get("enum", ()) if _text(each) == text), text)


def _expected(schema: Mapping[str, Any]) -> str:
    return {
        "array": "write it as JSON, such as [1, 2]",
        "object": 'write it as JSON, such as {"name": "value"}',
        "integer": "it is a whole number",
    }.get(_type(schema), "it is a number")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def table_of(records: Sequence[Any], max_columns: int = 8) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of records: the members that most records have, at most `max_columns`."""
    counts: dict[str, int] = {}
    for record in records:
        if isinstance(record, Mapping):
            for name, value in record.items():
                counts[name] = counts.get(name, 0) + (not isinstance(value, Mapping | list))
    present = [name for name in counts if counts[name]] or list(counts)
    columns = sorted(present, key=lambda name: (weight(name), -counts[name]))[:max_columns]
    return columns, [list(_cells(record, columns)) for record in records if isinstance(record, Mapping)]


def _cells(record: Mapping[str, Any], columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        value = record.get(name)
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else _text(value)
        yield text if len(text) <= 120 else f"{text[:119]}…"
