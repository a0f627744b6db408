"""Filters and sorts rows by a query."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gateway.sandbox.store import Row

_COMPARISONS = {
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}


def matching(rows: Iterable[Row], query: Mapping[str, str], ignored: Collection[str] = ()) -> list[Row]:
    """The rows that match all members of the query; a member that a row does not have is ignored for that row.

    `name=value` and `name[one_of]=value` compare for equality, `name[gte]=value`, `gt`, `lte` and `lt` in order. If a
    member is repeated, one of its values must match. An object matches any value, because `fields` in a query selects
    the shown members.
    """
    values: dict[str, list[str]] = {}
    for key, wanted in query.items():
        values.setdefault(key, []).append(wanted)
    kept = list(rows)
    for key, alternatives in values.items():
        found = re.fullmatch(r"([^\[\]]+)(?:\[(\w+)\])?", key)
        if found is None or found[1] in ignored:
            continue
        name, comparison = found.groups()
        kept = [row for row in kept if not _has(row, name) or _agrees_any(row.value(name), comparison, alternatives)]
    return kept


def ordered(rows: Iterable[Row], name: str | None, *, descending: bool = False) -> list[Row]:
    """The rows sorted by a member, those without it last; without a name in their own order."""
    listed = list(rows)
    if name is None:
        return listed[::-1] if descending else listed
    having = [row for row in listed if row.value(name) is not None]
    having.sort(key=lambda row: sort_key(row.value(name)), reverse=descending)
    return having + [row for row in listed if row.value(name) is None]


def sort_key(value: Any) -> tuple[int, Any]:
    """A sort key: numbers come before texts; texts are compared without case."""
    if isinstance(value, bool | int | float):
        return 0, value
    return 1, str(value).lower()


def _has(row: Row, name: str) -> bool:
    return name in row.record or name in row.refs


def _agrees_any(value: Any, comparison: str | None, alternatives: Iterable[str]) -> bool:
    return any(_agrees(value, comparison, wanted) for wanted in alternatives)


def _agrees(value: Any, comparison: str | None, wanted: str) -> bool:
    if comparison in _COMPARISONS:
        return value is not None and _COMPARISONS[comparison](as_text(value), wanted)
    if comparison == "not_in":
        return as_text(value) != wanted
    if isinstance(value, dict):
        return True
    if isinstance(value, list):
        return wanted in [as_text(item) for item in value]
    return as_text(value) == wanted


def as_text(value: Any) -> str:
    """A value in the form of a query member; an object becomes its id."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return str(value.get("id", value.get("gid", "")))
    return "" if value is None else str(value)
