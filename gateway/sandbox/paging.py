"""Pages of rows in each paging style: pure."""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from gateway.contract.kinds import PagingStyle
from gateway.kinds.members import JsonPath
from gateway.kinds.paging import Paging
from gateway.sandbox.calls import Call
from gateway.sandbox.store import Row

Item = TypeVar("Item")
#: maximum records on a page of this call, whatever it asks for; None without a maximum
_LARGEST: ContextVar[int | None] = ContextVar("largest_page", default=None)


class BadPage(Exception):
    """The requested page does not exist or has an invalid cursor, number or size."""


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some of the rows, with their position among all rows."""

    items: Sequence[Item]
    start: int
    total: int

    @property
    def end(self) -> int:
        return self.start + len(self.items)

    @property
    def has_more(self) -> bool:
        return self.end < self.total


def portion(items: Sequence[Item], start: int, size: int) -> Page[Item]:
    """The page that begins at a position."""
    return Page(items[start : start + size], start, len(items))


def page_in_style(style: Paging, rows: Sequence[Row], asked: object, size: int, *, of: str) -> tuple[Page[Row], object]:
    """The page for a param's value, and the value for the next page; raises BadPage.

    `of` names the list: a cursor of another list is refused.
    """
    first = style.first if style.first is not None else int(style.style is PagingStyle.PAGE)
    match style.style:
        case PagingStyle.PAGE:
            page_number = number(asked, least=first) if asked else first
            return portion(rows, (page_number - first) * size, size), page_number + 1
        case PagingStyle.OFFSET:
            start = number(asked, least=first) if asked else first
            return portion(rows, start - first, size), start + size
        case PagingStyle.LAST_ID:
            page = portion(rows, _after(rows, style.id_field, asked), size)
            return page, _id(page.items[-1], style.id_field) if page.items else None
        case _:
            page = portion(rows, after(rows, asked, of), size)
            return page, cursor_after(page, of)


def _after(rows: Sequence[Row], field: JsonPath, asked: object) -> int:
    """The position after the row with this id; 0 without an id."""
    if not asked:
        return 0
    for index, row in enumerate(rows):
        if str(_id(row, field)) == str(asked):
            return index + 1
    raise BadPage(f"there is no record {asked!r} to continue from")


def _id(row: Row, field: JsonPath) -> object:
    value: Any = row.record
    for member in field:
        value = value.get(member) if isinstance(value, dict) else None
    return value


def size_asked(query: Mapping[str, object], name: str, usual: int, most: int) -> int:
    """The page size of a request, at most `most`; raises BadPage unless it is a number of at least 1."""
    value = query.get(name)
    return smaller(min(usual if value is None or value == "" else number(value), most))


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Within the block pages are not larger than this."""
    token = _LARGEST.set(size)
    try:
        yield
    finally:
        _LARGEST.reset(token)


def smaller(size: int) -> int:
    """The size of a page, or that of `at_most` if it is smaller."""
    largest = _LARGEST.get()
    return size if largest is None else min(size, largest)


def number(value: object, *, least: int = 1) -> int:
    """A whole number of at least `least` in a query or body; raises BadPage."""
    text = str(value)
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise BadPage(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def cursor(position: int, of: str) -> str:
    """An opaque token for a position in one list."""
    return base64.urlsafe_b64encode(f"{of}:{position}".encode()).decode().rstrip("=")


def cursor_after(page: Page[Row], of: str) -> str:
    """A cursor that stands after the last row of a page, also if rows before it are removed."""
    return cursor(page.end, f"{of}|{page.items[-1].id}" if page.items else of)


def after(rows: Sequence[Row], token: object, of: str) -> int:
    """The position of the first row after a cursor of `cursor_after`, 0 without a cursor; raises BadPage."""
    if token is None or token == "":
        return 0
    name, place = parts(str(token))
    list_name, _, last = name.partition("|")
    if list_name != of:
        raise BadPage("the cursor belongs to another list")
    if not last or (place <= len(rows) and rows[place - 1].id == last):
        return place
    return next((index for index, row in enumerate(rows, 1) if row.id == last), place)


def is_cursor(token: str) -> bool:
    """Whether a text is a cursor of `cursor`."""
    try:
        parts(token)
    except BadPage:
        return False
    return True


def parts(token: str) -> tuple[str, int]:
    """The list of a cursor and its position; raises BadPage."""
    try:
        decoded = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise BadPage("the cursor is invalid") from error
    name, _, place = decoded.rpartition(":")
    if not (place.isascii() and place.isdigit()):
        raise BadPage("the cursor is invalid")
    return name, int(place)


def address(call: Call, **members: object) -> str:
    """The call's URL with some members of the query changed; None removes one."""
    query = {name: str(value) for name, value in {**call.query, **members}.items() if value is not None}
    return f"{call.origin}{call.path}" + (f"?{urlencode(query)}" if query else "")
