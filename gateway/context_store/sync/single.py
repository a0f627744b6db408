"""Single records: read by the ids in notices, and stored as if a list had returned them."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.context_store import records, word_index
from gateway.context_store.entities import StoredEntity, find
from gateway.context_store.records import Written
from gateway.context_store.sync import schedule
from gateway.context_store.sync.job import PASSING
from gateway.context_store.sync.record_read import RecordRead, record_read
from gateway.context_store.sync.run import Report
from gateway.context_store.sync.transforms import Documents
from gateway.errors import GatewayError
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

#: records of an entity that are read at the same time, and stored in one transaction
_AT_ONCE = 8


async def store_documents(
    database: Database, entity: StoredEntity, documents: Documents, requested_at: datetime
) -> tuple[Written, int]:
    """Store the response to a request of that time; returns what was written and the number of deleted records."""
    async with database.all_copies(entity.organization_id) as connection:
        written = await records.upsert(connection, entity, documents.live, observed_at=requested_at)
        deleted = 0
        if documents.gone:
            deleted = await records.mark_deleted(connection, entity, documents.gone, observed_at=requested_at)
        await word_index.catch_up(connection, entity)
    return written, deleted


class RecordsRun:
    """One run of a job that reads single records: `params["records"]` has their ids by entity.

    An entity of which a record cannot be read is synchronized as a whole instead.
    """

    def __init__(
        self, database: Database, connectors: ConnectorResolver, job: StoredJob, run_context: JobRunContext
    ) -> None:
        self._database = database
        self._connectors = connectors
        self._job = job
        self._run_context = run_context
        self._done: dict[str, Any] = dict(run_context.state.get("done", {}))

    async def run(self) -> OperationResult:
        """Read and store the records of every entity that is not done: `{entities: [report]}`."""
        assert self._job.connector_id is not None
        resolved = await self._connectors.get(self._job.organization_id, self._job.connector_id)
        resolved.require_active()
        for name, ids in self._job.params["records"].items():
            if name not in self._done:
                self._done[name] = (await self._one(resolved, name, ids)).document()
                await self._run_context.checkpoint({"done": self._done})
        read = sum(report["records"] for report in self._done.values())
        await self._run_context.progress(read, None, f"{read} record{'' if read == 1 else 's'} read")
        return OperationResult(result=msgspec.Raw(msgspec.json.encode({"entities": list(self._done.values())})))

    async def _one(self, resolved: ResolvedConnector, name: str, ids: Sequence[str]) -> Report:
        report, kind = Report(name), resolved.connector.kind
        async with self._database.all_copies(self._job.organization_id) as connection:
            entity = await find(connection, resolved.record.id, name)
        if entity is None:
            return report
        read, connector = record_read(kind, name), resolved.connector.in_background()
        try:
            if read is not None:
                for begin in range(0, len(ids), _AT_ONCE):
                    await self._read(connector, read, entity, ids[begin : begin + _AT_ONCE], report)
                return report
        except PASSING:
            raise
        except GatewayError as error:
            log.info("the record of a notice cannot be read: %s", error.detail, extra={"entity": name})
        async with self._database.all_copies(entity.organization_id) as connection:
            await schedule.run_soon(connection, entity)
        return report

    async def _read(
        self, connector: UpstreamConnector, read: RecordRead, entity: StoredEntity, ids: Sequence[str], report: Report
    ) -> None:
        """Read records at the same time, and store what came; raises the error of one that cannot be read."""
        requested_at = CLOCK.now()
        answers = await asyncio.gather(*(read.read(connector, id_) for id_ in ids), return_exceptions=True)
        found = [each for each in answers if isinstance(each, Documents)]
        documents = Documents(
            live=[record for each in found for record in each.live], gone=[id_ for each in found for id_ in each.gone]
        )
        written, deleted = await store_documents(self._database, entity, documents, requested_at)
        report.read += len(found)
        report.added += written.added
        report.changed += written.changed
        report.deleted += deleted
        for each in answers:
            if isinstance(each, BaseException):
                raise each
