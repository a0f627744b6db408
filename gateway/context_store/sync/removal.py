"""Removes the records that a complete sweep has not seen, if something proves that the application deleted them."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum, auto

from gateway.context_store import records
from gateway.context_store.sweeps import Sweep, Unseen
from gateway.context_store.sync.record_read import RecordRead
from gateway.context_store.sync.transforms import Documents
from gateway.errors import UpstreamRejected
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection
from gateway.upstream.connector import UpstreamConnector

log = logging.getLogger(__name__)

#: a larger deletion of records, and of a larger share of the copy, waits until the next run confirms it
MASS_RECORDS, MASS_SHARE = 20, 0.1
#: unseen records that one run reads by their ids; the next runs read the others
MAX_CONFIRMED = 10_000
#: unseen records that are read before the next ones are looked up
_BATCH = 100


class Step(Enum):
    """What happens to unseen records."""

    DELETE = auto()
    #: read each by its id; the application says whether it was deleted
    CONFIRM = auto()
    #: keep them until another complete sweep does not see them either
    WAIT = auto()


@dataclass(frozen=True, slots=True)
class Proof:
    """What an entity offers to prove that an unseen record was deleted."""

    #: whether a list that was read to its end shows all records
    is_list_proof: bool
    #: whether the application can read a record by its id
    has_get: bool = False


@dataclass(frozen=True, slots=True)
class Removal:
    """What happens to the records that were unseen for the first time, and to those unseen again."""

    first: Step
    again: Step
    #: records of a large deletion that waits
    held: int = 0


def is_large(deletions: int, records: int) -> bool:
    """Whether a deletion waits until the next run confirms it."""
    return deletions > max(MASS_RECORDS, MASS_SHARE * records)


def removal(unseen: Unseen, proof: Proof) -> Removal:
    """What happens to the unseen records of a complete sweep."""
    if proof.has_get and not proof.is_list_proof:
        return Removal(Step.CONFIRM, Step.CONFIRM)
    if is_large(unseen.first, unseen.records):
        return Removal(Step.WAIT, Step.DELETE, held=unseen.first)
    return Removal(Step.DELETE if proof.is_list_proof else Step.WAIT, Step.DELETE)


@dataclass(kw_only=True)
class Remover:
    """Removes the unseen records of one sweep."""

    sweep: Sweep
    connector: UpstreamConnector
    get: RecordRead | None
    connection: Callable[[], AbstractAsyncContextManager[Connection]]
    progress: Callable[[int], Awaitable[None]]
    #: records that were read by their ids
    confirmed: int = 0

    async def remove(self, proof: Proof) -> tuple[int, int]:
        """Remove what is proved to be deleted; returns the number of deleted records and of those that are held."""
        async with self.connection() as connection:
            unseen = await self.sweep.count(connection)
        if unseen.first + unseen.again == 0:
            return 0, 0
        decided = removal(unseen, proof)
        if decided.first is Step.CONFIRM:
            deleted, held = await self._confirm(unseen.records)
        else:
            deleted, held = await self._remove(decided), decided.held
        if held:
            extra = {"entity": self.sweep.entity.entity, "records": held}
            log.warning("a large deletion waits until the next synchronization confirms it", extra=extra)
        return deleted, held

    async def _remove(self, decided: Removal) -> int:
        async with self.connection() as connection:
            deleted = await self.sweep.delete(connection, again=True)
            if decided.first is Step.WAIT:
                await self.sweep.mark_absent(connection)
                return deleted
            return deleted + await self.sweep.delete(connection, again=False)

    async def _confirm(self, total: int) -> tuple[int, int]:
        """Read the unseen records by their ids, and delete those that are not found.

        Those that an earlier run has not read or not deleted come first.
        """
        gone = await self._not_found(again=True)
        first = await self._not_found(again=False)
        is_held = is_large(len(first), total)
        async with self.connection() as connection:
            deleted = await self._delete(connection, gone if is_held else [*gone, *first])
            if is_held:
                await self.sweep.mark_absent(connection, first)
            if self.confirmed >= MAX_CONFIRMED:
                await self.sweep.mark_absent(connection)
        return deleted, len(first) if is_held else 0

    async def _delete(self, connection: Connection, ids: Sequence[str]) -> int:
        """Delete records that the application does not find, unless they were written since the sweep began."""
        deleted = 0
        for start in range(0, len(ids), records.BATCH_ROWS):
            some = ids[start : start + records.BATCH_ROWS]
            deleted += await records.mark_deleted(connection, self.sweep.entity, some, observed_at=self.sweep.began_at)
        return deleted

    async def _not_found(self, *, again: bool) -> list[str]:
        """The unseen records that the application does not find by their ids; the others are stored."""
        gone: list[str] = []
        while self.confirmed < MAX_CONFIRMED:
            async with self.connection() as connection:
                ids = await self.sweep.unseen(connection, _BATCH, again=again)
            for id_ in ids:
                gone += await self._read(id_)
            self.confirmed += len(ids)
            if len(ids) < _BATCH:
                break
        return gone

    async def _read(self, id_: str) -> Sequence[str]:
        """The id if the record was deleted; it counts as seen in any case."""
        assert self.get is not None
        requested_at, documents, entity = CLOCK.now(), Documents(), self.sweep.entity
        try:
            documents = await self.get.read(self.connector, id_)
        except UpstreamRejected as error:
            log.info("a record that was not listed cannot be read: %s", error.detail, extra={"entity": entity.entity})
        async with self.connection() as connection, connection.transaction():
            await self.sweep.mark_seen(connection, [id_])
            await records.upsert(
                connection, entity, documents.live, generation=self.sweep.generation, observed_at=requested_at
            )
        await self.progress(1)
        return documents.gone
