"""The use case of deletion: connectors, workspaces and people, with all their data.

It begins with one transaction that marks what is deleted and accepts the job; from then on callers no longer see it.
Each step of the job may be repeated: after a kill the next worker runs all of them again. A job that ended before it
was done is replaced.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID, uuid4

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.directory import Directory
from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.store import IdentityStore
from gateway.access.request_log.log import RequestLog
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.consent.authorizers import OAuthAuthorizers
from gateway.connectors.store import ConnectorStore
from gateway.context_store import records
from gateway.errors import NotFound
from gateway.foundation.db.pool import Database
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.removal import JobRemoval
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import JobStore
from gateway.jobs.stored_files.store import StoredFiles
from gateway.jobs.tasks import DELETE_CONNECTOR, DELETE_PERSON, DELETE_WORKSPACE
from gateway.jobs.wakeup import Wakeup
from gateway.upstream.responses import OperationResult

#: seconds for which running jobs may finish, and seconds between checks
_TIMEOUT, _POLL_INTERVAL = 20.0, 0.2
#: lower than every other id
_FIRST = UUID(int=0)
_DELETED = OperationResult(result=msgspec.Raw(b'{"deleted":true}'))

#: one part of a connector's removal, which may be repeated
Step = Callable[[], Awaitable[object]]

# Deletions whose job was canceled by hand in the database, or failed because its workers crashed. The rows are locked,
# so that only one worker replaces the job.
_HAS_NO_JOB = """
    NOT EXISTS (SELECT FROM jobs WHERE jobs.id = deletion_job AND status IN ('queued', 'running', 'waiting'))
"""
_STRANDED_WORKSPACES = f"""
    SELECT id, organization_id FROM workspaces
    WHERE deletion_began_at < now() - interval '1 minute' AND {_HAS_NO_JOB}
    ORDER BY deletion_began_at LIMIT 100 FOR UPDATE SKIP LOCKED
"""
_STRANDED_CONNECTORS = f"""
    SELECT id, organization_id, kind FROM connectors
    WHERE deleted_at < now() - interval '1 minute' AND {_HAS_NO_JOB}
      AND NOT EXISTS (SELECT FROM workspaces WHERE workspaces.id = workspace_id AND deletion_began_at IS NOT NULL)
    ORDER BY deleted_at LIMIT 100 FOR UPDATE SKIP LOCKED
"""
_REPLACE_JOB = "UPDATE {table} SET deletion_job = $3 WHERE organization_id = $1 AND id = $2"


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """Accepts the jobs that delete, and runs them."""

    audit: Audit
    database: Database
    connectors: ConnectorStore
    access: ConnectorAccess
    identity: IdentityStore
    directory: Directory
    jobs: JobStore
    job_removal: JobRemoval
    files: StoredFiles
    authorizers: OAuthAuthorizers
    wakeup: Wakeup
    request_log: RequestLog
    #: forgets what this process has cached of a connector, or of all for `*`: it is hidden before the notification
    forget: Callable[[str], None]
    #: seconds for which running jobs of a deleted connector may finish
    timeout: float = _TIMEOUT

    async def delete_connector(self, caller: Caller, connector_id: UUID, request_id: str | None = None) -> StoredJob:
        """Hide the connector from callers at once; the job deletes its data. Raises NotFound."""
        with self.audit.record(
            "connector.delete", caller, connector_id=connector_id, target=str(connector_id)
        ) as entry:
            job = await self._accept_connector(caller, connector_id, request_id)
            entry.accept(call_id_of(job))
            entry.kind = job.kind
        return job

    async def _accept_connector(self, caller: Caller, connector_id: UUID, request_id: str | None) -> StoredJob:
        organization_id = caller.organization_id
        record = await self.access.get_listed(caller, connector_id)
        new = NewJob(
            id=uuid4(),
            organization_id=organization_id,
            client_id=caller.client_id,
            connector_id=connector_id,
            workspace_name=record.workspace_name,
            task=DELETE_CONNECTOR.name,
            kind=record.kind,
            target=str(connector_id),
            request_id=request_id,
        )
        async with self.database.tenant(organization_id) as connection, connection.transaction():
            await self.connectors.mark_deleted(connection, organization_id, connector_id, new.id)
            job = await self.jobs.accept_within(connection, new)
        self.forget(str(connector_id))
        await self.wakeup.notify(job.id, job.attempt)
        return job

    async def delete_workspace(self, caller: Caller, workspace_id: UUID, request_id: str | None = None) -> StoredJob:
        """Hide the workspace and its connectors from callers at once; the job deletes their data. Raises NotFound."""
        with self.audit.record("workspace.delete", caller, target=str(workspace_id)) as entry:
            job = await self._accept_workspace(caller, workspace_id, request_id)
            entry.accept(call_id_of(job))
        return job

    async def _accept_workspace(self, caller: Caller, workspace_id: UUID, request_id: str | None) -> StoredJob:
        organization_id, job_id = caller.organization_id, uuid4()
        async with self.database.tenant(organization_id) as connection, connection.transaction():
            # The lock keeps new connectors out. The workspace is renamed last: its connectors' events have its name.
            await self.identity.lock_workspace(connection, organization_id, workspace_id)
            others = await self.connectors.has_of_others(connection, organization_id, workspace_id, caller.person_id)
            await self.connectors.mark_all_deleted(connection, organization_id, workspace_id, job_id)
            name = await self.identity.mark_workspace_deleted(connection, organization_id, workspace_id, job_id)
            caller.require_workspace(name, "workspace")
            if others:
                caller.require(Scope.ADMIN)
            new = NewJob(
                id=job_id,
                organization_id=organization_id,
                client_id=caller.client_id,
                workspace_name=name,
                task=DELETE_WORKSPACE.name,
                params={"workspace_id": str(workspace_id)},
                request_id=request_id,
            )
            job = await self.jobs.accept_within(connection, new)
        self.forget("*")
        await self.wakeup.notify(job.id, job.attempt)
        return job

    async def delete_person(self, caller: Caller, person_id: UUID, request_id: str | None = None) -> StoredJob:
        """End everything that acts for the person and hide their connectors at once; the job deletes these. Raises
        NotFound, and Conflict for the caller itself.
        """
        with self.audit.record("person.delete", caller, target=str(person_id)) as entry:
            job = await self._accept_person(caller, person_id, request_id)
            entry.accept(call_id_of(job))
        return job

    async def _accept_person(self, caller: Caller, person_id: UUID, request_id: str | None) -> StoredJob:
        await self.directory.require_deletable(caller, person_id)
        new = NewJob(
            id=uuid4(),
            organization_id=caller.organization_id,
            client_id=caller.client_id,
            task=DELETE_PERSON.name,
            params={"person_id": str(person_id)},
            target=str(person_id),
            request_id=request_id,
        )
        async with self.database.system() as connection, connection.transaction():
            await self.directory.delete_within(connection, person_id)
            await self.connectors.mark_owned_deleted(connection, caller.organization_id, person_id, new.id)
            job = await self.jobs.accept_within(connection, new)
        self.forget("*")
        await self.wakeup.notify(job.id, job.attempt)
        return job

    async def run_delete_connector(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """The worker's side of `delete_connector`."""
        assert job.connector_id is not None
        await self._remove(job.organization_id, job.connector_id)
        return _DELETED

    async def run_delete_workspace(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """The worker's side of `delete_workspace`."""
        workspace_id = UUID(job.params["workspace_id"])
        await self._remove_all(job, await self.connectors.deleted_of(job.organization_id, workspace_id), run_context)
        await self.identity.delete_workspace(job.organization_id, workspace_id)
        return _DELETED

    async def run_delete_person(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """The worker's side of `delete_person`."""
        person_id = UUID(job.params["person_id"])
        await self._remove_all(job, await self.connectors.deleted_of_owner(job.organization_id, person_id), run_context)
        return _DELETED

    async def _remove_all(self, job: StoredJob, connectors: Sequence[UUID], run_context: JobRunContext) -> None:
        for done, connector_id in enumerate(connectors, 1):
            await self._remove(job.organization_id, connector_id)
            await run_context.progress(done, len(connectors), f"{done} of {len(connectors)} connectors deleted")

    async def _remove(self, organization_id: UUID, connector_id: UUID) -> None:
        for step in self.steps(organization_id, connector_id):
            await step()

    def steps(self, organization_id: UUID, connector_id: UUID) -> Sequence[Step]:
        """The steps that remove a connector, in order: stop its writes, remove its data, remove the connector."""
        whose = (organization_id, connector_id)
        return (
            partial(self._end_jobs, *whose),
            partial(self._revoke, *whose),
            partial(self._remove_records, *whose),
            partial(self._empty_jobs, *whose),
            partial(self.request_log.remove, *whose),
            partial(self.connectors.delete, *whose),
        )

    async def _end_jobs(self, organization_id: UUID, connector_id: UUID) -> None:
        """End the connector's jobs; a run that a process has not noticed ended can store nothing."""
        await self.job_removal.cancel(organization_id, connector_id)
        deadline = asyncio.get_running_loop().time() + self.timeout
        while await self.job_removal.running(organization_id, connector_id):
            if asyncio.get_running_loop().time() > deadline:
                await self.job_removal.end_running(organization_id, connector_id)
                return
            await asyncio.sleep(_POLL_INTERVAL)

    async def _revoke(self, organization_id: UUID, connector_id: UUID) -> None:
        with contextlib.suppress(NotFound):
            await self.authorizers.revoke(await self.connectors.get_deleted(organization_id, connector_id))

    async def _remove_records(self, organization_id: UUID, connector_id: UUID) -> None:
        async with self.database.all_copies(organization_id) as connection:
            await records.remove(connection, connector_id)

    async def _empty_jobs(self, organization_id: UUID, connector_id: UUID) -> None:
        """Delete stored files before the rows that name them, so that after an interruption the next run finds both."""
        last = _FIRST
        while jobs := await self.job_removal.after(organization_id, connector_id, last):
            await self.files.remove(organization_id, jobs)
            await self.job_removal.empty(organization_id, [job_id for job_id, _ in jobs])
            last = jobs[-1][0]

    async def resume(self) -> int:
        """Accept a new job for every deletion whose job has ended early; returns their number."""
        async with self.database.system() as connection, connection.transaction():
            workspaces = await connection.fetch(_STRANDED_WORKSPACES)
            connectors = await connection.fetch(_STRANDED_CONNECTORS)
            accepted = []
            for table, rows in (("workspaces", workspaces), ("connectors", connectors)):
                for row in rows:
                    new = _again(table, dict(row))
                    await connection.execute(
                        _REPLACE_JOB.format(table=table), row["organization_id"], row["id"], new.id
                    )
                    accepted.append(await self.jobs.accept_within(connection, new))
        for job in accepted:
            await self.wakeup.notify(job.id, job.attempt)
        return len(accepted)


def _again(table: str, row: dict[str, object]) -> NewJob:
    """The job that replaces one that ended before it was done."""
    organization_id, subject = UUID(str(row["organization_id"])), UUID(str(row["id"]))
    if table == "workspaces":
        return NewJob(
            id=uuid4(),
            organization_id=organization_id,
            task=DELETE_WORKSPACE.name,
            params={"workspace_id": str(subject)},
        )
    return NewJob(
        id=uuid4(),
        organization_id=organization_id,
        connector_id=subject,
        task=DELETE_CONNECTOR.name,
        kind=str(row["kind"]),
    )
