"""Runs operations: with accounting, audit entries of writes, checkpoints, stored files, and copies."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from uuid import UUID, uuid4

import msgspec

from gateway.access.audit.entry import Entry, outcome_of
from gateway.access.audit.log import Audit
from gateway.access.policy.model import Decision, Verdict
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.context_store.sync.write_through import Write, WriteThrough
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.errors import GatewayError, Unavailable, UpstreamInvalidResponse, UpstreamRateLimited
from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.stored_files.store import StoredFiles
from gateway.operations.accounting import Accounted, describe_created
from gateway.operations.approvals.gate import ApprovalGate, each_of, is_approved, is_taken
from gateway.operations.permission import Permission
from gateway.operations.response_cache import AuditedWrite, ResponseCache
from gateway.operations.spending import Spending, Taken
from gateway.upstream import bulk
from gateway.upstream.bulk import Outcome
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.field_selection import FieldSelection, selected_of
from gateway.upstream.http_ranges.ranges import RangeRequest
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.responses import OperationResult
from gateway.upstream.retries import answer_lost
from gateway.upstream.run_context import InMemoryRunContext
from gateway.upstream.withheld import withheld, without_text


class OperationRuns:
    """Runs of operations: writes of inline calls, jobs on workers, and the calls of a batch."""

    def __init__(
        self,
        audit: Audit,
        connectors: ConnectorResolver,
        permission: Permission,
        spending: Spending,
        gate: ApprovalGate,
        files: StoredFiles,
        write_through: WriteThrough,
        cache: ResponseCache,
    ) -> None:
        self._audit = audit
        self._connectors = connectors
        self._permission = permission
        self._spending = spending
        self._gate = gate
        self._files = files
        self._write_through = write_through
        self._cache = cache

    async def run_call(
        self, resolved: ResolvedConnector, call: PreparedCall, run_context: InMemoryRunContext
    ) -> OperationResult:
        """Run one of the calls of a job, which stores its audit entry; the whole answer; raises GatewayError."""
        with Accounted(resolved=resolved, operation=call.operation):
            with withheld(call.redact):
                if call.effect is Effect.READ:
                    answer = await resolved.connector.run_to_end(call, run_context)
                else:
                    answer = await self.write(resolved, call, lambda: resolved.connector.run_to_end(call, run_context))
            return await selected_of(call.effect, answer, FieldSelection(limit=call.limit, redact=call.redact))

    async def run_bulk(
        self, resolved: ResolvedConnector, calls: Sequence[PreparedCall], run_context: InMemoryRunContext
    ) -> list[Outcome]:
        """Run the calls of one group by one request; None for a call that must be sent separately.

        Raises UpstreamRateLimited and Unavailable, after which nothing was done.
        """
        started = time.monotonic()
        if calls[0].effect is Effect.READ:
            outcomes = await _sent(resolved, calls, run_context)
        else:
            outcomes = await self._written(resolved, calls, run_context)
        outcomes = [await _redacted(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
        for call, outcome in zip(calls, outcomes, strict=True):
            with (
                suppress(GatewayError),
                Accounted(resolved=resolved, operation=call.operation, started=started) as accounted,
            ):
                accounted.is_counted = outcome is not None
                if isinstance(outcome, GatewayError):
                    raise outcome
        return outcomes

    async def _written(
        self, resolved: ResolvedConnector, calls: Sequence[PreparedCall], run_context: InMemoryRunContext
    ) -> list[Outcome]:
        """The outcomes of writes, with the synchronized copy updated."""
        record = resolved.record
        async with self._cache.writing(record.id):
            outcomes = await _sent(resolved, calls, run_context)
            for call, outcome in zip(calls, outcomes, strict=True):
                if isinstance(outcome, OperationResult):
                    write = Write(call.operation, call.params, outcome)
                    await self._write_through.apply_write(record.organization_id, record.id, resolved.connector, write)
        return outcomes

    async def run_job(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Run a job's operation on a worker, with checkpoints; raises GatewayError.

        The policies of now decide, which may have changed since the job was accepted. A write that an earlier attempt
        has begun is finished, an approved one only as it was approved.
        """
        self._gate.require_valid(job)
        resolved, call = await self._job_call(job)
        selection, is_new = FieldSelection(**job.selection), False
        if call.effect is Effect.READ or not job.state:
            decision, is_new = await self._permit(job, resolved, call, run_context)
            selection = selection.redacting(decision.redact)
        else:
            selection = selection.redacting(await self._redacted_paths(job, resolved))
            approval = await self._gate.released(job)
            if approval is not None:
                await self._gate.resume(job, resolved, each_of([call]), approval)
        with Accounted(resolved=resolved, operation=call.operation):
            taken = await self._taken(job, resolved, call, is_new=is_new)
            answer = await self._ran(resolved, call, job, run_context, selection)
            await taken.returned(answer)
        return answer

    async def _permit(
        self, job: StoredJob, resolved: ResolvedConnector, call: PreparedCall, run_context: JobRunContext
    ) -> tuple[Decision, bool]:
        """The decision, and whether no earlier attempt took the call from budgets.

        Raises DeniedByPolicy, JobWaits until a person has approved the call, and ApprovalChanged.
        """
        approval = await self._gate.released(job)
        is_new = not is_taken(job, approval)
        decision = await self._permission.require_call(
            job,
            resolved.record,
            call,
            job.surface,
            may_wait=job.surface is not Surface.NOTICE,  # else the notice of an approval would need another one
            is_counted=not is_new,
            is_approved=is_approved(job),
        )
        await run_context.decided(decision.policies)
        # A policy may read that the call is approved and demand nothing more; only what was approved may go on then.
        if decision.verdict is not Verdict.APPROVE and not is_approved(job):
            return decision, is_new
        if approval is not None:
            await self._gate.resume(job, resolved, each_of([call]), approval)
        else:
            await self._gate.require(job, resolved, each_of([call]), decision.approvals)
        return decision, is_new

    async def _redacted_paths(self, job: StoredJob, resolved: ResolvedConnector) -> Sequence[str]:
        """The paths that some call of the job's operation redacts; those of a schedule or a retry are not stored."""
        entity, action = job.entity or "", job.action or ""
        return await self._permission.redacted_paths(job, resolved.record, resolved.connector.kind, entity, action)

    async def _taken(self, job: StoredJob, resolved: ResolvedConnector, call: PreparedCall, *, is_new: bool) -> Taken:
        """Take the call of a job that was not taken when it was accepted: that of a schedule, a notice or a retry is
        taken when it starts, and one that needed an approval when it goes on.
        """
        if is_new:
            return await self._spending.take(job, resolved.record, call)
        is_write = call.effect is not Effect.READ
        return self._spending.untaken(job, resolved.record, str(call.operation), call.params, is_write=is_write)

    async def run_inline(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        """Run a job for a caller that waits; the call that accepted it does the accounting."""
        resolved, call = await self._job_call(job)
        return await self._ran(resolved, call, job, run_context, FieldSelection(**job.selection))

    async def _job_call(self, job: StoredJob) -> tuple[ResolvedConnector, PreparedCall]:
        """The connector of a job and the engine's call; raises NotFound, ConnectorNotReady and InvalidParams."""
        assert job.connector_id is not None
        resolved = await self._connectors.get(job.organization_id, job.connector_id)
        resolved.require_active()
        operation = resolved.connector.kind.operation(job.entity or "", job.action or "")
        if job.surface is Surface.NOTICE:  # its params were checked with examples in place of names
            return resolved, prepare(operation, job.params)
        return resolved, PreparedCall.of(operation, job.params)

    async def _ran(
        self,
        resolved: ResolvedConnector,
        call: PreparedCall,
        job: StoredJob,
        run_context: JobRunContext,
        selection: FieldSelection,
    ) -> OperationResult:
        with withheld(selection.redact):
            if call.operation.is_download:
                return await self._store(resolved.connector, call, job, run_context)
            return await self._answer(resolved, call, run_context, selection)

    async def _answer(
        self,
        resolved: ResolvedConnector,
        call: PreparedCall,
        run_context: JobRunContext,
        selection: FieldSelection,
    ) -> OperationResult:
        run = partial(resolved.connector.run, call, run_context, selection)
        answer = await (run() if call.effect is Effect.READ else self.write(resolved, call, run))
        return await selected_of(call.effect, answer, selection)

    async def _store(
        self, connector: UpstreamConnector, call: PreparedCall, job: StoredJob, run_context: JobRunContext
    ) -> OperationResult:
        """Store the whole file, whatever range the call names: the result serves any range of it."""
        async with connector.open_file(call, RangeRequest()) as file:
            stored_file = await self._files.save(job.organization_id, job.id, job.fence, file, run_context)
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(stored_file)))

    async def write(
        self,
        resolved: ResolvedConnector,
        call: PreparedCall,
        work: Callable[[], Awaitable[OperationResult]],
        entry: Entry | None = None,
        *,
        call_id: UUID | None = None,
        is_final: Callable[[BaseException], bool] = lambda _: True,
    ) -> OperationResult:
        """The answer of a write; the synchronized copy is updated before the caller gets it.

        No process caches an answer of the connector until the write has ended, whatever its outcome. Raises
        Unavailable before the write if PostgreSQL is unavailable.

        With an entry, its intent is committed before the write and its settlement after it. A write that ends with an
        error that is not final continues later under the same `call_id`.
        """
        audited = None
        if entry is not None:
            audited = AuditedWrite(entry.intent_of(call_id or uuid4()), self._audit.note)
        async with self._cache.writing(resolved.record.id, audited):
            try:
                answer = await work()
                record, write = resolved.record, Write(call.operation, call.params, answer)
                await self._write_through.apply_write(record.organization_id, record.id, resolved.connector, write)
            except BaseException as error:
                if audited is not None and is_final(error):
                    audited.settlement = entry and self.settled(entry, error)
                raise
            if audited is not None:
                audited.settlement = entry and self.settled(entry, answer)
        return answer

    def settled(self, entry: Entry, outcome: OperationResult | BaseException) -> Entry:
        """The audit entry of a call that has ended, for the statement that stores it; the call is counted."""
        if isinstance(outcome, BaseException):
            entry.settle(outcome_of(outcome))
        else:
            if entry.changed is not None:
                describe_created(entry, outcome.result)
            entry.settle("succeeded")
        self._audit.count(entry)
        return entry


async def _redacted(call: PreparedCall, outcome: Outcome) -> Outcome:
    """The outcome of one call without what policies redact; an error for the result of a read that cannot be read."""
    if isinstance(outcome, OperationResult):
        try:
            return await selected_of(call.effect, outcome, FieldSelection(redact=call.redact))
        except UpstreamInvalidResponse as error:
            outcome = error
    return without_text(outcome) if outcome is not None and call.redact else outcome


async def _sent(
    resolved: ResolvedConnector, calls: Sequence[PreparedCall], run_context: InMemoryRunContext
) -> list[Outcome]:
    try:
        answer = await resolved.connector.run_to_end(bulk.bulk_call(calls), run_context)
    except (UpstreamRateLimited, Unavailable):
        raise
    except GatewayError as error:
        return bulk.outcomes_of_error(calls, error)
    try:
        return bulk.outcomes(calls, answer)
    except UpstreamInvalidResponse as error:
        return bulk.outcomes_of_error(calls, answer_lost(calls[0].effect, error))
