"""Decides whether a due slot is run or missed: pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.contract.schedules import CatchUp, Overlap
from gateway.operations.schedules.model import Schedule

#: delay after which a slot counts as missed; a restart of the workers takes less
_GRACE = timedelta(seconds=60)

NOT_ENDED = "the previous run has not ended"
NO_ORGANIZATION = "the organization is disabled"
NO_WORKER = "no worker was running at its time"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSlot:
    """A due slot, and the state of its schedule's runs."""

    schedule: Schedule
    slot: datetime
    #: whether a run has not ended
    is_running: bool
    is_organization_disabled: bool = False
    #: when the last run ended
    last_finished_at: datetime | None = None


def reason_to_miss(due: DueSlot, now: datetime) -> str | None:
    """Why the slot is not run; None if it is."""
    schedule, definition = due.schedule, due.schedule.definition
    if due.is_organization_disabled:
        return NO_ORGANIZATION
    if schedule.paused_reason is not None:
        return schedule.paused_reason
    if due.is_running and definition.overlap is Overlap.SKIP:
        return NOT_ENDED
    if definition.catch_up is CatchUp.NONE and now - _possible_since(due) > _GRACE:
        return NO_WORKER
    return None


def _possible_since(due: DueSlot) -> datetime:
    """When the slot could have been run: with `overlap: queue`, after the previous run."""
    if due.schedule.definition.overlap is Overlap.QUEUE and due.last_finished_at is not None:
        return max(due.slot, due.last_finished_at)
    return due.slot


def paused_reason(connector_status: str | None, status_reason: str | None, *, is_deleted: bool) -> str | None:
    """Why slots are not run in this state of the connector; None if they are."""
    if is_deleted or connector_status is None:
        return "its connector was deleted"
    if connector_status == "active":
        return None
    return f"its connector is {connector_status}" + (f": {status_reason}" if status_reason else "")
