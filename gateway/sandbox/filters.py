"""Which rows a query asks for, and in which order."""

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
    """Rows that agree with every member of the query that names a member of theirs.

    `name=value` compares for equality, `name[gte]=value` and its kin in order, `name[one_of]=value` by membership. If a
    member is repeated, a row agrees with one of its values. Every row agrees about an object: `fields` in a query says
    what is shown.
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
    """Rows by one member, those without it last; as they came when none is named."""
    listed = list(rows)
    if name is None:
        return listed[::-1] if descending else listed
    having = [row for row in listed if row.value(name) is not None]
    having.sort(key=lambda row: sort_key(row.value(name)), reverse=descending)
    return having + [row for row in listed if row.value(name) is None]


def sort_key(value: Any) -> tuple[int, Any]:
    """Numbers before texts, each among themselves."""
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
    """A value as a query writes it; an object stands for its id."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return str(value.get("id", value.get("gid", "")))
    return "" if value is None else str(value)
