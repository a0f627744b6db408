"""The start of a portion: its run context, the id in its response, and the errors of starts."""

from collections.abc import Awaitable, Callable

from gateway.errors import GatewayError, OutcomeUnknown, UpstreamInvalidResponse, UpstreamQueueFull, UpstreamRateLimited
from gateway.kinds.long_running import LongRunStart
from gateway.upstream.encoding import upstream_segment
from gateway.upstream.long_running.operation_run import OperationRun
from gateway.upstream.long_running.portions import Tally
from gateway.upstream.responses import OperationResult, value_at
from gateway.upstream.run_context import InMemoryRunContext

#: seconds that a run waits when other jobs fill the application's queue and the application names no wait
_QUEUE_FULL_WAIT = 5


class PortionStart(InMemoryRunContext):
    """Notes in the state of the whole run that the start of one portion is in flight.

    The job itself then has no write in flight: after a kill another worker goes on, follows what was started, and knows
    of which portion that is uncertain.
    """

    def __init__(self, note: Callable[[bool], Awaitable[None]]) -> None:
        super().__init__()
        self._note = note

    async def mark_in_flight(self) -> None:
        await self._note(True)

    async def clear_in_flight(self) -> None:
        await self._note(False)


def lost_start(tally: Tally) -> GatewayError | None:
    """The error of a run, an earlier attempt of which lost the response to a start."""
    if not tally.unknown:
        return None
    return OutcomeUnknown("the worker was lost while it sent a part of the items", extra={"outcome": "unknown"})


def run_id_of(run: OperationRun, start: LongRunStart, answer: OperationResult) -> str:
    """The id of what was started; raises UpstreamInvalidResponse where the response names none."""
    operation, name = run.call.operation, value_at(answer.decoded(), start.id)
    if not name:
        raise UpstreamInvalidResponse(f"{operation}: the application started it without naming its id")
    upstream_segment(operation, name)
    return str(name)


def limited(full: UpstreamQueueFull) -> UpstreamRateLimited:
    """The error while other jobs fill the queue: the run releases its worker until there may be room."""
    return UpstreamRateLimited(full.detail, upstream=full.upstream, retry_after=full.retry_after or _QUEUE_FULL_WAIT)
