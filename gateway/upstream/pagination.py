"""From one page of a list to the params of the next."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.errors import UpstreamRejected
from gateway.kinds.catalog import Operation
from gateway.kinds.spec import Paging, PagingStyle
from gateway.upstream.responses import value_at


def next_params(
    operation: Operation, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The params of the page after the one that answered with this Meta, or None at the end.

    Raises UpstreamRejected where the list goes on but the application does not: a part must not look like the whole.
    """
    following = page_after(operation, params, meta)
    if following is None and is_incomplete(operation, params, meta):
        raise UpstreamRejected(f"{operation}: the application lists no more, but says that there is more; ask for less")
    return following


def _ensure_served(operation: Operation, params: Mapping[str, Any]) -> None:
    paging = operation.instead(params).paging
    if paging is None or paging.max_pages is None or paging.style is not PagingStyle.PAGE:
        return
    if int(params.get(paging.param, 1)) > paging.max_pages:
        words = f"the application serves {paging.max_pages} pages at most, and there are more"
        raise UpstreamRejected(f"{operation}: {words}; ask for larger pages or for less")


def is_incomplete(operation: Operation, params: Mapping[str, Any], meta: Mapping[str, Any] | None) -> bool:
    """Whether the application says that it does not list everything."""
    paging = operation.instead(params).paging
    return bool(paging and meta and paging.incomplete and paging.incomplete.meta in meta)


def page_after(
    operation: Operation, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """As `next_params`, for callers who see for themselves whether the list is complete."""
    following = named_page(operation.instead(params).paging, params, meta)
    _ensure_served(operation, following or {})
    return following


def named_page(
    paging: Paging | None, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The params of the page that the Meta names, whether or not the application serves it."""
    if paging is None or meta is None:
        return None
    follow = value_at(meta, paging.next)
    if follow in (None, "") or (paging.has_more is not None and meta.get(paging.has_more) is False):
        return None
    if paging.style is PagingStyle.PAGE:
        follow = _page_number(paging, params, str(follow))
    if params.get(paging.param) == follow:  # a page that names itself would be asked for without end
        return None
    return {**params, paging.param: follow}


def _page_number(paging: Paging, params: Mapping[str, Any], next_page: str) -> int:
    """The number in the application's own link, else one more than the page just read."""
    named = re.search(rf"[?&]{re.escape(paging.param)}=([0-9]{{1,9}})(?![0-9])", next_page)
    return int(named[1]) if named else int(params.get(paging.param, 1)) + 1
