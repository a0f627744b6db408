"""Runs a long operation as its spec describes it: portions side by side, each started, followed and read.

The state names what was started. The next attempt follows a portion whose start is saved, and never starts it again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.aio.background import cancel_and_wait
from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    JobCanceled,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamQueueFull,
    UpstreamRejected,
    with_unknown_outcome,
)
from gateway.kinds.long_running import RUN_ID, ItemResults
from gateway.upstream.field_selection import selected_records
from gateway.upstream.long_running.item_results import (
    Line,
    entries_of,
    entry_lines,
    item_lines,
    unknown_lines,
    unsent_lines,
)
from gateway.upstream.long_running.operation_run import OperationRun
from gateway.upstream.long_running.portion_start import PortionStart, limited, lost_start, run_id_of
from gateway.upstream.long_running.portions import Tally, portions_of
from gateway.upstream.long_running.result_pages import ResultPosition, listed, result_pages
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import NULL, ROOT, OperationResult, raw_at, value_at
from gateway.upstream.retries import is_refusal
from gateway.upstream.run_context import Effects, RunContext

#: lines of item results in one stored part, and the part numbers that each portion has
_PART, _PARTS_OF_PORTION = 1000, 10_000
#: the member of the result that holds a line for each item
_ITEMS = "results"
_NOT_STARTED = "canceled; the rest was not started"


class LongRun:
    """One run. Started and finished portions are saved one by one, so that no portion is started twice."""

    def __init__(self, run: OperationRun) -> None:
        how = run.call.operation.action.long_running
        assert how is not None
        self._run, self._how = run, how
        self._portions = portions_of(run.call.operation, run.call.params)
        self._total = sum(len(portion.items) for portion in self._portions)
        state = run.run_context.state
        self._finished = {int(number): Tally(**tally) for number, tally in state.get("finished", {}).items()}
        #: of all finished portions together
        self._tally = sum(self._finished.values(), Tally())
        self._started = {int(number): str(name) for number, name in state.get("started", {}).items()}
        #: portions whose start is in flight; those of an earlier attempt cannot be followed
        self._starting = set(state.get("starting", ()))
        #: portion → the position of its next page of records
        self._positions = {
            int(number): msgspec.convert(position, ResultPosition)
            for number, position in state.get("positions", {}).items()
        }
        #: running portion → items that the application has done so far
        self._under_way: dict[int, int] = {}
        #: portions whose start was answered, and whose answer is in no saved state
        self._answered: set[int] = set()
        #: portions whose `close` the application refused
        self._refused_closes: set[int] = set()
        #: the result of an operation that ends with one record
        self._record: OperationResult | None = None
        self._saving = asyncio.Lock()

    async def result(self) -> OperationResult:
        """Run all portions; raises the first error after the started portions have ended."""
        await self._progress()
        for number in sorted(self._starting):
            await self._end_unknown(number)
        error = await self._run_portions(lost_start(self._tally))
        if error is not None:
            if error.is_outcome_unknown and self._how.results.items is not None:
                await self._end_unsent()
            raise error
        if self._record is not None:
            return self._record
        if self._how.results.items is None:
            return OperationResult(NULL, collected=ROOT)
        document = {"status": "completed", **self._summary(), _ITEMS: []}
        return OperationResult(msgspec.Raw(msgspec.json.encode(document)), collected=_ITEMS)

    async def _run_portions(self, error: GatewayError | None) -> GatewayError | None:
        """Run the unfinished portions, as many at a time as the application accepts; none is started after an error."""
        most = self._how.split.concurrency if self._how.split else 1
        known = {*self._finished, *self._started}
        pending = deque(number for number in range(len(self._portions)) if number not in known)
        running = {asyncio.create_task(self._follow(number)): number for number in self._started}
        width = most
        try:
            while True:
                while pending and error is None and len(running) < width:
                    number = pending.popleft()
                    running[asyncio.create_task(self._start(number))] = number
                if not running:
                    return error
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    number, failure = running.pop(task), task.exception()
                    match failure:
                        case None:
                            width = min(width + 1, most)
                        case UpstreamQueueFull():
                            pending.appendleft(number)
                            width = len(running)
                            error = error if running else limited(failure)
                        case GatewayError():
                            error = failure if failure.is_outcome_unknown else error or failure
                        case _:
                            raise failure
        finally:
            await cancel_and_wait(*running)

    async def _start(self, number: int) -> None:
        """Send a portion, and follow it to its end."""
        try:
            await self._send(number)
        except GatewayError as error:
            if number in self._starting and not error.is_outcome_unknown and is_refusal(error):
                await self._note_start(number, False)
            elif number in self._starting:
                await self._end_unknown(number)
                raise with_unknown_outcome(error, {"request_sent": True}, safe_to_retry=False) from error
            raise
        if number in self._started:
            await self._follow(number)

    async def _send(self, number: int) -> None:
        """Send a portion; the application's id of it is saved before the first poll."""
        how, params = self._how, self._portions[number].params
        operation, call = self._run.call.operation, PreparedCall.of(self._run.call.operation.start, params)
        self._require_not_canceled()
        try:
            answer = await self._run.session.call(call, self._context_of(number, call))
        except (UpstreamRejected, UpstreamNotFound):
            if how.start is None or not how.start.fallback:
                raise
            self._record = await self._run.session.call(self._run.call, self._run.run_context)
            return
        if number not in self._starting:
            self._answered.add(number)
        if how.start is None:
            await self._finish(number, answer, None)
            return
        run_id = run_id_of(self._run, how.start, answer)
        if how.upload is not None:
            await self._run.ask(operation.follow_up(how.upload), {**params, RUN_ID: run_id})
            self._require_not_canceled()
        self._started[number] = run_id
        self._starting.discard(number)
        await self._save()
        if how.close is not None:
            await self._close(number)

    def _context_of(self, number: int, call: PreparedCall) -> RunContext:
        """The run context of a start: that of the job, unless the result tells of each item by itself."""
        if call.effect is not Effect.WRITE or self._how.results.items is None:
            return self._run.run_context
        return PortionStart(partial(self._note_start, number))

    async def _note_start(self, number: int, is_in_flight: bool) -> None:
        change = self._starting.add if is_in_flight else self._starting.discard
        await self._save(change=partial(change, number))

    async def _end_unknown(self, number: int) -> None:
        """A portion that may have been started, and whose id is lost."""
        await self._store_lines(number, unknown_lines(self._portions[number].items))

    async def _end_unsent(self) -> None:
        """Portions that are not sent any more: the result has a line for each of their items too."""
        for number, portion in enumerate(self._portions):
            if number not in self._finished and number not in self._started:
                await self._store_lines(number, unsent_lines(portion.items))

    def _require_not_canceled(self) -> None:
        if self._run.run_context.is_canceled:
            raise JobCanceled(_NOT_STARTED)

    async def _close(self, number: int) -> None:
        """Tell the application to begin; a second time it refuses."""
        close = self._how.close
        assert close is not None
        try:
            await self._run.ask(self._run.call.operation.follow_up(close), self._params(number))
        except UpstreamRejected:
            if number in self._refused_closes:
                await self._give_up(number)
                raise
            self._refused_closes.add(number)

    async def _close_again(self, number: int) -> None:
        """The application still waits; a run that was canceled meanwhile leaves it so."""
        if self._run.run_context.is_canceled:
            await self._give_up(number)
        self._require_not_canceled()
        await self._close(number)

    async def _give_up(self, number: int) -> None:
        """A portion that the application has not begun, or could not run."""
        self._end(number)
        await self._save()

    async def _follow(self, number: int) -> None:
        """Poll a portion until it ends, and read its results."""
        status, operation = self._how.status, self._run.call.operation
        assert status is not None
        answer, reason = OperationResult(NULL), None
        async for answer, state in self._run.poll(operation.follow_up(status), self._params(number), status):
            document = answer.decoded()
            if state in status.open:
                await self._close_again(number)
            if state in status.failed:
                told = value_at(document, status.message) if status.message else None
                reason = str(told or state)
            done = value_at(document, status.progress) if status.progress else None
            self._under_way[number] = self._known_progress(number, done)
            await self._progress()
        if reason is not None and self._how.results.items is None:
            await self._give_up(number)
            masked = (await self._run.session.secrets()).masked(reason)
            error = UpstreamError(f"{operation}: the application could not run it: {masked}")
            error.retryable = False
            raise error
        await self._finish(number, answer, reason)

    def _known_progress(self, number: int, done: Any) -> int:
        items = len(self._portions[number].items)
        told = int(done) if isinstance(done, int | float) else 0
        return min(told, items) if items else told

    async def _finish(self, number: int, answer: OperationResult, reason: str | None) -> None:
        """Read the results of a finished portion, and store them together with its final state."""
        items, action = self._how.results.items, self._run.call.operation.action
        if items is not None:
            await self._store_lines(number, await self._lines(number, answer, reason, items))
        elif action.records is not None:
            await self._store_records(number, answer)
        else:
            self._record = self._record_of(number, raw_at(answer.result, action.record or ()) or NULL)
            self._under_way.pop(number, None)
        await self._progress()

    def _record_of(self, number: int, record: msgspec.Raw) -> OperationResult:
        name = self._how.results.id_field
        if name is None:
            return OperationResult(record)
        document = {**msgspec.json.decode(record), name: self._started.get(number)}
        return OperationResult(msgspec.Raw(msgspec.json.encode(document)))

    async def _lines(self, number: int, answer: OperationResult, reason: str | None, how: ItemResults) -> list[Line]:
        """A line for each item of a portion that has ended."""
        secrets, requests = await self._run.session.secrets(), self._how.results.requests
        if not requests:
            return item_lines(how, self._portions[number].items, entries_of(how, answer.decoded()), reason, secrets)
        pages = result_pages(self._run, requests, self._params(number), ResultPosition())
        entries = [entry async for records, _ in pages for entry in records]
        lines, items = entry_lines(how, entries, reason, secrets), len(self._portions[number].items)
        if len(lines) != items and reason is None:
            words = f"the application reports on {len(lines)} items of {items}"
            raise UpstreamInvalidResponse(f"{self._run.call.operation}: {words}")
        return lines + item_lines(how, [{}] * (items - len(lines)), (), reason, secrets)

    async def _store_lines(self, number: int, lines: Sequence[Line]) -> None:
        """Store the lines of a portion in parts; the last one with the portion's end."""
        parts = [lines[start : start + _PART] for start in range(0, len(lines), _PART)]
        for place, part in enumerate(parts, 1):
            end = partial(self._finish_with, number, Tally.of(lines)) if place == len(parts) else None
            await self._save(part, number * _PARTS_OF_PORTION + place, end)

    async def _store_records(self, number: int, answer: OperationResult) -> None:
        """Store the pages of a portion one by one with the position of the next, the last with the final state."""
        requests, position = self._how.results.requests, self._positions.get(number, ResultPosition())
        limit = self._run.selection.limit
        pages = (
            result_pages(self._run, requests, self._params(number), position)
            if requests
            else listed(self._run.call.operation, answer)
        )
        async for page, following in pages:
            records = page if limit is None else page[: limit - position.records]
            part, read = number * _PARTS_OF_PORTION + position.page + 1, position.records + len(records)
            is_last = following is None or read == limit
            if following is None or is_last:
                change = partial(self._finish_with, number, Tally(read))
            else:
                position = replace(following, records=read)
                change = partial(self._go_on_from, number, position)
            await self._save(selected_records(records, self._run.selection), part, change)
            await self._progress()
            if is_last:
                return

    def _finish_with(self, number: int, tally: Tally) -> None:
        self._finished[number] = tally
        self._tally += tally
        self._end(number)

    def _go_on_from(self, number: int, position: ResultPosition) -> None:
        self._positions[number], self._under_way[number] = position, position.records

    def _end(self, number: int) -> None:
        """A portion that needs to be followed no more."""
        self._starting.discard(number)
        self._started.pop(number, None)
        self._positions.pop(number, None)
        self._under_way.pop(number, None)

    def _params(self, number: int) -> dict[str, Any]:
        """The params of the requests that follow a start."""
        return {**self._portions[number].params, RUN_ID: self._started.get(number)}

    async def _save(
        self, records: Sequence[Any] = (), part: int | None = None, change: Callable[[], None] | None = None
    ) -> None:
        """One after the other, so that no older state overwrites a newer one.

        A change that says that records are stored is made with them: the save of another portion must not tell of it.
        """
        async with self._saving:
            if change is not None:
                change()
            answered = {number for number in self._answered if number in self._started or number in self._finished}
            self._answered -= answered
            await self._run.run_context.checkpoint(self._state(), records, part, answers=len(answered))

    def _state(self) -> dict[str, Any]:
        return {
            "finished": {str(number): asdict(each) for number, each in self._finished.items()},
            "started": {str(number): name for number, name in self._started.items()},
            "starting": sorted(self._starting),
            "positions": {str(number): msgspec.to_builtins(each) for number, each in self._positions.items()},
            **self._effects().document(),
        }

    def _effects(self) -> Effects:
        """The changes of the run in the application so far, for the job's final status."""
        if self._run.call.effect is Effect.READ:
            return Effects()
        if self._how.results.items is None:
            started = [{"run_id": run_id} for run_id in self._started.values()]
            return Effects(started[0], is_open=True, summary=self._message()) if started else Effects()
        if not self._started and not self._starting and not self._finished:
            return Effects()
        summary = self._summary()
        known = {
            "batches": len(self._portions),
            "batches_started": len(self._started),
            "batches_finished": len(self._finished),
            "items": self._total,
            "items_done": summary["progress"],
        }
        if self._tally.unknown:
            known["items_unknown"] = self._tally.unknown
        return Effects(known, bool(self._started or self._starting), summary["message"], summary, _ITEMS)

    def _summary(self) -> dict[str, Any]:
        """The documented job record as far as the run knows it; the job that runs it adds its id and address."""
        message, tally = self._message(), self._tally
        return {"total": self._total, "progress": tally.done, "message": message, **tally.document()}

    def _message(self) -> str:
        """The progress of all portions together, for people."""
        if self._how.split is not None:
            return self._tally.sentence(self._how.split, self._total)
        return f"{self._tally.done} records read" if self._tally.done else "the application runs it"

    async def _progress(self) -> None:
        """Report the progress of all portions together; under a lock, so that the number never decreases."""
        async with self._saving:
            message, split = self._message(), self._how.split
            done = self._tally.done + sum(self._under_way.values())
            if split is not None and self._under_way:
                message = split.message.format(done=done, total=self._total)
            await self._run.run_context.progress(done, self._total or None, message)
