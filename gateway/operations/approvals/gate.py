"""Holds a job until its exact requests are approved, and compares them again before the first byte is sent."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from gateway.access.policy.model import Approval
from gateway.connectors.resolver import ResolvedConnector
from gateway.contract.approvals import ApprovalStatus
from gateway.contract.kinds import Effect
from gateway.errors import (
    ApprovalChanged,
    ApprovalDenied,
    ApprovalExpired,
    GatewayError,
    JobCanceled,
    Unavailable,
    UpstreamRateLimited,
)
from gateway.foundation.aio.turns import in_thread, in_turn
from gateway.jobs.leases import JobWaits
from gateway.jobs.model import JobSummary, StoredJob
from gateway.operations.approvals.model import (
    MAX_ALL_CHANGES,
    MAX_SHOWN,
    Digest,
    Proposal,
    RecordChange,
    StoredApproval,
    changes_in,
    lifetime,
    ranges_of,
    rules_of,
)
from gateway.operations.approvals.notices import ApprovalNotices
from gateway.operations.approvals.store import ApprovalRow, ApprovalStore
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.responses import OperationResult

#: bytes of a record that is read in a thread
_LARGE = 256 << 10
CHANGED = "what was approved is no longer what would be done; send the call again"
#: how jobs end whose approval was not given
NOT_GIVEN: Mapping[ApprovalStatus, tuple[type[JobCanceled], str]] = {
    ApprovalStatus.DENIED: (ApprovalDenied, "the call was not approved"),
    ApprovalStatus.EXPIRED: (ApprovalExpired, "nobody approved the call in time"),
    ApprovalStatus.SUPERSEDED: (ApprovalChanged, CHANGED),
}


@dataclass(frozen=True, slots=True)
class ApprovalGate:
    """Lets the calls of jobs through that are approved."""

    store: ApprovalStore
    notices: ApprovalNotices
    #: seconds until a request for approval expires, unless the policy says it
    seconds: int

    def require_valid(self, job: StoredJob) -> None:
        """Raise ApprovalDenied, ApprovalExpired or ApprovalChanged for a job whose approval was not given or was
        superseded, even if no policy demands one any longer.
        """
        if job.approval is not None and job.approval["status"] in NOT_GIVEN:
            error, detail = NOT_GIVEN[ApprovalStatus(job.approval["status"])]
            raise error(detail)

    async def released(self, job: StoredJob) -> ApprovalRow | None:
        """The approval with which an earlier attempt of the job went on: what it began is finished."""
        found = await self.store.latest(job) if job.approval is not None else None
        is_released = found is not None and found.status is ApprovalStatus.APPROVED and found.released_at is not None
        return found if is_released else None

    async def resume(
        self,
        job: StoredJob,
        resolved: ResolvedConnector,
        calls: AsyncIterator[PreparedCall],
        approval: ApprovalRow,
    ) -> None:
        """Raise ApprovalChanged if a job that went on with an approval would send something else now.

        It may have waited for the application since, and somebody may have replaced the connector's credentials. The
        records are not compared: an earlier attempt may have changed them.
        """
        if not approval.sends(await _proposal(resolved, calls, reads_changes=False)):
            await self.store.supersede(approval, job)
            raise ApprovalChanged(CHANGED)

    async def require(
        self,
        job: StoredJob,
        resolved: ResolvedConnector,
        calls: AsyncIterator[PreparedCall],
        approvals: Sequence[Approval],
        asked: Iterable[int] = (),
    ) -> None:
        """Let the job go on if exactly these calls are approved; of a batch they have the indexes `asked`.

        Raises JobWaits after it has requested the approval, and ApprovalChanged if something else was approved.
        """
        proposal, rules = await _proposal(resolved, calls), rules_of(approvals)
        found = await self.store.latest(job)
        if found is None:
            seconds = lifetime(approvals, self.seconds)
            proposal = replace(proposal, asked=ranges_of(asked))
            notice = await self.store.request(job, proposal, rules, seconds, self.notices.begin_within)
            if notice is not None:
                await self.notices.announce(notice)
            raise JobWaits
        is_same = found.status is ApprovalStatus.APPROVED and found.is_for(proposal, rules)
        if is_same and await self.store.release(found, job):
            return
        await self.store.supersede(found, job)
        raise ApprovalChanged(CHANGED)


def is_approved(job: JobSummary) -> bool:
    """Whether people have approved what the job does."""
    return job.approval is not None and job.approval["status"] == ApprovalStatus.APPROVED


def is_taken(job: StoredJob, approval: StoredApproval | None) -> bool:
    """Whether the call of a job was taken from budgets before: when it was accepted, or by an earlier attempt, which an
    approved job made with this approval.
    """
    # A worker that shuts down gives its attempt back, but no fence.
    return job.is_counted or approval is not None or (job.fence > 1 and job.approval is None)


async def _proposal(
    resolved: ResolvedConnector, calls: AsyncIterator[PreparedCall], *, reads_changes: bool = True
) -> Proposal:
    """What the calls would send and change."""
    record, shown, changes = resolved.record, list[dict[str, Any]](), list[RecordChange]()
    digest = Digest(record.id, record.account_id)
    async for call in calls:
        for request in resolved.connector.preview(call):
            await in_turn(partial(digest.add, request))
            if len(shown) < MAX_SHOWN:
                shown.append(request)
                if reads_changes and len(changes) < MAX_ALL_CHANGES:
                    changes += await _changes(resolved, call)
    return Proposal(
        digest=digest.value,
        account_id=record.account_id,
        items=digest.items,
        requests=shown,
        changes=changes[:MAX_ALL_CHANGES],
    )


async def _changes(resolved: ResolvedConnector, call: PreparedCall) -> list[RecordChange]:
    """What a write changes in a record that can be read by the same params; nothing if it cannot be read.

    Raises UpstreamRateLimited and Unavailable: the job waits, because a record that is not read now has not changed.
    """
    operation = call.operation
    path, kind = operation.path_params, resolved.connector.kind
    if call.effect is Effect.READ or not path or "get" not in kind.entity(operation.entity_id).actions:
        return []
    reading = kind.operation(operation.entity_id, "get")
    if set(reading.path_params) != set(path):
        return []
    try:
        named = {name: call.params[name] for name in path if name in call.params}
        answer = await resolved.connector.run_to_end(prepare(reading, named))
        written: dict[str, Any] = {name: value for name, value in call.params.items() if name not in path}

        def changes(answer: OperationResult) -> list[RecordChange]:
            found = answer.decoded()
            if not isinstance(found, Mapping):
                return []
            return changes_in(str(operation), "/".join(map(str, named.values())), found, written)

        return await in_thread(changes, answer) if len(answer.result) > _LARGE else changes(answer)
    except (UpstreamRateLimited, Unavailable):
        raise
    except GatewayError:
        return []


async def each_of(calls: Iterable[PreparedCall]) -> AsyncIterator[PreparedCall]:
    """The calls one by one."""
    for call in calls:
        yield call
