"""Synchronizes the copies of an application that is rude, and compares them with what the application has."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from gateway.context_store.entities import StoredEntity, find, restart
from gateway.context_store.sync import schedule, sources
from gateway.context_store.sync.listing import Listing
from gateway.context_store.sync.record_read import record_read
from gateway.context_store.sync.run import SyncRun
from gateway.errors import GatewayError, InternalError
from gateway.foundation.db.pool import Database
from gateway.kinds.catalog import Kind
from gateway.sandbox.rude import Behaviour
from tests.harness.rude import Played

STORED = "SELECT id FROM context_records WHERE entity_id = $1 AND deleted_at IS NULL"


@dataclass(frozen=True)
class Copy:
    """The copy of an entity, and what was said about records that it lacks."""

    ids: frozenset[str]
    said: str | None = None
    #: why the run failed in a way that no application may cause
    fault: str | None = None


Copies = Mapping[str, Copy]


@dataclass(frozen=True, kw_only=True)
class Copying:
    """The copies of one connector to an application of the sandbox."""

    database: Database
    organization_id: UUID
    connector_id: UUID
    application: Played

    async def full(self, names: Iterable[str]) -> Copies:
        """Synchronize entities from the beginning, parents first."""
        async with self.database.tenant(self.organization_id) as connection:
            await schedule.register_all(
                connection, self.connector_id, self.organization_id, self.application.kind, list(names)
            )
        return {name: await self._one(name) for name in names}

    async def changes(self, name: str) -> Copy:
        """Synchronize what changed since the last run."""
        return await self._one(name, is_first=False)

    async def _one(self, name: str, *, is_first: bool = True) -> Copy:
        kind = self.application.kind
        source, search, get = sources.source_of(kind, name), kind.entity(name).search, record_read(kind, name)
        assert source is not None
        assert search is not None
        lists = {each: _without_pauses(getattr(source, each)) for each in ("everything", "changes", "removed")}
        if is_first:
            async with self.database.tenant(self.organization_id) as connection:
                await restart(connection, await self._entity(name))
        parent = source.sync.parent

        async def progress(_: int) -> None: ...

        run = SyncRun(
            database=self.database,
            connector=self.application.connector(),
            source=replace(source, **lists),
            search=search,
            entity=await self._entity(name),
            parent=None if parent is None else await self._entity(parent.entity),
            get=get,
            progress=progress,
        )
        said = fault = None
        try:
            await run.run(900)
        except InternalError as error:
            fault = f"an internal error: {error!r}"
        except GatewayError as error:
            said = error.detail
        except Exception as error:
            fault = f"{error!r}"
        async with self.database.tenant(self.organization_id) as connection:
            entity = await self._entity(name)
            ids = frozenset(row["id"] for row in await connection.fetch(STORED, entity.id))
        return Copy(ids, said or entity.incomplete, fault)

    async def _entity(self, name: str) -> StoredEntity:
        async with self.database.tenant(self.organization_id) as connection:
            entity = await find(connection, self.connector_id, name)
        assert entity is not None
        return entity


def _without_pauses(listing: Listing | None) -> Listing | None:
    return None if listing is None else replace(listing, page_interval=0.0)


async def copy_faults(copying: Copying, truth: Copies, behaviour: Behaviour) -> list[str]:
    """What is wrong with the copies of a rude application, which has the records of `truth`.

    The copies are loaded from it, completed by polite runs, and read from it twice again.
    """
    application, names, is_moving = copying.application, list(truth), behaviour is Behaviour.MOVING_RECORDS
    await application.reset()
    await application.become(Behaviour.SMALL_PAGES, behaviour)
    first = await copying.full(names)
    if is_moving:
        await application.become()
    else:
        await application.reset()
    whole = await copying.full(names)
    await application.become(Behaviour.SMALL_PAGES, behaviour)
    again = [await copying.full(names) for _ in range(2)]
    await application.become()
    existing = await copying.full(names) if is_moving else whole
    return [
        f"{name}: {fault}"
        for name in names
        for fault in (
            *(copies[name].fault for copies in (first, whole, *again) if copies[name].fault is not None),
            *_gaps(truth[name], first[name], whole[name], may_skip=is_moving and may_skip(application.kind, name)),
            *_deletions(whole[name].ids & existing[name].ids, again[-1][name]),
        )
    ]


def may_skip(kind: Kind, name: str) -> bool:
    """Whether the list of an entity, or of its parents, declares that changes may move records out of it."""
    source = sources.source_of(kind, name)
    assert source is not None
    parent = sources.parent_of(kind, name)
    return source.everything.operation.order == "unknown" or (parent is not None and may_skip(kind, parent))


def _gaps(truth: Copy, first: Copy, whole: Copy, *, may_skip: bool) -> Iterator[str]:
    missing = (truth.ids & whole.ids) - first.ids
    if missing and first.said is None and not may_skip:
        yield f"{len(missing)} of {len(truth.ids)} records are missing without a word"
    if first.said is not None and whole.said is not None and truth.said is None:
        yield f"a complete run still says that records are missing: {whole.said}"


def _deletions(existing: frozenset[str], copy: Copy) -> Iterator[str]:
    if deleted := existing - copy.ids:
        yield f"{len(deleted)} of {len(existing)} records are deleted though they exist"
