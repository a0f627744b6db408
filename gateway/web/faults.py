"""Sentences for pydantic's validation errors, with the value that was sent: pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

#: maximum characters of a value in a sentence
_SHOWN_CHARACTERS = 60
#: parts of the names of members whose values are never shown
_SECRETS = ("credential", "secret", "token", "password", "key")

_STRING, _NUMBER, _BOOLEAN = "a string", "a whole number", "true or false"
#: the expected value, by pydantic's type of the error
_EXPECTED: Mapping[str, str] = {
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "an array",
    "string_type": _STRING,
    "int_type": _NUMBER,
    "int_parsing": _NUMBER,
    "int_from_float": _NUMBER,
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "uuid_type": "a UUID",
    "uuid_parsing": "a UUID",
    "is_instance_of": "a UUID",
    "url_type": "a URL",
    "url_parsing": "a URL",
    "url_scheme": "a URL of another scheme",
    "timezone_aware": "a time with its zone such as 2026-01-31T09:00:00Z",
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
        "a time such as 2026-01-31T09:00:00Z",
    ),
}
#: the limit of a value, by pydantic's type of the error; the braces name members of its context
_LIMITS: Mapping[str, str] = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "at least {min_length} items",
    "too_long": "at most {max_length} items",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
}


def sentence(name: str, fault: Mapping[str, Any]) -> str:
    """`limit is "x"; expected a whole number`, from one entry of `ValidationError.errors()` about the member `name`."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return f"{name}: {context['error']}"
    if kind in _EXPECTED:
        expectation = f"expected {_EXPECTED[kind]}"
    elif kind in _LIMITS:
        expectation = _LIMITS[kind].format_map(context)
    else:
        return f"{name} is not valid"
    return f"{name} is {_shown(name, fault['input'])}; {expectation}"


def _shown(name: str, value: object) -> str:
    """The value as JSON, shortened; for objects, arrays and secrets only the type."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if any(word in name.lower() for word in _SECRETS):
        if isinstance(value, str):
            return "a string"
        if value is not None:
            return "not a string"
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, UnicodeError):
        return "that value"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
