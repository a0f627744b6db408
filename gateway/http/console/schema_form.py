"""The params of an operation as a form for a person, and back. Pure."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway.errors import FieldError, InvalidParams

#: before the name of a param, so that it is told apart from what else the form holds
PREFIX = "p."
#: levels of arrays and objects
_MAX_DEPTH = 50


def fields_of(
    schema: Mapping[str, Any],
    params: Mapping[str, Any],
    faults: Sequence[FieldError] = (),
    typed: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """A field for each param, the required ones first; `faults` stand beside them.

    They show the `params`, or a form's fields as they were `typed`, right or wrong.
    """
    required = set(schema.get("required", ()))
    errors: dict[str, str] = {}
    for fault in faults:
        errors.setdefault(fault.field.partition(".")[0], fault.message)
    names = sorted(schema.get("properties", {}), key=lambda name: name not in required)
    return [
        {
            "name": PREFIX + name,
            "label": name,
            "required": name in required,
            "error": errors.get(name),
            **_control(schema["properties"][name], params.get(name)),
            **({} if typed is None else {"value": typed.get(PREFIX + name, "")}),
        }
        for name in names
    ]


def _control(schema: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """What a person fills in: a choice, a number, a text, or JSON for what has members."""
    description = str(schema.get("description", ""))
    if "enum" in schema and all(isinstance(each, str | int | bool) for each in schema["enum"]):
        options = ["", *(_text(each) for each in schema["enum"])]
        return {"control": "select", "options": options, "value": _text(value), "description": description}
    match _type(schema):
        case "boolean":
            return {
                "control": "select",
                "options": ["", "true", "false"],
                "value": _text(value),
                "description": description,
            }
        case "integer" | "number":
            return {"control": "number", "options": [], "value": _text(value), "description": description}
        case "object" | "array":
            text = "" if value is None else json.dumps(value, ensure_ascii=False, indent=2)
            return {"control": "json", "options": [], "value": text, "description": description}
        case _:
            return {"control": "text", "options": [], "value": _text(value), "description": description}


def _type(schema: Mapping[str, Any]) -> str:
    type_ = schema.get("type", "string" if "properties" not in schema else "object")
    types = [type_] if isinstance(type_, str) else [each for each in type_ if each != "null"]
    if "$ref" in schema or "anyOf" in schema or "oneOf" in schema:
        return "object"
    return types[0] if len(types) == 1 else "string"


def params_of(schema: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """The params that were filled in, by the types of the schema; raises InvalidParams for JSON that is none."""
    texts = {name.removeprefix(PREFIX): text for name, text in fields.items() if name.startswith(PREFIX)}
    faults: list[FieldError] = []
    params: dict[str, Any] = {}
    for name, text in texts.items():
        member = schema.get("properties", {}).get(name)
        if member is None or not text.strip():
            continue
        try:
            params[name] = _value(member, text.strip())
        except ValueError:
            faults.append(FieldError(f"/params/{name}", name, "format", f"{name}: {_expected(member)}"))
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
    """The JSON that a person typed; raises ValueError for what is none, or is nested too deeply to be shown again."""
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
    """One of the values of an enum, which may be no text."""
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
    """Columns and rows of records: the members that most of them have, the rest is in their JSON."""
    counts: dict[str, int] = {}
    for record in records:
        if isinstance(record, Mapping):
            for name, value in record.items():
                counts[name] = counts.get(name, 0) + (not isinstance(value, Mapping | list))
    columns = sorted(counts, key=lambda name: -counts[name])[:max_columns]
    return columns, [list(_cells(record, columns)) for record in records if isinstance(record, Mapping)]


def _cells(record: Mapping[str, Any], columns: Sequence[str]) -> Iterator[str]:
    for name in columns:
        value = record.get(name)
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else _text(value)
        yield text if len(text) <= 120 else f"{text[:119]}…"
