"""Long-running operations: the application runs them, the gateway starts them and polls until they end.

A spec's `rule` names one, like the pure rules. The run context stores what was started, so that after a crash
another worker resumes polling instead of starting it again.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache

from gateway.kinds.rule_names import brought_rules
from gateway.upstream.bulk_updates import preview_tickets, update_tickets
from gateway.upstream.operation_run import OperationRun
from gateway.upstream.report_runs import preview_report, run_report
from gateway.upstream.requests import UpstreamRequest
from gateway.upstream.responses import OperationResult


@dataclass(frozen=True, slots=True)
class LongRule:
    """How a long operation is run, and the requests that it begins with."""

    run: Callable[[OperationRun], Awaitable[OperationResult]]
    preview: Callable[[OperationRun], list[UpstreamRequest]]


#: every long operation by the name that specs use
LONG_RULES: Mapping[str, LongRule] = {
    "update_tickets": LongRule(update_tickets, preview_tickets),
    "run_report": LongRule(run_report, preview_report),
}


@cache
def long_rule(name: str | None) -> LongRule | None:
    """The long operation that a spec's `rule` names, ours or an installed package's; None where it names none."""
    brought = brought_rules().get(name or "")
    rule = LONG_RULES.get(name or "") or (brought.load() if brought is not None else None)
    return rule if isinstance(rule, LongRule) else None
