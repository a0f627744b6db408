"""The rule that runs a long action: its spec's `long_running`, or a rule of an installed package.

The run context stores what was started, so that after a crash another worker resumes polling instead of starting it
again.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache

from gateway.kinds.rule_names import package_rules
from gateway.upstream.long_running.operation_run import OperationRun
from gateway.upstream.long_running.portions import portions_of
from gateway.upstream.long_running.run import run_as_described
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import OperationResult


@dataclass(frozen=True, slots=True)
class LongRule:
    """How a long operation is run, and the requests that it begins with."""

    run: Callable[[OperationRun], Awaitable[OperationResult]]
    preview: Callable[[OperationRun], list[UpstreamRequest]]


def _preview(run: OperationRun) -> list[UpstreamRequest]:
    operation = run.call.operation
    calls = [PreparedCall.of(operation.start, portion.params) for portion in portions_of(operation, run.call.params)]
    return [run.session.request(call) for call in calls]


#: runs every operation that its spec describes in `long_running`
_AS_DESCRIBED = LongRule(run_as_described, _preview)


@cache
def long_rule(rule: str | None, *, is_described: bool) -> LongRule | None:
    """The rule for an action that its spec describes as long, or whose `rule` is the long operation of an installed
    package; None for an action of one request."""
    if is_described:
        return _AS_DESCRIBED
    added = package_rules().get(rule or "")
    loaded = added.load() if added is not None else None
    return loaded if isinstance(loaded, LongRule) else None
