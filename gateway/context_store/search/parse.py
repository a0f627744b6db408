"""Parses the params of a search; a fault has its JSON pointer and the nearest known name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.context_store.fields import Field, FieldType, resolved
from gateway.context_store.search.filters import All, AnyOf, Condition, Filter, Not, Query, Sort
from gateway.context_store.search.values import as_integer, is_storable, operand_error, shown
from gateway.errors import MAX_FAULTS, FieldError, InvalidQuery
from gateway.kinds.search_operators import CONDITIONS, Operator
from gateway.kinds.suggestions import nearest

DEFAULT_LIMIT = 1_000
MAX_LIMIT = 10_000
#: how deep `and`, `or` and `not` may nest
MAX_DEPTH = 10
#: how many conditions one filter may have
MAX_CONDITIONS = 200
MAX_SORTS = 5
MAX_PATHS = 200
#: similarity from which a known name is suggested
_LIKENESS = 0.6

PARAMS = ("query", "limit", "cursor", "fields")
MEMBERS = ("filter", "sort")
DIRECTIONS = ("asc", "desc")
_OPERATORS, _CONDITIONS = {operator.value: operator for operator in Operator}, frozenset(CONDITIONS)


def parse(params: Mapping[str, Any], fields: Mapping[str, FieldType], at: str = "") -> Query:
    """The search of these params; raises InvalidQuery with all faults, whose pointers begin with `at`."""
    reader = _Reader(fields)
    query = reader.query(params, at)
    if reader.faults:
        raise InvalidQuery(faults=reader.faults)
    return query


def _below(at: str, *members: object) -> str:
    return at + "".join("/" + str(member).replace("~", "~0").replace("/", "~1") for member in members)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _joined(parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else All(tuple(parts))


def _holds_filters(operand: object) -> bool:
    """Whether it can be the operand of an operator: an object of fields, or an array of filters."""
    if isinstance(operand, Mapping):
        return not operand.keys() <= _CONDITIONS
    return isinstance(operand, list | tuple) and any(isinstance(part, Mapping) for part in operand)


def _intended_condition(operand: Any) -> tuple[str, Any]:
    """The intended operator and value if the field comes first: `{"gt": 5}`, `["a", "b"]` or `"open"`."""
    if isinstance(operand, Mapping) and operand and operand.keys() <= _CONDITIONS:
        return next(iter(operand.items()))
    return (Operator.IN if _is_list(operand) else Operator.EQ), operand


class _Reader:
    """Parses one search and collects its faults."""

    def __init__(self, fields: Mapping[str, FieldType]) -> None:
        self.faults: list[FieldError] = []
        self._fields = fields
        self._conditions = 0

    def query(self, params: Mapping[str, Any], at: str) -> Query:
        self._only(params, PARAMS, "param", at)
        query = params.get("query")
        if not isinstance(query, Mapping):
            self._add_fault(_below(at, "query"), "query", "type", "query must be an object with `filter` and `sort`")
            query = {}
        self._only(query, MEMBERS, "member of query", _below(at, "query"))
        filter_ = query.get("filter")
        return Query(
            filter=All() if filter_ is None else self._filter(filter_, _below(at, "query", "filter")),
            sort=self._sorts(query.get("sort"), _below(at, "query", "sort")),
            fields=self._paths(params.get("fields"), _below(at, "fields")),
            limit=self._limit(params.get("limit"), _below(at, "limit")),
            cursor=self._cursor(params.get("cursor"), _below(at, "cursor")),
        )

    def _filter(self, document: Any, at: str, depth: int = 0) -> Filter:
        if depth > MAX_DEPTH:
            self._add_fault(at, "filter", "depth", f"and, or and not are nested deeper than {MAX_DEPTH} levels")
        elif not isinstance(document, Mapping):
            self._add_fault(at, "filter", "type", f"a filter is an object of operators, not {shown(document)}")
        else:
            return _joined(
                [self._operator(name, operand, _below(at, name), depth) for name, operand in document.items()]
            )
        return All()

    def _operator(self, name: str, operand: Any, at: str, depth: int) -> Filter:
        if name in (Operator.AND, Operator.OR):
            return self._group(name, operand, at, depth)
        if name == Operator.NOT:
            return Not(self._filter(operand, at, depth + 1))
        if name not in _OPERATORS:
            self._unknown_operator(name, operand, at)
        elif not isinstance(operand, Mapping) or not operand:
            self._add_fault(
                at, name, "type", f'{name} takes an object of fields, such as {{"{name}": {{"field": value}}}}'
            )
        else:
            return _joined([self._condition(name, field, value, _below(at, field)) for field, value in operand.items()])
        return All()

    def _unknown_operator(self, name: str, operand: Any, at: str) -> None:
        """Add the fault; if a field is in place of an operator, the usual mistake, it shows the correct filter."""
        declared = resolved(name, self._fields) if is_storable(name) else None
        field = (
            declared.name if declared else None if _holds_filters(operand) else nearest(name, self._fields, _LIKENESS)
        )
        if field is None:
            self._unknown(at, name, "operator", _OPERATORS)
            return
        operator, value = _intended_condition(operand)
        example = f'{{"{operator}": {{{shown(field)}: {shown(value)}}}}}'
        message = f"{shown(name)} is not an operator; the operator comes first: write {example}"
        self._add_fault(at, name, "unknown_operator", message)

    def _group(self, name: str, operand: Any, at: str, depth: int) -> Filter:
        if not _is_list(operand) or not operand:
            self._add_fault(at, name, "type", f"{name} takes an array of at least one filter")
            return All()
        parts = [self._filter(part, _below(at, index), depth + 1) for index, part in enumerate(operand)]
        return _joined(parts) if name == Operator.AND else AnyOf(tuple(parts))

    def _condition(self, name: str, field_name: str, value: Any, at: str) -> Filter:
        self._conditions += 1
        if self._conditions == MAX_CONDITIONS + 1:
            self._add_fault(at, field_name, "size", f"a filter has at most {MAX_CONDITIONS} conditions")
        field = self._field(field_name, at)
        if field is None:
            return All()
        operator = Operator.EQ if name == Operator.NEQ else _OPERATORS[name]
        wrong = operand_error(operator, field.type, value)
        if wrong:
            self._add_fault(at, field_name, "type", f"{name} on {field_name} ({field.type}): {wrong}")
        condition = Condition(operator, field, value)
        return Not(condition) if name == Operator.NEQ else condition

    def _sorts(self, document: Any, at: str) -> tuple[Sort, ...]:
        if document is None:
            return ()
        if not _is_list(document) or len(document) > MAX_SORTS:
            example = '[{"updated_at": "desc"}]'
            self._add_fault(at, "sort", "type", f"sort is an array of at most {MAX_SORTS} entries, such as {example}")
            return ()
        sorts = [self._sort(entry, _below(at, index)) for index, entry in enumerate(document)]
        return tuple(sort for sort in sorts if sort)

    def _sort(self, entry: Any, at: str) -> Sort | None:
        if not isinstance(entry, Mapping) or not entry:
            self._add_fault(
                at, "sort", "type", f'a sort entry is an object such as {{"updated_at": "desc"}}, not {shown(entry)}'
            )
            return None
        if len(entry) == 1 and "field" not in entry:
            ((name, direction),) = entry.items()
            name_at = direction_at = _below(at, name)
        else:
            self._only(entry, ("field", "direction"), "member of a sort entry", at)
            name, direction = entry.get("field"), entry.get("direction", "asc")
            name_at, direction_at = _below(at, "field"), _below(at, "direction")
        if direction not in DIRECTIONS:
            self._add_fault(direction_at, "sort", "enum", f"the direction is {shown(direction)}; allowed: asc, desc")
        field = self._field(name, name_at)
        if field is not None and not field.is_scalar:
            message = f"{name} ({field.type}) has no order; sort by a string, number or boolean field"
            self._add_fault(name_at, field.name, "type", message)
        return None if field is None else Sort(field, direction == "desc")

    def _paths(self, document: Any, at: str) -> tuple[tuple[str, ...], ...] | None:
        if document is None:
            return None
        if not _is_list(document) or not 0 < len(document) <= MAX_PATHS:
            self._add_fault(at, "fields", "type", f"fields is an array of 1 to {MAX_PATHS} paths")
            return None
        fields = [self._path(entry, _below(at, index)) for index, entry in enumerate(document)]
        return tuple(field.path for field in fields if field)

    def _path(self, entry: Any, at: str) -> Field | None:
        segments = entry if _is_list(entry) else [entry]
        if not segments or not all(isinstance(segment, str) for segment in segments):
            self._add_fault(at, "fields", "type", f'a path is "user.name" or ["user", "name"], not {shown(entry)}')
            return None
        return self._field(".".join(segments), at)

    def _limit(self, value: Any, at: str) -> int:
        if value is None:
            return DEFAULT_LIMIT
        value = as_integer(value)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_LIMIT:
            return value
        self._add_fault(at, "limit", "range", f"limit is {shown(value)}; it must be an integer from 1 to {MAX_LIMIT}")
        return DEFAULT_LIMIT

    def _cursor(self, value: Any, at: str) -> str | None:
        if value is None or isinstance(value, str):
            return value
        self._add_fault(at, "cursor", "type", "cursor must be the string in the previous page")
        return None

    def _field(self, name: Any, at: str) -> Field | None:
        if not isinstance(name, str):
            self._add_fault(at, "field", "type", f"a field is a string, not {shown(name)}")
            return None
        field = resolved(name, self._fields) if is_storable(name) else None
        if field is None:
            self._unknown(at, name, "field", self._fields)
        return field

    def _only(self, document: Mapping[str, Any], allowed: Iterable[str], what: str, at: str) -> None:
        for name in document:
            if name not in allowed:
                self._unknown(_below(at, name), name, what, allowed)

    def _unknown(self, at: str, name: str, what: str, allowed: Iterable[str]) -> None:
        guess = nearest(name, allowed, _LIKENESS)
        hint = f"did you mean {guess}?" if guess else f"known: {', '.join(sorted(allowed))}"
        article = "an" if what == "operator" else "a"
        self._add_fault(at, name, f"unknown_{what.split()[0]}", f"{shown(name)} is not {article} {what}; {hint}")

    def _add_fault(self, pointer: str, field: str, code: str, message: str) -> None:
        self.faults.append(FieldError(pointer, field, code, message))
        if len(self.faults) == MAX_FAULTS:
            raise InvalidQuery(faults=self.faults)
