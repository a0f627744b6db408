r"""Filters as a tree.

A filter object maps operators to what they ask of fields; everything in one object is required.

- A scalar field (string, integer, number, boolean) has the value its record holds there, if that is of the declared
  type; anything else counts as missing. Below an object or array any type is met; arrays on the way are entered, so
  `events.kind` has one value per event, and a condition holds if it holds for any of them. An array at the end stands
  for its elements as well. Arrays directly inside arrays are not entered.
- `eq` compares JSON values of the same type: numbers by value (1 equals 1.0), strings by code point. `eq null` is true
  where the value is null or missing. With a scalar on an array it asks whether the array holds it; with an array,
  whether the two are equal, order included; with an object, whether the value or an element is equal to it.
- `in` is true where `eq` is for any value of the list, `neq` where `eq` is not, so also where the value is missing.
- `gt gte lt lte` compare numbers with numbers and strings with strings by code point (so RFC 3339 times in one zone
  compare as times); never true for null, missing or another type. Booleans have no order.
- `like` takes `%` (any run) and `_` (any one character), `\` escapes; without either it means "contains".
  `startswith endswith contains` take their value literally. All four ignore case (`tokenizer.folded`) and match
  strings only.
- `keyword` is true where any of the words occurs, `fuzzy` where all of them do, in any order; the beginning of a word
  is enough. Words are runs of letters and digits (`tokenizer.words`); in an object or array those of all the strings
  inside count.
- `array_contains` is true where an array holds an equal scalar, or an object that has at least the given members
  (Postgres' `@>`); with a list, where it holds all of them.
- `and`, `or`, `not` have two values: `not` is true exactly where its filter is not.

Sorting compares strings by code point over their first 200 characters and numbers as IEEE doubles; null and missing
come last in both directions; ties are broken by the record's id, in the direction of the last sort field.
"""

from dataclasses import dataclass
from typing import Any

from gateway.context_store.fields import Field
from gateway.kinds.search_operators import Operator


@dataclass(frozen=True, slots=True)
class Condition:
    """An operator over one field; `parse` writes `neq` as `not eq`, so that no condition has it."""

    operator: Operator
    field: Field
    #: as JSON gave it
    value: Any


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds; no parts hold always."""

    parts: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: "Filter"


Filter = Condition | All | AnyOf | Not


@dataclass(frozen=True, slots=True)
class Sort:
    """One field to order by."""

    field: Field
    descending: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A search that is known to be valid."""

    filter: Filter
    sort: tuple[Sort, ...]
    #: paths to keep, or None for the whole record
    fields: tuple[tuple[str, ...], ...] | None
    limit: int
    cursor: str | None
