"""Writes ids and names into the paths of requests."""

from urllib.parse import quote
from uuid import UUID

from gateway.errors import InvalidParams


def segment(value: str | UUID) -> str:
    """One segment of a path, percent-encoded (RFC 3986 §3.3).

    Raises InvalidParams for an empty or relative one, with which the request would go to another path.
    """
    if value in ("", ".", ".."):
        raise InvalidParams(f"{value!r} is no id and no name; give that of the item you mean")
    return quote(str(value), safe="")
