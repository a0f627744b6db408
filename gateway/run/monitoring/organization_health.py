"""The gateway's health for an administrator of one organization, without data of other organizations.

Settings, folders, worker ids and totals are for operators: `gateway doctor` and `/metrics` have them.
"""

from collections.abc import Mapping, Sequence

from gateway.contract.connectors import ConnectorStatus
from gateway.run.monitoring.health_checks import CheckResult, failed, passed, warning
from gateway.run.monitoring.statistics import WorkInProgress

#: parts that the front end needs: name in the readiness checks → name for people
NEEDED = {"postgres": "PostgreSQL", "redis": "Redis", "worker": "workers"}


def organization_checks(
    readiness: Mapping[str, bool], in_progress: WorkInProgress, connectors: Mapping[ConnectorStatus, int]
) -> Sequence[CheckResult]:
    """The checks of the shared parts, from the readiness checks, and of the organization's own connectors and work."""
    shared = [
        passed(NEEDED[name], "answers")
        if answers
        else failed(NEEDED[name], "does not answer; the operator finds the cause with `gateway doctor`")
        for name, answers in readiness.items()
    ]
    jobs = passed("jobs", f"{in_progress.queued} queued, {in_progress.running} running, {in_progress.waiting} waiting")
    if faults := _faults(in_progress):
        copies = warning("copies", "; ".join(faults))
    else:
        copies = passed(
            "copies", f"{in_progress.copies} {'entity is' if in_progress.copies == 1 else 'entities are'} synchronized"
        )
    return [*shared, _of_connectors(connectors), jobs, copies]


def _of_connectors(connectors: Mapping[ConnectorStatus, int]) -> CheckResult:
    active, unserved = connectors[ConnectorStatus.ACTIVE], connectors[ConnectorStatus.UNSERVED]
    if unserved:
        return failed("connectors", f"{active} active; {unserved} unserved: the operator must serve their kinds again")
    return passed("connectors", f"{active} active")


def _faults(in_progress: WorkInProgress) -> Sequence[str]:
    """What is wrong with the synchronized copies."""
    counts = (
        (
            in_progress.failed,
            f"the last synchronization of {in_progress.failed} of {in_progress.copies} entities failed",
        ),
        (
            in_progress.incomplete,
            f"the copies of {in_progress.incomplete} of {in_progress.copies} entities lack records",
        ),
        (in_progress.held_deletions, f"the deletion of {in_progress.held_deletions} records waits to be confirmed"),
    )
    return [text for count, text in counts if count]
