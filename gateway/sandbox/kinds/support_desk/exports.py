"""Incremental exports of the support desk: the records that changed since a time, oldest change first."""

from collections.abc import Sequence
from typing import Any

from gateway.sandbox import paging
from gateway.sandbox.application import Application
from gateway.sandbox.calls import Call, Handler, Refusal, Reply
from gateway.sandbox.store import Row

#: records on a page
_PAGE = 1000
#: minimum age of a start time in seconds
_YOUNGEST = 60


class Exports:
    """The exports by cursor (tickets, users) and by time (organizations, ticket events, articles)."""

    def __init__(self, desk: Application) -> None:
        self._desk = desk

    def handlers(self) -> dict[str, Handler]:
        return {
            "GET /incremental/tickets/cursor.json": lambda call: self._by_cursor("tickets", call),
            "GET /incremental/users/cursor.json": lambda call: self._by_cursor("users", call),
            "GET /incremental/organizations.json": lambda call: self._by_time("organizations", call),
            "GET /incremental/ticket_events.json": self._events,
            "GET /help_center/incremental/articles.json": lambda call: self._by_time("articles", call),
        }

    def _by_cursor(self, table: str, call: Call) -> Reply:
        """A page from `start_time` or `cursor`; the cursor of the last page continues with later changes."""
        size = paging.size_asked(call.query, "per_page", _PAGE, _PAGE)
        if "cursor" in call.query:
            row_id, milliseconds = paging.parts(call.query["cursor"])
        else:
            row_id, milliseconds = "", int(_start_time(call) * 1000)
        rows = sorted(self._desk.store.table(table), key=_mark)
        page = paging.portion([row for row in rows if _mark(row) > (milliseconds, row_id)], 0, size)
        if page.items:
            milliseconds, row_id = _mark(page.items[-1])
        after = paging.cursor(milliseconds, row_id)
        following = f"{call.origin}{call.path}?cursor={after}"
        return Reply(
            {
                table: [row.record for row in page.items],
                "after_url": following,
                "after_cursor": after,
                "before_url": None,
                "before_cursor": None,
                "end_of_stream": not page.has_more,
            }
        )

    def _by_time(self, table: str, call: Call) -> Reply:
        """A page from `start_time`; the next one begins at `end_time`, so records of that second may appear twice."""
        rows = self._changed(table, _start_time(call))
        return self._timed(table, [row.record for row in rows], [row.changed for row in rows], call)

    def _events(self, call: Call) -> Reply:
        """The events of tickets; with `include=comment_events`, their `child_events` have the comments."""
        rows = self._changed("ticket_comments", _start_time(call))
        with_comments = call.query.get("include") == "comment_events"
        return self._timed(
            "ticket_events", [_event(row, with_comments) for row in rows], [row.changed for row in rows], call
        )

    def _timed(self, name: str, records: Sequence[dict[str, Any]], times: Sequence[float], call: Call) -> Reply:
        size = paging.size_asked(call.query, "per_page", _PAGE, _PAGE)
        page = paging.portion(records, 0, size)
        end_time = int(times[page.end - 1]) if page.items else int(_start_time(call))
        return Reply(
            {
                name: page.items,
                "count": len(page.items),
                "end_time": end_time,
                "next_page": paging.address(call, start_time=end_time),
                "end_of_stream": not page.has_more,
            }
        )

    def _changed(self, table: str, since: float) -> list[Row]:
        rows = [row for row in self._desk.store.table(table) if row.changed >= since]
        return sorted(rows, key=_mark)


def _event(row: Row, with_comments: bool) -> dict[str, Any]:
    comment = {**row.record, "event_type": "Comment", "via_reference_id": None, "timestamp": int(row.changed)}
    return {
        "id": row.record["audit_id"] or row.record["id"],
        "ticket_id": row.refs["ticket_id"],
        "timestamp": int(row.changed),
        "created_at": row.record["created_at"],
        "updater_id": row.record["author_id"],
        "event_type": "Audit",
        "child_events": [comment] if with_comments else [],
    }


def _start_time(call: Call) -> float:
    text = call.query.get("start_time", "")
    if not text.isdigit():
        raise Refusal(400, "InvalidValue", "start_time must be Unix seconds")
    if int(text) > call.now - _YOUNGEST:
        raise Refusal(400, "StartTimeTooRecent", "start_time must be at least a minute ago")
    return float(text)


def _mark(row: Row) -> tuple[int, str]:
    """The position in the order of changes: milliseconds, and the id."""
    return int(row.changed * 1000), row.id
