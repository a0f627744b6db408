"""Where each param of an action goes in the request, and under which name."""

import re
from dataclasses import dataclass
from typing import Any

from gateway.kinds.requests import Action, ParamStyle

#: the spec language's own keywords beside those of JSON Schema: where a param goes and its name there
PLACEMENT_KEYWORDS = ("in", "as", "style", "explode", "text")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a param goes in the request, and its name there."""

    name: str
    where: str
    wire: str
    #: how a list or an object is written there; None leaves it to the place
    style: ParamStyle | None = None
    explode: bool = True
    #: the text that is sent, with params in it: `refs/heads/{branch}`; None sends the value itself
    text: str | None = None


def placements_of(action: Action) -> tuple[Placement, ...]:
    """The placement of each param: in the path that names it, else by default in the body, or in the query of GET."""
    method, path = action.request.split(" ", 1)
    by_default = "query" if method in ("GET", "DELETE") else "body"
    in_path = set(re.findall(r"{(\w+)}", path))
    return tuple(
        Placement(
            name,
            "path" if name in in_path else schema.get("in", by_default),
            schema.get("as", name),
            ParamStyle(schema["style"]) if "style" in schema else None,
            schema.get("explode", True),
            schema.get("text"),
        )
        for name, schema in action.params.items()
    )


def json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a param, without the keywords of its placement."""
    return {keyword: value for keyword, value in schema.items() if keyword not in PLACEMENT_KEYWORDS}


def plain_name(param: str) -> str:
    """The name of a param as tool formats accept it: with underscores in place of brackets and the like."""
    return re.sub(r"[^a-zA-Z0-9_.-]+", "_", param).strip("_")
