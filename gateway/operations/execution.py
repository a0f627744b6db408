"""The use case of a call: find the connector, run the operation inline or as a job, and apply the idempotency key."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import replace

from gateway.access.audit.entry import Entry
from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller
from gateway.access.policy.model import Verdict
from gateway.connectors.resolver import ConnectorResolver, ResolvedConnector
from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    IdempotencyInFlight,
    InternalError,
    NotCached,
    NotFound,
    Unavailable,
    with_unknown_outcome,
)
from gateway.foundation.aio.timeouts import start_and_wait
from gateway.jobs import results
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.model import JobSummary, NewJob, StoredJob
from gateway.jobs.outcome import MAYBE
from gateway.jobs.runner import Runner
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import AcceptedJob, IdempotencyKey, JobStore
from gateway.jobs.waiters import JobWaiters
from gateway.operations.accounting import Accounted, describe, describe_created, recorded
from gateway.operations.call import Accepted, Done, OperationCall
from gateway.operations.permission import SCOPE_OF, Permission, require_visible
from gateway.operations.response_cache import Freshness, Key, ResponseCache, key_of
from gateway.operations.runs import OperationRuns
from gateway.operations.spending import Spending
from gateway.upstream.field_selection import EVERYTHING, FieldSelection, ensure_declared, selected, selected_of
from gateway.upstream.http_ranges.integrity import File
from gateway.upstream.http_ranges.ranges import RangeRequest
from gateway.upstream.prepared import PreparedCall, prepare
from gateway.upstream.responses import OperationResult
from gateway.upstream.upload import SourceFile, with_file
from gateway.upstream.withheld import withheld

log = logging.getLogger(__name__)


class PreparedExecution(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's request with its connector and the engine's call."""

    caller: Caller
    call: OperationCall
    resolved: ResolvedConnector
    engine_call: PreparedCall
    #: the Sunset and Deprecation headers of the answer
    sunset_headers: Mapping[str, str]
    #: the audit entry of the request
    entry: Entry
    #: whether a person must approve the call, for which its job waits
    needs_approval: bool

    @property
    def cache_key(self) -> Key:
        return key_of(self.resolved.record.id, self.engine_call)

    def new_job(self, id_: UUID | None = None, *, is_inline: bool = False) -> NewJob:
        record, operation = self.resolved.record, self.engine_call.operation
        return NewJob(
            id=id_ or uuid4(),
            organization_id=record.organization_id,
            client_id=self.caller.client.id,
            session=self.caller.session,
            connector_id=record.id,
            workspace_name=record.workspace_name,
            kind=record.kind,
            entity=operation.entity_id,
            action=operation.action_id,
            params=self.engine_call.params,
            selection=self.call.selection.as_document(),
            effect=self.engine_call.effect,
            surface=self.call.surface,
            is_inline=is_inline,
            labels=self.call.labels,
            request_id=self.call.request_id,
            find_by=operation.action.find_by,
            target=self.entry.target,
            token_hash=self.call.token_hash,
            callback=self.call.callback,
            is_counted=not self.needs_approval,
        )


class Execution:
    """Runs calls of callers."""

    def __init__(
        self,
        audit: Audit,
        connectors: ConnectorResolver,
        permission: Permission,
        spending: Spending,
        jobs: JobStore,
        acceptance: JobAcceptance,
        waiters: JobWaiters,
        runner: Runner,
        runs: OperationRuns,
        cache: ResponseCache,
        *,
        inline_budget: float,
        idempotency_seconds: int,
    ) -> None:
        self._audit = audit
        self._connectors = connectors
        self._permission = permission
        self._spending = spending
        self._jobs = jobs
        self._acceptance = acceptance
        self._waiters = waiters
        self._runner = runner
        self._runs = runs
        self._cache = cache
        self._inline_budget = inline_budget
        self._idempotency_seconds = idempotency_seconds

    async def execute(self, caller: Caller, call: OperationCall) -> Done | Accepted:
        """The answer, or the job that will have it; raises GatewayError."""
        with recorded(self._audit, caller, call) as entry:
            prepared = await self._prepare(caller, call, entry, may_wait=True)
            engine_call = prepared.engine_call
            with Accounted(resolved=prepared.resolved, operation=engine_call.operation) as accounted:
                outcome = await self._spent(prepared)
                if isinstance(outcome, Accepted):
                    entry.accept(call_id_of(outcome.job, is_new=not outcome.is_replayed))
                    accounted.outcome = "accepted"
            if isinstance(outcome, Done) and engine_call.effect is not Effect.READ:
                describe_created(entry, outcome.answer.result)
        headers = prepared.sunset_headers
        return replace(outcome, sunset_headers=headers) if headers else outcome

    async def _spent(self, prepared: PreparedExecution) -> Done | Accepted:
        """Take the call from the budgets; a repetition of an earlier call is none.

        A call that needs an approval is taken when its job goes on.
        """
        if prepared.needs_approval:
            return await self._executed(prepared)
        taken = await self._spending.take(prepared.caller, prepared.resolved.record, prepared.engine_call)
        async with taken.until_failed():
            outcome = await self._executed(prepared)
        if outcome.is_replayed:
            await taken.give_back()
        elif isinstance(outcome, Done) and not outcome.is_of_job:
            await taken.returned(outcome.answer)
        return outcome

    async def _executed(self, prepared: PreparedExecution) -> Done | Accepted:
        call = prepared.call
        if prepared.needs_approval:
            return await self._as_job(prepared)
        freshness = call.freshness if prepared.engine_call.effect is Effect.READ else None
        if freshness is None:
            return await self._requested(prepared)
        if freshness.only_if_cached:
            return await self._only_cached(prepared, freshness)
        # `respond-async` gets a job, and a key gets its first answer.
        may_hit = not call.respond_async and call.idempotency_key is None
        cached = await self._cached(prepared, freshness) if may_hit else None
        if cached is not None:
            return cached
        outcome = await self._requested(prepared)
        is_new = isinstance(outcome, Done) and not outcome.is_replayed
        return replace(outcome, cache="fwd=miss") if is_new else outcome

    async def _requested(self, prepared: PreparedExecution) -> Done | Accepted:
        """The application's answer, or the job that will have it."""
        call = prepared.call
        is_job = prepared.engine_call.operation.action.runs == "job"
        if is_job or call.respond_async or call.wait is not None:
            return await self._as_job(prepared)
        return await (self._inline(prepared) if call.idempotency_key is None else self._once(prepared))

    @asynccontextmanager
    async def download(self, caller: Caller, call: OperationCall, range_request: RangeRequest) -> AsyncIterator[File]:
        """The file that the call names, or the requested part of it, as a stream; raises GatewayError."""
        with recorded(self._audit, caller, call) as entry:
            prepared = await self._prepare(caller, call, entry)
            resolved, engine_call = prepared.resolved, prepared.engine_call
            with Accounted(resolved=resolved, operation=engine_call.operation):
                taken = await self._spending.take(caller, resolved.record, engine_call)
                self._audit.begin_read(entry)
                with withheld(prepared.call.selection.redact):
                    async with AsyncExitStack() as opened:
                        async with taken.until_failed():
                            file = await opened.enter_async_context(
                                resolved.connector.open_file(engine_call, range_request)
                            )
                        yield file

    async def upload(self, caller: Caller, call: OperationCall, file: SourceFile) -> Done:
        """The answer to a write with a file among its params, which is streamed to the application.

        Raises GatewayError; if the response is lost, its outcome is unknown.
        """
        with recorded(self._audit, caller, call) as entry:
            resolved = await self._connectors.get_for(caller, call.connector_id)
            operation = resolved.connector.kind.operation(call.entity, call.action)
            prepared = await self._prepare(caller, replace(call, params=with_file(operation, call.params, file)), entry)
            started, engine_call = time.monotonic(), prepared.engine_call
            with Accounted(resolved=resolved, operation=engine_call.operation):
                taken = await self._spending.take(caller, resolved.record, engine_call)
                redact = prepared.call.selection.redact
                async with taken.until_failed():
                    with _unknown_after_bugs(engine_call.effect), withheld(redact):
                        answer = await self._runs.write(
                            resolved, engine_call, lambda: resolved.connector.upload(engine_call, file), entry
                        )
        answer = await selected_of(engine_call.effect, answer, FieldSelection(redact=redact))
        return Done(answer=answer, took_ms=_milliseconds(started), sunset_headers=prepared.sunset_headers)

    async def dry_run(self, caller: Caller, call: OperationCall) -> list[dict[str, Any]]:
        """The requests that the call would send; nothing is sent."""
        resolved = await self._connectors.get_for(caller, call.connector_id)
        engine_call = prepare(resolved.connector.kind.operation(call.entity, call.action), call.params)
        caller.require(SCOPE_OF[engine_call.effect])
        decision = await self._permission.require_call(
            caller, resolved.record, engine_call, call.surface, may_wait=True
        )
        _require_declared(call, engine_call)
        require_visible(decision, call.selection.select_fields or ())
        return resolved.connector.preview(engine_call)

    async def _prepare(
        self, caller: Caller, call: OperationCall, entry: Entry, *, may_wait: bool = False
    ) -> PreparedExecution:
        """Validate the call and the caller's permission; raises every fault."""
        resolved = await self._connectors.get_for(caller, call.connector_id)
        engine_call = prepare(resolved.connector.kind.operation(call.entity, call.action), call.params)
        describe(entry, resolved, engine_call)
        caller.require(SCOPE_OF[engine_call.effect])
        decision = await self._permission.require_call(
            caller, resolved.record, engine_call, call.surface, may_wait=may_wait
        )
        _require_declared(call, engine_call)
        require_visible(decision, call.selection.select_fields or ())
        resolved.require_active()
        if engine_call.limit is not None or decision.redact:
            selection = replace(call.selection, limit=engine_call.limit)
            call = replace(call, selection=selection.redacting(decision.redact))
        headers_by_method = engine_call.operation.sunset_headers
        headers = headers_by_method.get(resolved.record.auth_method, headers_by_method[None])
        return PreparedExecution(
            caller=caller,
            call=call,
            resolved=resolved,
            engine_call=engine_call,
            sunset_headers=headers,
            entry=entry,
            needs_approval=decision.verdict is Verdict.APPROVE,
        )

    async def _only_cached(self, prepared: PreparedExecution, freshness: Freshness) -> Done:
        """A cached answer; raises NotCached. Neither the call nor a job asks the application."""
        cached = await self._cached(prepared, freshness)
        if cached is None:
            raise NotCached("no cached answer is fresh enough; leave out only-if-cached to ask the application")
        return cached

    async def _cached(self, prepared: PreparedExecution, freshness: Freshness) -> Done | None:
        """A cached answer that is fresh enough."""
        started = time.monotonic()
        cached = self._cache.find(prepared.cache_key, freshness.max_age)
        if cached is None:
            return None
        answer = await selected(cached.answer, prepared.call.selection)
        return Done(answer=answer, took_ms=_milliseconds(started), cache="hit", age=cached.age)

    async def _inline(self, prepared: PreparedExecution) -> Done | Accepted:
        """Run the call in this process; a read that exceeds the inline budget continues as a job."""
        started = time.monotonic()
        if prepared.engine_call.effect is not Effect.READ:
            with _unknown_after_bugs(prepared.engine_call.effect):
                return Done(answer=await self._run(prepared), took_ms=_milliseconds(started))
        self._audit.begin_read(prepared.entry)
        reading = await start_and_wait(lambda: self._run(prepared), self._inline_budget)
        if reading.done():
            return Done(answer=reading.result(), took_ms=_milliseconds(started))
        try:
            return await self._promoted(prepared, reading)
        except Unavailable:
            return Done(answer=await reading, took_ms=_milliseconds(started))

    async def _run(self, prepared: PreparedExecution) -> OperationResult:
        resolved, call, freshness = prepared.resolved, prepared.engine_call, prepared.call.freshness
        run = partial(resolved.connector.run_to_end, call)
        with withheld(prepared.call.selection.redact):
            if call.effect is not Effect.READ:
                answer = await self._runs.write(resolved, call, run, prepared.entry)
            elif freshness is None:
                answer = await run()
            else:
                answer = await self._cache.fetch(prepared.cache_key, run, freshness)
        return await selected_of(call.effect, answer, prepared.call.selection)

    async def _promoted(self, prepared: PreparedExecution, reading: "asyncio.Future[OperationResult]") -> Accepted:
        new = prepared.new_job(self._audit.promote_read(prepared.entry))
        try:
            accepted = await self._jobs.accept(new, claimed_by=self._runner.worker, needs_connector=True)
        except NotFound:
            prepared.entry.entry_kind = "event"  # there is no job
            reading.cancel()
            raise
        self._audit.forget_read(prepared.entry)
        self._runner.adopt(accepted.job, asyncio.ensure_future(self._taken(prepared, reading)))
        return Accepted(accepted.job)

    async def _taken(self, prepared: PreparedExecution, reading: "asyncio.Future[OperationResult]") -> OperationResult:
        """The answer of a read that goes on as a job, whose records are taken from budgets."""
        answer, call = await reading, prepared.engine_call
        taken = self._spending.untaken(prepared.caller, prepared.resolved.record, str(call.operation), call.params)
        await taken.returned(answer)
        return answer

    async def _as_job(self, prepared: PreparedExecution) -> Done | Accepted:
        """Accept the call as a job, notify the workers, and wait as long as the caller allows."""
        key = self._key(prepared.call)
        return await self._answered(prepared, await self._acceptance.accept(prepared.new_job(), key))

    async def submit(self, new: NewJob, call: OperationCall) -> Accepted:
        """A job whose result is a file, accepted under the call's key, once it has ended or the caller's wait is over.

        Raises RateLimited and IdempotencyMismatch.
        """
        accepted = await self._acceptance.accept(new, self._key(call))
        job: JobSummary = accepted.job
        if call.wait and not call.respond_async and not job.is_done:
            job = await self._waiters.done(job.organization_id, job.id, float(call.wait))
        return Accepted(job, not accepted.is_new)

    async def _once(self, prepared: PreparedExecution) -> Done | Accepted:
        """Run the call inline under its idempotency key: one upstream request for all retries, also across crashes."""
        key, worker, new = self._key(prepared.call), self._runner.worker, prepared.new_job(is_inline=True)
        entry = prepared.entry
        intent = None if new.effect is Effect.READ else entry.intent_of(new.id)
        try:
            accepted = await self._jobs.accept(new, key, claimed_by=worker, intent=intent)
        except BaseException:
            entry.withdraw()
            raise
        if not accepted.is_new:
            entry.withdraw()
            return await self._answered(prepared, accepted)
        entry.is_stored = intent is not None  # the statement that ends the job stores the settlement
        if not entry.is_stored:
            self._audit.begin_read(entry)
        started = time.monotonic()
        try:
            answer = await self._runner.run(accepted.job, self._runs.run_inline)
        except BaseException as error:
            if entry.is_stored:
                self._runs.settled(entry, error)
            raise
        if entry.is_stored:
            self._runs.settled(entry, answer)
        return Done(answer=answer, took_ms=_milliseconds(started))

    async def _answered(self, prepared: PreparedExecution, accepted: AcceptedJob) -> Done | Accepted:
        """The answer to a request whose job exists: a new job, or the one of the key's first use."""
        job: JobSummary = accepted.job
        is_replayed = not accepted.is_new
        prepared.entry.effect = None  # the entry at the end of the job is metered, or that of the key's first use
        if job.is_inline and not job.is_done:
            raise IdempotencyInFlight("a request with this Idempotency-Key is in flight; try again", retry_after=1)
        wait = 0.0 if prepared.call.respond_async else self._wait_of(prepared)
        if wait and not job.is_done:
            job = await self._waiters.done(job.organization_id, job.id, wait)
        # A file is the job's result and has no envelope.
        if not job.is_done or prepared.engine_call.operation.is_download:
            return Accepted(job, is_replayed)
        try:
            with withheld(prepared.call.selection.redact):
                head, lines = await self._stored(job, prepared.call.base_url)
            redact = prepared.call.selection.redact
            answer = await results.answer(*results.redacted(job.effect, head, lines, redact))
            return Done(answer=answer, took_ms=_took(job), is_replayed=is_replayed, is_of_job=True)
        except GatewayError as error:
            error.is_replayed = is_replayed
            raise

    def _wait_of(self, prepared: PreparedExecution) -> float:
        if prepared.call.wait is not None:
            return float(prepared.call.wait)
        is_quick = prepared.engine_call.effect is Effect.READ and not prepared.needs_approval
        return self._inline_budget if is_quick else 0.0

    def _key(self, call: OperationCall) -> IdempotencyKey | None:
        if call.idempotency_key is None:
            return None
        return IdempotencyKey(call.idempotency_key, call.fingerprint(), self._idempotency_seconds)

    async def _stored(self, job: JobSummary, base_url: str) -> tuple[Mapping[str, Any], AsyncIterator[str]]:
        """The result of a job that is done, its head and its lines; raises the error that the job ended with."""
        head = results.completed(results.require_result(job, await self._jobs.head(job)), job, base_url)
        return head, self._jobs.lines(job, results.stored_parts(job, head))

    async def keep(self, new: NewJob, answer: OperationResult) -> StoredJob:
        """Store a response as the result of a job, which any process can read until it expires."""
        new = replace(new, is_answer=True)
        job = (await self._jobs.accept(new, claimed_by=self._runner.worker)).job
        ready: asyncio.Future[OperationResult] = asyncio.get_running_loop().create_future()
        ready.set_result(answer)
        self._runner.adopt(job, ready)
        return job


@contextmanager
def _unknown_after_bugs(effect: Effect) -> Iterator[None]:
    """Within the block a write whose run fails because of a bug is of unknown outcome: it may have been sent."""
    try:
        yield
    except GatewayError:
        raise
    except Exception as error:
        log.exception("a write failed because of a bug")
        known, is_safe = {"request_sent": MAYBE}, effect is Effect.IDEMPOTENT
        raise with_unknown_outcome(InternalError(), known, safe_to_retry=is_safe) from error


def _require_declared(call: OperationCall, engine_call: PreparedCall) -> None:
    """Raise InvalidParams for a selected field that the operation's records do not have."""
    if call.selection != EVERYTHING:
        operation = engine_call.operation
        ensure_declared(call.selection, str(operation), operation.fields, operation.example)


def _milliseconds(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _took(job: JobSummary) -> int:
    if job.started_at is None or job.finished_at is None:
        return 0
    return round((job.finished_at - job.started_at).total_seconds() * 1000)
