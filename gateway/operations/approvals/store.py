"""Approvals in PostgreSQL; what approvers see is sealed with the data key of the job."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.access.identity.model import PersonSession
from gateway.access.identity.store import SCOPES, WORKSPACES
from gateway.contract.approvals import ApprovalStatus
from gateway.errors import Conflict, InsufficientScope, JobCanceled, NotFound
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.where import Where
from gateway.jobs.leases import NOTHING_DONE, LostLease
from gateway.jobs.model import CANCELED_UNDONE, JobSummary, StoredJob
from gateway.jobs.sealing import JobKey, JobSealing
from gateway.jobs.settlements import SETTLED, approval_id_of, settling
from gateway.operations.approvals.model import ApprovalRule, ApproverWord, Asked, Proposal, RecordChange, StoredApproval

#: the field of the job under which the document is sealed
_FIELD = "approval"
_COLUMNS = """
    approvals.id, approvals.organization_id, job_id, approvals.status, rules, digest, account_id, items, document,
    approvals.reason, approvals.connector_id, approvals.workspace_name, requested_by, approvals.created_at,
    approvals.expires_at, released_at, jobs.key_id, jobs.wrapped_key,
    COALESCE(jobs.entity || '.' || jobs.action, jobs.task) AS operation, clients.name AS requester,
    EXISTS (SELECT FROM people WHERE people.client_id = requested_by) AS is_person,
    jobs.session_id, jobs.session::text AS session, acting.id AS acting_client, acting.name AS acting_name
"""
_FROM = """
    FROM approvals JOIN jobs ON jobs.id = job_id LEFT JOIN clients ON clients.id = requested_by
    LEFT JOIN clients AS acting ON acting.id = (jobs.session ->> 'client_id')::uuid
"""
_GET = f"SELECT {_COLUMNS} {_FROM} WHERE approvals.organization_id = $1 AND approvals.id = $2"
_LATEST = f"""
    SELECT {_COLUMNS} {_FROM} WHERE approvals.organization_id = $1 AND job_id = $2
    ORDER BY approvals.created_at DESC LIMIT 1
"""
# A list has no documents, each of which may be large.
_FIND = f"""
    SELECT {_COLUMNS.replace(" document,", " NULL AS document,")} {_FROM} WHERE {{conditions}}
    ORDER BY approvals.created_at DESC, approvals.id DESC LIMIT {{limit}}
"""
# Under the job's lease, in the transaction that inserts the approval.
_LOCK_RUNNING = """
    SELECT cancel_requested FROM jobs WHERE id = $1 AND fence = $2 AND status = 'running' FOR NO KEY UPDATE
"""
_WAIT = """
    UPDATE jobs SET status = 'waiting', next_attempt_at = NULL, lease_until = NULL, worker = NULL, message = $2
    WHERE id = $1
"""
_INSERT = """
    INSERT INTO approvals (id, organization_id, job_id, connector_id, workspace_name, requested_by, reason, rules,
                           digest, account_id, items, document, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now() + make_interval(secs => $13))
    RETURNING expires_at
"""
# Under the job's lease, so that a worker that was frozen and marked lost gives up no approval of a job that another one
# runs now. The approval is locked before its job, as where people decide.
_HELD = """
    asked AS (SELECT id, job_id FROM approvals WHERE id = $1 FOR NO KEY UPDATE), held AS (
        SELECT jobs.id FROM jobs JOIN asked ON jobs.id = asked.job_id
        WHERE jobs.fence = $2 AND jobs.status = 'running' FOR NO KEY UPDATE OF jobs
    )
"""
# The job goes on once: afterwards another attempt of it finds the approval released.
_RELEASE = f"""
    WITH {_HELD}, released AS (
        UPDATE approvals SET released_at = now() FROM held
        WHERE approvals.id = $1 AND approvals.status = 'approved' AND released_at IS NULL RETURNING approvals.id
    )
    SELECT EXISTS (SELECT FROM released) FROM held
"""
_SUPERSEDE = f"""
    WITH {_HELD}, superseded AS (
        UPDATE approvals SET status = 'superseded' FROM held
        WHERE approvals.id = $1 AND approvals.status IN ('pending', 'approved') RETURNING approvals.id
    )
    SELECT EXISTS (SELECT FROM superseded) FROM held
"""
_LOCK = "SELECT status, expires_at <= now() AS is_late FROM approvals WHERE id = $1 FOR UPDATE"
_HAS_ENDED = "SELECT finished_at IS NOT NULL FROM jobs WHERE id = $1"
_DECIDE = """
    INSERT INTO approval_decisions (approval_id, organization_id, client_id, groups, decision, reason)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
"""
_END = "UPDATE approvals SET status = $2 WHERE id = $1 AND status = 'pending'"
_DECISIONS = """
    SELECT approval_id, client_id, clients.name, groups, decision, reason, at
    FROM approval_decisions LEFT JOIN clients ON clients.id = client_id
    WHERE organization_id = $1 AND approval_id = ANY ($2::uuid[]) ORDER BY at
"""
_GROUPS = "SELECT group_name FROM group_members WHERE organization_id = $1 AND client_id = $2"
# What these clients may decide about now; who may decide about nothing is left out.
_APPROVERS = f"""
    SELECT clients.id, {WORKSPACES} AS workspaces,
           ARRAY(SELECT group_name FROM group_members WHERE organization_id = $1 AND client_id = clients.id) AS groups
    FROM clients JOIN client_organizations ON client_organizations.client_id = clients.id
    WHERE clients.id = ANY ($2::uuid[]) AND client_organizations.organization_id = $1
      AND clients.disabled_at IS NULL AND 'approve' = ANY ({SCOPES})
"""
_EXPIRE = "UPDATE approvals SET status = 'expired' WHERE status = 'pending' AND expires_at <= now()"
# The job ended while a person decided.
_SUPERSEDE_ENDED = """
    UPDATE approvals SET status = 'superseded' FROM jobs
    WHERE approvals.status = 'pending' AND jobs.id = approvals.job_id AND jobs.finished_at IS NOT NULL
"""
# Jobs whose approval was not given, with the error that says why. What was done of one that an earlier attempt began, a
# worker says.
_END_JOBS = f"""
    WITH ended AS (
        UPDATE jobs
        SET status = CASE WHEN {NOTHING_DONE} THEN 'canceled' ELSE 'queued' END,
            finished_at = CASE WHEN {NOTHING_DONE} THEN now() END,
            expires_at = CASE WHEN {NOTHING_DONE} THEN now() + make_interval(secs => $1) END,
            message = given.detail,
            error = CASE WHEN {NOTHING_DONE}
                THEN json_build_object('code', given.code, 'detail', given.detail)::text END
        FROM approvals JOIN unnest($2::text[], $3::text[], $4::text[]) AS given (status, code, detail)
            ON given.status = approvals.status
        WHERE approvals.job_id = jobs.id AND jobs.status = 'waiting' AND jobs.approval IS NOT NULL
          AND COALESCE({approval_id_of("jobs")}, approvals.id) = approvals.id
        RETURNING {SETTLED}
    ), noted AS ({settling("ended")})
    SELECT id FROM ended
"""


#: accepts the job of the notice within the transaction that requests the approval
BeginNotice = Callable[[Connection, Asked], Awaitable[StoredJob | None]]


class ApprovalRow(StoredApproval, frozen=True, kw_only=True):
    """An approval as approvers see it."""

    reason: str
    connector_id: UUID | None
    workspace_name: str | None
    requested_by: UUID | None
    requester: str | None
    is_person: bool
    #: the session in which a client asks for the person
    session_id: UUID | None
    session: PersonSession | None
    acting_client: UUID | None
    acting_name: str | None
    operation: str
    items: int
    requests: Sequence[dict[str, Any]]
    created_at: datetime

    @property
    def client_id(self) -> UUID | None:
        """The client or the person that asks, as which policies decide."""
        return self.requested_by

    def is_asked_by(self, client_id: UUID) -> bool:
        """Whether a client or person asks, for itself or in a session for a person."""
        return client_id in (self.requested_by, self.acting_client)


class DecisionRow(ApproverWord, frozen=True, kw_only=True):
    """One person's word, with when and why."""

    name: str | None
    decision: str
    reason: str | None
    at: datetime


class _Document(msgspec.Struct):
    """What is sealed."""

    requests: list[dict[str, Any]]
    changes: list[RecordChange]
    asked: list[tuple[int, int]] = []


class ApprovalStore:
    """The approvals of organizations."""

    def __init__(self, database: Database, sealing: JobSealing, retention: int) -> None:
        self._database = database
        self._sealing = sealing
        #: seconds for which a canceled job is kept
        self._retention = retention

    async def request(
        self,
        job: StoredJob,
        proposal: Proposal,
        rules: Sequence[ApprovalRule],
        seconds: int,
        begin_notice: BeginNotice,
    ) -> StoredJob | None:
        """Let the job wait for its approval; returns the job of the notice, if there is one.

        Raises LostLease, and JobCanceled: nobody decides about a job whose cancellation was requested.
        """
        approval_id = uuid4()
        requests = [dict(each) for each in proposal.requests]
        document = _Document(requests, list(proposal.changes), list(proposal.asked))
        reason = "; ".join(dict.fromkeys(rule.reason for rule in rules))
        async with self._database.system() as connection, connection.transaction():
            is_canceled = await connection.fetchval(_LOCK_RUNNING, job.id, job.fence)
            if is_canceled is None:
                raise LostLease
            if is_canceled:
                raise JobCanceled(CANCELED_UNDONE)
            await connection.execute(_WAIT, job.id, "waits for an approval")
            expires_at = await connection.fetchval(
                _INSERT,
                approval_id,
                job.organization_id,
                job.id,
                job.connector_id,
                job.workspace_name,
                job.client_id,
                reason,
                msgspec.json.encode(rules).decode(),
                proposal.digest,
                proposal.account_id,
                proposal.items,
                self._sealing.seal(job, _FIELD, msgspec.json.encode(document).decode()),
                seconds,
            )
            asked = Asked(id=approval_id, job=job, reason=reason, items=proposal.items, expires_at=expires_at)
            return await begin_notice(connection, asked)

    async def latest(self, job: JobSummary) -> ApprovalRow | None:
        """The job's latest approval, if it has one."""
        async with self._database.tenant(job.organization_id) as connection:
            row = await connection.fetchrow(_LATEST, job.organization_id, job.id)
        return None if row is None else self._row(row)

    async def release(self, approval: StoredApproval, job: StoredJob) -> bool:
        """Let the job go on; false if the approval was superseded meanwhile. Raises LostLease."""
        return await self._under_lease(_RELEASE, approval, job)

    async def supersede(self, approval: StoredApproval, job: StoredJob) -> None:
        """What was approved is no longer what would be done; raises LostLease."""
        await self._under_lease(_SUPERSEDE, approval, job)

    async def _under_lease(self, statement: str, approval: StoredApproval, job: StoredJob) -> bool:
        async with self._database.tenant(approval.organization_id) as connection:
            is_done = await connection.fetchval(statement, approval.id, job.fence)
        if is_done is None:
            raise LostLease
        return bool(is_done)

    async def get(self, organization_id: UUID, approval_id: UUID) -> ApprovalRow:
        """The approval; raises NotFound."""
        async with self._database.tenant(organization_id) as connection:
            row = await connection.fetchrow(_GET, organization_id, approval_id)
        if row is None:
            raise NotFound("there is no such approval")
        return self._row(row)

    async def find(
        self,
        organization_id: UUID,
        *,
        status: ApprovalStatus | None,
        connector_id: UUID | None,
        requested_by: UUID | None,
        workspaces: Collection[str] | None,
        before: tuple[datetime, UUID] | None,
        limit: int,
    ) -> Sequence[ApprovalRow]:
        """Approvals that match, the newest first, without their requests and changes."""
        where = Where()
        where.add("approvals.organization_id = {}", organization_id)
        where.add("approvals.status = {}", None if status is None else status.value)
        where.add("approvals.connector_id = {}", connector_id)
        where.add("requested_by = {}", requested_by)
        where.add("approvals.workspace_name = ANY ({}::text[])", workspaces)
        where.add("(approvals.created_at, approvals.id) < ({}, {})", *(before or (None, None)))
        find = _FIND.format(conditions=where.text, limit=where.argument(limit))
        async with self._database.tenant(organization_id) as connection:
            return [self._row(row) for row in await connection.fetch(find, *where.arguments)]

    async def decisions(self, organization_id: UUID, approvals: Sequence[UUID]) -> dict[UUID, list[DecisionRow]]:
        """What was decided of these approvals, in order."""
        async with self._database.tenant(organization_id) as connection:
            return await _decisions(connection, organization_id, approvals)

    async def groups_of(self, organization_id: UUID, client_id: UUID) -> Sequence[str]:
        """The groups of a person."""
        async with self._database.tenant(organization_id) as connection:
            return [row["group_name"] for row in await connection.fetch(_GROUPS, organization_id, client_id)]

    async def decide(
        self, approval: ApprovalRow, word: ApproverWord, decision: ApprovalStatus, reason: str | None, is_enough: Any
    ) -> ApprovalStatus:
        """Store a word on a pending approval, and end the approval if it is enough; returns the status found before.

        `is_enough` tells it of all who decided so and still may. Two approvers decide one after the other.
        """
        organization_id = approval.organization_id
        async with self._database.tenant(organization_id) as connection, connection.transaction():
            locked = await connection.fetchrow(_LOCK, approval.id)
            status = ApprovalStatus(locked["status"])
            if status is ApprovalStatus.PENDING and locked["is_late"]:
                await connection.execute(_END, approval.id, ApprovalStatus.EXPIRED.value)
                return ApprovalStatus.EXPIRED
            if status is not ApprovalStatus.PENDING:
                return status
            if await connection.fetchval(_HAS_ENDED, approval.job_id):
                await connection.execute(_END, approval.id, ApprovalStatus.SUPERSEDED.value)
                return ApprovalStatus.SUPERSEDED
            await connection.execute(
                _DECIDE, approval.id, organization_id, word.client_id, list(word.groups), decision.value, reason
            )
            words = (await _decisions(connection, organization_id, [approval.id])).get(approval.id, [])
            alike = [each for each in words if each.decision == decision.value]
            if word.client_id not in {each.client_id for each in alike}:
                raise Conflict("you have decided otherwise already")
            valid = await _still_valid(connection, approval, alike)
            if word.client_id not in {each.client_id for each in valid}:
                raise InsufficientScope("you may not decide about this call any more")
            if is_enough(valid):
                await connection.execute(_END, approval.id, decision.value)
        return status

    async def expire(self) -> None:
        """End the approvals whose time is over, and those whose job has ended."""
        async with self._database.system() as connection:
            await connection.execute(_EXPIRE)
            await connection.execute(_SUPERSEDE_ENDED)

    async def end_jobs(self, errors: Sequence[tuple[ApprovalStatus, str, str]]) -> int:
        """Cancel the jobs that wait for an approval that was not given, or queue those that an earlier attempt began;
        `errors`: status, code and detail.
        """
        columns = [[status.value for status, _, _ in errors], [code for _, code, _ in errors]]
        async with self._database.system() as connection:
            rows = await connection.fetch(_END_JOBS, self._retention, *columns, [detail for _, _, detail in errors])
        return len(rows)

    def _row(self, row: Any) -> ApprovalRow:
        document = _Document([], [])
        if row["document"] is not None:
            key = JobKey(row["organization_id"], row["job_id"], row["key_id"], row["wrapped_key"])
            document = msgspec.json.decode(self._sealing.open(key, _FIELD, row["document"]), type=_Document)
        opened = {"rules", "changes", "requests", "asked", "status", "session"}
        names = set(ApprovalRow.__struct_fields__) - opened
        return ApprovalRow(
            rules=msgspec.json.decode(row["rules"], type=list[ApprovalRule]),
            changes=document.changes,
            requests=document.requests,
            asked=document.asked,
            status=ApprovalStatus(row["status"]),
            session=None if row["session"] is None else msgspec.json.decode(row["session"], type=PersonSession),
            **{name: row[name] for name in names},
        )


async def _still_valid(
    connection: Connection, approval: ApprovalRow, words: Sequence[ApproverWord]
) -> list[ApproverWord]:
    """The words of those who may still decide about the approval, with the groups that they still have."""
    ids = [each.client_id for each in words]
    approvers = {row["id"]: row for row in await connection.fetch(_APPROVERS, approval.organization_id, ids)}
    valid = []
    for word in words:
        found = approvers.get(word.client_id)
        if found and (found["workspaces"] is None or approval.workspace_name in found["workspaces"]):
            groups = [group for group in word.groups if group in found["groups"]]
            valid.append(ApproverWord(client_id=word.client_id, groups=groups))
    return valid


async def _decisions(
    connection: Connection, organization_id: UUID, approvals: Sequence[UUID]
) -> dict[UUID, list[DecisionRow]]:
    found: dict[UUID, list[DecisionRow]] = {}
    for row in await connection.fetch(_DECISIONS, organization_id, list(approvals)):
        members = dict(row)
        found.setdefault(members.pop("approval_id"), []).append(DecisionRow(**members))
    return found
