"""The use case: delete everything of an organization, with a signed certificate of what was deleted.

One transaction hides everything from callers and accepts the job. The client that asked may read until the job's result
expires; then the organization's row and that client are deleted too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.contract.members import moment
from gateway.errors import Conflict, FieldError, InternalError, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.proof import Signer
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import JobStore
from gateway.jobs.tasks import DELETE_ORGANIZATION
from gateway.jobs.wakeup import Wakeup
from gateway.operations.deletion import Deletion
from gateway.upstream.responses import OperationResult

#: rows of each table that one statement deletes
_BATCH = 5000
_LOCK = "SELECT name, deletion_job FROM organizations WHERE id = $1 FOR UPDATE"
# The name is free again at once.
_MARK = """
    UPDATE organizations SET deletion_job = $2, name = 'deleted ' || id, moving_since = NULL WHERE id = $1
"""
_MARK_CONNECTORS = """
    UPDATE connectors SET deleted_at = now(), deletion_job = $2 WHERE organization_id = $1 AND deleted_at IS NULL
"""
_MARK_WORKSPACES = """
    UPDATE workspaces SET deletion_began_at = now(), deletion_job = $2, name = 'deleted ' || id
    WHERE organization_id = $1 AND deletion_began_at IS NULL
"""
# In the order of their ids, as workers lock the jobs that they run.
_CANCEL_JOBS = """
    UPDATE jobs SET cancel_requested = true, next_attempt_at = CASE WHEN status = 'waiting' THEN now() END
    WHERE id = ANY (ARRAY(
        SELECT id FROM jobs
        WHERE organization_id = $1 AND id <> $2 AND status IN ('queued', 'waiting', 'running') AND NOT cancel_requested
        ORDER BY id FOR NO KEY UPDATE))
"""
# Clients of other organizations stay; every process is notified that the others may no longer call.
_EXPEL = """
    WITH expelled AS (
        DELETE FROM client_organizations WHERE organization_id = $1 AND client_id <> $2 RETURNING client_id
    ), told AS (
        SELECT pg_notify('gateway', 'client:' || client_id) FROM expelled
    )
    SELECT client_id FROM expelled, (SELECT count(*) FROM told) AS all_told
"""
_LIMIT_CALLER = """
    UPDATE clients SET scopes = '{read}'
    WHERE id = $1 AND NOT EXISTS (
        SELECT FROM client_organizations WHERE client_id = $1 AND organization_id <> $2
    )
"""
_DELETE_CLIENTS = """
    DELETE FROM clients WHERE id = ANY ($1::uuid[])
      AND NOT EXISTS (SELECT FROM client_organizations WHERE client_id = clients.id)
"""
_CONNECTORS = "SELECT id FROM connectors WHERE organization_id = $1 ORDER BY id"
_DELETE_ROWS = "SELECT name, deleted FROM gateway_delete_rows($1, $2, $3, $4, $5)"
#: organizations whose job ended early
_STRANDED = """
    SELECT id, deletion_job FROM organizations
    WHERE EXISTS (SELECT FROM jobs WHERE jobs.id = deletion_job AND status IN ('failed', 'canceled', 'unknown'))
    LIMIT 100 FOR UPDATE SKIP LOCKED
"""
# Logs are written in batches, so some of their rows come after the job.
_ENDED = """
    SELECT organizations.id, jobs.id AS job_id, jobs.client_id, jobs.created_at
    FROM organizations JOIN jobs ON jobs.id = deletion_job WHERE jobs.status = 'succeeded'
"""
PRUNE_ORGANIZATIONS = """
    WITH gone AS (
        SELECT id FROM organizations
        WHERE deletion_job IS NOT NULL AND NOT EXISTS (SELECT FROM jobs WHERE jobs.id = deletion_job)
        LIMIT $1 FOR UPDATE SKIP LOCKED
    ), clients_gone AS (
        DELETE FROM clients USING client_organizations AS member, gone
        WHERE member.client_id = clients.id AND member.organization_id = gone.id
          AND NOT EXISTS (SELECT FROM client_organizations AS other
                          WHERE other.client_id = clients.id AND other.organization_id <> gone.id)
    )
    DELETE FROM organizations USING gone WHERE organizations.id = gone.id
"""


class _Params(msgspec.Struct, frozen=True, kw_only=True):
    """The params of the job."""

    name: str
    #: the client that asked
    kept_client: UUID
    #: the clients that lost the organization
    clients: Sequence[UUID]


class _State(msgspec.Struct, kw_only=True):
    """How many rows are deleted, by table."""

    deleted: dict[str, int] = {}


@dataclass(frozen=True, kw_only=True)
class OrganizationDeletion:
    """Accepts the job that deletes an organization, and runs it."""

    audit: Audit
    database: Database
    jobs: JobStore
    deletion: Deletion
    wakeup: Wakeup
    #: signs certificates
    signer: Signer

    async def delete(self, caller: Caller, confirm: str, request_id: str | None) -> StoredJob:
        """Hide everything from callers at once; the job deletes it.

        Raises InvalidParams unless `confirm` is the organization's name, and Conflict if it is deleted already.
        """
        with self.audit.record("organization.delete", caller, target=str(caller.organization_id)) as entry:
            caller.require(Scope.ADMIN)
            caller.require_whole_organization()
            async with self.database.system() as connection, connection.transaction():
                job = await self._accept(connection, caller, confirm, request_id)
            entry.accept(call_id_of(job))
        await self.wakeup.notify(job.id, job.attempt)
        return job

    async def _accept(self, connection: Connection, caller: Caller, confirm: str, request_id: str | None) -> StoredJob:
        organization_id, job_id = caller.organization_id, uuid4()
        found = await connection.fetchrow(_LOCK, organization_id)
        if found["deletion_job"] is not None:
            raise Conflict("the organization is being deleted")
        if confirm != found["name"]:
            message = "confirm must be the organization's name"
            raise InvalidParams(faults=[FieldError("/confirm", "confirm", "mismatch", message)])
        await connection.execute(_MARK, organization_id, job_id)
        await connection.execute(_MARK_CONNECTORS, organization_id, job_id)
        await connection.execute(_MARK_WORKSPACES, organization_id, job_id)
        await connection.execute(_CANCEL_JOBS, organization_id, job_id)
        expelled = await connection.fetch(_EXPEL, organization_id, caller.client_id)
        await connection.execute(_LIMIT_CALLER, caller.client_id, organization_id)
        params = _Params(
            name=found["name"], kept_client=caller.client_id, clients=[row["client_id"] for row in expelled]
        )
        return await self.jobs.accept_within(
            connection,
            NewJob(
                id=job_id,
                organization_id=organization_id,
                client_id=caller.client_id,
                task=DELETE_ORGANIZATION.name,
                params=msgspec.to_builtins(params),
                target=str(organization_id),
                request_id=request_id,
            ),
        )

    async def run(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Revoke the credentials of all connectors, then delete the rows of all tables; returns the certificate."""
        params, state = msgspec.convert(job.params, _Params), msgspec.convert(job.state, _State)
        counts = Counter(state.deleted)
        async with self.database.tenant(job.organization_id) as connection:
            connectors = [row["id"] for row in await connection.fetch(_CONNECTORS, job.organization_id)]
        for connector_id in connectors:
            for step in self.deletion.steps(job.organization_id, connector_id):
                await step()
            counts["connectors"] += 1
            await self._reached(run_context, counts)
        whose = (job.organization_id, job.id, params.kept_client, job.created_at)
        while removed := await self._rows(*whose):
            counts.update(removed)
            await self._reached(run_context, counts)
        async with self.database.system() as connection:
            ended = await connection.execute(_DELETE_CLIENTS, params.clients)
        counts["clients"] += int(str(ended).rpartition(" ")[2])
        certificate = self.signer.signed(
            {
                "organization": {"id": str(job.organization_id), "name": params.name},
                "deleted": dict(sorted(counts.items())),
                "requested_at": moment(job.created_at),
                "completed_at": moment(CLOCK.now()),
            }
        )
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(certificate)))

    async def _rows(
        self, organization_id: UUID, job_id: UUID, kept_client: UUID | None, since: datetime
    ) -> Mapping[str, int]:
        """Delete a batch of each table; returns the number by table, without those that had none."""
        async with self.database.system() as connection:
            rows = await connection.fetch(_DELETE_ROWS, organization_id, job_id, kept_client, since, _BATCH)
        return {row["name"]: row["deleted"] for row in rows if row["deleted"]}

    async def _reached(self, run_context: JobRunContext, counts: Counter[str]) -> None:
        total = counts.total()
        await run_context.save(msgspec.to_builtins(_State(deleted=dict(counts))), {})
        await run_context.progress(total, None, f"{total} rows and connectors deleted")

    async def resume(self) -> int:
        """Accept a new job for every deletion whose job has ended early, and delete rows that came after the others.

        Returns the number of jobs.
        """
        async with self.database.system() as connection:
            ended = await connection.fetch(_ENDED)
        for row in ended:
            await self._rows(row["id"], row["job_id"], row["client_id"], row["created_at"])
        async with self.database.system() as connection, connection.transaction():
            rows = await connection.fetch(_STRANDED)
            accepted = [job for row in rows if (job := await self._again(connection, row)) is not None]
        for job in accepted:
            await self.wakeup.notify(job.id, job.attempt)
        return len(accepted)

    async def _again(self, connection: Connection, row: Any) -> StoredJob | None:
        """The new job; None if the one that ended early cannot be read, so that other deletions go on."""
        try:
            ended = await self.jobs.get_stored(row["id"], row["deletion_job"])
        except InternalError:
            return None
        new = NewJob(
            id=uuid4(),
            organization_id=row["id"],
            client_id=ended.client_id,
            task=DELETE_ORGANIZATION.name,
            params=ended.params,
            target=ended.target,
        )
        await connection.execute("UPDATE organizations SET deletion_job = $2 WHERE id = $1", row["id"], new.id)
        return await self.jobs.accept_within(connection, new)
