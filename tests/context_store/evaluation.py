"""What a filter means, in plain Python: the yardstick for the SQL."""

import re
from typing import Any

from gateway.context_store.fields import NUMBERS, Field, FieldType
from gateway.context_store.search.filters import All, AnyOf, Condition, Filter, Not
from gateway.kinds.search_operators import Operator

MISSING = object()
WORD = re.compile(r"[^\W_]+")


def evaluate(filter_: Filter, document: Any) -> bool:
    """Whether the record matches."""
    match filter_:
        case All(parts):
            return all(evaluate(part, document) for part in parts)
        case AnyOf(parts):
            return any(evaluate(part, document) for part in parts)
        case Not(part):
            return not evaluate(part, document)
        case Condition(operator, field, value):
            return _holds(operator, value, values_of(field, document))


def values_of(field: Field, document: Any) -> list[Any]:
    if not field.is_scalar:
        return walked([document], field.path)
    value = document
    for segment in field.path:
        value = value.get(segment) if isinstance(value, dict) else None
    return [value] if _is_of(field.type, value) else []


def walked(values: list[Any], path: tuple[str, ...]) -> list[Any]:
    for segment in path:
        inside = unwrapped(values)
        values = [value[segment] for value in inside if isinstance(value, dict) and segment in value]
    return values


def unwrapped(values: list[Any]) -> list[Any]:
    return [element for value in values for element in (value if isinstance(value, list) else [value])]


def _is_of(type_: FieldType, value: Any) -> bool:
    if type_ is FieldType.STRING:
        return isinstance(value, str)
    if type_ is FieldType.BOOLEAN:
        return isinstance(value, bool)
    return type_ in NUMBERS and is_number(value)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(left: Any, right: Any) -> bool:
    if is_number(left) and is_number(right):
        return left == right
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def contains(holder: Any, held: Any) -> bool:
    """Postgres' @> on JSON."""
    if isinstance(holder, dict) and isinstance(held, dict):
        return all(key in holder and contains(holder[key], value) for key, value in held.items())
    if isinstance(holder, list) and isinstance(held, list):
        return all(any(contains(element, value) for element in holder) for value in held)
    return same(holder, held)


def fold(text: str) -> str:
    return "".join("i" if c == "\u0130" else c.lower() for c in text).replace("ς", "σ")


def matches(pattern: str, text: str) -> bool:
    regex, is_wild, characters = "", False, iter(fold(pattern))
    for character in characters:
        if character == "\\":
            regex += re.escape(next(characters, "\\"))
        elif character in "%_":
            is_wild = True
            regex += ".*" if character == "%" else "."
        else:
            regex += re.escape(character)
    found = re.fullmatch if is_wild else re.search
    return found(regex, fold(text), re.DOTALL) is not None


def strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in inside for text in strings_in(member)]


def words_in(values: list[Any]) -> list[str]:
    return [word for text in strings_in(values) for word in WORD.findall(fold(text))]


def _equal(value: Any, values: list[Any]) -> bool:
    if value is None:
        return all(found is None for found in values)
    if isinstance(value, list):
        return any(same(found, value) for found in values)
    return any(same(found, value) for found in unwrapped(values))


def _ordered(operator: Operator, found: Any, value: Any) -> bool:
    comparable = (is_number(found) and is_number(value)) or (isinstance(found, str) and isinstance(value, str))
    if not comparable:
        return False
    return {
        Operator.GT: found > value,
        Operator.GTE: found >= value,
        Operator.LT: found < value,
        Operator.LTE: found <= value,
    }[operator]


def _holds(operator: Operator, value: Any, values: list[Any]) -> bool:
    texts = [fold(found) for found in unwrapped(values) if isinstance(found, str)]
    match operator:
        case Operator.EQ:
            return _equal(value, values)
        case Operator.IN:
            return any(_equal(element, values) for element in value)
        case Operator.LIKE:
            return any(matches(value, text) for text in texts)
        case Operator.STARTSWITH:
            return any(text.startswith(fold(value)) for text in texts)
        case Operator.ENDSWITH:
            return any(text.endswith(fold(value)) for text in texts)
        case Operator.CONTAINS:
            return any(fold(value) in text for text in texts)
        case Operator.KEYWORD:
            return not set(words_in([value])).isdisjoint(words_in(values))
        case Operator.FUZZY:
            return all(any(word.startswith(asked) for word in words_in(values)) for asked in words_in([value]))
        case Operator.ARRAY_CONTAINS:
            held = value if isinstance(value, list) else [value]
            return any(contains(found, held) for found in values if isinstance(found, list))
        case _:
            return any(_ordered(operator, found, value) for found in unwrapped(values))
