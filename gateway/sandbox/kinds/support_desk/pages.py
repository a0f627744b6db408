"""The three paging styles of the support desk."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from gateway.sandbox import paging
from gateway.sandbox.calls import Call, Reply
from gateway.sandbox.paging import BadPage
from gateway.sandbox.store import Row

#: maximum records with page numbers; the application refuses pages beyond them
_DEEPEST = 10_000
_AUDITS_A_PAGE = 1000


def by_number(rows: Sequence[Row], call: Call) -> tuple[paging.Page[Row], dict[str, Any]]:
    """A page by its number, with the URLs of the pages before and after it."""
    number = paging.number(call.query.get("page") or 1)
    size = paging.size_asked(call.query, "per_page", 100, 100)
    if (number - 1) * size >= _DEEPEST:
        raise BadPage("page too deep: only the first 10000 records have page numbers")
    page = paging.portion(rows, (number - 1) * size, size)
    return page, {
        "next_page": paging.address(call, page=number + 1) if page.has_more else None,
        "previous_page": paging.address(call, page=number - 1) if number > 1 else None,
        "count": len(rows),
    }


def by_cursor(rows: Sequence[Row], call: Call) -> tuple[paging.Page[Row], dict[str, Any]]:
    """A page after a cursor, with `meta` and `links`; for requests with `page[size]`."""
    start = paging.after(rows, call.query.get("page[after]"), call.path)
    page = paging.portion(rows, start, paging.size_asked(call.query, "page[size]", 100, 100))
    after = paging.cursor_after(page, call.path)
    following = paging.address(call, **{"page[after]": after}) if page.has_more else None
    meta = {"has_more": page.has_more, "after_cursor": after, "before_cursor": None}
    return page, {"meta": meta, "links": {"next": following, "prev": None}}


def of_audits(audits: Iterable[Row], call: Call) -> Reply:
    """A page of the account's audits, newest first: `before` continues with older audits, `after` with newer ones."""
    rows = sorted(audits, key=_mark, reverse=True)
    size = paging.size_asked(call.query, "limit", 100, _AUDITS_A_PAGE)
    shown = _audits_of(rows, call.query.get("cursor"), size, call.path)
    is_oldest = not shown or shown[-1] is rows[-1]
    cursors = {
        "after_cursor": _audit_cursor("after", shown[0], call.path) if shown else None,
        "before_cursor": None if is_oldest else _audit_cursor("before", shown[-1], call.path),
    }
    addresses = {
        name.replace("_cursor", "_url"): cursor and paging.address(call, cursor=cursor)
        for name, cursor in cursors.items()
    }
    return Reply({"audits": [row.record for row in shown], **cursors, **addresses, "count": len(rows)})


def _audits_of(rows: Sequence[Row], cursor: str | None, size: int, path: str) -> Sequence[Row]:
    """The audits of a page, newest first: the next older or the next newer ones than the cursor's audit."""
    if not cursor:
        return rows[:size]
    name, milliseconds = paging.parts(cursor)
    direction, _, row_id = name.removeprefix(path).strip("|").partition("|")
    if not name.startswith(path) or direction not in ("before", "after"):
        raise BadPage("the cursor belongs to another list")
    mark = (milliseconds, row_id)
    if direction == "before":
        return [row for row in rows if _mark(row) < mark][:size]
    return [row for row in rows if _mark(row) > mark][-size:]


def _audit_cursor(direction: str, row: Row, path: str) -> str:
    milliseconds, row_id = _mark(row)
    return paging.cursor(milliseconds, f"{path}|{direction}|{row_id}")


def _mark(row: Row) -> tuple[int, str]:
    """The position of an audit, which later audits do not change: milliseconds, and the id."""
    return int(datetime.fromisoformat(row.record["created_at"]).timestamp() * 1000), row.id
