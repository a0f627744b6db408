"""The use cases on existing jobs: cancel and retry."""

from dataclasses import dataclass
from uuid import uuid4

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.connectors.resolver import ConnectorResolver
from gateway.contract.jobs import JobStatus
from gateway.contract.policies import Surface
from gateway.errors import Conflict, InsufficientScope, JobNotCancelable, OutcomeUnknown
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.model import JobSummary, NewJob, StoredJob
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import JobStore
from gateway.jobs.tasks import cancel_refusal, retry_refusal


@dataclass(frozen=True)
class JobControl:
    """Cancels and retries jobs."""

    audit: Audit
    connectors: ConnectorResolver
    jobs: JobStore
    acceptance: JobAcceptance

    async def cancel(self, caller: Caller, job: JobSummary) -> JobSummary:
        """Cancel the job, or request the cancellation of a running one.

        Raises JobNotCancelable if it has ended, and for a deletion.
        """
        with self.audit.record("job.cancel", caller, connector_id=job.connector_id, target=str(job.id)) as entry:
            caller.require(Scope.WRITE)
            canceled = await self.jobs.request_cancel(job.organization_id, job.id)
            if canceled is None:
                raise JobNotCancelable(cancel_refusal(await self.jobs.get(job.organization_id, job.id)))
            entry.outcome = "accepted"
        return canceled

    async def retry(
        self, caller: Caller, job: JobSummary, surface: Surface, *, confirm: bool, request_id: str
    ) -> StoredJob:
        """Run the work of an ended job as a new job; a write that may have happened only with `confirm`.

        The new job is a call of the caller: it is decided and taken from budgets when it starts. Raises Conflict,
        OutcomeUnknown, NotFound, ConnectorNotReady, and InsufficientScope for a notice of another client.
        """
        with self.audit.record("job.retry", caller, connector_id=job.connector_id, target=str(job.id)) as entry:
            caller.require(Scope.WRITE)
            accepted = await self._retry(caller, job, surface, confirm=confirm, request_id=request_id)
            entry.accept(call_id_of(accepted))
        return accepted

    async def _retry(
        self, caller: Caller, job: JobSummary, surface: Surface, *, confirm: bool, request_id: str
    ) -> StoredJob:
        is_notice = job.surface is Surface.NOTICE
        if is_notice and caller.client_id != job.client_id:
            raise InsufficientScope("only the client that set the notice of approvals can send one again")
        refusal = retry_refusal(job)
        if refusal is not None:
            raise Conflict(refusal)
        if job.status is JobStatus.UNKNOWN and not confirm:
            raise OutcomeUnknown(
                'the write may have happened; look it up first, and send {"confirm": true} to send it again',
                extra={"known": (job.error or {}).get("known")},
            )
        if job.connector_id is not None:
            (await self.connectors.get(job.organization_id, job.connector_id)).require_active()
        work = await self.jobs.get_stored(job.organization_id, job.id)
        new = NewJob(
            id=uuid4(),
            organization_id=job.organization_id,
            client_id=caller.client_id,
            session=caller.session,
            connector_id=job.connector_id,
            workspace_name=job.workspace_name,
            task=job.task,
            kind=job.kind,
            entity=job.entity,
            action=job.action,
            params=work.params,
            selection={name: value for name, value in work.selection.items() if name != "redact"},  # decided again
            effect=job.effect,
            surface=job.surface if is_notice else surface,
            labels=job.labels,
            request_id=request_id,
            callback=work.callback,
            find_by=job.find_by,
            is_counted=False,
            target=work.target,
        )
        return (await self.acceptance.accept(new)).job
