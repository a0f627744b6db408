"""Computes the params of the next page of a list from the page before."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec.structs import replace

from gateway import payloads
from gateway.contract.kinds import PagingStyle
from gateway.errors import UpstreamInvalidResponse, UpstreamRejected
from gateway.kinds.catalog import Operation
from gateway.kinds.paging import Paging
from gateway.upstream.responses import OperationResult, value_at


def page_of(
    operation: Operation, params: Mapping[str, Any], answer: OperationResult, defaults: Mapping[str, Any]
) -> OperationResult:
    """The result of a list with the params of the next page; those with their default value are left out."""
    paging = operation.paging
    if paging is not None and paging.is_counted:
        meta = answer.meta or {}
        answer = replace(answer, meta={**meta, paging.next[0]: counted_next(paging, params, meta, answer.records)})
    following = _named_page(paging, params, answer.meta)
    incomplete = _missing_rest(operation, paging, answer.meta, following)
    if following is not None:
        following = {name: each for name, each in following.items() if (name, each) not in defaults.items()}
    return replace(answer, is_page=True, next=following, incomplete=incomplete)


def next_params(
    operation: Operation, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The params of the page after the one that answered with this Meta, or None at the end.

    Raises UpstreamRejected if the application does not return the rest: a part must not look like the whole.
    """
    paging = operation.instead(params).paging
    following = _named_page(paging, params, meta)
    missing = _missing_rest(operation, paging, meta, following)
    if missing is not None:
        raise UpstreamRejected(missing)
    return following


def _missing_rest(
    operation: Operation,
    paging: Paging | None,
    meta: Mapping[str, Any] | None,
    following: Mapping[str, Any] | None,
) -> str | None:
    """Why the application does not return the rest of the list; None if it does, and at the end of the list."""
    if following is not None:
        return _beyond_last_page(operation, paging, following)
    if paging is not None and paging.style is PagingStyle.UNKNOWN:
        return (
            f"{operation}: the spec does not say how this list is paged, so that records may be missing; ask for less"
        )
    if _says_incomplete(paging, meta):
        return f"{operation}: the application lists no more, but says that there is more; ask for less"
    return None


def _beyond_last_page(operation: Operation, paging: Paging | None, following: Mapping[str, Any]) -> str | None:
    if paging is None or paging.max_pages is None or paging.style is not PagingStyle.PAGE:
        return None
    if int(following.get(paging.param, 1)) <= paging.max_pages:
        return None
    words = f"the application serves {paging.max_pages} pages at most, and there are more"
    return f"{operation}: {words}; ask for larger pages or for less"


def is_incomplete(operation: Operation, params: Mapping[str, Any], meta: Mapping[str, Any] | None) -> bool:
    """Whether the application says that it does not list everything."""
    return _says_incomplete(operation.instead(params).paging, meta)


def _says_incomplete(paging: Paging | None, meta: Mapping[str, Any] | None) -> bool:
    return bool(paging and meta and paging.incomplete and paging.incomplete.meta in meta)


def page_after(
    operation: Operation, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """As `next_params`, for callers that call `is_incomplete` themselves."""
    paging = operation.instead(params).paging
    following = _named_page(paging, params, meta)
    unserved = None if following is None else _beyond_last_page(operation, paging, following)
    if unserved is not None:
        raise UpstreamRejected(unserved)
    return following


def _named_page(
    paging: Paging | None, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The params of the page that the Meta names, whether or not the application serves it."""
    if paging is None or meta is None or paging.style is PagingStyle.UNKNOWN:
        return None
    follow = meta.get(paging.next[0])
    if len(paging.next) > 1:
        follow = value_at(follow, paging.next[1:])
    if follow in (None, "") or _is_last(paging, meta):
        return None
    if paging.style is PagingStyle.PAGE:
        follow = _page_number(paging, params, str(follow))
    elif paging.style is PagingStyle.LINK:
        follow = _linked_value(paging, str(follow))
    if str(params.get(paging.param)) == str(follow):  # a page that names itself would be an endless loop
        return None
    if paging.repeat_params is not None:
        params = {name: value for name, value in params.items() if name in paging.repeat_params}
    return {**params, paging.param: follow}


def counted_next(
    paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any], records: Sequence[msgspec.Raw]
) -> Any:
    """The value of `param` for the page after one with these records, None after the last.

    A list ends with an empty page, by `has_more` or `total` where the application has them, else with a page of fewer
    records than requested.
    """
    if not records or _is_last(paging, meta):
        return None
    if paging.style is PagingStyle.LAST_ID:
        following = value_at(payloads.value(records[-1]), paging.id_field)
    else:
        step = len(records) if paging.style is PagingStyle.OFFSET else 1
        first = paging.first if paging.first is not None else int(paging.style is PagingStyle.PAGE)
        following = int(params.get(paging.param, first)) + step
    if paging.has_more is not None and meta.get(paging.has_more) is not None:
        return following
    size = params.get(paging.size) if paging.size is not None else None
    total = meta.get(paging.total) if paging.total is not None else None
    if total is not None and paging.style is PagingStyle.OFFSET:
        return following if following < _number(total) else None
    return None if size is not None and len(records) < int(size) else following


def _number(total: Any) -> int:
    """The number of records in the list; raises UpstreamInvalidResponse if the application sent something else."""
    try:
        return int(total)
    except (TypeError, ValueError, OverflowError) as error:
        raise UpstreamInvalidResponse("the application's total of the list is not a number") from error


def _is_last(paging: Paging, meta: Mapping[str, Any]) -> bool:
    if paging.end is not None and meta.get(paging.end) in (True, "true"):
        return True
    return paging.has_more is not None and meta.get(paging.has_more) in (False, "false")


def _page_number(paging: Paging, params: Mapping[str, Any], next_page: str) -> int:
    """The number that the application names, alone or in a link, else one more than the page just read."""
    if next_page.isascii() and next_page.isdigit():
        return int(next_page)
    named = re.search(rf"[?&]{re.escape(paging.param)}=([0-9]{{1,9}})(?![0-9])", next_page)
    return int(named[1]) if named else int(params.get(paging.param, paging.first or 1)) + 1


def _linked_value(paging: Paging, url: str) -> str:
    """The member of the query in the URL of the next page; raises UpstreamInvalidResponse where it has none."""
    name = paging.url_param or paging.param
    values = parse_qs(urlsplit(url).query).get(name)
    if not values:
        raise UpstreamInvalidResponse(f"the application's URL of the next page has no {name}")
    return values[-1]
