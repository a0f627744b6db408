"""Where each param of an action goes in the request, and under which name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gateway.kinds.requests import Action, ParamStyle

#: the keywords that the spec language adds to JSON Schema: where a param goes, its name there, and a default that
#: depends on the time
ADDED_KEYWORDS = ("in", "as", "style", "explode", "text", "default_time")
#: the part of `as` that stands for the one item of a list in a body: `as: campaigns.0.name`
FIRST_ITEM = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a param goes in the request, and its name there."""

    name: str
    #: one of the values of `in`
    where: str
    #: the name in the request
    wire: str
    #: how a list or an object is written; None for the default of the place
    style: ParamStyle | None = None
    explode: bool = True
    #: the text to send, which holds params: `refs/heads/{branch}`; None sends the value itself
    text: str | None = None


def placements_of(action: Action) -> tuple[Placement, ...]:
    """The placement of each param: in the path if it names the param, else by default in the body, or for GET and
    DELETE in the query."""
    method, path = action.request.split(" ", 1)
    by_default = "query" if method in ("GET", "DELETE") else "body"
    in_path = set(re.findall(r"{(\w+)}", path))
    return tuple(
        Placement(
            name=name,
            where="path" if name in in_path else schema.get("in", by_default),
            wire=schema.get("as", name),
            style=ParamStyle(schema["style"]) if "style" in schema else None,
            explode=schema.get("explode", True),
            text=schema.get("text"),
        )
        for name, schema in action.params.items()
    )


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a param, without the keywords that the spec language adds."""
    return {keyword: value for keyword, value in schema.items() if keyword not in ADDED_KEYWORDS}


def plain_name(param: str) -> str:
    """The name of a param for tool formats: underscores replace brackets and other characters."""
    return re.sub(r"[^a-zA-Z0-9_.-]+", "_", param).strip("_")


def put(document: Any, place: Sequence[str], value: Any) -> None:
    """Set the value at a place; missing objects are created, and lists if a member is a position or `rel=next`."""
    for member, following in pairwise(place):
        empty: Any = [] if following.isdigit() or "=" in following else {}
        is_list = isinstance(document, list)
        document = _item(document, member, empty) if is_list else document.setdefault(member, empty)
    if isinstance(document, list):
        _fill(document, int(place[-1]), value)
        document[int(place[-1])] = value
    else:
        document[place[-1]] = value


def _item(items: list[Any], member: str, empty: Any) -> Any:
    """The item of a list at a position, or the one that `rel=next` names; it is added if there is none."""
    name, is_named, wanted = member.partition("=")
    if not is_named:
        _fill(items, int(member), empty)
        return items[int(member)]
    found = next((each for each in items if each.get(name) == wanted), None)
    if found is None:
        items.append(found := {name: wanted})
    return found


def _fill(items: list[Any], position: int, value: Any) -> None:
    """Extend a list so that it has the position; if the position is new, it gets the value."""
    while len(items) <= position:
        items.append(value if len(items) == position else {})
