"""The use cases of approvers: list, read, approve and deny."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.contract.approvals import (
    ApprovalChangeView,
    ApprovalDecisionView,
    ApprovalPage,
    ApprovalRequestView,
    ApprovalStatus,
    ApprovalSummaryView,
    ApprovalView,
    RequesterView,
)
from gateway.contract.cursors import page_of, read_time_cursor
from gateway.contract.members import ActorSessionView, NamedActorView
from gateway.errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApproverIsRequester,
    Conflict,
    FieldError,
    InsufficientScope,
    InvalidParams,
    NotFound,
)
from gateway.jobs.model import approval_url
from gateway.jobs.wakeup import Wakeup
from gateway.operations.approvals.changes import ChangeReading
from gateway.operations.approvals.gate import CHANGED, NOT_GIVEN
from gateway.operations.approvals.model import ApproverWord, is_complete, may_count, questions_of
from gateway.operations.approvals.store import ApprovalRow, ApprovalStore, DecisionRow

_ENDS = tuple((status, error.code, detail) for status, (error, detail) in NOT_GIVEN.items())


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals of the caller's organization, in the workspaces that the caller sees."""

    audit: Audit
    store: ApprovalStore
    reading: ChangeReading
    wakeup: Wakeup
    base_url: str

    async def find(
        self,
        caller: Caller,
        *,
        status: ApprovalStatus | None = None,
        connector_id: UUID | None = None,
        requested_by: UUID | None = None,
        cursor: str | None = None,
        limit: int,
    ) -> ApprovalPage:
        """A page of approvals, the newest first."""
        caller.require(Scope.APPROVE)
        rows = await self.store.find(
            caller.organization_id,
            status=status,
            connector_id=connector_id,
            requested_by=requested_by,
            workspaces=caller.client.workspaces,
            before=read_time_cursor(cursor),
            limit=limit + 1,
        )
        page, following = page_of(rows, limit)
        decisions = await self.store.decisions(caller.organization_id, [each.id for each in page])
        return ApprovalPage([self._summary(each, decisions.get(each.id, [])) for each in page], following)

    async def get(self, caller: Caller, approval_id: UUID) -> ApprovalView:
        """An approval with everything that an approver sees; raises NotFound."""
        caller.require(Scope.APPROVE)
        return await self._view(caller, await self._seen(caller, approval_id))

    async def decide(
        self, caller: Caller, approval_id: UUID, decision: ApprovalStatus, digest: str, reason: str | None
    ) -> ApprovalView:
        """Approve or deny exactly what has this digest; the same word again changes nothing.

        Raises ApproverIsRequester, ApprovalChanged, ApprovalExpired, InvalidParams for a reason that is missing, and
        Conflict for what was decided otherwise.
        """
        what = "approval.approve" if decision is ApprovalStatus.APPROVED else "approval.deny"
        with self.audit.record(what, caller, target=str(approval_id)) as entry:
            caller.require(Scope.APPROVE)
            approval = await self._seen(caller, approval_id)
            entry.connector_id = approval.connector_id
            if approval.is_asked_by(caller.client_id):
                raise ApproverIsRequester("who asks for an approval cannot decide about it")
            if digest != approval.digest:
                raise ApprovalChanged(
                    "the digest is not that of the approval; read it again, and decide what it shows now"
                )
            word = ApproverWord(
                client_id=caller.client_id,
                groups=await self.store.groups_of(caller.organization_id, caller.client_id),
            )
            if not may_count(approval.rules, word):
                raise InsufficientScope("the policy names others who may decide about this call")
            questions = questions_of(approval.rules)
            if questions and decision is ApprovalStatus.APPROVED and not (reason or "").strip():
                raise InvalidParams(
                    faults=[FieldError("/reason", "reason", "required", f"reason: answer {' '.join(questions)}")]
                )
            await self._decided(approval, word, decision, reason)
            return await self._view(caller, await self._seen(caller, approval_id))

    async def _decided(
        self, approval: ApprovalRow, word: ApproverWord, decision: ApprovalStatus, reason: str | None
    ) -> None:
        is_enough = partial(is_complete, approval.rules) if decision is ApprovalStatus.APPROVED else bool
        before = await self.store.decide(approval, word, decision, reason, is_enough)
        if before is ApprovalStatus.PENDING or before is ApprovalStatus.EXPIRED:
            await self.end_jobs()
            await self.wakeup.notify(approval.job_id, 1)
        if before is ApprovalStatus.EXPIRED:
            raise ApprovalExpired("the request for approval has expired")
        if before is ApprovalStatus.SUPERSEDED:
            raise ApprovalChanged(CHANGED)
        if before is not ApprovalStatus.PENDING and before is not decision:
            raise Conflict(f"the approval is {before} already")

    async def end_jobs(self) -> None:
        """Expire approvals, and end the jobs whose approval was not given; every worker does so again and again."""
        await self.store.expire()
        await self.store.end_jobs(_ENDS)

    async def _seen(self, caller: Caller, approval_id: UUID) -> ApprovalRow:
        approval = await self.store.get(caller.organization_id, approval_id)
        if not caller.sees(approval.workspace_name):
            raise NotFound("there is no such approval")
        return approval

    async def _view(self, caller: Caller, approval: ApprovalRow) -> ApprovalView:
        decisions = await self.store.decisions(approval.organization_id, [approval.id])
        summary = self._summary(approval, decisions.get(approval.id, []))
        members = {name: getattr(summary, name) for name in summary.__struct_fields__}
        changes, redacted = await self.reading.shown(caller, approval)
        return ApprovalView(
            **members,
            requests=[ApprovalRequestView(**each) for each in approval.requests],
            changes=[ApprovalChangeView(each.record, each.member, each.old, each.new) for each in changes],
            redacted=tuple(redacted),
            questions=questions_of(approval.rules),
        )

    def _summary(self, approval: ApprovalRow, decisions: Sequence[DecisionRow]) -> ApprovalSummaryView:
        return ApprovalSummaryView(
            id=str(approval.id),
            status=approval.status,
            url=approval_url(self.base_url, approval.id),
            job_id=str(approval.job_id),
            connector_id=None if approval.connector_id is None else str(approval.connector_id),
            workspace_name=approval.workspace_name,
            operation=approval.operation,
            requested_by=_requester(approval),
            reason=approval.reason,
            digest=approval.digest,
            account=str(approval.account_id),
            items=approval.items,
            created_at=approval.created_at,
            expires_at=approval.expires_at,
            decisions=[_decision(each) for each in decisions],
        )


def _requester(approval: ApprovalRow) -> RequesterView:
    if approval.requested_by is None:
        return RequesterView()
    actor = NamedActorView(id=str(approval.requested_by), name=approval.requester)
    if approval.session_id is not None:
        client = NamedActorView(id=str(approval.acting_client), name=approval.acting_name)
        return RequesterView(client=client, person=actor, session=ActorSessionView(str(approval.session_id)))
    return RequesterView(person=actor) if approval.is_person else RequesterView(client=actor)


def _decision(row: DecisionRow) -> ApprovalDecisionView:
    return ApprovalDecisionView(
        by=NamedActorView(id=str(row.client_id), name=row.name),
        at=row.at,
        decision="approved" if row.decision == ApprovalStatus.APPROVED else "denied",
        reason=row.reason,
    )
