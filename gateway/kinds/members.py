"""The types that the models of specs share: paths in JSON, request lines, media types."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

JsonSchema = dict[str, Any]
Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Phrases = tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=100)], ...]

FORM = "application/x-www-form-urlencoded"
CSV = "text/csv"
MULTIPART = ("multipart/form-data", "multipart/related")


_JSON = re.compile(r"(?:application|text)/json|[a-z0-9.-]+/[a-z0-9.-]+\+json")


def media_type(content_type: str) -> str:
    """A content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """Whether bodies of a content type are JSON (RFC 8259, RFC 6839 §3.1)."""
    return _JSON.fullmatch(media_type(content_type)) is not None


def _content_type(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9.+-]+/[a-z0-9.+-]+", media_type(value)):
        raise ValueError(f"must be a media type, such as application/json, {FORM} or multipart/form-data")
    return value


#: the media type of request bodies; the gateway encodes them in it
ContentType = Annotated[str, AfterValidator(_content_type)]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)


class CheckedModel(Model):
    """A model whose members must be consistent with each other."""

    def _faults(self) -> Iterable[str]:
        """A sentence for each inconsistency."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        faults = list(self._faults())
        if faults:
            raise ValueError("; ".join(faults))
        return self


def _members(value: object) -> object:
    """The members of a dotted path; none for `$`, the response itself."""
    if not isinstance(value, str):
        return value
    return () if value == "$" else tuple(value.split("."))


#: a path in a JSON response, written `a.b.c`, or `$` for the whole response
JsonPath = Annotated[
    tuple[str, ...],
    BeforeValidator(_members),
    WithJsonSchema({"type": "string", "minLength": 1, "description": "a.b.c, or $ for the whole response"}),
]
#: in a path: each item of a list or each member of an object; in that of `records` their lists are one list then
EVERY = "*"
#: at the end of a path: the number of items of a list
COUNT = "#"
#: the source of a member of Meta: a JsonPath, `@.a.b` beside the list of records, `$header.name` for a header, or
#: `$link.rel` for the Link header (RFC 8288), with a third member for an attribute of the link; `a.*.b` is the list of
#: the values in all items, `a.#` the number of items
MetaPath = Annotated[
    tuple[str, ...],
    BeforeValidator(_members),
    WithJsonSchema({"type": "string", "minLength": 1, "description": "a.b.c, @.a, $header.name or $link.next"}),
]
_REQUEST_LINE = r"^(GET|POST|PUT|PATCH|DELETE) /\S*$"


def _request(value: str) -> str:
    if not re.fullmatch(_REQUEST_LINE, value):
        raise ValueError("a request must be a method and a path, for example: GET /tickets/{ticket_id}.json")
    return value


RequestLine = Annotated[str, AfterValidator(_request), WithJsonSchema({"type": "string", "pattern": _REQUEST_LINE})]


def value_at(document: Any, path: JsonPath) -> Any:
    """The value at a place of a parsed document; None where there is none.

    Positions of lists are written as numbers, and `rel=next` is the first item whose member `rel` is `next`. `*` makes
    a list of what is below each item, and `#` counts the items.
    """
    for place, member in enumerate(path):
        if member == EVERY:
            items = document.values() if isinstance(document, dict) else document
            below = path[place + 1 :]
            return [value_at(each, below) for each in items] if isinstance(document, list | dict) else None
        if member == COUNT:
            document = len(document) if isinstance(document, list) else None
        elif isinstance(document, list) and "=" in member:
            name, _, wanted = member.partition("=")
            document = next((each for each in document if isinstance(each, dict) and each.get(name) == wanted), None)
        elif isinstance(document, list):
            document = document[int(member)] if member.isdigit() and int(member) < len(document) else None
        elif isinstance(document, dict):
            document = document.get(member)
        else:
            return None
    return document
