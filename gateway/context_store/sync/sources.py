"""The source of an entity's synchronization: pure.

A run reads either all records (a sweep, which finds deleted ones) or those that changed since the previous run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.context_store.sync.checkpoint import ChangesUnavailable, Checkpoint, ParentRecord
from gateway.context_store.sync.listing import Listing, values_of
from gateway.contract.kinds import Effect, PagingStyle
from gateway.kinds.catalog import Kind, Operation
from gateway.kinds.members import value_at
from gateway.kinds.requests import Action, RequestSpec
from gateway.kinds.sync import Incremental, Search, Sync, SyncRead

#: timeout of one page in seconds, retries included
_TIMEOUT = 120


@dataclass(frozen=True)
class Source:
    """The lists of one entity."""

    entity: str
    sync: Sync
    everything: Listing
    changes: Listing | None
    removed: Listing | None
    #: reads the present position in the application's log of changes
    log_start: Operation | None = None

    @property
    def is_proof(self) -> bool:
        """Whether a record that the whole list does not show was deleted."""
        return self.everything.is_stable and self.sync.verify_param is None

    def begun(self, checkpoint: Checkpoint, now: float, *, is_full: bool) -> Checkpoint:
        """The first checkpoint of a run that begins now."""
        if is_full:
            return Checkpoint(began=now, swept=now)
        return checkpoint.replace(began=now, parent=None, pending=(), is_removed=False)

    def needs_everything(self, checkpoint: Checkpoint, now: float) -> bool:
        """Whether the next run must read all records: the first run, a due sweep, or no list of changes."""
        is_due = checkpoint.swept is None or now - checkpoint.swept >= self.sync.full_sync_interval
        is_lost = self.log_start is not None and checkpoint.log is None
        return self.sync.incremental is None or checkpoint.since is None or is_lost or is_due

    def rested(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint at which the next run begins after this one has ended."""
        since, began = self.sync.incremental, checkpoint.began or 0.0
        if since is None:
            return Checkpoint(since=began, swept=checkpoint.swept)
        if since.style == "cursor":
            return Checkpoint(since=began, swept=checkpoint.swept, token=checkpoint.token)
        start = (
            checkpoint.since if since.style == "end_time" and checkpoint.since is not None else began - since.overlap
        )
        return Checkpoint(since=min(start, began - since.lag), swept=checkpoint.swept, log=checkpoint.log)

    def restarted(self, checkpoint: Checkpoint, parent: ParentRecord | None) -> Checkpoint:
        """The beginning of the same list, after the application refused the token.

        Raises ChangesUnavailable if only the token of the last run says which changes to read.
        """
        if (
            self.sync.incremental is not None
            and self.sync.incremental.style == "cursor"
            and checkpoint.since is not None
        ):
            raise ChangesUnavailable
        beginning = checkpoint.at_beginning() if parent is None else self.entered(checkpoint, parent)
        return beginning.replace(is_again=True)

    def can_restart(self, checkpoint: Checkpoint, *, is_resumed: bool, is_known: bool) -> bool:
        """Whether a list whose token was refused is read from its beginning; otherwise it ends there.

        A token of an earlier attempt may be gone. A new one is refused by an application that does not continue the
        list: another try is worth its pages once, for an opaque token, unless the copy `is_known` to lack records.
        """
        if checkpoint.is_again:
            return False
        paging = self.listing(checkpoint).operation.paging
        is_opaque = paging is not None and paging.style in (PagingStyle.CURSOR, PagingStyle.LINK)
        return is_resumed or (is_opaque and not is_known)

    def entered(self, checkpoint: Checkpoint, parent: ParentRecord) -> Checkpoint:
        """The checkpoint at the first page of a parent's records."""
        spec = self.sync.parent
        pending = (str(values_of(spec, parent)[0]),) if spec and spec.recurse_field else ()
        is_complete = parent.is_new and checkpoint.since is not None
        entered = checkpoint.at_beginning(parent=parent.id, is_whole=is_complete, position=None)
        return entered.replace(pending=pending)

    def left(self, checkpoint: Checkpoint) -> Checkpoint | None:
        """The checkpoint at the list of deleted records, after the changes; None without a list, and in a sweep."""
        if self.removed is None or checkpoint.since is None:
            return None
        return checkpoint.at_beginning(is_removed=True, is_whole=False, parent=None, position=None)

    def listing(self, checkpoint: Checkpoint) -> Listing:
        """The list that is read at this checkpoint."""
        if checkpoint.is_removed and self.removed is not None:
            return self.removed
        return self.changes if checkpoint.since is not None and self.changes is not None else self.everything

    def parent_members(self, parent: ParentRecord | None) -> dict[str, Any]:
        """The members that are copied from the parent to its records."""
        if parent is None or self.sync.parent is None:
            return {}
        return {name: value_at(parent.document, checkpoint) for name, checkpoint in self.sync.parent.add_fields.items()}


def source_of(kind: Kind, entity_id: str) -> Source | None:
    """The lists of an entity; None for one that is not synchronized."""
    search = kind.entity(entity_id).search
    if search is None or search.sync is None:
        return None
    sync = search.sync
    start = sync.incremental.start if sync.incremental else None
    return Source(
        entity_id,
        sync,
        everything=_listing(kind, entity_id, search, sync, None if sync.changes else sync.incremental),
        changes=_listing(kind, entity_id, search, sync.changes, sync.incremental) if sync.changes else None,
        removed=_listing(kind, entity_id, search, sync.deletions, None) if sync.deletions else None,
        log_start=kind.operation(*start.operation.split(".")) if start else None,
    )


def in_order(kind: Kind, entity_ids: Iterable[str]) -> list[str]:
    """The entities, each after its parent."""
    names, ordered = list(entity_ids), list[str]()

    def add(entity_id: str) -> None:
        parent = parent_of(kind, entity_id)
        if parent in names and parent is not None:
            add(parent)
        if entity_id not in ordered:
            ordered.append(entity_id)

    for entity_id in names:
        add(entity_id)
    return ordered


def with_parents(kind: Kind, entity_ids: Iterable[str]) -> list[str]:
    """The entities and all their ancestors, parents first."""
    names = list(entity_ids)
    for entity_id in names:  # the loop appends to the list
        parent = parent_of(kind, entity_id)
        if parent is not None and parent not in names:
            names.append(parent)
    return in_order(kind, names)


def parent_of(kind: Kind, entity_id: str) -> str | None:
    """The entity that the records of this one belong to."""
    search = kind.entity(entity_id).search
    return search.sync.parent.entity if search and search.sync and search.sync.parent else None


def synchronized(kind: Kind) -> list[str]:
    """The entities that have a copy, parents first."""
    return in_order(kind, [name for name, entity in kind.spec.entities.items() if entity.search and entity.search.sync])


def _listing(kind: Kind, entity_id: str, search: Search, read: SyncRead, since: Incremental | None) -> Listing:
    parent = search.sync.parent if search.sync and read is not search.sync.deletions else None
    send = params_with_fields(read.params, search)
    paging = kind.spec.paging.get(read.paging or "")
    paging_params = (*paging.request_params[:1], *paging.carried) if paging else ()
    names = [*send, *paging_params, *(parent.params if parent else ())]
    if since is not None:
        names += ["filterGroups", "sorts"] if since.style == "window" else [since.param] if since.param else []
    action = Action(
        **{name: getattr(read, name) for name in RequestSpec.model_fields},
        effect=Effect.READ,
        description="The list that synchronization reads.",
        params={name: _placed(kind, entity_id, name) for name in names},
        timeout=_TIMEOUT,
    )
    return Listing(
        operation=Operation(kind.spec, entity_id, "synchronize", action),
        constant_params=send,
        since=since,
        parent=parent,
        page_interval=read.request_interval,
    )


def _placed(kind: Kind, entity_id: str, name: str) -> dict[str, Any]:
    """The schema of a param of the synchronizer: it is sent in a header, or not at all, as in the entity's list."""
    listed = kind.operations.get((entity_id, "list"))
    schema = listed.action.params.get(name, {}) if listed else {}
    is_elsewhere = schema.get("in") in ("header", "text")
    return {member: schema[member] for member in ("in", "as") if member in schema} if is_elsewhere else {}


def params_with_fields(send: Mapping[str, Any], search: Search) -> dict[str, Any]:
    """The params, with `{fields}` and `{properties}` replaced by the names of the search fields."""
    names = {
        "{fields}": [name for name in search.fields if name != search.primary_key],
        "{properties}": [name.removeprefix("properties.") for name in search.fields if name.startswith("properties.")],
    }

    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [inner for item in value for inner in (names.get(item, [item]) if isinstance(item, str) else [item])]
        return ",".join(names[value]) if isinstance(value, str) and value in names else value

    return {name: named(value) for name, value in send.items()}
