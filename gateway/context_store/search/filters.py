r"""Filters as a tree.

A filter object maps operators to their conditions on fields; all members of one object must hold.

- A scalar field (string, integer, number, boolean) has the record's value if that is of the declared type; a value of
  another type counts as missing. Members of objects and arrays may have any type. A path applies to each element of an
  array on its way, so that `events.kind` has one value per event, and a condition holds if it holds for any of them. An
  array at the end of the path counts with its elements. Arrays directly within arrays are not entered.
- `eq` compares JSON values of the same type: numbers by value (1 equals 1.0), strings by code point. `eq null` is true
  where the value is null or missing. On an array, a scalar matches if the array contains it; an array matches an equal
  one, order included; an object matches an equal value or element.
- `in` is true where `eq` is for any value of the list, `neq` where `eq` is not, so also where the value is missing.
- `gt gte lt lte` compare numbers with numbers and strings with strings by code point (so RFC 3339 times in one zone
  compare as times); never true for null, missing or another type. Booleans have no order.
- `like` takes `%` (any run) and `_` (any one character), `\` escapes; without either it means "contains".
  `startswith endswith contains` take their value literally. All four ignore case (`tokenizer.folded`) and match
  strings only.
- `keyword` is true where any of the words occurs, `fuzzy` where all of them do, in any order; for `fuzzy` the beginning
  of a word is enough. Words are runs of letters and digits (`tokenizer.words`); in an object or array, those of all
  strings within it count.
- `array_contains` is true where an array contains an equal scalar, or an object with at least the given members
  (PostgreSQL's `@>`); with a list, where it contains all of them.
- `and`, `or`, `not` have two values: `not` is true exactly where its filter is not.

Sorting compares strings by code point over their first 200 characters and numbers as IEEE doubles; null and missing
come last in both directions; ties are broken by the record's id, in the direction of the last sort field.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.context_store.fields import Field
from gateway.kinds.search_operators import Operator


@dataclass(frozen=True, slots=True)
class Condition:
    """An operator over one field; `parse` writes `neq` as `not eq`, so that no condition has it."""

    operator: Operator
    field: Field
    #: the decoded JSON value
    value: Any


@dataclass(frozen=True, slots=True)
class All:
    """True if every part is; without parts, always true."""

    parts: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True if at least one part is."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if the part is not."""

    part: "Filter"


Filter = Condition | All | AnyOf | Not


@dataclass(frozen=True, slots=True)
class Sort:
    """One field to order by."""

    field: Field
    descending: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A valid search."""

    filter: Filter
    sort: tuple[Sort, ...]
    #: paths to select; None for the whole record
    fields: tuple[tuple[str, ...], ...] | None
    limit: int
    cursor: str | None

    @property
    def used(self) -> Iterator[Field]:
        """The fields by which the search filters and sorts."""
        yield from (sort.field for sort in self.sort)
        yield from _fields_of(self.filter)


def _fields_of(filter_: Filter) -> Iterator[Field]:
    match filter_:
        case Condition():
            yield filter_.field
        case Not():
            yield from _fields_of(filter_.part)
        case All() | AnyOf():
            for part in filter_.parts:
                yield from _fields_of(part)
