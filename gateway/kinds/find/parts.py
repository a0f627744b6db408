"""Splits long schemas: a definition that is left out of a description is described separately, as a part.

A part is named `kind.entity.action#definition`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.errors import InvalidParams
from gateway.kinds.find.entries import OperationEntry
from gateway.kinds.find.schemas import definitions_used, tool_schema
from gateway.kinds.suggestions import did_you_mean

#: separates the name of an operation from the name of a part
PART = "#"


def size_of(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def within(schema: Mapping[str, Any], entry: OperationEntry, max_bytes: int) -> dict[str, Any]:
    """The schema within `max_bytes`, with as few definitions as possible replaced by references to parts."""
    shortened, named = dict(schema), set[str]()
    while size_of(shortened) > max_bytes and (left := shortened.get("$defs", {}).keys() - named):
        name, shortened = min(
            ((name, _without(shortened, name, entry)) for name in sorted(left)), key=lambda each: size_of(each[1])
        )
        named.add(name)
    return shortened


def part_of(entry: OperationEntry, name: str, max_bytes: int) -> dict[str, Any]:
    """The description of a part; raises InvalidParams if there is no such definition."""
    definitions = tool_schema(entry).get("$defs", {})
    if name not in definitions:
        raise InvalidParams(f"{entry.name} has no part {name!r}; {did_you_mean(name, definitions)}")
    used = definitions_used(definitions[name], definitions)
    schema = {**definitions[name], **({"$defs": used} if used else {})}
    return {"operation": entry.name, "part": name, "schema": within(schema, entry, max_bytes)}


def _without(schema: Mapping[str, Any], name: str, entry: OperationEntry) -> dict[str, Any]:
    """The schema with a reference in place of a definition, and without definitions that only this one used."""
    reference = {"description": f'see describe_operation("{entry.name}{PART}{name}")'}
    definitions = {**schema["$defs"], name: reference}
    plain = {keyword: value for keyword, value in schema.items() if keyword != "$defs"}
    return {**plain, "$defs": definitions_used(plain, definitions)}
