"""Errors in a spec's `sync` and `write_through`: lists, parents, and the updates after writes."""

import re
from collections.abc import Callable, Iterator

from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.lint.schemas import PlacedError
from gateway.kinds.rule_names import known_rules
from gateway.kinds.suggestions import did_you_mean
from gateway.kinds.sync import Incremental, Search, Sync, SyncRead


def of_kind(kind: Kind) -> Iterator[PlacedError]:
    """The errors of the copies of a kind; places are relative to the whole spec."""
    for entity_id, entity in kind.spec.entities.items():
        if entity.search is not None:
            for place, message in _of_search(kind, entity_id, entity.search):
                yield ("entities", entity_id, "search", *place), message
    for operation in kind.operations.values():
        for place, message in _write_through(kind, operation):
            yield ("entities", operation.entity_id, "actions", operation.action_id, "write_through", *place), message


def _of_search(kind: Kind, entity_id: str, search: Search) -> Iterator[PlacedError]:
    if search.sync is None:
        yield (), "has no `sync`, so there would be no records to search; describe how they are copied"
        return
    for check in _CHECKS:
        for place, message in check(kind, search.sync):
            yield ("sync", *place), message
    for place, message in _verification(kind, search.sync, entity_id):
        yield ("sync", *place), message


def _parent(kind: Kind, sync: Sync) -> Iterator[PlacedError]:
    copied = _copied(kind)
    if sync.parent is None:
        return
    if sync.parent.entity not in copied:
        hint = did_you_mean(sync.parent.entity, copied)
        yield ("parent", "entity"), f"{sync.parent.entity} is not copied, so there are no parents to read; {hint}"
        return
    if not sync.parent.params:
        yield ("parent", "params"), "is empty; name the param that takes the parent's id"
    if sync.parent.recurse_field and len(sync.parent.params) != 1:
        yield (
            ("parent", "recurse_field"),
            "needs exactly one param of the parent: the id of the record below which the list is read",
        )
    for where, place in (*sync.parent.params.items(), *sync.parent.add_fields.items()):
        if place and place[0] not in copied[sync.parent.entity]:
            hint = did_you_mean(place[0], copied[sync.parent.entity])
            yield (
                ("parent",),
                f"{where} comes from {place[0]}, which copies of {sync.parent.entity} do not have; {hint}",
            )


def _requests(kind: Kind, sync: Sync) -> Iterator[PlacedError]:
    for member, read in _reads(sync):
        names = {
            *read.params,
            *(sync.parent.params if sync.parent else ()),
            *(each.without for each in read.alternatives),
        }
        for name in re.findall(r"{(\w+)}", read.request):
            if name not in names:
                yield (*member, "request"), f"needs {{{name}}}, which neither `params` nor the parent has"


def _rules(kind: Kind, sync: Sync) -> Iterator[PlacedError]:
    for member, read in _reads(sync):
        if read.rule is not None and read.rule not in known_rules():
            yield (*member, "rule"), f"there is no rule {read.rule}; {did_you_mean(read.rule, known_rules())}"


def _incremental(kind: Kind, sync: Sync) -> Iterator[PlacedError]:
    since = sync.incremental
    if since is None:
        if sync.changes is not None:
            yield ("changes",), "is never read; describe in `incremental` how changes are requested"
        return
    missing = [name for name in _NEEDED[since.style] if getattr(since, name) is None]
    for name in missing:
        yield ("incremental",), f"the style {since.style} needs `{name}`"
    if since.style in ("cursor", "end_time", "window", "log") and _changes(sync).paging is None:
        yield ("paging",), f"is missing; the style {since.style} needs one"
    if since.style in ("window", "log") and sync.changes is None:
        yield ("changes",), f"is missing; the style {since.style} reads changes there"
    if since.start is not None and tuple(since.start.operation.split(".")) not in kind.operations:
        names = [f"{entity}.{action}" for entity, action in kind.operations]
        hint = did_you_mean(since.start.operation, names)
        yield ("incremental", "start"), f"there is no operation {since.start.operation}; {hint}"
    if since.style == "modified" and not _sends_time(sync, since) and not (sync.parent and sync.parent.only_changed):
        yield (
            ("incremental",),
            "no request has the time: name a `param`, write {since} into `params`, or set `only_changed` in `parent`",
        )
    paging = kind.spec.paging.get(_changes(sync).paging or "")
    for member, named in (("end", since.end), ("position", since.position)):
        if named and paging is not None and named not in paging.meta:
            yield (
                ("incremental", member),
                f"{named} is not a member of the paging's Meta; {did_you_mean(named, paging.meta)}",
            )


def _verification(kind: Kind, sync: Sync, entity_id: str) -> Iterator[PlacedError]:
    get = kind.operations.get((entity_id, "get"))
    for name in sync.get_params:
        if get is None or name not in get.action.params:
            yield ("get_params",), f"{name} is not a param of the action get"
    if sync.verify_param is None:
        return
    if get is None:
        yield ("verify_param",), "is a param of the action get, which the entity does not have"
    elif sync.verify_param not in get.action.params:
        yield (
            ("verify_param",),
            f"{sync.verify_param} is not a param of get; {did_you_mean(sync.verify_param, get.action.params)}",
        )
    if sync.parent is not None and sync.parent.scopes_ids:
        yield ("verify_param",), "cannot name records whose ids are unique only below one parent (`scopes_ids`)"


def _write_through(kind: Kind, operation: Operation) -> Iterator[PlacedError]:
    copied = _copied(kind)
    for number, update in enumerate(operation.action.write_through or ()):
        place = (str(number),)
        if update.entity not in copied:
            yield (*place, "entity"), f"{update.entity} is not copied; {did_you_mean(update.entity, copied)}"
        if update.read and (update.entity, update.read) not in kind.operations:
            yield (*place, "read"), f"{update.entity} has no action {update.read}"
        if update.if_param and update.if_param[0] not in operation.action.params:
            hint = did_you_mean(update.if_param[0], operation.action.params)
            yield (*place, "if_param"), f"{update.if_param[0]} is not among the params; {hint}"


def _copied(kind: Kind) -> dict[str, set[str]]:
    """The members of the copied records, by entity; only entities with `sync`."""
    return {
        name: {*entity.search.fields, *(entity.search.sync.parent.add_fields if entity.search.sync.parent else ())}
        for name, entity in kind.spec.entities.items()
        if entity.search and entity.search.sync
    }


def _reads(sync: Sync) -> Iterator[tuple[tuple[str, ...], SyncRead]]:
    yield (), sync
    for member, read in (("changes", sync.changes), ("deletions", sync.deletions)):
        if read is not None:
            yield (member,), read


def _changes(sync: Sync) -> SyncRead:
    return sync.changes or sync


def _sends_time(sync: Sync, since: Incremental) -> bool:
    texts = [value for value in _changes(sync).params.values() if isinstance(value, str)]
    return since.param is not None or any("{since}" in text for text in texts)


#: the members that each style of `incremental` requires
_NEEDED = {
    "modified": (),
    "newest_first": ("field",),
    "cursor": ("param", "end"),
    "end_time": ("param", "end"),
    "window": ("field",),
    "log": ("param", "start", "position"),
}
_CHECKS: tuple[Callable[[Kind, Sync], Iterator[PlacedError]], ...] = (_parent, _requests, _rules, _incremental)
