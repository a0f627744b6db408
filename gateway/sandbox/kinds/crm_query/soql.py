"""A subset of SOQL: SELECT … FROM … [WHERE …] [GROUP BY …] [ORDER BY …] [LIMIT …] [OFFSET …] over rows."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.sandbox import filters
from gateway.sandbox.store import Row

Condition = Callable[[Row], bool]

_TOKEN = re.compile(r"\s*('(?:\\.|[^'\\])*'|<=|>=|!=|<>|[(),=<>]|[^\s(),=<>!']+)")
_QUERY = re.compile(
    r"\s*SELECT\s+(?P<fields>.+?)\s+FROM\s+(?P<object>\w+)(?P<rest>.*)$", flags=re.IGNORECASE | re.DOTALL
)


class MalformedQuery(Exception):
    """The text is not a query, or one that the sandbox does not support."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    fields: tuple[str, ...]
    object: str
    condition: Condition = lambda row: True
    #: fields to sort by, and whether in descending order
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    #: fields to group by
    groups: tuple[str, ...] = ()

    @property
    def is_count(self) -> bool:
        return len(self.fields) == 1 and self.fields[0].upper().replace(" ", "") == "COUNT()"

    def names(self, all_names: Iterable[str]) -> list[str]:
        """The fields of a record in the response."""
        if any(name.upper().startswith("FIELDS(") for name in self.fields):
            return list(all_names)
        return list(self.fields)


@dataclass(slots=True)
class _Reader:
    """Reads the tokens of a query after its object, one after the other."""

    tokens: list[str] = field(default_factory=list)
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            raise MalformedQuery("unexpected end of the query")
        self.at += 1
        return token

    def takes(self, *words: str) -> bool:
        """Read these words if they are the next ones, in any case; returns whether they were."""
        found = [token.upper() for token in self.tokens[self.at : self.at + len(words)]]
        if found != list(words):
            return False
        self.at += len(words)
        return True


def parse(text: str) -> Query:
    """Parse a query; raises MalformedQuery."""
    found = _QUERY.match(text)
    if found is None:
        raise MalformedQuery("expected SELECT fields FROM object")
    reader = _Reader(_tokens(found["rest"]))
    condition: Condition = _condition(reader) if reader.takes("WHERE") else lambda row: True
    groups = _names(reader) if reader.takes("GROUP", "BY") else ()
    order = _order(reader) if reader.takes("ORDER", "BY") else ()
    limit = _number(reader) if reader.takes("LIMIT") else None
    offset = _number(reader) if reader.takes("OFFSET") else 0
    if reader.peek():
        raise MalformedQuery(f"unexpected token: {reader.peek()}")
    fields = tuple(name.strip() for name in re.split(r",(?![^()]*\))", found["fields"]))
    return Query(fields, found["object"], condition=condition, order=order, limit=limit, offset=offset, groups=groups)


def run(query: Query, rows: Iterable[Row]) -> Sequence[Row]:
    """All rows that a query selects, in its order."""
    found: Sequence[Row] = [row for row in rows if query.condition(row)]
    for name, descending in reversed(query.order):
        found = filters.ordered(found, _member(name, found), descending=descending)
    end = None if query.limit is None else query.offset + query.limit
    return found[query.offset : end]


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise MalformedQuery(f"unexpected character at: {text[at:].strip()[:20]}")
        tokens.append(found[1])
        at = found.end()
    return tokens


def _condition(reader: _Reader) -> Condition:
    """A condition of terms with OR, AND, NOT and brackets."""
    choices = [_all_of(reader)]
    while reader.takes("OR"):
        choices.append(_all_of(reader))
    return lambda row: any(choice(row) for choice in choices)


def _all_of(reader: _Reader) -> Condition:
    terms = [_term(reader)]
    while reader.takes("AND"):
        terms.append(_term(reader))
    return lambda row: all(term(row) for term in terms)


def _term(reader: _Reader) -> Condition:
    if reader.takes("NOT"):
        inner = _term(reader)
        return lambda row: not inner(row)
    if reader.takes("("):
        inner = _condition(reader)
        if not reader.takes(")"):
            raise MalformedQuery("a bracket is not closed")
        return inner
    name = reader.next()
    if reader.takes("NOT", "IN"):
        excluded = _values(reader)
        return lambda row: field_of(row, name) not in excluded
    if reader.takes("IN"):
        allowed = _values(reader)
        return lambda row: field_of(row, name) in allowed
    if reader.takes("LIKE"):
        pattern = re.escape(str(_value(reader.next())).lower()).replace("%", ".*").replace("_", ".")
        return lambda row: re.fullmatch(pattern, str(field_of(row, name) or "").lower(), re.DOTALL) is not None
    return _comparison(name, reader.next(), _value(reader.next()))


def _comparison(name: str, operator: str, wanted: Any) -> Condition:
    match operator:
        case "=":
            return lambda row: field_of(row, name) == wanted
        case "!=" | "<>":
            return lambda row: field_of(row, name) != wanted
        case "<" | ">" | "<=" | ">=":
            return lambda row: _is_in_order(field_of(row, name), operator, wanted)
    raise MalformedQuery(f"unexpected token: {operator}")


def _is_in_order(have: Any, operator: str, wanted: Any) -> bool:
    if have is None or wanted is None:
        return False
    left, right = filters.sort_key(have), filters.sort_key(wanted)
    return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[operator]


def _order(reader: _Reader) -> tuple[tuple[str, bool], ...]:
    parts = []
    while True:
        name = reader.next()
        descending = reader.takes("DESC")
        if not descending:
            reader.takes("ASC")
        _ = reader.takes("NULLS", "FIRST") or reader.takes("NULLS", "LAST")
        parts.append((name, descending))
        if not reader.takes(","):
            return tuple(parts)


def _names(reader: _Reader) -> tuple[str, ...]:
    names = [reader.next()]
    while reader.takes(","):
        names.append(reader.next())
    return tuple(names)


def _number(reader: _Reader) -> int:
    token = reader.next()
    if not token.isdigit():
        raise MalformedQuery(f"expected a number, found {token}")
    return int(token)


def _values(reader: _Reader) -> list[Any]:
    if not reader.takes("("):
        raise MalformedQuery("IN needs a list in brackets")
    values = [_value(reader.next())]
    while reader.takes(","):
        values.append(_value(reader.next()))
    if not reader.takes(")"):
        raise MalformedQuery("the list after IN is not closed")
    return values


def _value(token: str) -> Any:
    """A literal: text in quotes, a number, a boolean or null; a date or time is compared as text."""
    if token.startswith("'"):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    match token.lower():
        case "true" | "false" as truth:
            return truth == "true"
        case "null":
            return None
    try:
        return float(token)
    except ValueError:
        return _as_stored(token)


def _as_stored(moment: str) -> str:
    """A time in the format of records: `2025-03-01T00:00:00Z` becomes `2025-03-01T00:00:00.000+0000`."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,3})?(?:Z|\+00:?00)", moment)
    return f"{found[1]}{(found[2] or '.').ljust(4, '0')}+0000" if found else moment


def field_of(row: Row, name: str) -> Any:
    """A field of a record by its name in any case."""
    member = _member(name, [row])
    return row.record.get(member) if member else None


def _member(name: str, rows: Sequence[Row]) -> str | None:
    if not rows or name in rows[0].record:
        return name
    return next((member for member in rows[0].record if member.lower() == name.lower()), None)
