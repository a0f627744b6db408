"""Cursors of lists: where the next page begins, opaque to callers."""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from gateway.errors import FieldError, InvalidParams

T = TypeVar("T")

_TIME_AND_ID = attrgetter("created_at", "id")
_POSITION = msgspec.json.Decoder(tuple[str, str])
_TEXT = msgspec.json.Decoder(str)


def page_of(
    found: Sequence[T], limit: int | None, position: Callable[[T], tuple[Any, UUID]] = _TIME_AND_ID
) -> tuple[Sequence[T], str | None]:
    """The page and the cursor of the next one; `found` has one item more than `limit` if there is a next page."""
    page = found[:limit]
    return page, cursor_after(page, position) if len(found) > len(page) else None


def cursor_after(page: Sequence[T], position: Callable[[T], tuple[Any, UUID]] = _TIME_AND_ID) -> str:
    """The cursor of the page after this one."""
    return _cursor_of(position(page[-1]))


def _cursor_of(position: tuple[Any, UUID]) -> str:
    key, item_id = position
    return _encoded([key.isoformat() if isinstance(key, datetime) else str(key), str(item_id)])


def text_cursor(text: str) -> str:
    """The cursor of a list that is sorted by unique texts, after this one."""
    return _encoded(text)


def _encoded(position: str | list[str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_cursor(cursor: str | None) -> tuple[str, UUID] | None:
    """The position in a cursor; raises InvalidParams for a text that the gateway did not issue."""
    if cursor is None:
        return None
    try:
        text, item_id = _POSITION.decode(_decoded(cursor))
        position = text, UUID(item_id)
    except ValueError as error:  # of base64, UTF-8, JSON or the UUID
        raise _bad_cursor() from error
    if "\x00" in position[0]:
        raise _bad_cursor()
    return position


def read_text_cursor(cursor: str | None) -> str | None:
    """The text in a cursor of a list that is sorted by unique texts; raises InvalidParams."""
    if cursor is None:
        return None
    try:
        text = _TEXT.decode(_decoded(cursor))
    except ValueError as error:
        raise _bad_cursor() from error
    if "\x00" in text:
        raise _bad_cursor()
    return text


def _decoded(cursor: str) -> bytes:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))


def read_time_cursor(cursor: str | None) -> tuple[datetime, UUID] | None:
    """The position in a cursor of a list that is sorted by time; raises InvalidParams."""
    position = read_cursor(cursor)
    if position is None:
        return None
    try:
        return datetime.fromisoformat(position[0]).astimezone(UTC), position[1]
    except (ValueError, OverflowError) as error:
        raise _bad_cursor() from error


def _bad_cursor() -> InvalidParams:
    message = "cursor is not valid; send next_cursor of the last page unchanged"
    return InvalidParams(message, faults=[FieldError("/cursor", "cursor", "invalid", message)])
