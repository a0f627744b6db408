"""Addresses of long answers and files, `gateway://results/{id}{?offset,limit}`, and the call that reads them: pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from yarl import URL

from gateway.errors import InvalidParams

RESULTS = "gateway://results/"


@dataclass(frozen=True, slots=True)
class ResultAddress:
    """A range of a result: records of a list, bytes of anything else."""

    id: str
    offset: int = 0
    limit: int | None = None

    @classmethod
    def of(cls, uri: str) -> "ResultAddress":
        """The address that the URI writes; raises InvalidParams."""
        try:
            url = URL(uri)
        except ValueError as error:
            raise InvalidParams(f"{uri!r} is not an address; write {RESULTS}ID") from error
        if (url.scheme, url.host) != ("gateway", "results"):
            raise InvalidParams(f"{uri!r} is not the address of a result; write {RESULTS}ID")
        return cls(url.path.strip("/"), _number(url.query, "offset") or 0, _number(url.query, "limit"))


def resource_uri(result_id: str, offset: int | None = None, limit: int | None = None) -> str:
    """The address at which a stored answer or a job's file is read."""
    query = "&".join(f"{name}={value}" for name, value in (("offset", offset), ("limit", limit)) if value is not None)
    return f"{RESULTS}{result_id}{'?' + query if query else ''}"


def read_hint(what: str, result_id: str, **arguments: Any) -> str:
    """The call of `read` that gets what is named: `next part: read {"operation":"gateway://results/…","offset":20}`."""
    return f"{what}: read {msgspec.json.encode({'operation': resource_uri(result_id), **arguments}).decode()}"


def _number(query: Mapping[str, str], name: str) -> int | None:
    if name not in query:
        return None
    if not (query[name].isascii() and query[name].isdigit()):
        raise InvalidParams(f"{name} is {query[name]!r}; it is a number, at least 0")
    return int(query[name])
