"""The job that synchronizes the copies of a connector: one entity after the other, parents first."""

import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from gateway import errors
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.context_store import entities
from gateway.context_store.entities import StoredEntity
from gateway.context_store.sync import schedule, sources
from gateway.context_store.sync.record_read import record_read
from gateway.context_store.sync.run import Report, SyncRun
from gateway.errors import (
    Conflict,
    ConnectorNotReady,
    GatewayError,
    InternalError,
    JobCanceled,
    NotFound,
    ReauthorizationRequired,
    Unavailable,
    UnknownEntity,
    UpstreamNotFound,
    UpstreamRateLimited,
)
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.jobs.leases import LostLease
from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: seconds until a job checks again whether another job has released an entity
_RETRY_AFTER = 3
#: seconds until records are tried again whose parents were not synchronized yet
_AFTER_PARENT = 30
#: errors after which the job waits, or other jobs continue its work
PASSING = (UpstreamRateLimited, Unavailable, JobCanceled, LostLease)
#: errors that affect every entity of the connector
_FOR_ALL = (ReauthorizationRequired, ConnectorNotReady)


class SynchronizationRun:
    """One run of the job; its state names the entities that are done, for the next worker."""

    def __init__(
        self,
        database: Database,
        connectors: ConnectorResolver,
        intervals: schedule.Intervals,
        job: StoredJob,
        run_context: JobRunContext,
    ) -> None:
        self._database = database
        self._connectors = connectors
        self._intervals = intervals
        self._job = job
        self._run_context = run_context
        self._done: dict[str, Any] = dict(run_context.state.get("done", {}))
        # With `full`, a later attempt of the job continues what an earlier one began.
        self._restarted: list[str] = list(run_context.state.get("restarted", []))
        # At least what an earlier attempt reported, so that reading more counts as progress.
        self._read = max(job.progress, sum(report["records"] for report in self._done.values()))

    async def run(self) -> OperationResult:
        """Synchronize every entity of the job that is not done: `{entities: [report]}`.

        The report of a failed entity has its error; the other entities continue. Raises the first of these errors if
        every entity failed, and any error that affects the whole connector.
        """
        assert self._job.connector_id is not None
        resolved = await self._connectors.get(self._job.organization_id, self._job.connector_id)
        resolved.require_active()
        synchronized = sources.synchronized(resolved.connector.kind)
        names = [name for name in synchronized if name in self._job.params["entities"]]
        await self._drop_unknown(resolved, set(self._job.params["entities"]) - set(synchronized))
        for name in names:
            if name not in self._done:
                self._done[name] = (await self._one(resolved, name, len(names))).document()
                await self._checkpoint()
        failed = [report["error"] for report in self._done.values() if report["error"]]
        if failed and len(failed) == len(names):
            raise errors.restored(failed[0])
        incomplete = sum(report["reason"] is not None for report in self._done.values())
        message = final_message(self._read, len(names), len(failed), incomplete)
        await self._run_context.progress(self._read, None, message)
        return OperationResult(result=msgspec.Raw(msgspec.json.encode({"entities": list(self._done.values())})))

    async def _checkpoint(self) -> None:
        await self._run_context.checkpoint({"done": self._done, "restarted": self._restarted})

    async def _drop_unknown(self, resolved: ResolvedConnector, names: Collection[str]) -> None:
        """Mark entities that the kind no longer has as failed; they are not due again."""
        for name in names:
            async with self._database.all_copies(self._job.organization_id) as connection:
                entity = await entities.find(connection, resolved.record.id, name)
                if entity is not None:
                    gone = UnknownEntity(f"{resolved.record.kind} no longer has copies of {name}")
                    await entities.fail(connection, entity, gone, None)

    async def _one(self, resolved: ResolvedConnector, name: str, total: int) -> Report:
        """Synchronize one entity; raises errors that affect the whole job."""
        source, entity = sources.source_of(resolved.connector.kind, name), await self._claim(resolved, name)
        if source is None or entity is None:
            return Report(name)
        interval = schedule.jittered(self._intervals.of(resolved.record.kind, name, source.sync))
        connector = resolved.connector.in_background()
        try:
            report = await (await self._run(connector, source, entity, total)).run(interval)
        except PASSING:
            raise
        except _FOR_ALL as error:
            await self._fail_all(resolved, error, interval)
            raise
        except GatewayError as error:
            if isinstance(error, NotFound) and not isinstance(error, UpstreamNotFound):
                raise  # the connector was deleted meanwhile
            return await self._fail(entity, error, interval)
        except Exception:
            await self._fail(entity, InternalError(), interval)
            raise
        await self._release(entity)
        return report

    async def _claim(self, resolved: ResolvedConnector, name: str) -> StoredEntity | None:
        """The entity, assigned to this job until the job ends; raises Unavailable while another job has it."""
        async with self._database.all_copies(self._job.organization_id) as connection:
            entity = await entities.find(connection, resolved.record.id, name)
            if entity is not None and not await schedule.claim(connection, entity, self._job.id):
                raise Unavailable(f"{name} is being synchronized by another job", retry_after=_RETRY_AFTER)
        return entity

    async def _run(
        self, connector: UpstreamConnector, source: sources.Source, entity: StoredEntity, total: int
    ) -> SyncRun:
        search, parent = connector.kind.entity(source.entity).search, None
        assert search is not None
        if self._job.params.get("full") and source.entity not in self._restarted:
            async with self._database.all_copies(self._job.organization_id) as connection:
                await entities.restart(connection, entity)
            entity = replace(entity, cursor=None, sweep_cursor=None)
            self._restarted.append(source.entity)
            await self._checkpoint()
        if source.sync.parent is not None:
            async with self._database.all_copies(self._job.organization_id) as connection:
                parent = await entities.find(connection, entity.connector_id, source.sync.parent.entity)
            if parent is None or parent.last_synced_at is None:
                first = source.sync.parent.entity
                raise Conflict(f"{first} must be synchronized before {source.entity}", retry_after=_AFTER_PARENT)

        async def progress(records: int) -> None:
            self._read += records
            message = f"{source.entity}: {run.report.read} records; {len(self._done)} of {total} entities done"
            await self._run_context.progress(self._read, None, message)

        run = SyncRun(
            database=self._database,
            connector=connector,
            source=source,
            search=search,
            entity=entity,
            parent=parent,
            get=record_read(connector.kind, source.entity),
            progress=progress,
        )
        return run

    async def _fail_all(self, resolved: ResolvedConnector, error: GatewayError, interval: float) -> None:
        """Mark all entities that are not done as failed, because the error affects them too."""
        for name in self._job.params["entities"]:
            if name not in self._done:
                async with self._database.all_copies(self._job.organization_id) as connection:
                    entity = await entities.find(connection, resolved.record.id, name)
                if entity is not None:
                    await self._fail(entity, error, interval)

    async def _fail(self, entity: StoredEntity, error: GatewayError, interval: float) -> Report:
        wait = schedule.jittered(schedule.after_failure(error, interval))
        log.warning(
            "an entity was not synchronized",
            extra={"connector_id": str(entity.connector_id), "entity": entity.entity, "code": error.code},
        )
        async with self._database.all_copies(entity.organization_id) as connection:
            await entities.fail(connection, entity, error, CLOCK.now() + timedelta(seconds=wait))
            await schedule.release(connection, entity, self._job.id)
        return Report(entity.entity, error=errors.document(error))

    async def _release(self, entity: StoredEntity) -> None:
        async with self._database.all_copies(entity.organization_id) as connection:
            await schedule.release(connection, entity, self._job.id)


def final_message(records: int, entities: int, failed: int, incomplete: int) -> str:
    """The final message of a synchronization: `2 of 3 entities synchronized, 120 records; 1 incomplete; 1 failed`."""
    done = f"{entities - failed} of {entities} entities synchronized, {records} record{'' if records == 1 else 's'}"
    faults = [f"{count} {what}" for count, what in ((incomplete, "incomplete"), (failed, "failed")) if count]
    return "; ".join([done, *faults])
