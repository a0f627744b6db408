"""From one page of a list to the params of the next, by what the gateway says of a kind's paging."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from yarl import URL

from gateway.errors import UpstreamRejected


class ActionPaging(msgspec.Struct, frozen=True):
    """How a list turns its pages."""

    #: the param that asks for the next page
    param: str
    #: `page` (a number), `cursor` (a value of Meta) or `link` (a path of Meta)
    style: str = "cursor"
    #: the param that sets how many records a page holds
    size: str | None = None
    #: where in Meta the next page is named, as a dotted path
    next: str = ""
    #: the Meta member that must be true for a next page to exist
    has_more: str | None = None
    #: how many pages the application serves at most
    max_pages: int | None = None
    #: the Meta member that is there when the application does not list everything
    incomplete: str | None = None


class AlternativePaging(msgspec.Struct, frozen=True):
    """Another paging, when a param is left out."""

    without: str
    paging: ActionPaging | None = None


class ListAction(msgspec.Struct, frozen=True):
    """An action as far as paging goes."""

    paging: ActionPaging | None = None
    alternatives: tuple[AlternativePaging, ...] = ()

    def paging_for(self, params: Mapping[str, Any]) -> ActionPaging | None:
        """The paging of a call with these params."""
        return next((other.paging for other in self.alternatives if other.without not in params), self.paging)


def next_params(
    listing: ListAction, params: Mapping[str, Any], meta: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The params of the page after the one that answered with this Meta, or None at the end.

    Raises UpstreamRejected where the list goes on but the application does not: a part must not look like the whole.
    """
    paging = listing.paging_for(params)
    if paging is None or not meta:
        return None
    follow = _followed(paging, params, meta)
    if follow is None and paging.incomplete is not None and paging.incomplete in meta:
        raise UpstreamRejected("the application lists no more, but says that there is more; ask for less")
    if paging.style == "page" and paging.max_pages is not None and follow is not None and follow > paging.max_pages:
        words = f"the application serves {paging.max_pages} pages at most, and there are more"
        raise UpstreamRejected(f"{words}; ask for larger pages or for less")
    return None if follow is None else {**params, paging.param: follow}


def _followed(paging: ActionPaging, params: Mapping[str, Any], meta: Mapping[str, Any]) -> Any:
    """What names the next page; None at the end, and for a page that names itself."""
    follow = _at(meta, paging.next)
    if follow in (None, "") or (paging.has_more is not None and meta.get(paging.has_more) is False):
        return None
    if paging.style == "page":
        follow = _page_number(paging, params, str(follow))
    return None if params.get(paging.param) == follow else follow


def _at(meta: Mapping[str, Any], path: str) -> Any:
    value: Any = meta
    for member in path.split("."):
        value = value.get(member) if isinstance(value, Mapping) else None
    return value


def _page_number(paging: ActionPaging, params: Mapping[str, Any], next_page: str) -> int:
    """The number in the application's own link, else one more than the page just read."""
    named = URL(next_page).query.get(paging.param, "")
    return int(named) if re.fullmatch("[0-9]{1,9}", named) else int(params.get(paging.param, 1)) + 1
