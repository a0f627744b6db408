"""One run of a long operation: its connector, its call and its run context."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gateway.errors import UpstreamError, UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.kinds.catalog import Operation
from gateway.kinds.long_running import LongRunStatus
from gateway.kinds.members import value_at
from gateway.upstream.field_selection import FieldSelection
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult, raw_at
from gateway.upstream.run_context import RunContext
from gateway.upstream.session import UpstreamSession

#: seconds until the second poll
_FIRST_INTERVAL = 0.2
#: factor by which each interval is longer than the one before
_INTERVAL_FACTOR = 1.5
#: minimum seconds between two polls, if the application names the interval
_SHORTEST_INTERVAL = 0.05
#: consecutive polls that may fail, about a minute: the application's operation continues meanwhile
_MAX_FAILED_POLLS = 20
#: bytes of a status that says that the run goes on
_LARGEST_STATUS = 1 << 20
#: characters of an unknown state that are searched for secrets, before it is shortened
_LONGEST_STATE = 8 << 10
#: milliseconds; a longer interval is shortened anyway
_LONGEST_NAMED = 10**9


class Poll(msgspec.Struct, frozen=True):
    """A response with the state of a long operation."""

    answer: OperationResult
    #: the response, parsed
    document: Any
    state: str | bool
    #: whether it has ended
    is_last: bool


@dataclass(frozen=True, slots=True)
class OperationRun:
    """One run of a long-running operation."""

    session: UpstreamSession
    call: PreparedCall
    run_context: RunContext
    #: how the caller wants records that the run stores one by one
    selection: FieldSelection = field(default_factory=FieldSelection)

    async def ask(self, operation: Operation, params: Mapping[str, Any]) -> OperationResult:
        """The answer to a request that may be repeated."""
        return await self.session.call(PreparedCall.of(operation, params))

    async def poll(self, operation: Operation, params: Mapping[str, Any], status: LongRunStatus) -> AsyncIterator[Poll]:
        """Poll the state until it has ended."""
        call = PreparedCall.of(operation, params)
        interval, failed_polls = min(_FIRST_INTERVAL, status.interval), 0
        while True:
            try:
                answer = await self.session.call(call)
            except UpstreamError as error:
                failed_polls += 1
                if not error.retryable or failed_polls > _MAX_FAILED_POLLS:
                    raise
            else:
                failed_polls = 0
                if len(answer.result) > _LARGEST_STATUS and _state_in(answer, status) not in status.ended:
                    raise UpstreamInvalidResponse(f"{self.call.operation}: the run has a status of over 1 MiB")
                document = answer.decoded()
                state = value_at(document, status.path)
                if state not in status.states:
                    shown = (await self.session.secrets()).masked(repr(state)[:_LONGEST_STATE])[:100]
                    raise UpstreamInvalidResponse(f"{self.call.operation}: the run has the unknown status {shown}")
                is_last = state in status.ended
                yield Poll(answer, document, state, is_last)
                if is_last:
                    return
                interval = interval_named(document, status) or interval
            await asyncio.sleep(interval)
            interval = min(interval * _INTERVAL_FACTOR, status.interval)


def _state_in(answer: OperationResult, status: LongRunStatus) -> Any:
    """The state, without reading the rest of the answer."""
    raw = raw_at(answer.result, status.path)
    return None if raw is None else payloads.value(raw)


def interval_named(document: Any, status: LongRunStatus) -> float | None:
    """The seconds until the next poll that the application names, within bounds; None if it names none."""
    named = value_at(document, status.wait) if status.wait else None
    if isinstance(named, bool) or not isinstance(named, int | float):
        return None
    return max(min(min(named, _LONGEST_NAMED) / 1000, status.interval), min(_SHORTEST_INTERVAL, status.interval))
