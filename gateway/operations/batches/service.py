"""The use case: accept a batch as a job, and run it on a worker."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import msgspec

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.batches import BatchCall, ReceivedOperation
from gateway.errors import GatewayError, IdempotencyMismatch, RateLimited
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.sealing import JobKey, JobSealing
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import AcceptedJob, IdempotencyKey, JobStore
from gateway.jobs.tasks import BATCH
from gateway.operations.approvals.gate import ApprovalGate
from gateway.operations.batches.calls import BatchCalls
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.intake import Intake
from gateway.operations.batches.model import BatchJob
from gateway.operations.batches.run import BatchRun
from gateway.operations.permission import Permission
from gateway.operations.runs import OperationRuns
from gateway.operations.spending import Spending
from gateway.upstream.responses import OperationResult


class Batches:
    """Batches of all connectors."""

    def __init__(
        self,
        audit: Audit,
        connectors: ConnectorResolver,
        permission: Permission,
        spending: Spending,
        gate: ApprovalGate,
        runs: OperationRuns,
        jobs: JobStore,
        inputs: BatchInputs,
        sealing: JobSealing,
        acceptance: JobAcceptance,
        *,
        idempotency_seconds: int,
    ) -> None:
        self._audit = audit
        self._connectors = connectors
        self._permission = permission
        self._spending = spending
        self._gate = gate
        self._runs = runs
        self._jobs = jobs
        self._inputs = inputs
        self._sealing = sealing
        self._acceptance = acceptance
        self._idempotency_seconds = idempotency_seconds

    async def require_connector(self, caller: Caller, connector_id: UUID) -> None:
        """Raise NotFound or ConnectorNotReady before a body is read."""
        (await self._connectors.get_for(caller, connector_id)).require_active()

    async def accept(self, caller: Caller, call: BatchCall, received: AsyncIterator[ReceivedOperation]) -> AcceptedJob:
        """Check and store every operation, then accept the job that runs them.

        Raises InvalidParams with the faults of all operations, NotFound, ConnectorNotReady, InsufficientScope,
        RateLimited and IdempotencyMismatch. `is_new` is false if the idempotency key was used for an earlier job.
        """
        with self._audit.record("batch", caller, connector_id=call.connector_id) as entry:
            resolved = await self._connectors.get_for(caller, call.connector_id)
            resolved.require_active()
            key = self._sealing.new_key(caller.organization_id, uuid4())
            try:
                new, idempotency = await self._receive(caller, call, resolved, key, received)
            except BaseException:
                await self._discard(key)
                raise
            try:
                accepted = await self._acceptance.accept(new, idempotency, needs_connector=True)
            except (RateLimited, IdempotencyMismatch):
                await self._discard(key)
                raise
            if not accepted.is_new:
                await self._discard(key)
            entry.accept(call_id_of(accepted.job, is_new=accepted.is_new))
        return accepted

    async def _receive(
        self,
        caller: Caller,
        call: BatchCall,
        resolved: ResolvedConnector,
        key: JobKey,
        received: AsyncIterator[ReceivedOperation],
    ) -> tuple[NewJob, IdempotencyKey | None]:
        intake = Intake(
            caller=caller,
            resolved=resolved,
            permission=self._permission,
            options=call.options,
            limit=call.limit,
            inputs=self._inputs,
            key=key,
        )
        async for operation in received:
            await intake.add(operation)
        await intake.end()
        idempotency = _idempotency_key(call, intake, self._idempotency_seconds)
        return _new_job(caller, call, resolved, key, intake), idempotency

    async def _discard(self, key: JobKey) -> None:
        """Delete stored operations that no job runs; those that cannot be deleted now are pruned."""
        with contextlib.suppress(GatewayError):
            await self._inputs.discard(key)

    async def run_job(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Run a batch's job on a worker; raises GatewayError."""
        options = msgspec.convert(job.params, BatchJob)
        calls = BatchCalls(
            connectors=self._connectors,
            permission=self._permission,
            spending=self._spending,
            gate=self._gate,
            runs=self._runs,
            job=job,
            options=options,
        )
        await calls.approve(self._inputs.operations(job, options.total))
        return await BatchRun(
            calls=calls, options=options, inputs=self._inputs, jobs=self._jobs, job=job, run_context=run_context
        ).all()


def _new_job(caller: Caller, call: BatchCall, resolved: ResolvedConnector, key: JobKey, intake: Intake) -> NewJob:
    record, options = resolved.record, call.options
    params = BatchJob(options.concurrency, options.stop_on_error, options.steps, intake.total)
    return NewJob(
        id=key.id,
        organization_id=record.organization_id,
        client_id=caller.client_id,
        session=caller.session,
        connector_id=record.id,
        workspace_name=record.workspace_name,
        task=BATCH.name,
        kind=record.kind,
        params=msgspec.to_builtins(params),
        effect=intake.effect,
        request_id=call.request_id,
        token_hash=call.token_hash,
        callback=call.callback,
        key_id=key.key_id,
        wrapped_key=key.wrapped_key,
    )


def _idempotency_key(call: BatchCall, intake: Intake, seconds: int) -> IdempotencyKey | None:
    if call.idempotency_key is None:
        return None
    fingerprint = intake.fingerprint()
    if call.callback is not None:
        fingerprint = hashlib.sha256(fingerprint + call.callback.bytes).digest()
    return IdempotencyKey(call.idempotency_key, fingerprint, seconds)
