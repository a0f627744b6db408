"""Runs a batch on a worker: requests run concurrently, and each result is stored before another request takes its slot.

The job's state is the journal. A write is added to it before the first byte is sent, and removed with its result. After
a kill, the next attempt runs the operations that have not ended, and a write that was in flight ends `unknown`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.access.audit.entry import Entry
from gateway.contract.kinds import Effect
from gateway.errors import (
    Conflict,
    ConnectorNotReady,
    GatewayError,
    InternalError,
    JobCanceled,
    NotFound,
    OutcomeUnknown,
    ReauthorizationRequired,
    Unavailable,
    UpstreamInvalidResponse,
    with_unknown_outcome,
)
from gateway.foundation import payloads
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.telemetry.metrics import BATCH_OPERATIONS
from gateway.jobs.leases import LostLease
from gateway.jobs.model import StoredJob
from gateway.jobs.outcome import MAYBE, is_requeued
from gateway.jobs.run_context import JobRunContext
from gateway.jobs.store import JobStore
from gateway.operations.batches.calls import BatchCalls
from gateway.operations.batches.grouping import Numbered
from gateway.operations.batches.inputs import BatchInputs
from gateway.operations.batches.journal import Journal, parts_of
from gateway.operations.batches.model import BatchJob, ItemResult, ItemStatus, StoredOperation
from gateway.operations.batches.step_values import StepValues
from gateway.upstream.bulk import Outcome
from gateway.upstream.responses import NULL, OperationResult
from gateway.upstream.run_context import Effects, InMemoryRunContext

log = logging.getLogger(__name__)

#: seconds after which a batch is requeued, so that other jobs get its slot
_TURN = 3600.0
#: changes of the journal that one statement stores
_MAX_CHANGES = 1000
#: maximum concurrent bulk requests, whose results are in memory until they are stored
_MAX_BULK = 10
#: bytes of a step's result whose values are found in a thread
_LARGE = 64 << 10
#: the members of a step's stored result that references need
_STEP_MEMBERS = ("id", "status", "result")


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of the journal: writes about to be sent, writes that were not sent, and results of operations."""

    #: their intents are among the entries
    intended: Sequence[int] = ()
    #: whether the next attempt repeats those that have no end
    is_repeatable: bool = False
    cleared: Sequence[int] = ()
    ended: Sequence[ItemResult] = ()
    #: the audit entries of the operations that are about to be sent, or were
    entries: Sequence[Entry] = ()


class _RequestRunContext(InMemoryRunContext):
    """The run context of one request: only the intents of its writes, and whether they are in flight, are stored."""

    def __init__(self, commit: Callable[[_Change], Awaitable[None]], indexes: Sequence[int]) -> None:
        super().__init__()
        self._commit = commit
        self._indexes = indexes
        #: the effect of the call; only a write must not be sent twice
        self.effect = Effect.READ
        self.is_in_flight = False
        #: the audit entry of each call, once it is prepared
        self.entries: Sequence[Entry] = ()

    async def mark_in_flight(self) -> None:
        if self.effect is Effect.READ or self.is_in_flight:
            return
        intents = [replace(entry, entry_kind="intent", at=CLOCK.unix_time()) for entry in self.entries]
        await self._commit(_Change(intended=self._indexes, is_repeatable=self.is_repeatable, entries=intents))
        self.is_in_flight = True

    async def checkpoint(
        self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None, *, answers: int = 0
    ) -> None:
        """Keep the state; a long operation that saves what it is about to start has it marked as in flight too."""
        if Effects.of(state).is_open:
            await self.mark_in_flight()
        await super().checkpoint(state, records, part, answers=answers)

    @property
    def is_repeatable(self) -> bool:
        """Whether sending the calls again does no harm."""
        return self.effect is not Effect.WRITE

    async def clear_in_flight(self) -> None:
        if self.is_in_flight:
            await self._commit(_Change(cleared=self._indexes))
            self.is_in_flight = False


class BatchRun:
    """One attempt of a batch's job."""

    def __init__(
        self,
        calls: BatchCalls,
        options: BatchJob,
        inputs: BatchInputs,
        jobs: JobStore,
        job: StoredJob,
        run_context: JobRunContext,
    ) -> None:
        self._calls = calls
        self._inputs = inputs
        self._jobs = jobs
        self._job = job
        self._options = options
        self._run_context = run_context
        self._journal = Journal.of(run_context.state, self._options.total)
        self._commit: Batcher[_Change, None] = Batcher(self._commit_all, max_batch=_MAX_CHANGES, concurrency=1)
        self._reading = asyncio.Lock()
        self._width = 1 if options.steps else options.concurrency
        #: limits concurrent requests
        self._room = asyncio.Semaphore(self._width)
        #: limits bulk requests whose results are in memory
        self._bulk_room = asyncio.Semaphore(_MAX_BULK)
        self._turn_ends_at = time.monotonic() + _TURN
        #: why this attempt sends nothing more; the job waits and continues later
        self._interruption: GatewayError | None = None
        #: whether nothing more is sent at all
        self._is_ended = False
        #: the values that steps refer to
        self._values = StepValues()

    async def all(self) -> OperationResult:
        """Run the operations that have not ended; returns the head of the result, whose lines are stored.

        Raises JobCanceled if it was canceled, and UpstreamRateLimited or Unavailable if it continues later.
        """
        await self._read_steps()
        await self._end_lost()
        self._is_ended = self._options.stop_on_error and self._journal.has_failures
        if not self._run_context.is_canceled:
            await self._run_all(self._pending())
        is_complete = self._journal.done == self._options.total
        if self._interruption is not None and not self._run_context.is_canceled and not is_complete:
            raise self._interruption
        is_canceled = self._run_context.is_canceled and not is_complete
        await self._skip_rest()
        await self._progress()
        if is_canceled:
            raise JobCanceled("canceled while it ran")
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(self._journal.head())), collected="results")

    async def _read_steps(self) -> None:
        """Read which values the steps refer to, and those in the results that an earlier attempt stored."""
        if not self._options.steps:
            return
        async for _, operation in self._inputs.operations(self._job, self._options.total):
            self._values.expect(operation.params)
        async for part in self._jobs.lines(self._job, self._job.parts):
            for line in part.rstrip("\n").split("\n"):
                stored = payloads.members_of(line.encode(), _STEP_MEMBERS)
                if "id" in stored and payloads.value(stored["status"]) == ItemStatus.SUCCEEDED:
                    await self._keep(payloads.value(stored["id"]), stored.get("result", NULL))

    async def _keep(self, step: str, result: msgspec.Raw) -> None:
        """Keep what other steps refer to; the step has succeeded, also if nothing can be found in its result."""
        with suppress(UpstreamInvalidResponse):
            if len(memoryview(result)) > _LARGE:
                await in_thread(partial(self._values.keep, step), result)
            else:
                self._values.keep(step, result)

    async def _end_lost(self) -> None:
        """End the writes that an earlier attempt had in flight as `unknown`, because their responses are lost."""
        for index in sorted(self._journal.in_flight):
            operation, error = await self._inputs.operation(self._job, index), _lost()
            ended = ItemResult.of(index, operation, ItemStatus.UNKNOWN, error)
            entry = await self._calls.lost_entry(index, operation)
            await self._commit(_Change(ended=[ended], entries=[self._settled(index, entry, error)]))

    async def _run_all(self, groups: AsyncGenerator[list[Numbered], None]) -> None:
        """Run groups of operations until there are no more; `_room` limits concurrent requests."""
        try:
            async with aclosing(groups), asyncio.TaskGroup() as slots:
                for _ in range(min(self._width, self._options.total)):
                    slots.create_task(self._take_turns(groups))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _pending(self) -> AsyncGenerator[list[Numbered], None]:
        """The operations that have not ended, grouped within each stored part."""
        first = next((gap.start for gap in self._journal.gaps() if gap), self._options.total)
        async with aclosing(self._inputs.parts(self._job, self._options.total, first)) as parts:
            async for part in parts:
                unfinished = [numbered for numbered in part if not self._journal.is_done(numbered[0])]
                for group in await self._calls.groups(unfinished):
                    yield group

    async def _take_turns(self, groups: AsyncIterator[list[Numbered]]) -> None:
        while not self._stops():
            async with self._reading:
                taken = await anext(groups, None)
            if taken is None:
                return
            if not self._stops():
                await (self._run_group(taken) if len(taken) > 1 else self._run_one(*taken[0]))
                await self._progress()

    def _stops(self) -> bool:
        """Whether nothing more is sent in this attempt."""
        if self._run_context.stopping.is_set() and self._interruption is None:
            self._interruption = Unavailable("the worker shuts down; another continues the batch")
        elif time.monotonic() > self._turn_ends_at and self._interruption is None:
            self._interruption = Unavailable("the batch waits for its next turn")
        return self._is_ended or self._interruption is not None

    async def _run_group(self, group: Sequence[Numbered]) -> None:
        """Send one request for many operations; those that it does not answer are sent one by one."""
        async with self._bulk_room:
            context = _RequestRunContext(self._commit, [index for index, _ in group])
            outcomes = await self._bulk_outcomes(group, context)
            if outcomes is None:
                return
            pairs = list(zip(group, outcomes, strict=True))
            ended = [self._ended(*numbered, outcome) for numbered, outcome in pairs if outcome is not None]
            rest = [numbered for numbered, outcome in pairs if outcome is None]
            sent = zip(group, context.entries, outcomes, strict=False)  # no entries if a call could not be prepared
            entries = [
                self._settled(index, entry, outcome) for (index, _), entry, outcome in sent if outcome is not None
            ]
            await self._commit(_Change(cleared=[index for index, _ in rest], ended=ended, entries=entries))
        if rest:
            await self._run_all(_one_by_one(rest))

    async def _bulk_outcomes(self, group: Sequence[Numbered], context: _RequestRunContext) -> Sequence[Outcome] | None:
        """The outcome of each operation of a bulk request; None if the batch continues later."""
        try:
            async with self._room:
                calls = [await self._calls.prepared(index, operation) for index, operation in group]
                context.effect = calls[0].effect
                context.entries = [
                    await self._calls.entry(index, call) for (index, _), call in zip(group, calls, strict=True)
                ]
                return await self._calls.run_bulk(calls, context)
        except GatewayError as error:
            await context.clear_in_flight()
            if is_requeued(self._job, error, None):
                self._interruption = error
                return None
            return [None] * len(group)  # nothing was sent; each operation ends with the error of its call
        except LostLease:
            raise
        except Exception:
            log.exception("a bulk request of a batch failed because of a bug", extra={"job_id": str(self._job.id)})
            unknown = with_unknown_outcome(InternalError(), {"request_sent": MAYBE}, safe_to_retry=False)
            return [unknown if context.is_in_flight and not context.is_repeatable else None] * len(group)

    async def _run_one(self, index: int, operation: StoredOperation) -> None:
        context = _RequestRunContext(self._commit, [index])
        try:
            skipped = self._lacks(operation)
            async with self._room:
                answer = None if skipped else await self._answer(index, operation, context)
        except GatewayError as error:
            if is_requeued(self._job, error, None) and not error.is_outcome_unknown:
                await context.clear_in_flight()
                self._interruption = error
                return
            outcome: OperationResult | GatewayError = error
            ended = self._ended(index, operation, error)
        except LostLease:
            raise
        except Exception:
            log.exception("an operation of a batch failed because of a bug", extra={"job_id": str(self._job.id)})
            outcome = InternalError()
            if context.is_in_flight and not context.is_repeatable:
                outcome = with_unknown_outcome(outcome, {"request_sent": MAYBE}, safe_to_retry=False)
            ended = self._ended(index, operation, outcome)
        else:
            if answer is None:
                await self._commit(_Change(ended=[ItemResult.of(index, operation, ItemStatus.SKIPPED, skipped)]))
                return
            outcome = answer
            ended = self._ended(index, operation, answer)
        entries = [self._settled(index, entry, outcome) for entry in context.entries]
        await self._commit(_Change(ended=[ended], entries=entries))

    def _settled(self, index: int, entry: Entry, outcome: OperationResult | GatewayError) -> Entry:
        """The audit entry at the end of an operation: the settlement, if an intent precedes it."""
        if index in self._journal.intended:
            entry.entry_kind = "settlement"
        return self._calls.settled(entry, outcome)

    def _ended(self, index: int, operation: StoredOperation, outcome: OperationResult | GatewayError) -> ItemResult:
        """The result of an operation that was sent; an error may end the batch."""
        if isinstance(outcome, OperationResult):
            return ItemResult.of(index, operation, ItemStatus.SUCCEEDED, answer=outcome)
        self._is_ended = self._is_ended or self._options.stop_on_error or _is_of_connector(outcome)
        status = ItemStatus.UNKNOWN if outcome.is_outcome_unknown else ItemStatus.FAILED
        return ItemResult.of(index, operation, status, outcome)

    async def _answer(self, index: int, operation: StoredOperation, context: _RequestRunContext) -> OperationResult:
        if self._options.steps:
            operation = replace(operation, params=self._values.filled(operation.params))
        call = await self._calls.prepared(index, operation)
        context.effect = call.effect
        context.entries = [await self._calls.entry(index, call)]
        answer = await self._calls.run(call, context)
        if self._options.steps and operation.id is not None:
            await self._keep(operation.id, answer.result)
        return answer

    def _lacks(self, operation: StoredOperation) -> GatewayError | None:
        """The error if a step refers to the result of a step that did not succeed."""
        if not self._options.steps:
            return None
        missing = self._values.missing(operation.params)
        return None if missing is None else Conflict(f"skipped: step {missing!r} did not succeed")

    async def _skip_rest(self) -> None:
        """Store a result for every operation that was not sent."""
        for gap in list(self._journal.gaps()):
            skipped, entries = [], []
            async for index, operation in self._inputs.operations(self._job, gap.stop, gap.start):
                is_open = index in self._journal.repeatable  # an earlier attempt may have sent it
                error = (
                    _lost(is_repeatable=True)
                    if is_open
                    else JobCanceled("the batch ended before this operation was sent again")
                )
                if index in self._journal.intended:
                    entries.append(self._settled(index, await self._calls.lost_entry(index, operation), error))
                status = ItemStatus.UNKNOWN if is_open else ItemStatus.SKIPPED
                skipped.append(ItemResult.of(index, operation, status, error if is_open else None))
            await self._commit_all([_Change(ended=skipped, entries=entries)])

    async def _commit_all(self, changes: Sequence[_Change]) -> Sequence[None]:
        """Store the changes since the last commit in one statement; later changes are stored by the next one."""
        lines = {}
        for change in changes:
            self._journal.begin(change.intended, is_repeatable=change.is_repeatable)
            for index in change.cleared:
                self._journal.clear(index)
            for ended in change.ended:
                self._journal.finish(ended.index, ended.status)
                BATCH_OPERATIONS.add(self._job.kind or "", ended.status)
                lines[ended.index] = ended.line()
        entries = [entry for change in changes for entry in change.entries]
        await self._run_context.save(self._journal.document(), parts_of(lines), entries=entries)
        return [None] * len(changes)

    async def _progress(self) -> None:
        await self._run_context.progress(self._journal.done, self._options.total, self._journal.summary)


async def _one_by_one(operations: Sequence[Numbered]) -> AsyncGenerator[list[Numbered], None]:
    for numbered in operations:
        yield [numbered]


def _lost(*, is_repeatable: bool = False) -> OutcomeUnknown:
    return OutcomeUnknown(
        "the worker was lost while the write was in flight; look it up before sending it again",
        extra={"outcome": "unknown", "known": {"request_sent": MAYBE}, "safe_to_retry": is_repeatable},
    )


def _is_of_connector(error: GatewayError) -> bool:
    """Whether all further operations would be refused: the connector was deleted, or needs a person."""
    return type(error) is NotFound or isinstance(error, ConnectorNotReady | ReauthorizationRequired)
