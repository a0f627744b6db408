"""A line of the result for each item of a long operation: pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.kinds.long_running import ItemResults
from gateway.kinds.members import JsonPath
from gateway.upstream.redaction import NO_SECRETS, Secrets
from gateway.upstream.responses import value_at

#: the error of an item that the application refused without a word
_NO_REASON = "the application gave no reason"
#: the error of an item that may have been sent
_UNKNOWN = "the response to the request was lost; look it up before you send it again"
#: the error of an item that was not sent because of such a request
_UNSENT = "not sent: the response to another request was lost"
#: the line of one item: `{id, success}`, with `error` or `record`; `success` is null where it is unknown
Line = dict[str, Any]


def item_lines(
    how: ItemResults,
    items: Sequence[Any],
    entries: Sequence[Any],
    reason: str | None,
    secrets: Secrets = NO_SECRETS,
) -> list[Line]:
    """One line for each item of an ended portion, in the order asked for.

    `reason` is why the application ended the portion as failed. Then only an item that is reported as done was done.
    """
    places: dict[str | None, list[int]] = {}
    for index, item in enumerate(items):
        places.setdefault(_text(_id_of(item)), []).append(index)
    reported: dict[int, Any] = {}
    for entry in entries:
        found = _positions(how, entry, places, len(items))
        reported |= dict.fromkeys(found, entry)
        if found or not isinstance(entry, Mapping) or _names_item(how, entry):
            continue
        if words := _error(how, entry):
            # Which item it is about is not known, so that none is taken for done without an entry of its own.
            reason = reason or f"the application names no item for its error: {words}"
    return [_line(how, item, reported.get(index), reason, secrets) for index, item in enumerate(items)]


def entry_lines(
    how: ItemResults, entries: Sequence[Any], reason: str | None, secrets: Secrets = NO_SECRETS
) -> list[Line]:
    """One line for each entry, in the application's order: its entries name no item of the input."""
    return [_line(how, None, entry, reason, secrets) for entry in entries if isinstance(entry, Mapping)]


def unknown_lines(items: Sequence[Any]) -> list[Line]:
    """One line for each item of a portion that may have been started, and that cannot be followed."""
    return [{"id": _id_of(item), "success": None, "error": _UNKNOWN} for item in items]


def unsent_lines(items: Sequence[Any]) -> list[Line]:
    """One line for each item of a portion that was not sent."""
    return [{"id": _id_of(item), "success": False, "error": _UNSENT} for item in items]


def entries_of(how: ItemResults, document: Any) -> list[Any]:
    """The application's entries in a response."""
    found = (value_at(document, path) for path in how.path)
    return [entry for entries in found if isinstance(entries, list) for entry in entries]


def _positions(how: ItemResults, entry: Any, places: Mapping[str | None, list[int]], count: int) -> list[int]:
    """The items that an entry is about: by the number that the gateway gave them, by id, or by position."""
    numbers = [int(text) for text in _texts_at(entry, how.trace_path) if text.isascii() and text.isdigit()]
    named = numbers or [index for text in _texts_at(entry, how.id) for index in places.get(text, ())]
    index = value_at(entry, how.index) if how.index is not None else None
    found = named or ([index] if isinstance(index, int) else [])
    return [index for index in found if 0 <= index < count]


def _names_item(how: ItemResults, entry: Mapping[str, Any]) -> bool:
    index = value_at(entry, how.index) if how.index is not None else None
    return index is not None or bool(_texts_at(entry, how.trace_path) or _texts_at(entry, how.id))


def _line(how: ItemResults, item: Any, entry: Mapping[str, Any] | None, reason: str | None, secrets: Secrets) -> Line:
    item_id = _id_of(item)
    if item_id is None:
        item_id = _first(entry, how.id)
    if _is_done(how, entry, reason):
        line: Line = {"id": item_id, "success": True}
        if how.record is not None and entry is not None:
            line["record"] = value_at(entry, how.record)
        return line
    words = _error(how, entry) or reason or _NO_REASON
    return {"id": item_id, "success": False, "error": secrets.masked(str(words))}


def _is_done(how: ItemResults, entry: Mapping[str, Any] | None, reason: str | None) -> bool:
    """Whether an item was done; an entry decides, without one the end of the portion does."""
    if not entry:
        return reason is None
    told = value_at(entry, how.success) if how.success is not None else None
    return bool(told) if told is not None else not _error(how, entry)


def _error(how: ItemResults, entry: Any) -> Any:
    """What went wrong with the item of an entry; None where nothing did."""
    return next((value for path in how.error if (value := value_at(entry, path))), None)


def _first(entry: Any, paths: Sequence[JsonPath]) -> Any:
    return next((value for path in paths if (value := value_at(entry, path)) is not None), None)


def _texts_at(entry: Any, paths: Sequence[JsonPath]) -> list[str]:
    value = _first(entry, paths)
    return [str(each) for each in (value if isinstance(value, list) else [value]) if each is not None]


def _id_of(item: Any) -> Any:
    """The id of an item: its member `id`, or the item itself, a number where it is one in a text."""
    if isinstance(item, Mapping):
        return item.get("id")
    return int(item) if isinstance(item, str) and item.isascii() and item.isdigit() else item


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
