"""The lines of the result of a long operation, one for each item: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.kinds.long_running import ItemResults
from gateway.kinds.members import value_at
from gateway.upstream.field_selection import FieldSelection, selector
from gateway.upstream.redaction import Secrets
from gateway.upstream.withheld import LEFT_OUT

#: the error of an item that the application refused without a message
_NO_REASON = "the application gave no reason"
#: the error of an item that may have been sent
_UNKNOWN = "the response to the request was lost; look it up before you send it again"
#: the errors of items that were not sent, because the response to another request was lost, or for another reason
_UNSENT_AFTER_LOSS = "not sent: the response to another request was lost"
_UNSENT_AFTER_ERROR = "not sent: another request failed"
_OWN_ERRORS = (_NO_REASON, _UNKNOWN, _UNSENT_AFTER_LOSS, _UNSENT_AFTER_ERROR)
#: the line of one item: `{id, success}`, with `error` or `record`; `success` is null if it is unknown
Line = dict[str, Any]


class _ItemReport(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the application, read at the paths of the spec; None for a missing value."""

    #: the number that the gateway gave its item; what is at each path
    traces: list[Any]
    #: the id of its item, or the list of the ids of its items; what is at each path
    ids: list[Any]
    #: the position of its item in the portion
    index: Any
    #: whether its item was done, if the application says so
    success: Any
    #: the errors of its item: the value at each path
    errors: list[Any]
    record: Any
    is_object: bool
    #: whether the entry is empty
    is_empty: bool

    @property
    def id(self) -> Any:
        return _first(self.ids)

    @property
    def error(self) -> Any:
        return next(filter(None, self.errors), None)

    @property
    def names_item(self) -> bool:
        return self.index is not None or bool(_texts(_first(self.traces)) or _texts(self.id))

    def positions(self, places: Mapping[str | None, list[int]], count: int) -> list[int]:
        """The positions of the items that it reports on: by the number that the gateway gave them, id, or position."""
        numbers = [
            int(text) for text in _texts(_first(self.traces)) if text.isascii() and text.isdigit() and len(text) < 20
        ]
        named = numbers or [index for text in _texts(self.id) for index in places.get(text, ())]
        found = named or ([self.index] if isinstance(self.index, int) else [])
        return [index for index in found if 0 <= index < count]


def item_lines(how: ItemResults, items: Sequence[Any], answers: Iterable[Any], reason: str | None) -> list[Line]:
    """One line for each item of an ended portion, in the order asked for; `answers` are the application's entries.

    `reason` is why the application ended the portion as failed. Then only an item that is reported as done was done.
    """
    entries = _entries(how, answers)
    places: dict[str | None, list[int]] = {}
    for index, item in enumerate(items):
        places.setdefault(_text(_id_of(item)), []).append(index)
    reported: dict[int, _ItemReport] = {}
    for entry in entries:
        found = entry.positions(places, len(items))
        reported |= dict.fromkeys(found, entry)
        if entry.error and entry.is_object and not found and not entry.names_item:
            # It is not known which item it is about, so an item without an entry does not count as done.
            reason = reason or f"the application's error does not name an item: {entry.error}"
    return [_line(how, item, reported.get(index), reason) for index, item in enumerate(items)]


def entry_lines(how: ItemResults, answers: Iterable[Any], reason: str | None) -> list[Line]:
    """One line for each entry, in the application's order: its entries name no item of the input."""
    return [_line(how, None, entry, reason) for entry in _entries(how, answers) if entry.is_object]


def masked(lines: Sequence[Line], secrets: Secrets) -> list[Line]:
    """The lines, without the secrets that the application repeats in errors."""
    return [{**line, "error": secrets.masked(line["error"])} if "error" in line else line for line in lines]


def redacted_lines(lines: Iterable[Line], redact: Sequence[str]) -> list[Line]:
    """The lines as policies redact them: records without these members, errors without the application's text."""
    select = selector(FieldSelection(redact=redact))
    return [
        {
            **line,
            **({"record": select(line["record"])} if "record" in line else {}),
            **({"error": LEFT_OUT} if line.get("error", _UNKNOWN) not in _OWN_ERRORS else {}),
        }
        for line in lines
    ]


def unknown_lines(items: Sequence[Any]) -> list[Line]:
    """One line for each item of a portion that may have been done, and that cannot be followed."""
    return [{"id": _id_of(item), "success": None, "error": _UNKNOWN} for item in items]


def unsent_lines(items: Sequence[Any], *, is_lost: bool) -> list[Line]:
    """One line for each item of a portion that was not sent; `is_lost`: because another response was lost."""
    return refused_lines(items, _UNSENT_AFTER_LOSS if is_lost else _UNSENT_AFTER_ERROR)


def refused_lines(items: Sequence[Any], words: str) -> list[Line]:
    """One line for each item of a portion that the application refused as a whole."""
    return [{"id": _id_of(item), "success": False, "error": words} for item in items]


def entries_of(how: ItemResults, document: Any) -> Iterator[Any]:
    """The application's entries in a response."""
    for path in how.path:
        entries = value_at(document, path)
        if isinstance(entries, list):
            yield from entries


def _entries(how: ItemResults, answers: Iterable[Any]) -> list[_ItemReport]:
    return [
        _ItemReport(
            traces=[value_at(answer, path) for path in how.trace_path],
            ids=[value_at(answer, path) for path in how.id],
            index=None if how.index is None else value_at(answer, how.index),
            success=None if how.success is None else value_at(answer, how.success),
            errors=[value_at(answer, path) for path in how.error],
            record=None if how.record is None else value_at(answer, how.record),
            is_object=isinstance(answer, Mapping),
            is_empty=not answer,
        )
        for answer in answers
    ]


def _line(how: ItemResults, item: Any, entry: _ItemReport | None, reason: str | None) -> Line:
    item_id = _id_of(item)
    if item_id is None and entry is not None:
        item_id = entry.id
    if _is_done(entry, reason):
        line: Line = {"id": item_id, "success": True}
        if how.record is not None and entry is not None:
            line["record"] = entry.record
        return line
    words = (entry and entry.error) or reason or _NO_REASON
    return {"id": item_id, "success": False, "error": str(words)}


def _is_done(entry: _ItemReport | None, reason: str | None) -> bool:
    """Whether an item was done: as its entry reports; without an entry, whether the portion ended without failure."""
    if entry is None or entry.is_empty:
        return reason is None
    return bool(entry.success) if entry.success is not None else not entry.error


def _first(values: Sequence[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _texts(value: Any) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value]) if each is not None]


def _id_of(item: Any) -> Any:
    """The id of an item: its member `id`, or the item itself; a text of digits becomes a number."""
    if isinstance(item, Mapping):
        return item.get("id")
    return int(item) if isinstance(item, str) and item.isascii() and item.isdigit() else item


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
