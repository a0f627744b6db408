"""Signatures of operations: `tickets.update(ticket_id*, ticket*{status: new|open|…, priority, …}) → ticket`."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.schemas import tool_schema
from gateway.kinds.suggestions import singular

#: maximum params (beyond that only required ones), members of an object, and values of an enum in a signature
_PARAMS, _MEMBERS, _VALUES = 6, 4, 3
#: the actions that filter; the first supports more fields
_FILTERING = (SEARCH_ACTION, "api_search")


def signature_of(entry: OperationEntry) -> str:
    """Params in brief, with required ones first and marked with `*`, and the result.

    The signature of a list that cannot filter names an operation that can.
    """
    schema = tool_schema(entry)
    filtering = filtering_of(entry)
    instead = f"; to filter: {entry.entity_id}.{filtering}" if filtering else ""
    return f"{entry.entity_id}.{entry.action_id}({_members(schema, schema, _PARAMS)}) → {_answer(entry)}{instead}"


def filtering_of(entry: OperationEntry) -> str | None:
    """For a list that cannot filter, the action that filters the same records, if there is one; else None."""
    if entry.action_id != "list" or any(_filters(entry, name) for name in entry.schema.get("properties", {})):
        return None
    return next((each for each in _FILTERING if each in entry.kind.actions_of(entry.entity_id)), None)


def _filters(entry: OperationEntry, name: str) -> bool:
    """Whether a param filters records: it is a query or has the name of a field, unless it is an id or a boolean."""
    plain = name.split(".")[0]
    if plain in ("q", "query", "filter", "text"):
        return True
    schema = entry.schema["properties"][name]
    return plain in entry.fields and not plain.lower().endswith(("id", "ids")) and schema.get("type") != "boolean"


def _members(schema: Mapping[str, Any], root: Mapping[str, Any], max_members: int, depth: int = 0) -> str:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    names = [*(name for name in properties if name in required), *(name for name in properties if name not in required)]
    shown = names[: max(max_members, len(required))]
    texts = [f"{name}{'*' if name in required else ''}{_value(properties[name], root, depth)}" for name in shown]
    return ", ".join([*texts, *(["…"] if len(names) > len(shown) else [])])


def _value(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    """The members of an object or the values of an enum; nothing for other types."""
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].removeprefix("#/$defs/")], **schema}
    if "enum" in schema:
        return f": {_choices(schema['enum'])}"
    if schema.get("properties") and depth == 0:
        return f"{{{_members(schema, root, _MEMBERS, depth + 1)}}}"
    return "[]" if schema.get("type") == "array" else ""


def _choices(values: Iterable[Any]) -> str:
    texts = [str(value) for value in values]
    return "|".join([*texts[:_VALUES], *(["…"] if len(texts) > _VALUES else [])])


def _answer(entry: OperationEntry) -> str:
    action = entry.action
    if action is None:
        return "{data, meta}"
    if action.download:
        return "bytes"
    return entry.entity_id if action.records is not None else singular(entry.entity_id)
