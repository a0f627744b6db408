"""A schedule. A slot is one of the times of its cron expression."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid5

import msgspec
from msgspec.structs import asdict

from gateway.contract.schedules import MissedSlotView, ScheduleDefinition, ScheduleView
from gateway.foundation.vault.vault import Binding
from gateway.operations.schedules.cron import Cron

#: the label of every run
SCHEDULE_LABEL = "schedule_id"
#: the label of a run that a slot started: the slot, RFC 3339 in UTC
SLOT_LABEL = "scheduled_for"
#: latest runs of a schedule that are stored
REMEMBERED_RUNS = 20
#: next slots in the view
_NEXT_SLOTS = 3


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it is stored."""

    id: UUID
    organization_id: UUID
    #: the client that last created or changed it, for which its jobs run
    client_id: UUID
    workspace_name: str
    kind: str
    definition: ScheduleDefinition
    #: None while it is disabled
    next_run_at: datetime | None
    last_run_at: datetime | None = None
    #: the jobs of its latest runs, newest first
    job_ids: Sequence[UUID] = ()
    #: the last slot that was not run, and why
    missed_at: datetime | None = None
    missed_reason: str | None = None
    #: why its slots are currently not run
    paused_reason: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def session(self) -> None:
        """A schedule outlives sessions, which have none."""

    @property
    def cron(self) -> Cron:
        return Cron(self.definition.cron, self.definition.timezone)

    @property
    def next_slots(self) -> list[datetime]:
        """The next slots; none while it is disabled."""
        if self.next_run_at is None:
            return []
        return [self.next_run_at, *self.cron.next_times(self.next_run_at, _NEXT_SLOTS - 1)]

    def job_id_of(self, slot: datetime) -> UUID:
        """The id of the job that runs a slot: the same in every process, so that a slot has one job."""
        return uuid5(self.id, slot.isoformat())

    @property
    def view(self) -> ScheduleView:
        """The schedule as callers see it."""
        missed_at, reason = self.missed_at, self.missed_reason
        members = asdict(self.definition) | {
            "id": str(self.id),
            "connector_id": str(self.definition.connector_id),
            "workspace_name": self.workspace_name,
            "paused_reason": self.paused_reason,
            "next_runs": self.next_slots,
            "last_run_at": self.last_run_at,
            "last_missed": None if missed_at is None or reason is None else MissedSlotView(missed_at, reason),
            "job_ids": [str(job_id) for job_id in self.job_ids],
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }
        return ScheduleView(**members)


def binding(organization_id: UUID, schedule_id: UUID) -> Binding:
    """The associated data of a schedule's sealed params, which cannot be decrypted for another schedule."""
    return Binding(organization_id, schedule_id, "schedule")
