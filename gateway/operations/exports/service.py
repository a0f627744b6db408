"""The use case: accept an export as a job, and run it on a worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.access.policy.model import Decision, Verdict
from gateway.connectors.model import ConnectorRecord
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.foundation.db.pool import Database
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.store import StoredFiles
from gateway.kinds.actions import SEARCH_ACTION
from gateway.operations.accounting import recorded
from gateway.operations.approvals.gate import ApprovalGate, each_of, is_approved, is_taken
from gateway.operations.approvals.store import ApprovalRow
from gateway.operations.call import Accepted, OperationCall
from gateway.operations.copy_search import CopySearch
from gateway.operations.execution import Execution
from gateway.operations.exports.job import new_export
from gateway.operations.exports.model import ExportParams
from gateway.operations.exports.pages import ListPages, RecordPages, SearchPages
from gateway.operations.exports.run import ExportRun
from gateway.operations.permission import Acting, Permission, require_visible
from gateway.operations.spending import Spending, Taken
from gateway.upstream.field_selection import FieldSelection
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult
from gateway.upstream.withheld import withheld

# Once the file is complete, its pages are no longer needed.
_DELETE_PAGES = """
    WITH ended AS (
        SELECT id FROM jobs WHERE task = 'export' AND parts > 0 AND finished_at IS NOT NULL
        ORDER BY finished_at LIMIT 20
    ), deleted AS (
        DELETE FROM job_results USING ended WHERE job_id = ended.id
    )
    UPDATE jobs SET parts = 0 FROM ended WHERE jobs.id = ended.id RETURNING jobs.id
"""


@dataclass(frozen=True)
class Exports:
    """Collects lists and searches into files."""

    audit: Audit
    database: Database
    connectors: ConnectorResolver
    permission: Permission
    spending: Spending
    gate: ApprovalGate
    copy_search: CopySearch
    execution: Execution
    jobs: JobStore
    files: StoredFiles

    async def start(self, caller: Caller, call: OperationCall) -> Accepted:
        """The job that collects the call's list into a file of the format `call.file`.

        Raises InvalidParams, UnknownAction and InvalidQuery, and InvalidParams for other operations.
        """
        with recorded(self.audit, caller, call) as entry:
            caller.require(Scope.READ)
            record, new = await self._new_job(caller, call)
            entry.kind = new.kind
            taken = await self.spending.take_named(caller, record, f"{new.entity}.{new.action}", new.params["params"])
            async with taken.until_failed():
                outcome = await self.execution.submit(new, call)
            if outcome.is_replayed:
                await taken.give_back()
            entry.accept(call_id_of(outcome.job, is_new=not outcome.is_replayed))
        return outcome

    async def _new_job(self, caller: Caller, call: OperationCall) -> tuple[ConnectorRecord, NewJob]:
        resolved = await self.connectors.get_for(caller, call.connector_id)
        new = new_export(resolved.connector.kind, call, caller.organization_id, resolved.record.workspace_name)
        resolved.require_active()
        params = new.params["params"]
        decision = await self._permit(caller, resolved, new, params)
        require_visible(decision, call.selection.select_fields or ())
        selection = call.selection.redacting(decision.redact).as_document()
        new = replace(
            new,
            client_id=caller.client_id,
            session=caller.session,
            token_hash=call.token_hash,
            selection=selection,
        )
        return resolved.record, new

    async def _permit(
        self,
        acting: Acting,
        resolved: ResolvedConnector,
        job: NewJob | StoredJob,
        params: Mapping[str, Any],
        *,
        is_counted: bool = False,
    ) -> Decision:
        """The decision about the first page; raises DeniedByPolicy, also if a search would need an approval."""
        return await self.permission.require(
            acting,
            resolved.record,
            kind=resolved.connector.kind,
            entity=job.entity or "",
            action=job.action or "",
            params=params,
            surface=job.surface,
            may_wait=job.action != SEARCH_ACTION,
            is_counted=is_counted,
            is_approved=isinstance(job, StoredJob) and is_approved(job),
        )

    async def run_job(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Collect the pages that are not stored yet, then store the file; raises GatewayError."""
        params = msgspec.convert(job.params, ExportParams)
        assert job.connector_id is not None
        resolved = await self.connectors.get(job.organization_id, job.connector_id)
        self.gate.require_valid(job)
        approval = await self.gate.released(job)
        is_new = not is_taken(job, approval)
        decision = await self._permit(job, resolved, job, params.params, is_counted=not is_new)
        await run_context.decided(decision.policies)
        if decision.verdict is Verdict.APPROVE or is_approved(job):
            await self._require_approved(job, resolved, params.params, decision, approval)
        pages = await self._pages(job, params.params)
        taken = await self._taken(job, resolved.record, params.params, is_new=is_new)
        run = ExportRun(
            pages=pages,
            jobs=self.jobs,
            files=self.files,
            job=job,
            params=params,
            run_context=run_context,
            taken=taken,
            redact=decision.redact,
        )
        with withheld(decision.redact):
            return await run.run()

    async def _require_approved(
        self,
        job: StoredJob,
        resolved: ResolvedConnector,
        params: Mapping[str, Any],
        decision: Decision,
        approval: ApprovalRow | None,
    ) -> None:
        """Let the export go on by an approval, which an earlier attempt may have done; raises JobWaits."""
        call = PreparedCall.of(resolved.connector.kind.operation(job.entity or "", job.action or ""), params)
        if approval is not None:
            await self.gate.resume(job, resolved, each_of([call]), approval)
        else:
            await self.gate.require(job, resolved, each_of([call]), decision.approvals)

    async def _taken(
        self, job: StoredJob, record: ConnectorRecord, params: Mapping[str, Any], *, is_new: bool
    ) -> Taken:
        """Take the export of a schedule or a retry, which was not taken when it was accepted."""
        what = f"{job.entity}.{job.action}"
        if is_new:
            return await self.spending.take_named(job, record, what, params)
        return self.spending.untaken(job, record, what, params)

    async def _pages(self, job: StoredJob, params: Mapping[str, Any]) -> RecordPages:
        assert job.connector_id is not None
        entity, action = job.entity or "", job.action or ""
        if action == SEARCH_ACTION:
            call = OperationCall(
                connector_id=job.connector_id,
                entity=entity,
                action=action,
                params=params,
                selection=FieldSelection(**job.selection),
            )
            return SearchPages(self.copy_search, job, call)
        resolved = await self.connectors.get(job.organization_id, job.connector_id)
        resolved.require_active()
        connector = resolved.connector.in_background() if job.is_background else resolved.connector
        return ListPages(connector, resolved.connector.kind.operation(entity, action))

    async def delete_pages(self) -> int:
        """Delete the stored pages of ended exports; returns the number of exports."""
        async with self.database.system() as connection:
            return len(await connection.fetch(_DELETE_PAGES))
