"""Runs a long operation as its spec describes it: portions side by side, each started, followed and read.

The state names what was started. The next attempt follows a portion whose start is saved, and never starts it again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    JobCanceled,
    Unavailable,
    UpstreamError,
    UpstreamFault,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamQueueFull,
    UpstreamRateLimited,
    UpstreamRejected,
    with_unknown_outcome,
)
from gateway.foundation import payloads
from gateway.foundation.aio.background import cancel_and_wait
from gateway.foundation.aio.turns import in_thread, in_turn
from gateway.kinds.long_running import RUN_ID, ItemResults
from gateway.kinds.members import value_at
from gateway.upstream.encoding import upstream_segment
from gateway.upstream.field_selection import selected_records
from gateway.upstream.long_running.cancellation import Cancellation
from gateway.upstream.long_running.item_results import (
    Line,
    entries_of,
    entry_lines,
    item_lines,
    masked,
    redacted_lines,
    refused_lines,
    unknown_lines,
    unsent_lines,
)
from gateway.upstream.long_running.operation_run import OperationRun
from gateway.upstream.long_running.portions import ITEMS, Params, Portions, ResultPosition, Tally
from gateway.upstream.long_running.result_pages import listed, result_pages
from gateway.upstream.mcp_messages import require_complete
from gateway.upstream.mcp_results import LARGE_CONTENT, checked
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.refusals import words_of
from gateway.upstream.responses import NULL, ROOT, OperationResult, raw_at
from gateway.upstream.retries import TRIES, back_off, is_refusal
from gateway.upstream.run_context import InMemoryRunContext

#: lines of item results in one stored part
_PART = 1000
#: the part numbers that each portion has
_PARTS_OF_PORTION = 10_000
#: seconds that a run waits when other jobs fill the application's queue and the application names no wait
_QUEUE_FULL_WAIT = 5
_OK = 200
_NOT_STARTED = "canceled; the rest was not started"


async def run_as_described(run: OperationRun) -> OperationResult:
    """Run an operation as the `long_running` of its spec describes it; raises GatewayError."""
    return await LongRun(run).result()


class PortionStart(InMemoryRunContext):
    """Notes that the start of one portion is in flight, so that a lost response makes only its items unknown."""

    def __init__(self, note: Callable[[bool], Awaitable[None]], on_first_byte: Callable[[], None]) -> None:
        super().__init__()
        self._note = note
        self._on_first_byte = on_first_byte

    def first_byte_sent(self) -> None:
        self._on_first_byte()

    async def mark_in_flight(self) -> None:
        await self._note(True)

    async def clear_in_flight(self) -> None:
        await self._note(False)


class LongRun:
    """One run. Started and finished portions are saved one by one, so that no portion is started twice."""

    def __init__(self, run: OperationRun) -> None:
        how = run.call.operation.action.long_running
        assert how is not None
        self._run, self._how = run, how
        self._portions = Portions(run.call, run.run_context.state)
        #: whether the result has a line for each item that the run changes
        self._has_items = how.results.items is not None and run.call.effect is not Effect.READ
        #: portions that may be sent again and whose response was lost once
        self._lost = set() if run.call.effect is Effect.WRITE else set(self._portions.starting)
        #: portion → why the application refused it
        self._refused: dict[int, GatewayError] = {}
        #: portions whose start was answered, but whose answer is not saved yet
        self._answered: set[int] = set()
        #: portions whose `close` the application refused
        self._refused_closes: set[int] = set()
        #: the result of an operation that ends with one record
        self._record: OperationResult | None = None
        self._saving = asyncio.Lock()

    async def result(self) -> OperationResult:
        """Run all portions; raises the first error after the started portions have ended."""
        await self._progress()
        if self._run.call.effect is Effect.WRITE or self._run.run_context.is_canceled:
            for number in sorted(self._portions.starting):
                await self._end_unknown(number)
        error = await self._run_portions()
        if error is not None:
            if self._has_items and self._portions.has_begun and _is_final(error):
                await self._end_rest(error)
            raise error
        if self._record is not None:
            return self._record
        if self._how.results.items is None:
            return OperationResult(result=NULL, collected=ROOT)
        document = {"status": "completed", **self._portions.summary(), ITEMS: []}
        return OperationResult(result=msgspec.Raw(msgspec.json.encode(document)), collected=ITEMS)

    async def _run_portions(self) -> GatewayError | None:
        """Run the unfinished portions, as many at a time as the application accepts; none is started after an error.

        If an open portion cannot be followed now, the error is the one that makes the run wait.
        """
        most = self._how.split.concurrency if self._how.split else 1
        error, pending = self._portions.lost_start(), deque(self._portions.unsent)
        pause: GatewayError | None = None
        running = {asyncio.create_task(self._follow(number)): number for number in self._portions.started}
        width = most
        try:
            while True:
                while pending and error is None and len(running) < width:
                    number = pending.popleft()
                    running[asyncio.create_task(self._start(number))] = number
                if not running:
                    return pause if self._portions.is_open and pause is not None else error
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    number, failure = running.pop(task), task.exception()
                    match failure:
                        case None:
                            width = min(width + 1, most)
                        case UpstreamQueueFull():
                            pending.appendleft(number)
                            width = len(running)
                            error = error if running else _rate_limited(failure)
                        case GatewayError():
                            error = failure if failure.is_outcome_unknown else error or failure
                            pause = pause if _is_final(failure) else failure
                        case _:
                            raise failure
        finally:
            await cancel_and_wait(*running)

    async def _start(self, number: int) -> None:
        """Send a portion, and follow it to its end."""
        try:
            await self._send_until_answered(number)
        except GatewayError as error:
            if number in self._portions.starting:
                await self._end_start(number, error)
            elif is_refusal(error) and not isinstance(error, JobCanceled):
                self._refused[number] = error
            raise
        if number in self._portions.started:
            await self._follow(number)

    async def _send_until_answered(self, number: int) -> None:
        """Send a portion; one that may be repeated is sent again if its response is lost."""
        for attempt in range(1, TRIES + 1):
            try:
                await self._send(number)
            except GatewayError as error:
                # An instance with an unknown outcome is never `retryable`; its class says whether another try may help.
                is_lost = number in self._portions.starting and error.is_outcome_unknown and type(error).retryable
                if not is_lost or attempt == TRIES or self._run.call.effect is Effect.WRITE:
                    raise
            else:
                return
            self._lost.add(number)
            self._run.run_context.refused()  # the next try marks it as in flight again
            await asyncio.sleep(back_off(attempt))

    async def _end_start(self, number: int, error: GatewayError) -> None:
        """End a portion whose start failed after it was marked; raises the error if its items are unknown."""
        is_write = self._run.call.effect is Effect.WRITE
        if _is_undone(error) and number not in self._lost:
            self._refused[number] = error
            await self._note_start(number, False)
        elif is_write or _is_final(error):
            if not is_write:
                self._answered.add(number)
            await self._end_unknown(number)
            raise with_unknown_outcome(error, {"request_sent": True}, safe_to_retry=not is_write) from error

    async def _send(self, number: int) -> None:
        """Send a portion; the application's id of it is saved before the first poll."""
        how, operation, params = self._how, self._run.call.operation, self._portions.inputs[number].params
        self._require_not_canceled()
        call, run_context = PreparedCall.of(operation.start, params), self._run.run_context
        if self._has_items:
            run_context = PortionStart(partial(self._note_start, number), run_context.first_byte_sent)
        try:
            answer = await self._run.session.call(call, run_context)
        except (UpstreamRejected, UpstreamNotFound):
            if how.start is None or not how.start.fallback:
                raise
            self._record = await self._run.session.call(self._run.call, self._run.run_context)
            return
        if not self._has_items or call.effect is not Effect.WRITE:
            self._answered.add(number)
        if how.start is None:
            await self._finish(number, answer, None)
            return
        try:
            run_id = value_at(answer.decoded(), how.start.id)
            if not run_id and how.start.immediate:
                self._record = await self._record_of(answer)
                return
            if not run_id:
                raise UpstreamInvalidResponse(
                    f"{operation}: the application started the operation, but its response has no id"
                )
            upstream_segment(operation, run_id)
        except UpstreamInvalidResponse as error:
            raise self._started_unseen(error) from error
        if how.upload is not None:
            await self._run.ask(operation.follow_up(how.upload), {**params, RUN_ID: str(run_id)})
            self._require_not_canceled()
        self._portions.note_started(number, str(run_id))
        await self._save()
        if how.close is not None:
            await self._close(number)

    def _started_unseen(self, error: GatewayError) -> GatewayError:
        """The error of a start that was answered, and whose answer does not let the run follow it."""
        effect = self._run.call.effect
        if effect is Effect.READ:
            return error
        return with_unknown_outcome(error, {"request_sent": True}, safe_to_retry=effect is Effect.IDEMPOTENT)

    async def _note_start(self, number: int, is_in_flight: bool) -> None:
        """Note whether the start of a portion is in flight.

        The start of a write is in the saved state, so that the next attempt does not send it again. Any other may be
        sent again, so that the mark in the job's row is enough.
        """
        note = partial(self._portions.note_start, number, is_in_flight)
        if self._run.call.effect is Effect.WRITE:
            await self._save(change=note)
            return
        run_context = self._run.run_context
        await (run_context.mark_in_flight() if is_in_flight else run_context.clear_in_flight())
        if number not in self._lost:
            note()

    async def _end_unknown(self, number: int) -> None:
        """Store the lines of a portion that may have been started, but whose id is lost."""
        await self._store_lines(number, unknown_lines(self._portions.inputs[number].items))

    async def _end_rest(self, error: GatewayError) -> None:
        """Store a line for each item of the portions that have not ended, because the run ends with an error."""
        for number in self._portions.unsent:
            items = self._portions.inputs[number].items
            if number in self._refused:
                lines, tally = refused_lines(items, self._refused[number].detail), Tally(failed=len(items))
            else:
                lines = unsent_lines(items, is_lost=error.is_outcome_unknown)
                tally = Tally(not_sent=len(items))
            await self._store_lines(number, lines, tally)
        for number in list(self._portions.started):
            await self._store_lines(number, unknown_lines(self._portions.inputs[number].items), is_open=True)

    def _require_not_canceled(self) -> None:
        if self._run.run_context.is_canceled:
            raise JobCanceled(_NOT_STARTED)

    async def _close(self, number: int) -> None:
        """Tell the application to begin; after its second refusal the portion is given up."""
        close = self._how.close
        assert close is not None
        try:
            await self._run.ask(self._run.call.operation.follow_up(close), self._portions.follow_up_params(number))
        except UpstreamRejected:
            if number in self._refused_closes:
                await self._give_up(number)
                raise
            self._refused_closes.add(number)

    async def _close_again(self, number: int) -> None:
        """Tell the application again to begin, unless the run was canceled meanwhile."""
        if self._run.run_context.is_canceled:
            await self._give_up(number)
        self._require_not_canceled()
        await self._close(number)

    async def _give_up(self, number: int) -> None:
        """Stop following a portion that the application has not begun or has failed, and save that."""
        self._portions.end(number)
        await self._save()

    async def _follow(self, number: int) -> None:
        """Poll a portion until it ends, and read its results."""
        status, operation = self._how.status, self._run.call.operation
        assert status is not None
        params, answer, reason = self._portions.follow_up_params(number), OperationResult(result=NULL), None
        cancellation, state = Cancellation(self._run, self._how.cancel, params), None
        async with cancellation.guarding():
            await cancellation.ask_if_canceled()
            async for poll in self._run.poll(operation.follow_up(status), params, status):
                answer, state = poll.answer, poll.state
                done = value_at(poll.document, status.progress) if status.progress else None
                if poll.state in status.open:
                    await self._close_again(number)
                if poll.state in status.failed:
                    message = value_at(poll.document, status.message) if status.message else None
                    reason = words_of(str(message or poll.state))
                if not poll.is_last:  # the end is reported with the results
                    await cancellation.ask_if_canceled()
                    await self._progress(partial(self._portions.note_progress, number, done))
        if state in status.waiting:
            await cancellation.ask()
        if state in (*status.waiting, *status.canceled):
            raise await self._stopped(number, is_waiting=state in status.waiting)
        if reason is not None and self._how.results.items is None:
            await self._give_up(number)
            raise await self._failure(params, reason)
        await self._finish(number, answer, reason)

    async def _stopped(self, number: int, *, is_waiting: bool) -> GatewayError:
        """The error of a portion that the application has ended without a result; it may have done a part of it."""
        self._portions.note_stopped(number)
        await self._save()
        operation = self._run.call.operation
        if is_waiting:
            return UpstreamRejected(f"{operation}: it asked a person for input, which the gateway cannot pass on")
        if self._run.run_context.is_canceled:
            return JobCanceled("canceled while the application ran it")
        return UpstreamRejected(f"{operation}: the application canceled it")

    async def _failure(self, params: Params, reason: str) -> GatewayError:
        """The error of an operation that failed: what its response says, or else the reason beside its state."""
        operation, request = self._run.call.operation, self._how.results.request
        if request is not None:
            try:
                await self._run.ask(operation.follow_up(request), params)
            except GatewayError as described:
                if _is_in_response(described):
                    return described
        words = (await self._run.session.secrets()).masked(reason)
        fault = UpstreamFault(message=words)
        error = UpstreamError(f"{operation}: the operation failed in the application: {words}", upstream=fault)
        error.retryable = False
        return error

    async def _finish(self, number: int, answer: OperationResult, reason: str | None) -> None:
        """Read the results of a finished portion, and store them together with its final state."""
        items, action = self._how.results.items, self._run.call.operation.action
        if items is not None:
            await self._store_lines(number, await self._lines(number, answer, reason, items))
        elif action.records is not None:
            await self._store_records(number, answer)
        else:
            self._record = self._with_id(number, await self._record_of(await self._last_answer(number, answer)))
        await self._progress()

    async def _last_answer(self, number: int, answer: OperationResult) -> OperationResult:
        """The response with the record: the last one to `status`, or that to a request for the result."""
        request = self._how.results.request
        if request is None:
            return answer
        try:
            return await self._run.ask(
                self._run.call.operation.follow_up(request), self._portions.follow_up_params(number)
            )
        except UpstreamRejected as error:
            # Without a code it is the result of a tool that failed; a request that is refused has one.
            if _is_in_response(error) and error.upstream is not None and error.upstream.code is None:
                await self._give_up(number)
            raise

    async def _record_of(self, answer: OperationResult) -> OperationResult:
        """`_record_in`; a large result of a tool is checked in a thread."""
        is_large = self._run.call.operation.action.output_schema is not None and len(answer.result) > LARGE_CONTENT
        return await in_thread(self._record_in, answer) if is_large else self._record_in(answer)

    def _record_in(self, answer: OperationResult) -> OperationResult:
        """The record in the last response; raises an error for the result of a tool that has not done its work."""
        call = self._run.call
        record = OperationResult(result=raw_at(answer.result, call.operation.action.record or ()) or NULL)
        if call.operation.action.tool is None:
            return record
        require_complete(call.operation, record.result)
        return checked(call.operation, call.effect, record)

    def _with_id(self, number: int, record: OperationResult) -> OperationResult:
        """The record with the id of its portion, if the spec names a member for it."""
        name = self._how.results.id_field
        if name is None:
            return record
        document = {**payloads.record(record.result), name: self._portions.started.get(number)}
        return replace(record, result=msgspec.Raw(msgspec.json.encode(document)))

    async def _lines(self, number: int, answer: OperationResult, reason: str | None, how: ItemResults) -> list[Line]:
        """A line for each item of a portion that has ended."""
        requests, items = self._how.results.requests, self._portions.inputs[number].items
        if not requests:
            return await self._masked(item_lines(how, items, entries_of(how, answer.decoded()), reason))
        pages = result_pages(self._run, requests, self._portions.follow_up_params(number), ResultPosition())
        lines = entry_lines(how, [entry async for records, _ in pages for entry in records], reason)
        if len(lines) != len(items) and reason is None:
            words = f"the application reports on {len(lines)} items of {len(items)}"
            raise UpstreamInvalidResponse(f"{self._run.call.operation}: {words}")
        return await self._masked(lines + item_lines(how, [{}] * (len(items) - len(lines)), (), reason))

    async def _masked(self, lines: list[Line]) -> list[Line]:
        """The lines without the secrets in the application's messages."""
        if all("error" not in line for line in lines):
            return lines
        return masked(lines, await self._run.session.secrets())

    async def _store_lines(
        self, number: int, lines: Sequence[Line], tally: Tally | None = None, *, is_open: bool = False
    ) -> None:
        """Store the lines of a portion in parts; the last one with the portion's end, or that nothing follows it."""
        if self._run.selection.redact:
            lines = await in_turn(partial(redacted_lines, lines, self._run.selection.redact))
        end = self._portions.abandon if is_open else self._portions.finish
        parts = [lines[start : start + _PART] for start in range(0, len(lines), _PART)]
        for place, part in enumerate(parts, 1):
            change = partial(end, number, tally or Tally.of(lines)) if place == len(parts) else None
            await self._save(part, number * _PARTS_OF_PORTION + place, change)

    async def _store_records(self, number: int, answer: OperationResult) -> None:
        """Store the pages of a portion one by one with the position of the next, the last with the final state."""
        requests, position = self._how.results.requests, self._portions.position(number)
        limit = self._run.selection.limit
        pages = (
            result_pages(self._run, requests, self._portions.follow_up_params(number), position)
            if requests
            else listed(self._run.call.operation, answer)
        )
        async for page, following in pages:
            records = page if limit is None else page[: limit - position.records]
            part, read = number * _PARTS_OF_PORTION + position.page + 1, position.records + len(records)
            is_last = following is None or read == limit
            if following is None or is_last:
                change = partial(self._portions.finish, number, Tally(read))
            else:
                position = replace(following, records=read)
                change = partial(self._portions.continue_at, number, position)
            await self._save(await selected_records(records, self._run.selection), part, change)
            await self._progress()
            if is_last:
                return

    async def _save(
        self, records: Sequence[Any] = (), part: int | None = None, change: Callable[[], None] | None = None
    ) -> None:
        """Save the state and these records; one save at a time, so that no older state overwrites a newer one.

        `change` is applied within the save: another portion's save must not report these records as stored.
        """
        async with self._saving:
            if change is not None:
                change()
            answered = {number for number in self._answered if self._portions.is_answered(number)}
            self._answered -= answered
            await self._run.run_context.checkpoint(self._portions.state(), records, part, answers=len(answered))

    async def _progress(self, change: Callable[[], None] | None = None) -> None:
        """Report the progress of all portions together; under a lock, so that the number never decreases."""
        async with self._saving:
            if change is not None:
                change()
            await self._run.run_context.progress(*self._portions.progress())


def _rate_limited(full: UpstreamQueueFull) -> UpstreamRateLimited:
    """The error while other jobs fill the queue: the run releases its worker until there may be room."""
    return UpstreamRateLimited(full.detail, upstream=full.upstream, retry_after=full.retry_after or _QUEUE_FULL_WAIT)


def _is_undone(error: GatewayError) -> bool:
    """Whether the application certainly did nothing of the request."""
    return is_refusal(error) and not error.is_outcome_unknown and not isinstance(error, JobCanceled)


def _is_in_response(error: GatewayError) -> bool:
    """Whether the application executed a request, and its response describes a failure."""
    return error.upstream is not None and error.upstream.status == _OK


def _is_final(error: GatewayError) -> bool:
    """Whether the run ends with the error, instead of waiting and continuing."""
    return not isinstance(error, UpstreamRateLimited | UpstreamQueueFull | Unavailable) and (
        error.is_outcome_unknown or not isinstance(error, JobCanceled)
    )
