"""The values between the sandbox's HTTP side and its applications: a call, and a reply or a refusal."""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.kinds.members import EVERY


@dataclass(frozen=True, slots=True)
class Call:
    """One parsed request; the body is an empty object if there is none."""

    method: str
    path: str
    #: the values of the `{name}` parts of the path, decoded
    params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    #: whether the body is a form, in which every value is text
    is_form: bool
    #: whether the body is JSON or empty
    is_json: bool
    #: scheme, host and port that the caller used
    origin: str
    #: Unix time in seconds
    now: float
    #: the raw body
    content: bytes = b""

    def query_list(self, name: str) -> list[str]:
        """Every value of a query member that may be repeated."""
        return [value for each, value in self.query.items() if each == name]


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: text and bytes are sent unchanged, other values as JSON."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class FileReply:
    """A response with a generated file; the number determines its bytes and its size."""

    number: int
    name: str
    content_type: str = "application/octet-stream"


Handler = Callable[[Call], Reply | FileReply]
Record = dict[str, Any]


def nested(place: tuple[str, ...], value: Any) -> Any:
    """The value at a place within new objects, and within lists if a member is a position or `*`."""
    for member in reversed(place):
        member = "0" if member == EVERY else member
        value = [*[{}] * int(member), value] if member.isdigit() else {member: value}
    return value


def innermost(value: Any) -> Any:
    """The first value that is neither an object nor a list: the id in a filter such as `{"include": ["7"]}`."""
    while isinstance(value, Mapping | list):
        value = next(iter(value.values() if isinstance(value, Mapping) else value), "")
    return value


class Refusal(Exception):
    """The application refuses a call, in its own error format; without a code, with its code for the status."""

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


def decoded_basic(value: str) -> tuple[str, str, str]:
    """User name, colon and password (RFC 7617); all empty if the value is invalid."""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", "", ""
