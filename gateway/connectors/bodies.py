"""The members of a request's body in the encoding that the application reads: JSON, or a form. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from gateway.kinds.spec import FORM

_ENCODER = msgspec.json.Encoder()


def encoded(content_type: str, members: Mapping[str, Any]) -> bytes:
    """The body; in a form nested members are `a[b]`, items of a list `a[]`, and of a list of objects `a[0][b]`."""
    if is_form(content_type):
        return urlencode([pair for name, value in members.items() for pair in _pairs(name, value)]).encode()
    return _ENCODER.encode(members)


def is_form(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == FORM


def text(value: Any) -> str:
    """A value as applications read it in a path, a query or a form."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case list():
            return ",".join(text(item) for item in value)
        case dict():
            return _ENCODER.encode(value).decode()
        case _:
            return str(value)


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for member, inner in value.items():
                yield from _pairs(f"{name}[{member}]", inner)
        case list():
            is_flat = not any(isinstance(item, dict | list) for item in value)
            for index, item in enumerate(value):
                yield from _pairs(f"{name}[]" if is_flat else f"{name}[{index}]", item)
        case None:
            yield name, ""
        case _:
            yield name, text(value)
