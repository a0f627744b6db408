"""How much a schema asks of one value, so that checking params and collecting their errors take bounded time. Pure."""

from collections.abc import Mapping
from typing import Any

#: maximum schemas, required names and values of enumerations that one value is checked with
MAX_BREADTH = 10_000
#: maximum sum of that over all values of a call: 100 ms
MAX_CHECKS = 2_000_000
#: a `multipleOf` that is no whole number takes as long as so many schemas
_FRACTION = 1_000
#: definitions are followed until two references in each have become too many
_ROUNDS = 24
_PREFIX = "#/$defs/"


def breadth_of(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> int:
    """The most schemas, required names and values of enumerations that one value may be checked with."""
    known = dict.fromkeys(definitions, 0)
    for _ in range(_ROUNDS):
        found = {name: min(_breadth(each, known), 2 * MAX_CHECKS) for name, each in definitions.items()}
        if found == known:
            break
        known = found
    return _breadth(schema, known)


def _breadth(node: Any, known: Mapping[str, int]) -> int:
    if isinstance(node, list):
        return sum(_breadth(each, known) for each in node)
    if not isinstance(node, Mapping):
        return 0
    # A value is one of the properties; other keywords may all apply to one value.
    breadth = 1 + max((_breadth(each, known) for each in _members(node, "properties").values()), default=0)
    for keyword, value in node.items():
        if keyword in ("required", "enum") and isinstance(value, list):
            breadth += len(value)
        elif keyword == "multipleOf" and isinstance(value, float) and not value.is_integer():
            breadth += _FRACTION
        elif keyword == "$ref":
            breadth += known.get(str(value).removeprefix(_PREFIX), 0)
        elif keyword in ("patternProperties", "dependentSchemas"):
            breadth += sum(_breadth(each, known) for each in _members(node, keyword).values())
        elif keyword not in ("properties", "$defs", "const", "default", "examples"):
            breadth += _breadth(value, known)
    return breadth


def _members(node: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    value = node.get(keyword)
    return value if isinstance(value, Mapping) else {}
