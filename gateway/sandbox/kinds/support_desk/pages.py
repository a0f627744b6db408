"""The three ways in which the support desk turns pages."""

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.sandbox import paging
from gateway.sandbox.calls import Call, Reply
from gateway.sandbox.paging import BadPage
from gateway.sandbox.store import Row

#: records that page numbers reach; beyond them the application refuses
_DEEPEST = 10_000
_AUDITS_A_PAGE = 1000


def by_number(rows: Sequence[Row], call: Call) -> tuple[paging.Page[Row], dict[str, Any]]:
    """A page by its number, with the addresses of its neighbours."""
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
    """A page after a cursor, in the shape that `page[size]` asks for."""
    start = paging.position(call.query.get("page[after]"), call.path)
    page = paging.portion(rows, start, paging.size_asked(call.query, "page[size]", 100, 100))
    after = paging.cursor(page.end, call.path)
    following = paging.address(call, **{"page[after]": after}) if page.has_more else None
    meta = {"has_more": page.has_more, "after_cursor": after, "before_cursor": None}
    return page, {"meta": meta, "links": {"next": following, "prev": None}}


def of_audits(audits: Iterable[Row], call: Call) -> Reply:
    """The account's audits, newest first, by cursor."""
    rows = sorted(audits, key=lambda row: row.changed, reverse=True)
    start = paging.position(call.query.get("cursor"), call.path)
    page = paging.portion(rows, start, paging.size_asked(call.query, "limit", 100, _AUDITS_A_PAGE))
    after = paging.cursor(page.end, call.path) if page.has_more else None
    before = paging.cursor(max(0, start - len(page.items)), call.path) if start else None
    return Reply(
        {
            "audits": [row.record for row in page.items],
            "after_url": after and paging.address(call, cursor=after),
            "after_cursor": after,
            "before_url": before and paging.address(call, cursor=before),
            "before_cursor": before,
            "count": len(rows),
        }
    )
