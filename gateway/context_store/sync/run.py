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
from gateway.context_store.sync import partial, transforms
from gateway.context_store.sync.checkpoint import ChangesUnavailable, Checkpoint, ParentRecord, loaded
from gateway.context_store.sync.parents import Parents
from gateway.context_store.sync.sources import Source
from gateway.context_store.sync.transforms import Documents
from gateway.errors import UpstreamNotFound, UpstreamRejected
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection, Database
from gateway.kinds.catalog import Operation
from gateway.kinds.sync import Search
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: days that a tombstone is kept
TOMBSTONE_DAYS = 30

#: unlisted records that are confirmed in one batch
_CONFIRM_BATCH = 100
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
    error: Mapping[str, Any] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the run changed the copy."""
        return bool(self.added or self.changed or self.deleted)

    def document(self) -> dict[str, Any]:
        members = {"entity": self.entity, "full": self.is_full, "records": self.read, "added": self.added}
        return {**members, "changed": self.changed, "deleted": self.deleted, "error": self.error}


@dataclass(kw_only=True)
class SyncRun:
    """A run of one entity of one connector; committed pages stay, even if it fails."""

    database: Database
    connector: UpstreamConnector
    source: Source
    search: Search
    entity: StoredEntity
    parent: StoredEntity | None
    progress: Progress
    #: read all records, even if no sweep is due
    is_forced: bool = False
    report: Report = field(init=False)
    _generation: int = 0

    def __post_init__(self) -> None:
        self.report = Report(self.source.entity)

    async def run(self, next_in: float) -> Report:
        """Synchronize the entity; the next run is due `next_in` seconds later. Raises GatewayError."""
        try:
            checkpoint = await self._read_all(await self._begun(is_forced=self.is_forced))
        except ChangesUnavailable:
            log.info("all records are read, because changes cannot be listed", extra={"entity": self.source.entity})
            await self._reset_checkpoint()
            checkpoint = await self._read_all(await self._begun(is_forced=True))
        await self._finish(checkpoint, next_in)
        return self.report

    async def _begun(self, *, is_forced: bool) -> Checkpoint:
        """The checkpoint of an interrupted run, or the first one of a new run."""
        now, incremental, sweep = CLOCK.unix_time(), loaded(self.entity.cursor), loaded(self.entity.sweep_cursor)
        is_interrupted = sweep.began is not None
        self.report.is_full = is_interrupted or is_forced or self.source.needs_everything(incremental, now)
        async with self._connection() as connection:
            self._generation = await entities.begin(connection, self.entity, full=self.report.is_full)
        if is_interrupted:
            return sweep
        if not self.report.is_full and incremental.began is not None:
            return incremental
        return self.source.begun(incremental, now, is_full=self.report.is_full)

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
        is_partial = checkpoint.is_partial
        async for start, parent in self._starts(checkpoint):
            checkpoint = start.replace(is_partial=is_partial)
            try:
                checkpoint = await self._list(checkpoint, parent)
                is_partial = checkpoint.is_partial
            except UpstreamNotFound:
                log.info("a parent was deleted, and so are its records", extra={"entity": self.source.entity})
            except UpstreamRejected as error:
                is_partial = True
                log.info("a parent cannot be read: %s", error.detail, extra={"entity": self.source.entity})
        return checkpoint.replace(is_partial=is_partial)

    async def _starts(self, checkpoint: Checkpoint) -> AsyncIterator[tuple[Checkpoint, ParentRecord]]:
        parents = self._parents()
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
        """Read and store every page of one list; returns the checkpoint after the last."""
        is_resumed, has_more = checkpoint.token is not None, True
        while has_more:
            requested_at = CLOCK.now()
            listing = self.source.listing(checkpoint)
            params = listing.params(checkpoint, parent)
            try:
                page = await self.connector.call(listing.operation, params)
            except UpstreamRejected:
                if not is_resumed:
                    raise
                checkpoint, is_resumed = self.source.restarted(checkpoint, parent), False
                continue
            following, has_more = listing.after(checkpoint, page, params)
            await self._store_page(self._documents(page, checkpoint, parent), checkpoint, following, requested_at)
            checkpoint, is_resumed = following, False
            if has_more:
                await asyncio.sleep(listing.page_interval)
        return checkpoint

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
        began = datetime.fromtimestamp(checkpoint.began or CLOCK.unix_time(), UTC)
        is_complete = self.report.is_full and not checkpoint.is_partial and not self.source.sync.retain_unlisted
        if is_complete and self.source.get is not None:
            await self._confirm(self.source.get, began)
        async with self._connection() as connection:
            await word_index.catch_up(connection, self.entity)
            if is_complete:
                if self.source.sync.unlisted_when:
                    await partial.exempt(connection, self.entity, self._generation, self.source.sync.unlisted_when)
                self.report.deleted += await records.sweep(connection, self.entity, self._generation, began_at=began)
                await records.delete_tombstones(connection, self.entity, days=TOMBSTONE_DAYS)
            await entities.checkpoint(connection, self.entity, self.source.rested(checkpoint).dumped())
            await entities.finish(
                connection,
                self.entity,
                as_of=began,
                next_sync_at=datetime.fromtimestamp(CLOCK.unix_time() + next_in, UTC),
                full=self.report.is_full,
                is_changed=self.report.is_changed,
            )
            if is_complete and (self.report.changed or self.report.deleted):
                await records.drop_unused_terms(connection, self.entity)

    async def _confirm(self, get: Operation, began: datetime) -> None:
        """Read each unlisted record by its id: it counts as deleted only if it is not found."""
        while True:
            async with self._connection() as connection:
                unlisted = await records.unseen(
                    connection, self.entity, self._generation, _CONFIRM_BATCH, began_at=began
                )
            for id_ in unlisted:
                await self._confirm_one(get, id_)
            if len(unlisted) < _CONFIRM_BATCH:
                return

    async def _confirm_one(self, get: Operation, id_: str) -> None:
        requested_at, documents = CLOCK.now(), Documents()
        try:
            answer = await self.connector.call(get, {self.source.sync.verify_param or "": id_})
            documents = transforms.documents(self.search, [answer.result])
        except UpstreamNotFound:
            documents.gone.append(id_)
        except UpstreamRejected as error:
            log.info("a record that was not listed cannot be read: %s", error.detail, extra={"entity": get.entity_id})
        async with self._connection() as connection, connection.transaction():
            await records.mark_seen(connection, self.entity, self._generation, [id_])
            await records.upsert(
                connection, self.entity, documents.live, generation=self._generation, observed_at=requested_at
            )
            self.report.deleted += await records.mark_deleted(
                connection, self.entity, documents.gone, observed_at=requested_at
            )
        await self.progress(1)

    async def _reset_checkpoint(self) -> None:
        """Reset the checkpoints, so that the next run reads all records."""
        async with self._connection() as connection, connection.transaction():
            await entities.checkpoint(connection, self.entity, None)
        self.entity = replace(self.entity, cursor=None, sweep_cursor=None)

    def _connection(self) -> AbstractAsyncContextManager[Connection]:
        return self.database.tenant(self.entity.organization_id)
