"""Which operators a field type allows, and which values."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from gateway.context_store.fields import NUMBERS, SCALARS, FieldType
from gateway.context_store.tokenizer import words
from gateway.kinds.search_operators import MATCHING, ORDERING, SEEKING, Family, Operator

MAX_IN = 1_000
#: maximum characters of a string in a filter
MAX_STRING = 4_096
#: maximum bytes of an array or object in a filter
MAX_COMPOSITE = 16_384
#: maximum `%` of a pattern; each multiplies its cost
MAX_WILDCARDS = 8
#: a little less than the largest double; applications have no larger numbers
MAX_MAGNITUDE = 1e300

_DYNAMIC = frozenset({FieldType.ARRAY, FieldType.ANY})
_TEXTUAL = _DYNAMIC | {FieldType.STRING}

#: family of operators → the field types that allow them
FITTING: Mapping[Family, frozenset[FieldType]] = {
    Family.EQUALITY: frozenset(FieldType),
    Family.MEMBERSHIP: frozenset(FieldType),
    Family.ORDER: _TEXTUAL | NUMBERS,
    Family.TEXT: _TEXTUAL,
    Family.WORDS: _TEXTUAL | {FieldType.OBJECT},
    Family.ARRAY: _DYNAMIC,
}


def operand_error(operator: Operator, type_: FieldType, value: object) -> str | None:
    """Why the operator cannot be used with a field of this type and this value; None if it can."""
    if type_ not in FITTING[operator.family]:
        instead = "; name one of its members, such as via.channel" if type_ is FieldType.OBJECT else ""
        return f"the operator works on {', '.join(sorted(FITTING[operator.family]))}{instead}"
    if operator.family is Family.MEMBERSHIP:
        return _list_error(value, type_)
    if operator in MATCHING | SEEKING:
        return _text_error(operator, value)
    if operator in ORDERING:
        return _order_error(value, type_)
    return _value_error(value, type_)


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text: no NUL and no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_integer(value: object) -> object:
    """The integer of 2.0 or "2"; any other value unchanged."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value) else value


def shown(value: object) -> str:
    """The value as text for a message, at most 60 characters."""
    try:
        text = msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return "that value"
    return text if len(text) <= 60 else text[:57] + "..."


def _list_error(value: object, type_: FieldType) -> str | None:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > MAX_IN:
        return f"the value must be an array of at most {MAX_IN} values"
    errors = (_value_error(element, type_) for element in value)
    return next((error for error in errors if error), None)


def _text_error(operator: Operator, value: object) -> str | None:
    if not isinstance(value, str):
        return f"{shown(value)} is not a string"
    if operator is Operator.LIKE and value.count("%") > MAX_WILDCARDS:
        return f"the pattern has more than {MAX_WILDCARDS} %"
    error = _string_error(value)
    if error is None and operator in SEEKING and not words(value):
        return "the value has no word (a run of letters or digits)"
    return error


def _order_error(value: object, type_: FieldType) -> str | None:
    if value is None:
        return "null has no order; use eq with null"
    if type_ not in SCALARS and not isinstance(value, str) and not is_number(value):
        return f"{shown(value)} is not a string or a number"
    return _value_error(value, type_)


def _value_error(value: object, type_: FieldType) -> str | None:
    if value is None:
        return None
    if not _is_of_type(value, type_):
        return f"{shown(value)} is not {_NAMED[type_]}"
    if isinstance(value, str):
        return _string_error(value)
    if isinstance(value, int | float):
        return None if abs(value) <= MAX_MAGNITUDE else "the number is out of range"
    return _composite_error(value)


_NAMED: Mapping[FieldType, str] = {
    FieldType.STRING: "a string",
    FieldType.INTEGER: "a number",
    FieldType.NUMBER: "a number",
    FieldType.BOOLEAN: "true or false",
    FieldType.OBJECT: "an object",
}


def _is_of_type(value: object, type_: FieldType) -> bool:
    match type_:
        case FieldType.STRING:
            return isinstance(value, str)
        case FieldType.INTEGER | FieldType.NUMBER:
            return is_number(value)
        case FieldType.BOOLEAN:
            return isinstance(value, bool)
        case FieldType.OBJECT:
            return isinstance(value, Mapping)
        case FieldType.ARRAY | FieldType.ANY:
            return True


def _string_error(value: str) -> str | None:
    if len(value) > MAX_STRING:
        return f"the string is longer than {MAX_STRING} characters"
    return None if is_storable(value) else "the string has a NUL or a lone surrogate"


def _composite_error(value: object) -> str | None:
    try:
        encoded = msgspec.json.encode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError):
        return "the value is not JSON"
    if len(encoded) > MAX_COMPOSITE:
        return f"the value is longer than {MAX_COMPOSITE} bytes"
    return "the value has a NUL" if b"\\u0000" in encoded else None
