"""A list of an application: the request at a checkpoint, and the checkpoint after its page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from gateway.context_store.sync.checkpoint import ChangesUnavailable, Checkpoint, ParentRecord
from gateway.context_store.sync.times import moment_of, written
from gateway.errors import GatewayError
from gateway.foundation import payloads
from gateway.foundation.numbered_pages import Numbering, Place, identifier, step
from gateway.kinds.catalog import Operation
from gateway.kinds.members import value_at
from gateway.kinds.paging import Paging, TimeOrder
from gateway.kinds.sync import Incremental, Parent
from gateway.upstream.pagination import next_params
from gateway.upstream.responses import OperationResult

#: maximum results of one search of HubSpot, whose style is `window`
_DEEPEST = 10_000
#: statuses with which applications refuse a position or a cursor that they no longer have
_GONE = (400, 404, 410, 422)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A list, read by an operation page by page."""

    operation: Operation
    #: constant params, in which `{since}` is replaced by the time
    constant_params: Mapping[str, Any]
    #: how changes are requested; None if the application cannot list them
    since: Incremental | None = None
    parent: Parent | None = None
    #: seconds from one page to the next
    page_interval: float = 0.0

    @property
    def scrolls(self) -> bool:
        """Whether the application keeps the position of the list."""
        return self.operation.paging is not None and self.operation.paging.scrolls

    def refused(self, checkpoint: Checkpoint, error: GatewayError) -> None:
        """Raise what a refusal of this page means; return if the list can go on without its token.

        Raises ChangesUnavailable if the application no longer has the position in its log, and the error itself for the
        first page of another list.
        """
        status = error.upstream.status if error.upstream else None
        if self.since is not None and self.since.style == "log" and status in _GONE:
            raise ChangesUnavailable from error
        if not checkpoint.is_inside:
            raise error

    @property
    def is_stable(self) -> bool:
        """Whether no record can be skipped while the list is read, although records change meanwhile."""
        return self.operation.order == "stable" or self._time_order is not None

    def params(self, checkpoint: Checkpoint, parent: ParentRecord | None) -> dict[str, Any]:
        """The params of the page at a checkpoint."""
        if checkpoint.request is not None:
            return dict(checkpoint.request)
        params = _filled(
            self.constant_params, written(checkpoint.start or 0.0, self.since.format) if self.since else ""
        )
        if parent is not None and self.parent is not None:
            values = checkpoint.pending[:1] or values_of(self.parent, parent)
            params |= dict(zip(self.parent.params, values, strict=True))
        if self.since is not None:
            params |= _since_params(self.since, checkpoint)
        order = self._time_order
        if order is not None and order.since is not None and checkpoint.position is not None:
            params[order.since] = written(checkpoint.position, order.format)
        paging = self.operation.paging
        if checkpoint.token is not None and paging is not None:
            repeated = paging.repeat_params
            params = {name: value for name, value in params.items() if repeated is None or name in repeated}
            params[paging.param] = checkpoint.token
        return params

    def after(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        """The checkpoint after a page, and whether the list has more; raises ChangesUnavailable.

        The checkpoint says what is missing if the application lists only a part.
        """
        payloads.require_ordinary_numbers(page.result)
        if self._numbering is not None:
            return self._after_numbered(self._numbering, checkpoint, page, params)
        style = self.since.style if self.since else "modified"
        # A list that is cut here, but continues from the time of its last record, loses nothing.
        is_cut_only = page.next is None and self._position(checkpoint, page) is not None
        if page.incomplete is not None and not is_cut_only:
            checkpoint = checkpoint.without(page.incomplete)
        return _AFTER[style](self, checkpoint, page, params)

    @cached_property
    def _numbering(self) -> Numbering | None:
        """How the pages are numbered of a list whose records may move, so that its pages overlap."""
        paging, order = self.operation.paging, self.operation.order
        is_tree = self.parent is not None and self.parent.recurse_field is not None
        if paging is None or is_tree or (self.since is not None and self.since.style != "modified"):
            return None
        return Numbering.of(style=paging.style, param=paging.param, size=paging.size, order=order)

    def _after_numbered(
        self, numbering: Numbering, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        following = next_params(self.operation, params, page)
        names = [identifier(payloads.value(record)) for record in page.records]
        place = checkpoint.place or Place(params=dict(params))
        found = step(numbering, place, params, names, following=following, incomplete=page.incomplete)
        if found.incomplete is not None:
            checkpoint = checkpoint.without(found.incomplete)
        if found.following is None:
            return checkpoint.replace(place=None, request=None), False
        return checkpoint.replace(place=found.place, request=dict(found.following)), True

    def _after_page(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        token = self._token(page, params)
        position = None if page.is_proved_end else self._position(checkpoint, page)
        if position is not None:
            return checkpoint.replace(token=None, position=position), True
        if token is not None and self._time_order is not None:
            checkpoint = checkpoint.replace(may_lack=True)
        below, request = self._below(page), self._request(page, params)
        if checkpoint.pending:
            pending = (*checkpoint.pending, *below) if token is not None else (*checkpoint.pending[1:], *below)
            return checkpoint.replace(token=token, request=request, pending=pending), bool(pending)
        return checkpoint.replace(token=token, request=request), token is not None

    def _after_newest(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        """The list is sorted by time, newest first: it ends at a page with records that were read before."""
        is_old = checkpoint.since is not None and any(
            time is not None and time < checkpoint.since for time in map(self._time, page.records)
        )
        return (checkpoint.replace(token=None), False) if is_old else self._after_page(checkpoint, page, params)

    def _after_cursor(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        """The application's cursor is stored at the end of the list too."""
        meta, (paging, since) = page.meta or {}, self._paging_and_since
        token = value_at(meta, paging.next)
        if token is None:
            return checkpoint, False
        return checkpoint.replace(token=token), token != checkpoint.token and meta.get(since.end or "") is not True

    def _after_log(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        """The response has the position at which the next synchronization begins; pages of one reading keep theirs."""
        following, has_more = self._after_page(checkpoint, page, params)
        _, since = self._paging_and_since
        position = (page.meta or {}).get(since.position or "")
        is_end = not has_more and isinstance(position, str | int)
        return (following.replace(log=str(position)) if is_end else following), has_more

    def _after_end_time(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        """The next page begins at the second at which this one ends; both may have records of that second."""
        meta, (paging, since) = page.meta or {}, self._paging_and_since
        start, end = checkpoint.since or 0.0, moment_of(value_at(meta, paging.next))
        if end is None:
            return checkpoint.replace(since=start), False
        is_end = meta.get(since.end or "") is True
        # The list cannot page within one second: if more records than a page holds changed in it, skip to the next.
        following = end + 1 if end <= start and not is_end else end
        # The application does not list the last moment; the next run reads what changed in it.
        is_young = following > (checkpoint.began or 0.0) - since.lag
        may_lack = checkpoint.may_lack or (is_young and not is_end)
        return checkpoint.replace(since=following, may_lack=may_lack), not is_end and not is_young

    def _after_window(
        self, checkpoint: Checkpoint, page: OperationResult, params: Mapping[str, Any]
    ) -> tuple[Checkpoint, bool]:
        """A search has a limited number of results: one time may have more records than that."""
        following, has_more = self._after_page(checkpoint, page, params)
        limit = int(self.constant_params.get("limit", 100))
        if following.token is not None and int(following.token) + limit > _DEEPEST:
            raise ChangesUnavailable
        return following, has_more

    @cached_property
    def _time_order(self) -> TimeOrder | None:
        """The order of a list that continues from the time of its last record; None for other lists.

        There, page numbers count only within one moment: a record that changes moves to the end, and would move others
        to a page that was read before.
        """
        order = self.operation.order
        if not isinstance(order, TimeOrder) or order.newest_first:
            return None
        is_search = self.since is not None and self.since.style == "window"
        return order if order.since is not None or is_search else None

    def _position(self, checkpoint: Checkpoint, page: OperationResult) -> float | None:
        """The time from which the list continues, if it is later than the one at which this page began."""
        order = self._time_order
        if order is None or not page.records:
            return None
        start = checkpoint.start or 0.0 if checkpoint.position is None else checkpoint.position
        time = moment_of(value_at(payloads.record(page.records[-1]), order.by_time))
        is_later = time is not None and time > start and written(time, order.format) != written(start, order.format)
        return time if is_later else None

    @property
    def _paging_and_since(self) -> tuple[Paging, Incremental]:
        """The specs of paging and of incremental reads; the linter requires both."""
        assert self.operation.paging is not None
        assert self.since is not None
        return self.operation.paging, self.since

    def _token(self, page: OperationResult, params: Mapping[str, Any]) -> Any:
        paging = self.operation.paging
        return page.next[paging.param] if page.next is not None and paging is not None else None

    def _request(self, page: OperationResult, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The params of the next page if the token alone does not name it."""
        paging = self.operation.paging
        return next_params(self.operation, params, page) if paging is not None and paging.carried else None

    def _time(self, record: msgspec.Raw) -> float | None:
        checkpoint = self.since.field if self.since else None
        return None if checkpoint is None else moment_of(value_at(payloads.record(record), checkpoint))

    def _below(self, page: OperationResult) -> list[str]:
        """The ids of records that others belong to."""
        within = self.parent.recurse_field if self.parent else None
        if self.parent is None or within is None:
            return []
        records = [payloads.record(record) for record in page.records]
        apart = self.parent.recurse_except.items()
        return [
            str(record[self.operation.entity.search.primary_key if self.operation.entity.search else "id"])
            for record in records
            if record.get(within) is True and not any(record.get(name) in values for name, values in apart)
        ]


def values_of(spec: Parent, parent: ParentRecord) -> Sequence[Any]:
    """The values of the params that come from the parent, in the order of the params."""
    return [value_at(parent.document, checkpoint) for checkpoint in spec.params.values()]


def _since_params(since: Incremental, checkpoint: Checkpoint) -> dict[str, Any]:
    if since.style == "window":
        start = checkpoint.since if checkpoint.position is None else checkpoint.position
        return {} if start is None or since.field is None else _window(since.field[-1], start)
    if since.style == "log":
        return {since.param or "": checkpoint.log}
    if since.param is None or (since.style == "cursor" and checkpoint.token is not None):
        return {}
    if checkpoint.start is None and since.style == "modified":
        return {}
    start = 0.0 if checkpoint.start is None else min(checkpoint.start, (checkpoint.began or 0.0) - since.lag)
    return {since.param: written(start, since.format)}


def _window(name: str, start: float) -> dict[str, Any]:
    filter_ = {"propertyName": name, "operator": "GTE", "value": written(start, "milliseconds")}
    return {
        "filterGroups": [{"filters": [filter_]}],
        "sorts": [{"propertyName": name, "direction": "ASCENDING"}],
    }


def _filled(params: Mapping[str, Any], since: str) -> dict[str, Any]:
    return {
        name: value.replace("{since}", since) if isinstance(value, str) else value for name, value in params.items()
    }


_AFTER: Mapping[str, Callable[[Listing, Checkpoint, OperationResult, Mapping[str, Any]], tuple[Checkpoint, bool]]] = {
    "modified": Listing._after_page,
    "newest_first": Listing._after_newest,
    "cursor": Listing._after_cursor,
    "end_time": Listing._after_end_time,
    "window": Listing._after_window,
    "log": Listing._after_log,
}
