"""A schedule, and how its slots are treated. A slot is one of the times that its cron expression names."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import msgspec

from gateway.contract.exports import FileFormat
from gateway.contract.schedules import CatchUp, Overlap
from gateway.schedules.cron import Cron
from gateway.upstream.field_selection import FieldSelection
from gateway.vault.vault import Binding

#: the label of every run
SCHEDULE_LABEL = "schedule_id"
#: the label of a run that a slot started: the slot, RFC 3339 in UTC
SLOT_LABEL = "scheduled_for"
#: runs of a schedule that it remembers
REMEMBERED_RUNS = 20


class Definition(msgspec.Struct, frozen=True):
    """A caller's definition of a schedule: the operation and the times of its runs."""

    name: str
    connector_id: UUID
    entity: str
    action: str
    cron: str
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    selection: FieldSelection = msgspec.field(default_factory=FieldSelection)
    #: what the file looks like that a list or search is collected into; None where each run is one call
    file: FileFormat | None = None
    timezone: str = "UTC"
    is_enabled: bool = True
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.ONE
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)


class Schedule(msgspec.Struct, frozen=True):
    """A schedule as it is stored."""

    id: UUID
    organization_id: UUID
    #: the client that made or changed it last, in whose name it runs
    client_id: UUID
    workspace_name: str
    kind: str
    definition: Definition
    #: None while it is disabled
    next_run_at: datetime | None
    last_run_at: datetime | None = None
    #: the jobs of its last runs, the newest first
    job_ids: Sequence[UUID] = ()
    #: the last slot that was not run, and why
    missed_at: datetime | None = None
    missed_reason: str | None = None
    #: why its slots are not run now
    paused_reason: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def cron(self) -> Cron:
        return Cron(self.definition.cron, self.definition.timezone)

    def next_slots(self, count: int) -> list[datetime]:
        """The next slots; none while it is disabled."""
        if self.next_run_at is None:
            return []
        return [self.next_run_at, *self.cron.next_times(self.next_run_at, count - 1)]

    def job_id_of(self, slot: datetime) -> UUID:
        """The id of the job that runs a slot: the same in every process, so that a slot has one job."""
        return uuid5(self.id, slot.isoformat())


def binding(organization_id: UUID, schedule_id: UUID) -> Binding:
    """The associated data of a schedule's sealed params: they cannot be opened for another schedule."""
    return Binding(organization_id, schedule_id, "schedule")
