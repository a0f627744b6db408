"""The use case of copies: create them with the connector, synchronize them, and report their freshness."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.resolver import ConnectorResolver
from gateway.connectors.store import ConnectorStore
from gateway.context_store.entities import StoredEntity, freshness
from gateway.context_store.sync import schedule, sources
from gateway.context_store.sync.job import SynchronizationRun
from gateway.context_store.sync.schedule import Intervals
from gateway.context_store.sync.single import RecordsRun
from gateway.contract.connectors import ConnectorStatus, CopyStatus, FreshnessView
from gateway.contract.problems import JobErrorView
from gateway.errors import GatewayError, InternalError, InvalidParams, NotFound
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.store import JobStore
from gateway.jobs.tasks import SYNCHRONIZE
from gateway.jobs.wakeup import Wakeup
from gateway.kinds.catalog import Catalog, Kind
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: maximum connectors of one backfill, and queued jobs that a request is compared with
_MAX = 100
#: why a copy is not complete before its first synchronization has ended
_NOT_LOADED = "it was not loaded yet"


@dataclass(frozen=True, kw_only=True)
class Synchronization:
    """Accepts synchronization jobs, and runs them on workers."""

    audit: Audit
    database: Database
    catalog: Catalog
    connectors: ConnectorStore
    resolver: ConnectorResolver
    jobs: JobStore
    wakeup: Wakeup
    intervals: Intervals
    #: whether copies are created and synchronized without a request
    is_automatic: bool = True

    async def begin(self, record: ConnectorRecord, client_id: UUID | None = None) -> StoredJob | None:
        """Accept the job of a new connector's first load; None for a kind without copies, or if workers do so later.

        The connector is committed already, so that an error does not fail its creation.
        """
        names = sources.synchronized(self.catalog.served(record.kind)) if self.is_automatic else []
        if not names:
            return None
        try:
            return await self._begun(record, names, client_id)
        except GatewayError as error:
            extra = {"connector_id": str(record.id), "code": error.code}
            log.warning("the first load of a connector begins later", extra=extra)
            return None

    async def _begun(self, record: ConnectorRecord, names: Sequence[str], client_id: UUID | None) -> StoredJob:
        kind, job_id = self.catalog.served(record.kind), uuid4()
        async with self.database.all_copies(record.organization_id) as connection, connection.transaction():
            for entity in await schedule.register_all(connection, record.id, record.organization_id, kind, names):
                await schedule.claim(connection, entity, job_id)
        return await self._accept(record, job_id, names, client_id=client_id, is_background=True)

    async def request(
        self, record: ConnectorRecord, names: Sequence[str] | None, caller: Caller, *, is_full: bool
    ) -> StoredJob:
        """Accept a job that synchronizes these entities, or all, with their parents; raises InvalidParams."""
        with self.audit.record("context_store.synchronize", caller, connector_id=record.id) as entry:
            job = await self._request(record, names, caller, is_full=is_full)
            entry.outcome = "accepted"
        return job

    async def _request(
        self, record: ConnectorRecord, names: Sequence[str] | None, caller: Caller, *, is_full: bool
    ) -> StoredJob:
        kind = self.catalog.served(record.kind)
        requested = sources.with_parents(
            kind, [_checked(kind, name) for name in names] if names else sources.synchronized(kind)
        )
        if not requested:
            raise InvalidParams(f"{kind.name} has no entities that are synchronized")
        waiting = await self._waiting(record, {"entities": requested, "full": is_full})
        if waiting is not None:
            return waiting
        async with self.database.all_copies(record.organization_id) as connection, connection.transaction():
            await schedule.register_all(connection, record.id, record.organization_id, kind, requested)
        return await self._accept(
            record, uuid4(), requested, is_full=is_full, client_id=caller.client_id, is_background=False
        )

    async def _waiting(self, record: ConnectorRecord, params: dict[str, Any]) -> StoredJob | None:
        """A queued job with the same params."""
        queued = await self.jobs.queued(record.organization_id, record.id, SYNCHRONIZE.name, _MAX)
        return next((job for job in queued if job.params == params), None)

    async def enqueue_due(self) -> int:
        """Accept a job for every due run; returns their number."""
        if not self.is_automatic:
            return 0
        async with self.database.system() as connection:
            due_runs = await schedule.claim_due(connection, self.catalog.kinds)
        for due_run in due_runs:
            try:
                record = await self.connectors.get(due_run.organization_id, due_run.connector_id)
            except (NotFound, InternalError):  # of a row that cannot be read, which does not hold up the others
                continue
            await self._accept(record, due_run.job_id, due_run.entities, is_background=True)
        return len(due_runs)

    async def read_records(self, organization_id: UUID, connector_id: UUID, ids: Mapping[str, Sequence[str]]) -> None:
        """Accept a job that reads these records (entity → ids), if copies of the connector are synchronized."""
        if not self.is_automatic:
            return
        try:
            record = await self.connectors.get(organization_id, connector_id)
        except (
            NotFound,
            InternalError,
        ):  # of a row that cannot be read: the changes of the others are taken all the same
            return
        if record.status is ConnectorStatus.ACTIVE and record.kind in self.catalog.kinds:
            await self._accept(record, uuid4(), list(ids), ids=ids, is_background=True)

    async def backfill(self) -> int:
        """Register the missing copies of connectors; returns the number of connectors."""
        if not self.is_automatic:
            return 0
        async with self.database.system() as connection:
            # The spec files of other kinds are not read.
            active = self.catalog.kinds.keys() & await schedule.active_kinds(connection)
            expected = {name: len(sources.synchronized(self.catalog.kinds[name])) for name in active}
            lacking = await schedule.unregistered(connection, expected, _MAX) if expected else []
        for connector_id, organization_id, kind_name in lacking:
            kind = self.catalog.kind(kind_name)
            async with self.database.all_copies(organization_id) as connection, connection.transaction():
                await schedule.register_all(connection, connector_id, organization_id, kind, sources.synchronized(kind))
        return len(lacking)

    async def freshness(self, caller: Caller, connector_id: UUID, kind: str) -> dict[str, FreshnessView]:
        """The records and the freshness of each entity; an entity that was never registered is pending.

        Of a kind that is not served, the entities that were registered."""
        async with self.database.tenant(caller.organization_id, caller.person_id) as connection:
            registered = {entity.entity: entity for entity in await freshness(connection, connector_id)}
        served = self.catalog.kinds.get(kind)
        names = list(registered) if served is None else sources.synchronized(served)
        return {name: _view(registered.get(name)) for name in names}

    async def run_job(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Run a synchronization job, from where its last attempt stopped; raises GatewayError."""
        if "records" in job.params:
            return await RecordsRun(self.database, self.resolver, job, run_context).run()
        return await SynchronizationRun(self.database, self.resolver, self.intervals, job, run_context).run()

    async def _accept(
        self,
        record: ConnectorRecord,
        job_id: UUID,
        names: Sequence[str],
        *,
        is_full: bool = False,
        ids: Mapping[str, Sequence[str]] | None = None,
        client_id: UUID | None = None,
        is_background: bool,
    ) -> StoredJob:
        new = NewJob(
            id=job_id,
            organization_id=record.organization_id,
            client_id=client_id,
            connector_id=record.id,
            workspace_name=record.workspace_name,
            task=SYNCHRONIZE.name,
            kind=record.kind,
            entity=names[0] if len(names) == 1 else None,
            action=None if ids is None else "get",
            params={"entities": list(names), "full": is_full, **({} if ids is None else {"records": ids})},
            is_background=is_background,
        )
        job = (await self.jobs.accept(new)).job
        await self.wakeup.notify(job.id, job.attempt)
        return job


def _checked(kind: Kind, name: str) -> str:
    if sources.source_of(kind, name) is None:
        names = ", ".join(sorted(sources.synchronized(kind)))
        raise InvalidParams(f"{kind.name} {name} is not synchronized; synchronized are {names}")
    return name


def _view(entity: StoredEntity | None) -> FreshnessView:
    if entity is None:
        return FreshnessView(
            status=CopyStatus.PENDING,
            records=0,
            synchronized=False,
            complete=False,
            reason=_NOT_LOADED,
            held_deletions=0,
            last_synced_at=None,
            next_sync_at=None,
            age_seconds=None,
            error=None,
        )
    last = entity.last_synced_at
    return FreshnessView(
        status=entity.status,
        records=entity.records,
        synchronized=last is not None,
        complete=last is not None and entity.incomplete is None,
        reason=entity.incomplete or (_NOT_LOADED if last is None else None),
        held_deletions=entity.held_deletions,
        last_synced_at=last,
        next_sync_at=entity.next_sync_at,
        age_seconds=None if last is None else max(0, round(CLOCK.unix_time() - last.timestamp())),
        error=None if entity.error is None else msgspec.convert(entity.error, JobErrorView),
    )
