"""One page of a search as SQL: which records, in which order, after which position.

A page is read in the one of three ways that reads fewer records:
- *index scan*: along the index of the sort key until the page is full; good if many records match;
- *bitmap scan*: the records that the word index finds are read, filtered and sorted; good if few records match;
- *planner's choice*: PostgreSQL chooses by the arguments, if there are conditions on key columns other than the sort's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.context_store.entities import StoredEntity
from gateway.context_store.search.cursors import Position
from gateway.context_store.search.filters import All, Condition, Filter, Query, Sort
from gateway.context_store.search.sql import Arguments, Conditions, sort_expression
from gateway.context_store.search.terms import TermQuery, Vocabulary
from gateway.context_store.term_dictionary import Containing
from gateway.kinds.search_operators import ORDERING, Operator

#: cost of a record in a bitmap scan, relative to one in an index scan
BITMAP_COST = 3


class Phase(StrEnum):
    """Which records a statement reads. Two statements, because a descending index scan returns nulls first."""

    ALL = "all"
    #: those that have the first sort key
    PRESENT = "present"
    #: those that do not, which come last
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with its arguments; rows have the entity's count and time, and id, document and sort keys of a record."""

    text: str
    arguments: Sequence[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the records of one search are found in one entity."""

    entity: StoredEntity
    query: Query
    #: the column whose index has the order; None if no index has it, and without a sort, which orders by id
    index_column: str | None
    #: the query of the word index; None if it would find more than an index scan reads
    words: TermQuery | None
    #: maximum ids for which a bitmap scan is cheaper
    max_candidates: int
    #: whether PostgreSQL's planner chooses between key columns
    is_planners_choice: bool

    def phases(self, after: Position | None) -> Sequence[tuple[Phase, Position | None]]:
        """The order in which an index scan reads, and the position after which it starts."""
        if self.index_column is None:
            return [(Phase.ALL, after)]
        if after and after.values[0] is None:
            return [(Phase.MISSING, after)]
        if any(bound.value is not None for bound in self.bounds()):
            return [(Phase.PRESENT, after)]
        return [(Phase.PRESENT, after), (Phase.MISSING, None)]

    def bounds(self) -> Sequence[Condition]:
        """The conditions on the scanned key that every match fulfills."""
        return [
            condition
            for condition in required(self.query.filter)
            if self.index_column
            and self.entity.layout.key_of(condition.field) == self.index_column
            and _is_ranged(condition)
        ]


def plan_search(entity: StoredEntity, query: Query, containing: Containing | None = None) -> Plan:
    """The plan with the least estimated work; `containing`: the terms from the dictionary."""
    index_column = entity.layout.key_of(query.sort[0].field) if query.sort else None
    # A bitmap scan of n matches costs n, an index scan to a full page limit × total / n, so they meet at a root.
    break_even = math.isqrt((query.limit + 1) * max(entity.records, 1) // BITMAP_COST)
    max_candidates = break_even if has_index(query, index_column) else max(entity.records // 4, 1_000)
    words = Vocabulary.of(entity, containing).implied(query.filter)
    if words and words.share * entity.records > max_candidates:
        words = None
    keys = {entity.layout.key_of(condition.field) for condition in required(query.filter) if _is_ranged(condition)}
    is_planners_choice = bool(keys - {None, index_column})
    return Plan(
        entity=entity,
        query=query,
        index_column=index_column,
        words=words,
        max_candidates=max_candidates,
        is_planners_choice=is_planners_choice,
    )


def has_index(query: Query, index_column: str | None) -> bool:
    """Whether an index has the order of the query."""
    return not query.sort or index_column is not None


def required(filter_: Filter) -> list[Condition]:
    """The conditions that every match fulfills."""
    match filter_:
        case Condition():
            return [filter_]
        case All(parts):
            return [condition for part in parts for condition in required(part)]
        case _:
            return []


def page(plan: Plan, phase: Phase, limit: int, after: Position | None, *, is_bitmap: bool = False) -> Statement:
    """The first `limit` records of the phase after the position; with `is_bitmap`, of those that the word index finds.

    There is always a row, for the entity's own columns; `is_within_limit` is false if the bitmap scan found too many.
    """
    arguments = Arguments(visible=plan.is_planners_choice)
    # A literal, so that a plan that PostgreSQL caches is one for an entity of this size.
    entity_id = int(plan.entity.id)
    source, is_within_limit = "", "TRUE"
    if is_bitmap and plan.words:
        query = f"{arguments.add(plan.words.text, 'text::tsquery')}, {arguments.add(plan.max_candidates, 'integer')}"
        source = f"WITH candidates AS MATERIALIZED (SELECT context_candidates({entity_id}, {query}) AS ids)"
        is_within_limit = "(SELECT ids IS NOT NULL FROM candidates)"
    keys = [_key(sort, plan, arguments) for sort in plan.query.sort]
    order, records = _order(keys, phase), "context_records"
    conditions = [
        f"r.entity_id = {entity_id}",
        "r.deleted_at IS NULL",
        *(["r.id = ANY ((SELECT ids FROM candidates)::text[])"] if source else []),
        *([f"r.{plan.index_column} IS NOT NULL"] if phase is Phase.PRESENT else []),
        *([f"r.{plan.index_column} IS NULL"] if phase is Phase.MISSING else []),
        *([_after(keys, phase, after, arguments)] if after else []),
    ]
    if source and has_index(plan.query, plan.index_column):
        # The candidates are sorted first, so that few are compared with the filter until the page is full. OFFSET 0
        # keeps the filter out of the scan.
        records = f"(SELECT * FROM context_records AS r WHERE {' AND '.join(conditions)} ORDER BY {order} OFFSET 0)"
        conditions = []
    conditions.append(_filtering(plan, arguments, is_free=bool(source) or plan.is_planners_choice))
    sorts = "".join(f", page.sort_{number}" for number in range(len(keys)))
    selected = "".join(f", {key.expression} AS sort_{number}" for number, key in enumerate(keys))
    text = f"""
        {source}
        SELECT e.records, e.last_synced_at, e.last_synced_at IS NOT NULL AND e.incomplete IS NULL AS is_complete,
            {is_within_limit} AS is_within_limit, page.id, page.document{sorts}
        FROM context_entities AS e LEFT JOIN LATERAL (
            SELECT r.id, r.json_text AS document{selected}
            FROM {records} AS r
            WHERE {" AND ".join(conditions)}
            ORDER BY {order}
            LIMIT {int(limit)}
        ) AS page ON TRUE
        WHERE e.id = {entity_id}
    """
    return Statement(text, arguments.values)


@dataclass(frozen=True, slots=True)
class _Key:
    expression: str
    type: str
    is_descending: bool


def _key(sort: Sort, plan: Plan, arguments: Arguments) -> _Key:
    expression, type_ = sort_expression(sort.field, plan.entity.layout.key_of(sort.field), arguments)
    return _Key(expression, type_, sort.descending)


def _is_ranged(condition: Condition) -> bool:
    return condition.operator in ORDERING | {Operator.EQ}


def _filtering(plan: Plan, arguments: Arguments, *, is_free: bool) -> str:
    """The filter. In an index scan it is hidden from the planner, which would expect few matches and sort instead."""
    conditions = Conditions(Vocabulary.of(plan.entity), arguments)
    if is_free:
        return conditions.of(plan.query.filter)
    bounds = plan.bounds()
    is_covered = plan.query.filter in (All(tuple(bounds)), *bounds)
    hidden = [] if is_covered else [f"CASE WHEN {conditions.of(plan.query.filter)} THEN TRUE END"]
    return " AND ".join([*(conditions.of(bound) for bound in bounds), *hidden]) or "TRUE"


def _order(keys: Sequence[_Key], phase: Phase) -> str:
    directions = ["DESC" if key.is_descending else "ASC" for key in keys]
    parts = [f"{key.expression} {direction} NULLS LAST" for key, direction in zip(keys, directions, strict=True)]
    if phase is Phase.PRESENT:
        # There are no nulls; without NULLS LAST, the order is the index's.
        parts[0] = f"{keys[0].expression} {directions[0]}"
    return ", ".join([*(parts[1:] if phase is Phase.MISSING else parts), f"r.id {(directions or ['ASC'])[-1]}"])


def _after(keys: Sequence[_Key], phase: Phase, after: Position, arguments: Arguments) -> str:
    last = ">" if not keys or not keys[-1].is_descending else "<"
    if phase is Phase.PRESENT and len(keys) == 1:
        start = arguments.add(after.values[0], keys[0].type)
        return f"({keys[0].expression}, r.id) {last} ({start}, {arguments.add(after.id, 'text')})"
    following = f"r.id {last} {arguments.add(after.id, 'text')}"
    pairs = list(zip(keys, after.values, strict=True))
    for key, value in reversed(pairs[1:] if phase is Phase.MISSING else pairs):
        if value is None:
            following = f"({key.expression} IS NULL AND {following})"
            continue
        argument = arguments.add(value, key.type)
        beyond = f"{key.expression} {'<' if key.is_descending else '>'} {argument}"
        following = f"({beyond} OR {key.expression} IS NULL OR ({key.expression} = {argument} AND {following}))"
    if phase is Phase.PRESENT:
        start = arguments.add(after.values[0], keys[0].type)
        following = f"{keys[0].expression} {'<=' if keys[0].is_descending else '>='} {start} AND {following}"
    return following
