"""Prepares the calls of a batch for the current connector, groups them for bulk requests, and runs them."""

import asyncio
from collections.abc import AsyncIterator, Container, Sequence
from contextlib import suppress
from uuid import UUID, uuid5

from msgspec.structs import replace

from gateway.access.audit.entry import Entry
from gateway.access.policy.model import Approval, Verdict
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import GatewayError
from gateway.jobs.model import StoredJob
from gateway.kinds.catalog import Kind
from gateway.operations.accounting import describe
from gateway.operations.approvals.gate import ApprovalGate, each_of
from gateway.operations.batches.grouping import Numbered, grouped
from gateway.operations.batches.journal import Journal
from gateway.operations.batches.model import BatchJob, StoredOperation
from gateway.operations.permission import Permission
from gateway.operations.runs import OperationRuns
from gateway.operations.spending import Spending, Taken, give_back
from gateway.upstream.bulk import Outcome
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.responses import OperationResult
from gateway.upstream.run_context import InMemoryRunContext


class BatchCalls:
    """Prepares, groups and sends the operations of one batch."""

    def __init__(
        self,
        connectors: ConnectorResolver,
        permission: Permission,
        spending: Spending,
        gate: ApprovalGate,
        runs: OperationRuns,
        job: StoredJob,
        options: BatchJob,
    ) -> None:
        self._connectors = connectors
        self._permission = permission
        self._spending = spending
        self._gate = gate
        #: the indexes of the operations that people have approved
        self._approved: set[int] = set()
        #: the policies that decided about an operation that is about to be sent
        self._policies: dict[int, Sequence[str]] = {}
        self._runs = runs
        self._job = job
        self._options = options

    async def groups(self, operations: Sequence[Numbered]) -> list[list[Numbered]]:
        """The operations in groups: several for one bulk request, or a single one."""
        alone = [[numbered] for numbered in operations]
        if self._options.steps or self._options.stop_on_error:
            return alone
        try:
            kind = (await self._resolved()).connector.kind
        except GatewayError:
            return alone  # each operation ends with this error
        return grouped((numbered, _call_of(kind, numbered[1])) for numbered in operations)

    async def prepared(self, index: int, operation: StoredOperation) -> PreparedCall:
        """The call of an operation; raises InvalidParams, DeniedByPolicy, NotFound and ConnectorNotReady."""
        call = await self._prepared(operation)
        record = (await self._resolved()).record
        decision = await self._permission.require_call(
            self._job,
            record,
            call,
            Surface.BATCH,
            may_wait=index in self._approved,
            is_approved=index in self._approved,
        )
        if decision.policies:
            self._policies[index] = decision.policies
        return replace(call, redact=decision.redact)

    async def approve(self, operations: AsyncIterator[Numbered]) -> None:
        """Let the batch go on if all its operations that need it are approved, together.

        Raises JobWaits until they are, and ApprovalChanged. Steps cannot wait: their params are not known yet.
        """
        self._gate.require_valid(self._job)
        if self._options.steps or not await self._permission.is_needed(self._job):
            return
        resolved, approvals = await self._resolved(), dict[Approval, None]()
        approval = await self._gate.released(self._job)
        if approval is not None:
            # What is asked about may be more by now, because policies or what the client has called changed.
            self._approved = approval.indexes
            await self._gate.resume(self._job, resolved, self._calls_among(operations, self._approved), approval)
            return
        asking: list[PreparedCall] = []
        asked: list[int] = []
        journal = Journal.of(self._job.state, self._options.total)
        async for index, operation in operations:
            await asyncio.sleep(0)  # thousands of decisions follow each other
            if journal.is_done(index) or index in journal.in_flight:
                continue  # an earlier attempt sent it, and no attempt sends it again
            with suppress(GatewayError):  # such an operation ends with its error when it runs
                call = await self._prepared(operation)
                decision = await self._permission.require_call(
                    self._job, resolved.record, call, Surface.BATCH, may_wait=True
                )
                if decision.verdict is Verdict.APPROVE:
                    approvals.update(dict.fromkeys(decision.approvals))
                    asking.append(call)
                    asked.append(index)
        if asking:
            await self._gate.require(self._job, resolved, each_of(asking), list(approvals), asked)
        self._approved = set(asked)

    async def _calls_among(
        self, operations: AsyncIterator[Numbered], indexes: Container[int]
    ) -> AsyncIterator[PreparedCall]:
        """The calls of the operations with these indexes that can be prepared."""
        async for index, operation in operations:
            if index in indexes:
                with suppress(GatewayError):
                    yield await self._prepared(operation)

    async def _prepared(self, operation: StoredOperation) -> PreparedCall:
        kind = (await self._resolved()).connector.kind
        if self._options.steps:
            return prepare(kind.operation(operation.entity, operation.action), operation.params)
        return _call(kind, operation)

    async def entry(self, index: int, call: PreparedCall) -> Entry:
        """The audit entry of a call that is about to be sent; the statement that stores the result stores it."""
        entry = self._begun(index, str(call.operation))
        describe(entry, await self._resolved(), call)
        return entry

    async def lost_entry(self, index: int, operation: StoredOperation) -> Entry:
        """The audit entry of a call that an earlier attempt sent."""
        with suppress(GatewayError):  # the connector may have been deleted since
            return await self.entry(index, await self._prepared(operation))
        entry = self._begun(index, f"{operation.entity}.{operation.action}")
        entry.effect = Effect.WRITE  # only writes are in flight
        return entry

    def settled(self, entry: Entry, outcome: OperationResult | GatewayError) -> Entry:
        """The audit entry of a call that has ended; the call is counted."""
        return self._runs.settled(entry, outcome)

    def _begun(self, index: int, what: str) -> Entry:
        entry = Entry(
            what=what,
            connector_id=self._job.connector_id,
            kind=self._job.kind,
            request_id=self._job.request_id,
            call_id=uuid5(self._job.id, str(index)),
        )
        entry.acted(self._job)
        entry.policies = list(self._policies.pop(index, ())) or None
        if index in self._approved and self._job.approval is not None:
            entry.approval_id = UUID(self._job.approval["id"])
        return entry

    async def run(self, call: PreparedCall, context: InMemoryRunContext) -> OperationResult:
        """Run a call until it has a result; raises GatewayError."""
        resolved = await self._resolved()
        taken = await self._spending.take(self._job, resolved.record, call)
        async with taken.until_failed():
            answer = await self._runs.run_call(resolved, call, context)
        await taken.returned(answer)
        return answer

    async def run_bulk(self, calls: Sequence[PreparedCall], context: InMemoryRunContext) -> list[Outcome]:
        """Run the calls of one group by one request; raises UpstreamRateLimited and Unavailable."""
        resolved = await self._resolved()
        taken: list[Taken] = []
        try:
            for call in calls:
                taken.append(await self._spending.take(self._job, resolved.record, call))
            outcomes = await self._runs.run_bulk(resolved, calls, context)
        except GatewayError:
            await give_back(taken)
            raise
        await give_back([each for each, outcome in zip(taken, outcomes, strict=True) if outcome is None])
        for each, outcome in zip(taken, outcomes, strict=True):
            if isinstance(outcome, OperationResult):
                await each.returned(outcome)
        return outcomes

    async def _resolved(self) -> ResolvedConnector:
        assert self._job.connector_id is not None
        current = await self._connectors.get(self._job.organization_id, self._job.connector_id)
        current.require_active()
        return current


def _call(kind: Kind, operation: StoredOperation) -> PreparedCall:
    """The call of params that were validated when the batch was received."""
    kind_operation = kind.operation(operation.entity, operation.action)
    return PreparedCall.of(kind_operation, operation.params, limit=operation.limit)


def _call_of(kind: Kind, operation: StoredOperation) -> PreparedCall | None:
    """The call of an operation; None if the kind no longer has it."""
    try:
        return _call(kind, operation)
    except GatewayError:
        return None
