"""The job of a run: pure."""

from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.jobs.model import NewJob, moment
from gateway.kinds.catalog import Catalog, Kind
from gateway.schedules.model import SCHEDULE_LABEL, SLOT_LABEL, Definition, Schedule
from gateway.upstream.prepared import PreparedCall, prepare


def prepared(definition: Definition, kind: Kind) -> PreparedCall:
    """The engine's call of a schedule; raises UnknownEntity, UnknownAction and InvalidParams."""
    return prepare(kind.operation(definition.entity, definition.action), definition.params)


def job_of(schedule: Schedule, catalog: Catalog, job_id: UUID, slot: datetime | None = None, **members: Any) -> NewJob:
    """The job that runs a schedule, for a slot or for a caller; raises as `prepared` does, after an upgrade as well."""
    definition = schedule.definition
    call = prepared(definition, catalog.kind(schedule.kind))
    operation = call.operation
    selection = definition.selection.as_document()
    if call.limit is not None:
        selection["limit"] = call.limit
    labels = {**definition.labels, SCHEDULE_LABEL: str(schedule.id)}
    if slot is not None:
        labels[SLOT_LABEL] = str(moment(slot))
    usual = {"client_id": schedule.client_id, "labels": labels, "is_background": slot is not None}
    return NewJob(
        id=job_id,
        organization_id=schedule.organization_id,
        connector_id=definition.connector_id,
        workspace_name=schedule.workspace_name,
        kind=schedule.kind,
        entity=operation.entity_id,
        action=operation.action_id,
        params=call.params,
        selection=selection,
        effect=call.effect,
        find_by=operation.action.find_by,
        **{**usual, **members},
    )
