"""Removes the records that a complete sweep has not seen, if something proves that the application deleted them."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum, auto

from gateway.aio.clock import CLOCK
from gateway.context_store import records
from gateway.context_store.sweeps import Sweep, Unseen
from gateway.context_store.sync.record_read import RecordRead
from gateway.context_store.sync.transforms import Documents
from gateway.db.pool import Connection
from gateway.errors import UpstreamRejected
from gateway.upstream.connector import UpstreamConnector

log = logging.getLogger(__name__)

#: a larger deletion of records, and of a larger share of the copy, waits until the next run confirms it
MASS_RECORDS, MASS_SHARE = 20, 0.1
#: unseen records that are read by their ids, unless nothing else shows whether they were deleted
MAX_CONFIRMED = 1_000
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
    #: whether only `get` shows it, because lists may omit records
    is_get_needed: bool = False
    has_get: bool = False


@dataclass(frozen=True, slots=True)
class Removal:
    """What happens to the records that were unseen for the first time, and to those unseen again."""

    first: Step
    again: Step
    #: records of a large deletion that waits
    held: int = 0


def removal(unseen: Unseen, proof: Proof) -> Removal:
    """What happens to the unseen records of a complete sweep."""
    is_confirmed = proof.has_get and (
        proof.is_get_needed or (not proof.is_list_proof and unseen.first + unseen.again <= MAX_CONFIRMED)
    )
    step = Step.CONFIRM if is_confirmed else Step.DELETE
    if unseen.first > max(MASS_RECORDS, MASS_SHARE * unseen.records):
        return Removal(Step.WAIT, step, held=unseen.first)
    return Removal(step if is_confirmed or proof.is_list_proof else Step.WAIT, step)


@dataclass(frozen=True)
class Remover:
    """Removes the unseen records of one sweep."""

    sweep: Sweep
    connector: UpstreamConnector
    get: RecordRead | None
    connection: Callable[[], AbstractAsyncContextManager[Connection]]
    progress: Callable[[int], Awaitable[None]]

    async def remove(self, proof: Proof) -> tuple[int, int]:
        """Remove what is proved to be deleted; returns the number of deleted records and of those that are held."""
        async with self.connection() as connection:
            decided = removal(await self.sweep.count(connection), proof)
        deleted = await self._do(decided.again, again=True) + await self._do(decided.first, again=False)
        if decided.held:
            log.warning(
                "a large deletion waits until the next synchronization confirms it",
                extra={"entity": self.sweep.entity.entity, "records": decided.held},
            )
        return deleted, decided.held

    async def _do(self, step: Step, *, again: bool) -> int:
        if step is Step.CONFIRM:
            return await self._confirm(again=again)
        async with self.connection() as connection:
            if step is Step.DELETE:
                return await self.sweep.delete(connection, again=again)
            await self.sweep.mark_absent(connection)
        return 0

    async def _confirm(self, *, again: bool) -> int:
        """Read each unseen record by its id: it counts as deleted only if it is not found."""
        deleted = 0
        while True:
            async with self.connection() as connection:
                ids = await self.sweep.unseen(connection, _BATCH, again=again)
            for id_ in ids:
                deleted += await self._confirm_one(id_)
            if len(ids) < _BATCH:
                return deleted

    async def _confirm_one(self, id_: str) -> int:
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
            deleted = await records.mark_deleted(connection, entity, documents.gone, observed_at=requested_at)
        await self.progress(1)
        return deleted
