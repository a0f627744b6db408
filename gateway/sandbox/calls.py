"""What passes between the sandbox's HTTP side and its applications: a call in, a reply or a refusal out."""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """One request as an application sees it: parsed, its body an object even when there was none."""

    method: str
    path: str
    #: the values of the `{name}` parts of the path, decoded
    params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    #: whether the body came as a form, where every value is text
    is_form: bool
    #: whether it came as JSON, or there was none
    is_json: bool
    #: scheme, host and port under which the caller knows the sandbox
    origin: str
    #: Unix time, seconds
    now: float
    #: the bytes of the body
    content: bytes = b""

    def query_list(self, name: str) -> list[str]:
        """Every value of a query member that may be repeated."""
        return [value for each, value in self.query.items() if each == name]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: text and bytes go out as they are, anything else as JSON."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class FileReply:
    """An answer that is a file of made-up bytes; its number says which, and how long."""

    number: int
    name: str
    content_type: str = "application/octet-stream"


Handler = Callable[[Call], Reply | FileReply]
Record = dict[str, Any]


def nested(place: tuple[str, ...], value: Any) -> Any:
    """The value inside one object for each member of the place."""
    for member in reversed(place):
        value = [*[{}] * int(member), value] if member.isdigit() else {member: value}
    return value


class Refusal(Exception):
    """The application says no; each says it in its own shape, with its usual code when none is given here."""

    def __init__(
        self,
        status: int,
        code: str = "",
        message: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        field: str = "",
    ) -> None:
        super().__init__(message or code or str(status))
        self.status, self.code, self.message, self.field = status, code, message, field
        self.headers = dict(headers or {})


def put(document: Any, place: tuple[str, ...], value: Any) -> None:
    """Set the member at a place, making the objects on the way, and the lists where a member is a position."""
    for member, following in pairwise(place):
        empty: Any = [] if following.isdigit() else {}
        if isinstance(document, list):
            _fill(document, int(member), empty)
            document = document[int(member)]
        else:
            document = document.setdefault(member, empty)
    if isinstance(document, list):
        _fill(document, int(place[-1]), value)
        document[int(place[-1])] = value
    else:
        document[place[-1]] = value


def _fill(items: list[Any], position: int, value: Any) -> None:
    """Make a list long enough for a position, at which the value stands if it is new."""
    while len(items) <= position:
        items.append(value if len(items) == position else {})


def decoded_basic(value: str) -> tuple[str, str, str]:
    """User name, colon and password of RFC 7617, all empty for what is none."""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", "", ""
