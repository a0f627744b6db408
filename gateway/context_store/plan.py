"""What a synchronization asks the application for, page after page, and where it goes on: pure.

A *run* reads either everything (a sweep, which finds out what is gone) or what changed since the run before. Its place
is kept with every page, so that whoever takes it up, after a crash too, goes on from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.connectors import pagination
from gateway.connectors.catalog import Kind, Operation
from gateway.connectors.responses import Answer, value_at
from gateway.connectors.spec import Action, Effect, Search, Since, Sync, SyncRead
from gateway.context_store.times import moment_of, written

#: seconds that one page may take, tries included
_TIMEOUT = 120
#: results that a windowed search reaches
_DEEPEST = 10_000
_RECORD = msgspec.json.Decoder(dict[str, Any])


class Stuck(Exception):
    """Changes cannot be told apart any further: everything must be read."""


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a run has come; between runs, where the next one begins."""

    #: Unix time from which changes are wanted; None: everything
    since: float | None = None
    #: when the run began; None between runs
    began: float | None = None
    #: when everything was read last
    swept: float | None = None
    #: what turns to the next page, or the application's own cursor
    token: str | int | None = None
    #: stored id of the parent whose records are read
    parent: str | None = None
    #: ids below the parent that are still to be read, the current one first
    pending: tuple[str, ...] = ()
    #: whether it reads the list of what is gone
    is_removed: bool = False

    def dumped(self) -> str:
        return msgspec.json.encode(self).decode()


def loaded(text: str | None) -> Place:
    """The place that `dumped` wrote; the very beginning where there is none, or one of another version."""
    try:
        return msgspec.json.decode(text, type=Place) if text else Place()
    except msgspec.MsgspecError:
        return Place()


@dataclass(frozen=True)
class ParentRecord:
    """A record below which others lie."""

    id: str
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """The lists of one entity, as operations."""

    entity: str
    sync: Sync
    everything: Operation
    changes: Operation | None
    removed: Operation | None

    def begun(self, place: Place, now: float, *, is_full: bool) -> Place:
        """The first place of a run that begins now."""
        if not is_full:
            return msgspec.structs.replace(place, began=now, parent=None, pending=(), is_removed=False)
        return Place(began=now, swept=now)

    def needs_everything(self, place: Place, now: float) -> bool:
        """Whether the next run must be a sweep: nothing was read yet, not for long, or changes cannot be asked for."""
        is_due = place.swept is None or now - place.swept >= self.sync.sweep_every
        return self.sync.since is None or place.since is None or is_due

    def rested(self, place: Place) -> Place:
        """Where the next run begins, when this one has come to its end."""
        since, began = self.sync.since, place.began or 0.0
        if since is None:
            return Place(since=began, swept=place.swept)
        if since.style == "cursor":
            return Place(since=began, swept=place.swept, token=place.token)
        start = place.since if since.style == "end_time" and place.since is not None else began - since.look_back
        return Place(since=min(start, began - since.lag), swept=place.swept)

    def restarted(self, place: Place, parent: ParentRecord | None) -> Place:
        """The same list from its beginning, for a token that the application does not take any more; raises Stuck."""
        if self.sync.since is not None and self.sync.since.style == "cursor":
            raise Stuck
        return msgspec.structs.replace(place, token=None) if parent is None else self.entered(place, parent)

    def entered(self, place: Place, parent: ParentRecord) -> Place:
        """At the first page of a parent's records."""
        pending = (str(self._of_parent(parent)[0]),) if self.sync.parent and self.sync.parent.within else ()
        return msgspec.structs.replace(place, parent=parent.id, token=None, pending=pending)

    def left(self, place: Place) -> Place | None:
        """At the list of what is gone, after everything else; None when there is no such list."""
        if self.removed is None or place.is_removed:
            return None
        return msgspec.structs.replace(place, is_removed=True, token=None, parent=None, pending=())

    def request(self, place: Place, parent: ParentRecord | None) -> tuple[Operation, dict[str, Any]]:
        """The operation and its params for the page at a place."""
        operation, read = self._read(place)
        since = None if place.is_removed else self.sync.since
        params = _filled(read.send, written(place.since or 0.0, since.format) if since else "")
        if parent is not None and self.sync.parent is not None:
            values = place.pending[:1] or self._of_parent(parent)
            params |= dict(zip(self.sync.parent.params, values, strict=True))
        if since is not None:
            params |= _since_params(since, place)
        if place.token is not None and operation.paging is not None:
            params[operation.paging.param] = place.token
        return operation, params

    def given(self, parent: ParentRecord | None) -> dict[str, Any]:
        """The members that records get from their parent."""
        if parent is None or self.sync.parent is None:
            return {}
        return {name: value_at(parent.document, place) for name, place in self.sync.parent.gives.items()}

    def after(self, place: Place, page: Answer, params: Mapping[str, Any]) -> tuple[Place, bool]:
        """The place after a page, and whether the list has more; raises Stuck."""
        operation, _ = self._read(place)
        since = None if place.is_removed else self.sync.since
        match since.style if since else None:
            case "cursor":
                return self._after_cursor(since, operation, place, page)
            case "end_time":
                return self._after_end_time(since, operation, place, page)
        following = pagination.next_params(operation, params, page.meta)
        token = following[operation.paging.param] if following and operation.paging else None
        if since and since.style == "newest_first" and self._is_older(since, place, page):
            token = None
        if since and since.style == "window" and operation is self.changes and token is not None:
            place, token = self._windowed(since, place, page, token)
            return msgspec.structs.replace(place, token=token), True
        below = self._below(page)
        if place.pending:
            pending = (*place.pending, *below) if token is not None else (*place.pending[1:], *below)
            return msgspec.structs.replace(place, token=token, pending=pending), bool(pending)
        return msgspec.structs.replace(place, token=token), token is not None

    def _read(self, place: Place) -> tuple[Operation, SyncRead]:
        if place.is_removed and self.removed and self.sync.removed:
            return self.removed, self.sync.removed
        if place.since is not None and self.changes and self.sync.changes:
            return self.changes, self.sync.changes
        return self.everything, self.sync

    def _of_parent(self, parent: ParentRecord) -> Sequence[Any]:
        assert self.sync.parent is not None
        return [value_at(parent.document, place) for place in self.sync.parent.params.values()]

    def _below(self, page: Answer) -> list[str]:
        """The ids of records that have records of their own below them."""
        parent = self.sync.parent
        if parent is None or parent.within is None:
            return []
        records = [_RECORD.decode(record) for record in page.records]
        return [
            str(record["id"])
            for record in records
            if record.get(parent.within) is True
            and not any(record.get(name) in values for name, values in parent.apart.items())
        ]

    def _after_cursor(
        self, since: Since | None, operation: Operation, place: Place, page: Answer
    ) -> tuple[Place, bool]:
        """The application's cursor is kept, at the end of the list too."""
        meta = page.meta or {}
        assert operation.paging is not None and since is not None
        token = value_at(meta, operation.paging.next)
        has_more = token not in (None, place.token) and meta.get(since.end or "") is not True
        return msgspec.structs.replace(place, token=token if token is not None else place.token), has_more

    def _after_end_time(
        self, since: Since | None, operation: Operation, place: Place, page: Answer
    ) -> tuple[Place, bool]:
        """Pages meet at a second that both may hold records of."""
        meta = page.meta or {}
        assert operation.paging is not None and since is not None
        start, end = place.since or 0.0, moment_of(value_at(meta, operation.paging.next))
        is_end = meta.get(since.end or "") is True or end is None
        end = start if end is None else end
        # A second with more records than a page holds is left with what the page showed of it.
        following = end + 1 if not is_end and end <= start else end
        is_end = is_end or following > (place.began or 0.0) - since.lag
        return msgspec.structs.replace(place, since=following), not is_end

    def _is_older(self, since: Since, place: Place, page: Answer) -> bool:
        """Whether the page reaches what was read before."""
        if place.since is None or since.field is None:
            return False
        times = [moment_of(value_at(_RECORD.decode(record), since.field)) for record in page.records]
        return any(time is not None and time < place.since for time in times)

    def _windowed(self, since: Since, place: Place, page: Answer, token: str | int) -> tuple[Place, str | int | None]:
        """The next page, or a search anew from the last time told where this one ends; raises Stuck."""
        _, read = self._read(place)
        if int(token) + int(read.send.get("limit", 100)) <= _DEEPEST:
            return place, token
        told = value_at(_RECORD.decode(page.records[-1]), since.field or ())
        start = moment_of(told)
        if start is None or place.since is None or int(start) <= int(place.since):
            raise Stuck
        return msgspec.structs.replace(place, since=start), None


def source_of(kind: Kind, entity_id: str) -> Source | None:
    """The lists of an entity; None for one that is not synchronized."""
    search = kind.entity(entity_id).search
    if search is None or search.sync is None:
        return None
    sync = search.sync.model_copy(
        update={
            "send": _naming_fields(search.sync.send, search),
            "changes": _naming(search.sync.changes, search),
            "removed": _naming(search.sync.removed, search),
        }
    )
    operations = [read and _operation(kind, entity_id, sync, read) for read in (sync, sync.changes, sync.removed)]
    everything, changes, removed = operations
    assert everything is not None
    return Source(entity_id, sync, everything, changes, removed)


def in_order(kind: Kind, entity_ids: Iterable[str]) -> list[str]:
    """The entities so that parents come before what lies below them."""
    wanted, ordered = list(entity_ids), list[str]()

    def add(entity_id: str) -> None:
        search = kind.entity(entity_id).search
        if search and search.sync and search.sync.parent and search.sync.parent.entity in wanted:
            add(search.sync.parent.entity)
        if entity_id not in ordered:
            ordered.append(entity_id)

    for entity_id in wanted:
        add(entity_id)
    return ordered


def with_parents(kind: Kind, entity_ids: Iterable[str]) -> list[str]:
    """The entities and all that they lie below, parents first."""
    wanted = list(entity_ids)
    for entity_id in wanted:  # grows as it goes
        search = kind.entity(entity_id).search
        parent = search.sync.parent.entity if search and search.sync and search.sync.parent else None
        if parent is not None and parent not in wanted:
            wanted.append(parent)
    return in_order(kind, wanted)


def synchronized(kind: Kind) -> list[str]:
    """The entities that have a copy, parents first."""
    return in_order(kind, [name for name, entity in kind.spec.entities.items() if entity.search and entity.search.sync])


def _naming(read: SyncRead | None, search: Search) -> SyncRead | None:
    return read and read.model_copy(update={"send": _naming_fields(read.send, search)})


def _naming_fields(send: Mapping[str, Any], search: Search) -> dict[str, Any]:
    """The params with the names of the search fields where `{fields}` and `{properties}` stand for them."""
    names = {
        "{fields}": [name for name in search.fields if name != search.key],
        "{properties}": [name.removeprefix("properties.") for name in search.fields if name.startswith("properties.")],
    }

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [inner for item in value for inner in (names.get(item, [item]) if isinstance(item, str) else [item])]
        return ",".join(names[value]) if isinstance(value, str) and value in names else value

    return {name: named(value) for name, value in send.items()}


def _operation(kind: Kind, entity_id: str, sync: Sync, read: SyncRead) -> Operation:
    """A read of the synchronizer in the form that the engine runs."""
    paging = kind.spec.paging.get(read.paging or "")
    names = [*read.send, *(paging.request_params[:1] if paging else ())]
    if read is not sync.removed:
        names += [sync.since.param] if sync.since and sync.since.param else []
        names += ["filterGroups", "sorts"] if sync.since and sync.since.style == "window" else []
    names += list(sync.parent.params) if sync.parent else []
    action = Action(
        request=read.request,
        effect=Effect.READ,
        description="What the synchronizer reads.",
        params={name: {} for name in names},
        records=read.records,
        paging=read.paging,
        rule=read.rule,
        timeout=_TIMEOUT,
    )
    return Operation(kind.spec, entity_id, "synchronize", action)


def _since_params(since: Since, place: Place) -> dict[str, Any]:
    if since.style == "window":
        return {} if place.since is None or since.field is None else _window(since.field[-1], place.since)
    if since.param is None or (since.style == "cursor" and place.token is not None):
        return {}
    if place.since is None and since.style == "modified":
        return {}
    start = 0.0 if place.since is None else min(place.since, (place.began or 0.0) - since.lag)
    return {since.param: written(start, since.format)}


def _window(name: str, start: float) -> dict[str, Any]:
    wanted = {"propertyName": name, "operator": "GTE", "value": written(start, "milliseconds")}
    return {
        "filterGroups": [{"filters": [wanted]}],
        "sorts": [{"propertyName": name, "direction": "ASCENDING"}],
    }


def _filled(send: Mapping[str, Any], since: str) -> dict[str, Any]:
    return {name: value.replace("{since}", since) if isinstance(value, str) else value for name, value in send.items()}
