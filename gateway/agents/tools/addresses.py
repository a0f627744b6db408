"""URIs of long answers and files, `gateway://results/{id}{?offset,limit}`, and hints how to read them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from yarl import URL

from gateway.errors import InvalidParams

RESULTS = "gateway://results/"
_MAX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class ResultAddress:
    """A range of a result; offset and limit count the records of a list, else bytes."""

    id: str
    offset: int = 0
    limit: int | None = None

    @classmethod
    def of(cls, uri: str) -> "ResultAddress":
        """Parse a URI; raises InvalidParams."""
        try:
            url = URL(uri)
        except ValueError as error:
            raise InvalidParams(f"{uri!r} is not a URI; write {RESULTS}ID") from error
        if (url.scheme, url.host) != ("gateway", "results"):
            raise InvalidParams(f"{uri!r} is not the address of a result; write {RESULTS}ID")
        return cls(url.path.strip("/"), _number(url.query, "offset", 0) or 0, _number(url.query, "limit", 1))


def resource_uri(result_id: str, offset: int | None = None, limit: int | None = None) -> str:
    """The URI of a stored answer or a job's file."""
    query = "&".join(f"{name}={value}" for name, value in (("offset", offset), ("limit", limit)) if value is not None)
    return f"{RESULTS}{result_id}{'?' + query if query else ''}"


def read_hint(label: str, result_id: str, **arguments: Any) -> str:
    """A call of `read`, after a label: `next part: read {"operation":"gateway://results/…","offset":20}`."""
    return f"{label}: read {msgspec.json.encode({'operation': resource_uri(result_id), **arguments}).decode()}"


def _number(query: Mapping[str, str], name: str, minimum: int) -> int | None:
    if name not in query:
        return None
    text = query[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) >= minimum):
        raise InvalidParams(
            f"{name} is {text!r}; it must be an integer of at least {minimum}, with up to {_MAX_DIGITS} digits"
        )
    return int(text)
