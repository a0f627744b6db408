"""Computes the next page of a list from the page before, and whether the end of the list is proved. Pure."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec.structs import replace

from gateway.contract.kinds import PagingStyle
from gateway.foundation import payloads
from gateway.foundation.numbered_pages import Numbering, Place, are_identified, identifier, step
from gateway.kinds.catalog import Operation
from gateway.kinds.members import value_at
from gateway.kinds.paging import Paging
from gateway.upstream.responses import OperationResult

#: advice for a list of which no more can be said
_ASK_FOR_LESS = "ask for less, such as with a filter"
#: values by which responses say that there is no next page
_NO_VALUE: tuple[Any, ...] = (None, "", False, {}, [])


class _Next(NamedTuple):
    """The value of `param` for the next page; None at the end, or, with the reason, if there may be more."""

    value: Any = None
    incomplete: str | None = None
    #: the further params of the next page
    params: Mapping[str, Any] = {}


_END = _Next()


def page_of(
    operation: Operation, params: Mapping[str, Any], answer: OperationResult, defaults: Mapping[str, Any]
) -> OperationResult:
    """The result of a list with the params of the next page; those with their default value are left out."""
    paging = operation.paging
    if paging is None:
        return replace(answer, is_page=True, incomplete=_joined(operation, answer.incomplete))
    if paging.carried:
        answer = replace(answer, meta=_with_carried(paging, params, answer.meta or {}))
    meta = answer.meta or {}
    found = _next(operation, paging, params, meta, answer)
    found = _served(paging, meta, answer, found)
    if paging.is_counted:
        answer = replace(answer, meta={**meta, paging.next[0]: found.value})
    following = (
        None
        if found.value is None
        else {**_repeated(paging, params), **_carried(paging, meta), **found.params, paging.param: found.value}
    )
    if following is not None:
        following = {name: each for name, each in following.items() if (name, each) not in defaults.items()}
    says_incomplete = paging.incomplete is not None and paging.incomplete.applies(meta.get(paging.incomplete.meta))
    said = f"the application says that it does not list everything; {_ASK_FOR_LESS}" if says_incomplete else None
    incomplete = _joined(operation, answer.incomplete, said, found.incomplete)
    return replace(answer, is_page=True, next=following, incomplete=incomplete)


def next_params(operation: Operation, params: Mapping[str, Any], page: OperationResult) -> dict[str, Any] | None:
    """The params of the page after one of `page_of`, with default values; None if the list cannot be continued."""
    paging = operation.instead(params).paging
    return None if page.next is None or paging is None else {**_repeated(paging, params), **page.next}


class ListPart(NamedTuple):
    """The records of a page that were not read before, and where the reading of the whole list continues."""

    page: OperationResult
    #: None after the last page
    following: Mapping[str, Any] | None
    #: None for a list whose pages do not overlap
    place: Place | None = None


def part(
    operation: Operation,
    params: Mapping[str, Any],
    page: OperationResult,
    place: Place | None,
    *,
    is_whole: bool = True,
) -> ListPart:
    """What a page adds to the reading of a whole list, whose records may move if its order is unknown.

    If records are not whole and lack their identifiers, pages do not overlap: different records may be equal.
    """
    following = next_params(operation, params, page)
    chosen = operation.instead(params)
    paging = chosen.paging
    if paging is None:
        return ListPart(page, following)
    numbering = Numbering.of(style=paging.style, param=paging.param, size=paging.size, order=chosen.order)
    if numbering is None or (place is None and following is None):
        return ListPart(page, following)
    payloads.require_ordinary_numbers(page.result)
    records = page.records
    values = [payloads.value(record) for record in records]
    if place is None and (page.redacted or not is_whole) and not are_identified(values):
        return ListPart(page, following)
    place = place or Place(params=dict(params))
    names = [identifier(value) for value in values]
    found = step(numbering, place, params, names, following=following, incomplete=page.incomplete)
    if len(found.new) < len(records):
        page = replace(page, result=msgspec.Raw(msgspec.json.encode([records[index] for index in found.new])))
    return ListPart(replace(page, incomplete=found.incomplete), found.following, found.place)


def _repeated(paging: Paging, params: Mapping[str, Any]) -> Mapping[str, Any]:
    if paging.repeat_params is None:
        return params
    return {name: value for name, value in params.items() if name in paging.repeat_params}


def _with_carried(paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """The Meta with the members that only the first response has, which requests for further pages carry."""
    known = {member: params[param] for param, member in paging.carried.items() if param in params}
    return {**meta, **{member: value for member, value in known.items() if meta.get(member) is None}}


def _carried(paging: Paging, meta: Mapping[str, Any]) -> dict[str, Any]:
    """The params that carry members of Meta to the next page."""
    return {param: meta[member] for param, member in paging.carried.items() if meta.get(member) is not None}


def _joined(operation: Operation, *reasons: str | None) -> str | None:
    found = [reason for reason in reasons if reason is not None]
    return f"{operation}: {'; '.join(found)}" if found else None


def _next(
    operation: Operation, paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any], answer: OperationResult
) -> _Next:
    if paging.style is PagingStyle.UNKNOWN:
        return _unknown(paging, params, meta, answer)
    if paging.is_counted:
        return _counted(paging, params, meta, answer)
    return _named(operation, paging, params, meta, answer)


def _unknown(paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any], answer: OperationResult) -> _Next:
    """A list whose paging the spec does not know is whole only if something in the response shows it."""
    total = _number(meta.get(paging.total or ""))
    asked_for_first = paging.param not in params
    if _is_last(paging, meta) or (asked_for_first and (answer.items == 0 or (total and answer.items >= total))):
        return _END
    value = _value(paging, meta)
    if value not in _NO_VALUE:
        place = ".".join(paging.next)
        return _Next(None, f"{place} names a next page, which the spec cannot request; {_ASK_FOR_LESS}")
    bounds = [each for each in (_number(params.get(paging.size or "")), paging.max_records) if each is not None]
    proves = paging.max_records is not None or bool(paging.next)
    if proves and bounds and answer.items < min(bounds) and total is None and not _says_more(paging, meta):
        return _END
    if paging.max_records is not None:
        advice = paging.beyond or _ASK_FOR_LESS
        return _Next(None, f"the application lists {min(bounds)} records at most, and there may be more; {advice}")
    return _Next(None, f"the spec does not know how this list is paged, so that more may follow; {_ASK_FOR_LESS}")


def _counted(paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any], answer: OperationResult) -> _Next:
    """The next page of a list whose responses do not name it."""
    if _is_last(paging, meta):
        return _END
    first, following = _first(paging), _END
    asked = None if paging.style is PagingStyle.LAST_ID else _number(params.get(paging.param, first))
    if asked is None and paging.style is not PagingStyle.LAST_ID:
        return _Next(None, f"{paging.param} is not a number, so that the next page cannot be computed")
    says_more = _says_more(paging, meta) or _is_before_last_page(paging, meta, asked)
    if answer.items == 0:
        return _after_nothing(paging, meta, asked, says_more=says_more)
    match paging.style:
        case PagingStyle.LAST_ID:
            following = _after_last(paging, answer)
            value = following.value
            if value is None:
                return following
            if str(params.get(paging.param)) == str(value):
                return _Next(None, _itself())
        case PagingStyle.OFFSET:
            value = (asked or 0) + answer.items
        case _:
            value = (asked or 0) + 1
    is_end = not says_more and _is_end(paging, params, meta, answer.items, (asked or 0) - first)
    return _END if is_end else following._replace(value=value)


def _after_last(paging: Paging, answer: OperationResult) -> _Next:
    """The page after the last record of this one, or why the record names none."""
    last = payloads.value(answer.records[-1]) if answer.records else None
    found = {}
    for param, place in ((paging.param, paging.id_field), *paging.last_fields.items()):
        found[param] = value_at(last, place)
        if isinstance(found[param], bool) or not isinstance(found[param], int | str):
            reason = f"the last record has no {'.'.join(place)}, from which the list continues; {_ASK_FOR_LESS}"
            return _Next(None, reason)
    return _Next(found.pop(paging.param), params=found)


def _is_end(paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any], items: int, position: int) -> bool:
    """Whether a page with records is proved to be the last; `position` counts records or pages before it."""
    total, stated = _number(meta.get(paging.total or "")), _number(meta.get(paging.stated_size or ""))
    if paging.total_pages is not None and (pages := _number(meta.get(paging.total_pages))) is not None:
        return position + 1 >= pages
    if total is not None:
        before = position if paging.style is PagingStyle.OFFSET else position * (stated or 0)
        return before + items >= total and (position == 0 or before > 0)
    if stated is not None:
        return items < stated
    size = _number(params.get(paging.size or "")) if paging.short_page is not None else None
    return size is not None and items < size


def _after_nothing(paging: Paging, meta: Mapping[str, Any], asked: int | None, *, says_more: bool) -> _Next:
    """A page without records is the last, unless the same response says that there are more."""
    if says_more and paging.style is PagingStyle.PAGE:
        return _Next((asked or 0) + 1)
    total = _number(meta.get(paging.total or ""))
    is_before_total = total is not None and asked is not None and asked - _first(paging) < total
    if says_more or (is_before_total and (paging.style is PagingStyle.OFFSET or asked == _first(paging))):
        counted = "" if total is None else f" of {total}"
        return _Next(None, f"the application returns no further records, but says that there are more{counted}")
    return _END


def _named(
    operation: Operation, paging: Paging, params: Mapping[str, Any], meta: Mapping[str, Any], answer: OperationResult
) -> _Next:
    """The next page that a response names."""
    if _is_last(paging, meta) or (paging.scrolls and answer.items == 0):
        return _END
    value = _value(paging, meta)
    if value in _NO_VALUE:
        if not _says_more(paging, meta):
            return _END
        return _Next(None, f"the application says that there are more records, but names no next page; {_ASK_FOR_LESS}")
    if isinstance(value, dict | list):
        return _Next(None, f"{'.'.join(paging.next)} is no value that names a next page; {_ASK_FOR_LESS}")
    name = paging.url_param or _wire_name(operation, paging.param)
    asked = params.get(paging.param)
    if paging.style is PagingStyle.PAGE:
        number = _number(params.get(paging.param, _first(paging)))
        named = _page_number(name, str(value), number if number is not None else _first(paging))
        return _Next(None, _itself()) if number is not None and named <= number else _Next(named)
    if paging.style is PagingStyle.LINK:
        value = _linked_value(name, str(value))
        if value is None:
            return _Next(None, f"the URL of the next page has no {name}, so that the list cannot be continued")
    return _Next(None, _itself()) if str(asked) == str(value) and not paging.scrolls else _Next(value)


def _served(paging: Paging, meta: Mapping[str, Any], answer: OperationResult, found: _Next) -> _Next:
    """The next page or the end, unless the list goes on beyond what the application returns of it."""
    beyond = paging.beyond or "ask for less, or for larger pages"
    records = f"the application lists {paging.max_records} records at most, and there are more; {beyond}"
    if found is _END and paging.max_records is not None and paging.total is not None:
        total = _number(meta.get(paging.total))
        return _Next(None, records) if total is not None and total > paging.max_records else found
    number, first = _number(found.value), _first(paging)
    if number is None:
        return found
    if paging.max_pages is not None and number - first >= paging.max_pages:
        return _Next(None, f"the application serves {paging.max_pages} pages at most, and there are more; {beyond}")
    before = number - first
    if paging.style is PagingStyle.PAGE:
        before *= _number(meta.get(paging.stated_size or "")) or answer.items
    return _Next(None, records) if paging.max_records is not None and before >= paging.max_records else found


def _itself() -> str:
    return (
        f"the application names this page as its own next page, so that the list cannot be continued; {_ASK_FOR_LESS}"
    )


def _value(paging: Paging, meta: Mapping[str, Any]) -> Any:
    return value_at(meta, paging.next) if paging.next else None


def _is_last(paging: Paging, meta: Mapping[str, Any]) -> bool:
    if paging.end is not None and meta.get(paging.end) in (True, "true"):
        return True
    return paging.has_more is not None and meta.get(paging.has_more) in (False, "false")


def _says_more(paging: Paging, meta: Mapping[str, Any]) -> bool:
    """Whether the response says that this page is not the last; for a response that does not say that it is."""
    return any(name is not None and meta.get(name) is not None for name in (paging.has_more, paging.end))


def _is_before_last_page(paging: Paging, meta: Mapping[str, Any], asked: int | None) -> bool:
    pages = _number(meta.get(paging.total_pages or ""))
    return pages is not None and asked is not None and asked - _first(paging) + 1 < pages


def _first(paging: Paging) -> int:
    """The number of the first page, or the first offset or position."""
    return paging.first if paging.first is not None else int(paging.style in (PagingStyle.PAGE, PagingStyle.LINK))


def _number(value: Any) -> int | None:
    """A number of a response or a param, which headers have as text; None if it is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None


def _wire_name(operation: Operation, param: str) -> str:
    """The application's name of a param."""
    return next((each.wire for each in operation.placements if each.name == param), param)


def _page_number(name: str, next_page: str, page: int) -> int:
    """The number that the application names, alone or in a link, else one more than the page just read."""
    if next_page.isascii() and next_page.isdigit() and len(next_page) < 10:
        return int(next_page)
    named = re.search(rf"[?&]{re.escape(name)}=([0-9]{{1,9}})(?![0-9])", next_page)
    return int(named[1]) if named else page + 1


def _linked_value(name: str, url: str) -> str | None:
    """The member of the query in the URL of the next page, None if it has none; a text that is no URL is the value."""
    if not re.match(r"[a-z]+://|/|\?", url, re.IGNORECASE) and "?" not in url:
        return url
    try:
        values = parse_qs(urlsplit(url).query).get(name)
    except ValueError:
        return None
    return values[-1] if values else None
