"""GROUP BY of the supported SOQL: one record of aggregates for each group."""

import re
from collections.abc import Iterable
from typing import Any

from gateway.sandbox.kinds.crm_query.soql import Query, field_of
from gateway.sandbox.store import Row


def grouped(query: Query, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One record for each group; aggregates without a name are `expr0`, `expr1` and so on."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(field_of(row, name) for name in query.groups), []).append(row)
    return [_group(query, dict(zip(query.groups, key, strict=True)), members) for key, members in groups.items()]


def _group(query: Query, key: dict[str, Any], members: list[Row]) -> dict[str, Any]:
    record: dict[str, Any] = {"attributes": {"type": "AggregateResult"}}
    unnamed = 0
    for name in query.fields:
        found = re.fullmatch(r"(COUNT|SUM|AVG|MIN|MAX)\(\s*(\w+)\s*\)(?:\s+(\w+))?", name, re.IGNORECASE)
        if found is None:
            record[name] = key.get(name)
            continue
        values = [value for value in (field_of(row, found[2]) for row in members) if value is not None]
        record[found[3] or f"expr{unnamed}"] = _total(found[1].upper(), values)
        unnamed += found[3] is None
    return record


def _total(function: str, values: list[Any]) -> Any:
    match function:
        case "COUNT":
            return len(values)
        case "SUM":
            return sum(values)
        case "AVG":
            return sum(values) / len(values) if values else None
        case "MIN":
            return min(values, default=None)
        case _:
            return max(values, default=None)
