"""One run of one entity: reads pages from the application, and stores each with the checkpoint of the next page."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from gateway.context_store import entities, records, word_index
from gateway.context_store.entities import StoredEntity
from gateway.context_store.sweeps import Sweep
from gateway.context_store.sync import partial, transforms
from gateway.context_store.sync.checkpoint import ChangesUnavailable, Checkpoint, ParentRecord, loaded
from gateway.context_store.sync.listing import Listing
from gateway.context_store.sync.parents import Parents
from gateway.context_store.sync.record_read import RecordRead
from gateway.context_store.sync.removal import Proof, Remover
from gateway.context_store.sync.sources import Source
from gateway.context_store.sync.transforms import Documents
from gateway.errors import GatewayError, UpstreamInvalidResponse, UpstreamNotFound, UpstreamRejected
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.paging import PageWalk
from gateway.foundation.db.pool import Connection, Database
from gateway.kinds.members import value_at
from gateway.kinds.sync import Search
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: days that a tombstone is kept
TOMBSTONE_DAYS = 30

#: the application refuses a page
_REFUSED = (UpstreamRejected, UpstreamNotFound)
#: called with the number of records that were read; may raise JobCanceled
Progress = Callable[[int], Awaitable[None]]


@dataclass(slots=True)
class Report:
    """The result of a run."""

    entity: str
    is_full: bool = False
    read: int = 0
    added: int = 0
    changed: int = 0
    deleted: int = 0
    #: records of a large deletion that waits until the next run confirms it
    held: int = 0
    #: why records are missing
    missing: str | None = None
    error: Mapping[str, Any] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the run changed the copy."""
        return bool(self.added or self.changed or self.deleted)

    def document(self) -> dict[str, Any]:
        members = {"entity": self.entity, "full": self.is_full, "records": self.read, "added": self.added}
        members |= {"changed": self.changed, "deleted": self.deleted, "held_deletions": self.held}
        is_complete = self.missing is None and self.error is None
        return {**members, "complete": is_complete, "reason": self.missing, "error": self.error}


@dataclass(kw_only=True)
class SyncRun:
    """A run of one entity of one connector; committed pages stay, even if it fails."""

    database: Database
    connector: UpstreamConnector
    source: Source
    search: Search
    entity: StoredEntity
    parent: StoredEntity | None
    #: reads one record by its id, if the application can
    get: RecordRead | None
    progress: Progress
    report: Report = field(init=False)
    _generation: int = 0

    def __post_init__(self) -> None:
        self.report = Report(self.source.entity)

    async def run(self, next_in: float) -> Report:
        """Synchronize the entity; the next run is due `next_in` seconds later. Raises GatewayError."""
        try:
            checkpoint = await self._read_all(await self._begun())
        except ChangesUnavailable:
            log.info("all records are read, because changes cannot be listed", extra={"entity": self.source.entity})
            async with self._connection() as connection:
                await entities.restart(connection, self.entity)
            self.entity = replace(self.entity, cursor=None, sweep_cursor=None)
            checkpoint = await self._read_all(await self._begun())
        await self._finish(checkpoint, next_in)
        return self.report

    async def _begun(self) -> Checkpoint:
        """The checkpoint of an interrupted run, or the first one of a new run."""
        now, incremental, sweep = CLOCK.unix_time(), loaded(self.entity.cursor), loaded(self.entity.sweep_cursor)
        is_interrupted = sweep.began is not None
        self.report.is_full = is_interrupted or self.source.needs_everything(incremental, now)
        async with self._connection() as connection:
            self._generation = await entities.begin(connection, self.entity, full=self.report.is_full)
        if is_interrupted:
            return sweep
        if not self.report.is_full and incremental.began is not None:
            return incremental
        begun = self.source.begun(incremental, now, is_full=self.report.is_full)
        return begun.replace(log=await self._log_position()) if self.report.is_full else begun

    async def _log_position(self) -> str | None:
        """The position in the application's log of changes before everything is read."""
        operation, since = self.source.log_start, self.source.sync.incremental
        if operation is None or since is None or since.start is None:
            return None
        answer = await self.connector.call(operation, {})
        position = value_at(answer.decoded(), since.start.value)
        return str(position) if isinstance(position, str | int) else None

    async def _read_all(self, checkpoint: Checkpoint) -> Checkpoint:
        """Read and store every page from the checkpoint on; returns the last checkpoint."""
        if not checkpoint.is_removed:
            if self.source.sync.parent is None:
                checkpoint = await self._list(checkpoint, None)
            else:
                checkpoint = await self._families(checkpoint)
        removed = checkpoint if checkpoint.is_removed else self.source.left(checkpoint)
        return checkpoint if removed is None else await self._list(removed, None)

    async def _families(self, checkpoint: Checkpoint) -> Checkpoint:
        """Read the list of every parent, the interrupted one first."""
        missing, parents = checkpoint.missing, self._parents()
        async for start, parent in self._starts(checkpoint, parents):
            checkpoint = start.replace(missing=missing)
            try:
                checkpoint = await self._list(checkpoint, parent)
            except UpstreamNotFound:
                log.info("a parent was deleted, and so are its records", extra={"entity": self.source.entity})
            except UpstreamRejected as error:
                checkpoint = checkpoint.without(f"{parents.spec.entity} {parent.id} cannot be read: {error.detail}")
            missing = checkpoint.missing
            if overdue := checkpoint.overdue(CLOCK.unix_time()):
                return checkpoint.without(overdue)
        return checkpoint.replace(missing=missing)

    async def _starts(self, checkpoint: Checkpoint, parents: Parents) -> AsyncIterator[tuple[Checkpoint, ParentRecord]]:
        interrupted = None if checkpoint.parent is None else await parents.one(checkpoint.parent)
        if interrupted is not None:
            yield checkpoint, interrupted
        async for parent in parents.after(checkpoint.parent, None if self.report.is_full else checkpoint.since):
            yield self.source.entered(checkpoint, parent), parent

    def _parents(self) -> Parents:
        assert self.parent is not None
        assert self.source.sync.parent is not None
        return Parents(self.database, self.parent, self.entity, self.source.sync.parent)

    async def _list(self, checkpoint: Checkpoint, parent: ParentRecord | None) -> Checkpoint:
        """Read and store every page of one list; returns the checkpoint after the last.

        A list that the application does not continue ends there, and the checkpoint says so.
        """
        is_resumed, has_more, walk = checkpoint.is_inside, True, PageWalk()
        while has_more:
            requested_at = CLOCK.now()
            listing = self.source.listing(checkpoint)
            params = listing.params(checkpoint, parent)
            try:
                page = await self.connector.call(listing.operation, params)
            except _REFUSED as error:
                listing.refused(checkpoint, error)
                is_known = self.entity.incomplete is not None
                if self.source.can_restart(checkpoint, is_resumed=is_resumed, is_known=is_known):
                    checkpoint, is_resumed, walk = self.source.restarted(checkpoint, parent), False, PageWalk()
                    continue
                return await self._end(checkpoint, error)
            following, has_more = listing.after(checkpoint, page, params)
            missing = self._endless(walk, listing, page, following, parent) if has_more else walk.ended(page.records)
            if missing is not None:
                following, has_more = following.without(missing), False
            await self._store_page(self._documents(page, checkpoint, parent), checkpoint, following, requested_at)
            checkpoint, is_resumed = following, False
            if has_more:
                await asyncio.sleep(listing.page_interval)
        return checkpoint

    def _endless(
        self,
        walk: PageWalk,
        listing: Listing,
        page: OperationResult,
        checkpoint: Checkpoint,
        parent: ParentRecord | None,
    ) -> str | None:
        """Why the page at this checkpoint is not requested after the last one; None if it is."""
        # Every page of a scroll has the same params: only their number grows.
        number = {"pages": walk.pages} if listing.scrolls else {}
        try:
            may_repeat = checkpoint.request is not None
            walk.add({**listing.params(checkpoint, parent), **number}, page.records, None, may_repeat=may_repeat)
        except UpstreamInvalidResponse as error:
            return error.detail
        return checkpoint.overdue(CLOCK.unix_time())

    async def _end(self, checkpoint: Checkpoint, error: GatewayError) -> Checkpoint:
        """The checkpoint after a list that the application does not continue: what it returned stays."""
        log.warning("a list is incomplete", extra={"entity": self.source.entity, "code": error.code})
        words = f"the application does not continue the list: {error.detail}"
        ended = checkpoint.without(words).replace(token=None, pending=(), place=None, request=None)
        async with self._connection() as connection:
            await self._checkpoint(connection, ended)
        return ended

    def _documents(self, page: OperationResult, checkpoint: Checkpoint, parent: ParentRecord | None) -> Documents:
        identifies = self.source.sync.parent is not None and self.source.sync.parent.scopes_ids
        under = parent.id if parent is not None and identifies else None
        documents = transforms.documents(self.search, page.records, self.source.parent_members(parent), under)
        return (
            Documents(gone=[*documents.gone, *(id_ for id_, _ in documents.live)])
            if checkpoint.is_removed
            else documents
        )

    async def _store_page(
        self, documents: Documents, checkpoint: Checkpoint, following: Checkpoint, requested_at: datetime
    ) -> None:
        """Commit records and checkpoint in one transaction."""
        async with self._connection() as connection, connection.transaction():
            live = documents.live
            if self.source.changes is not None and not self.report.is_full and not checkpoint.is_removed:
                live = await partial.completed(connection, self.entity, live)
            written = await records.upsert(
                connection,
                self.entity,
                live,
                generation=self._generation if self.report.is_full else None,
                observed_at=requested_at,
            )
            if documents.gone:
                self.report.deleted += await records.mark_deleted(
                    connection, self.entity, documents.gone, observed_at=requested_at
                )
            await self._checkpoint(connection, following)
        async with self._connection() as connection:
            await word_index.catch_up(connection, self.entity)
        self.report.read += len(documents.live)
        self.report.added += written.added
        self.report.changed += written.changed
        await self.progress(len(documents.live) + len(documents.gone))

    async def _checkpoint(self, connection: Connection, checkpoint: Checkpoint) -> None:
        if self.report.is_full:
            await entities.checkpoint_sweep(connection, self.entity, self._generation, checkpoint.dumped())
        else:
            await entities.checkpoint(connection, self.entity, checkpoint.dumped())

    async def _finish(self, checkpoint: Checkpoint, next_in: float) -> None:
        began, is_full = datetime.fromtimestamp(checkpoint.began or CLOCK.unix_time(), UTC), self.report.is_full
        self.report.missing = checkpoint.missing or self._missing_parents
        is_complete = is_full and checkpoint.missing is None
        sweep = Sweep(self.entity, self._generation, began)
        if is_complete and not self.source.sync.retain_unlisted:
            await self._remove_unseen(sweep, may_lack=checkpoint.may_lack)
        # Reading everything confirms deletions that wait, and finds changes that were not listed. A copy that lacked
        # records before is not read more often than others: another full run would find the same.
        has_lost_changes = not is_full and checkpoint.missing is not None and self.entity.incomplete is None
        needs_sweep = self.report.held > 0 or has_lost_changes
        rested = self.source.rested(checkpoint.replace(swept=None) if needs_sweep else checkpoint)
        async with self._connection() as connection:
            await word_index.catch_up(connection, self.entity)
            if is_full:
                await sweep.end(connection)
            await entities.checkpoint(connection, self.entity, rested.dumped())
            await entities.finish(
                connection,
                self.entity,
                as_of=began,
                next_sync_at=datetime.fromtimestamp(CLOCK.unix_time() + next_in, UTC),
                full=is_full,
                is_changed=self.report.is_changed,
                missing=self.report.missing,
                held=self.report.held if is_complete else None,
            )
            if is_complete:
                await records.delete_tombstones(connection, self.entity, days=TOMBSTONE_DAYS)
            if is_complete and (self.report.changed or self.report.deleted):
                await records.drop_unused_terms(connection, self.entity)

    async def _remove_unseen(self, sweep: Sweep, *, may_lack: bool) -> None:
        """Remove the records that the sweep has not seen, as far as something proves that they were deleted.

        A list that may lack records (`may_lack`) proves nothing: the application is asked for each record, or none is
        removed.
        """
        if may_lack and self.get is None:
            return
        if self.source.sync.unlisted_when:
            async with self._connection() as connection:
                await partial.exempt(connection, self.entity, self._generation, self.source.sync.unlisted_when)
        proof = Proof(
            # A record may have moved to a parent that is missing.
            is_list_proof=self.source.is_proof and not may_lack and self._missing_parents is None,
            has_get=self.get is not None,
        )
        remover = Remover(
            sweep=sweep, connector=self.connector, get=self.get, connection=self._connection, progress=self.progress
        )
        deleted, self.report.held = await remover.remove(proof)
        self.report.deleted += deleted

    @property
    def _missing_parents(self) -> str | None:
        """Why records are missing whose parents are not in the copy."""
        if self.parent is None:
            return None
        if self.parent.last_synced_at is None:
            return f"{self.parent.entity} were not read to their end yet"
        if self.parent.incomplete is None:
            return None
        return f"{self.parent.entity} are incomplete: {self.parent.incomplete}"

    def _connection(self) -> AbstractAsyncContextManager[Connection]:
        return self.database.all_copies(self.entity.organization_id)
