"""Schedules: definitions and views."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from msgspec import Struct, field

from gateway.contract.exports import OutputView
from gateway.contract.members import ID, TIME, Id, PageOf, Time, member


class Overlap(StrEnum):
    """What happens to a slot that comes before the previous run has ended."""

    #: it is not run
    SKIP = "skip"
    #: it is run when the previous run has ended; several such slots become one run
    QUEUE = "queue"


class CatchUp(StrEnum):
    """What happens to slots that came while no worker ran."""

    #: they become one run
    ONE = "one"
    #: they are not run
    NONE = "none"


class ScheduleDefinition(Struct, frozen=True, kw_only=True):
    """A caller's definition of a schedule: the operation and the times of its runs."""

    name: str
    connector_id: UUID
    entity: str
    action: str
    cron: str
    params: Mapping[str, Any] = field(default_factory=dict)
    select_fields: Sequence[str] | None = None
    exclude_fields: Sequence[str] | None = None
    #: the file that each run of a list or search collects all pages into; None if each run is one call
    output: OutputView | None = None
    timezone: str = "UTC"
    enabled: bool = True
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.ONE
    labels: Mapping[str, str] = field(default_factory=dict)


class MissedSlotView(Struct, frozen=True):
    """A slot that was not run."""

    slot: Annotated[Time, member("The time of the slot.")]
    reason: Annotated[str, member("Why the slot was not run.", "the previous run has not ended")]


class ScheduleView(Struct, frozen=True, kw_only=True):
    """An operation that runs as a job at the times of a cron expression."""

    id: Annotated[Id, member("The schedule's id.")]
    name: Annotated[str, member("The schedule's name.", "Open tickets, every morning")]
    connector_id: Annotated[Id, member("The connector.")]
    workspace_name: Annotated[str, member("The connector's workspace.", "acme")]
    entity: Annotated[str, member("The operation's entity.", "tickets")]
    action: Annotated[str, member("The operation's action.", "list")]
    params: Annotated[dict[str, Any], member("The operation's params.", {"status": "open"})]
    select_fields: Annotated[list[str] | None, member("Dotted paths to keep of each record.")]
    exclude_fields: Annotated[list[str] | None, member("Dotted paths to leave out of each record.")]
    output: Annotated[OutputView | None, member("The file that each run collects the records into.")]
    cron: Annotated[str, member("When it runs: minute hour day-of-month month day-of-week.", "30 6 * * 1-5")]
    timezone: Annotated[str, member("The time zone of `cron`.", "Europe/Berlin")]
    enabled: Annotated[bool, member("Whether its slots are run.", True)]
    overlap: Annotated[Overlap, member("What happens to a slot that comes before the previous run has ended.")]
    catch_up: Annotated[CatchUp, member("What happens to slots that came while no worker ran.")]
    labels: Annotated[dict[str, str], member("Labels of each run, beside `schedule_id` and `scheduled_for`.")]
    paused_reason: Annotated[str | None, member("Why its slots are not run now: the state of its connector.")]
    next_runs: Annotated[list[Time], member("The next three slots; empty while it is disabled.", [TIME])]
    last_run_at: Annotated[Time | None, member("When its last run was started.")]
    last_missed: Annotated[MissedSlotView | None, member("The last slot that was not run.")]
    job_ids: Annotated[list[Id], member("The jobs of its last 20 runs, the newest first.", [ID])]
    created_at: Annotated[Time, member("When it was created.")]
    updated_at: Annotated[Time, member("When it was changed.")]


class SchedulePage(PageOf[ScheduleView], frozen=True):
    """Schedules, the oldest first."""
