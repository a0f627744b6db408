"""The use case of administrators: export their organization as a job, whose result is the sealed file."""

import logging
from dataclasses import dataclass
from uuid import uuid4

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.errors import FieldError, InvalidParams
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.sealed_file import Lock, SealedFileError
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.store import StoredFiles
from gateway.jobs.tasks import EXPORT_ORGANIZATION
from gateway.jobs.wakeup import Wakeup
from gateway.run.moving.departure import Departure
from gateway.run.moving.document import Contents
from gateway.run.moving.freeze import Freeze, thaw_stranded
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.responses import OperationResult

log = logging.getLogger(__name__)

_HEADERS = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": 'attachment; filename="organization.sealed"',
}


@dataclass(frozen=True, kw_only=True)
class OrganizationExport:
    """Accepts the job that exports an organization, and runs it."""

    audit: Audit
    database: Database
    departure: Departure
    jobs: JobStore
    files: StoredFiles
    wakeup: Wakeup

    async def start(
        self, caller: Caller, recipient_key: str, request_id: str | None, *, with_files: bool = True
    ) -> StoredJob:
        """The job; raises InvalidParams for a text that is no key."""
        with self.audit.record("organization.export", caller, target=str(caller.organization_id)) as entry:
            caller.require(Scope.ADMIN)
            caller.require_whole_organization()
            try:
                Lock.for_recipient(recipient_key)
            except SealedFileError as error:
                fault = FieldError("/recipient_key", "recipient_key", "invalid", str(error))
                raise InvalidParams(faults=[fault]) from error
            accepted = await self.jobs.accept(
                NewJob(
                    id=uuid4(),
                    organization_id=caller.organization_id,
                    client_id=caller.client_id,
                    task=EXPORT_ORGANIZATION.name,
                    params={"recipient_key": recipient_key, "with_files": with_files},
                    target=str(caller.organization_id),
                    request_id=request_id,
                )
            )
            entry.accept(None)
        await self.wakeup.notify(accepted.job.id, accepted.job.attempt)
        return accepted.job

    async def run_job(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Store the file; writes are refused from its rows on. Without a file, they are served again."""
        freeze, contents = Freeze(self.database, job.organization_id, job.id), Contents()
        try:
            chunks = self.departure.chunks(
                job.organization_id,
                Lock.for_recipient(job.params["recipient_key"]),
                contents,
                freeze=freeze.begin,
                with_files=job.params.get("with_files", True),
            )
            file = File(200, _HEADERS, None, chunks)
            stored = await self.files.save(job.organization_id, job.id, job.fence, file, run_context)
        except Exception:
            await freeze.abandon()
            raise
        for lost in contents.lost_files:
            log.warning("a stored file is not in the export", extra={"job_id": lost.job_id, "reason": lost.reason})
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(stored)))

    async def resume(self) -> None:
        """Serve the writes of organizations again whose job ended without a file, such as after a lost worker."""
        await thaw_stranded(self.database)
