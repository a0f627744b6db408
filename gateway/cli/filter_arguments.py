"""Reads search conditions from a command line (`status=open`, `updated_at>2026-01-01`) as a filter."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import click
import msgspec

from gateway.cli.arguments import typed_value

_OPERATORS = {"!=": "neq", ">=": "gte", "<=": "lte", "=": "eq", ">": "gt", "<": "lt", "~": "like"}
_CONDITION = re.compile(r"([\w.]+)\s*(!=|>=|<=|=|>|<|~)\s*(.*)", re.DOTALL)

CONDITIONS_HELP = """\b
Conditions (all must hold):
  status=open  status!=open  id>100  updated_at>=2026-01-01
  subject~fire            contains; % and _ are wildcards
  status=open,pending     one of them
"""


def read_filter(words: Iterable[str], fields: Mapping[str, str], filter_json: str | None) -> dict[str, Any] | None:
    """The filter that all conditions and the JSON filter make; None without any. Raises click.BadParameter."""
    filters = [_condition(word, fields) for word in words]
    if filter_json is not None:
        filters.append(_filter(filter_json))
    if len(filters) < 2:
        return filters[0] if filters else None
    return {"and": filters}


def _condition(word: str, fields: Mapping[str, str]) -> dict[str, Any]:
    parts = _CONDITION.fullmatch(word)
    if parts is None:
        raise click.BadParameter(f"{word!r} is not a condition; write field=value, or != > >= < <= ~")
    name, sign, text = parts.groups()
    schema = {"type": fields.get(name, "string")}
    if sign == "=" and "," in text:
        return {"in": {name: [typed_value(name, part, schema) for part in text.split(",")]}}
    return {_OPERATORS[sign]: {name: text if sign == "~" else typed_value(name, text, schema)}}


def _filter(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
        return found["filter"] if found.keys() == {"filter"} and isinstance(found["filter"], dict) else found
    except msgspec.DecodeError as error:
        raise click.BadParameter(
            f'--filter must be a JSON object such as {{"eq": {{"status": "open"}}}}: {error}'
        ) from error


def read_sort(words: Iterable[str]) -> list[dict[str, str]]:
    """The sort order of words such as `updated_at:desc,id`, by default ascending; raises click.BadParameter."""
    sort = []
    for word in (part for given in words for part in given.split(",")):
        name, _, direction = word.partition(":")
        if direction not in ("", "asc", "desc"):
            raise click.BadParameter(f"{word!r}: write --sort field:asc or field:desc")
        sort.append({name: direction or "asc"})
    return sort
