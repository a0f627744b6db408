"""Types that several responses share: descriptions of members, ids, times, URLs, lists and pages."""

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

T = TypeVar("T")

#: the id and the time of examples
ID = "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"
TIME = "2026-03-01T09:00:00Z"


def member(description: str, *examples: Any, **schema: Any) -> Meta:
    """The description, the examples and further JSON Schema keywords of a member."""
    return Meta(description=description, examples=list(examples) or None, extra_json_schema=schema or None)


def moment(value: datetime | None) -> str | None:
    """The time for a response: RFC 3339 in UTC."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")


#: a UUID as text
Id = Annotated[str, Meta(examples=[ID], extra_json_schema={"format": "uuid"})]
#: RFC 3339, in UTC
Time = Annotated[datetime, Meta(tz=True, examples=[TIME])]
Url = Annotated[str, Meta(extra_json_schema={"format": "uri"})]


class PageOf(Struct, Generic[T], frozen=True):
    """A page of a list."""

    data: Annotated[list[T], member("The items of this page.")]
    next_cursor: Annotated[str | None, member("`cursor` of the call for the next page; null on the last page.")] = None


#: `as_of` of a page that a replica may answer
AsOf = Annotated[
    Time | UnsetType,
    member("The time of which the page is, if a replica of the database answered; later changes are not on it."),
]


class PageAsOf(PageOf[T], Generic[T], frozen=True):
    """A page of a list that a replica of the database may answer."""

    as_of: AsOf = UNSET


def as_of_member(as_of: datetime | None) -> datetime | UnsetType:
    """The time as the member `as_of`."""
    return UNSET if as_of is None else as_of


class ListOf(Struct, Generic[T], frozen=True):
    """A list without pages."""

    data: Annotated[list[T], member("All items.")]


class NamedActorView(Struct, frozen=True, kw_only=True):
    """A client or a person."""

    id: Annotated[Id, member("The id.")]
    name: Annotated[str | None, member("The name; null if it is unknown.", "agent")]


class ActorSessionView(Struct, frozen=True):
    """A session."""

    id: Annotated[Id, member("The session's id.")]
