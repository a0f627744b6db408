"""The job of a run: pure."""

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from msgspec.structs import replace

from gateway.contract.members import moment
from gateway.contract.policies import Surface
from gateway.contract.schedules import ScheduleDefinition
from gateway.errors import FieldError, InvalidParams
from gateway.jobs.model import NewJob
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.operations.accounting import target_of
from gateway.operations.call import OperationCall
from gateway.operations.exports.job import new_export
from gateway.operations.schedules.model import SCHEDULE_LABEL, SLOT_LABEL, Schedule
from gateway.upstream.field_selection import FieldSelection, ensure_declared
from gateway.upstream.prepared import prepare


def job_of(schedule: Schedule, kind: Kind, job_id: UUID, slot: datetime | None = None, **members: Any) -> NewJob:
    """The job that runs a schedule, for a slot or a caller; `members` replace members of a slot's job.

    Raises UnknownEntity, UnknownAction, InvalidParams and InvalidQuery, also for a schedule that was valid before the
    kind changed.
    """
    labels = {**schedule.definition.labels, SCHEDULE_LABEL: str(schedule.id)}
    if slot is not None:
        labels[SLOT_LABEL] = str(moment(slot))
    usual = {"client_id": schedule.client_id, "labels": labels, "is_background": slot is not None}
    return replace(new_job(schedule, kind), id=job_id, **{**usual, **members})


def new_job(schedule: Schedule, kind: Kind) -> NewJob:
    """The job of the schedule's operation; raises the errors of `job_of`."""
    definition = schedule.definition
    selection = FieldSelection(definition.select_fields, definition.exclude_fields)
    if definition.output is not None:
        call = OperationCall(
            connector_id=definition.connector_id,
            entity=definition.entity,
            action=definition.action,
            params=definition.params,
            selection=selection,
            surface=Surface.SCHEDULE,
            file=definition.output.file,
        )
        return replace(new_export(kind, call, schedule.organization_id, schedule.workspace_name), is_counted=False)
    if definition.action == SEARCH_ACTION:
        message = f'a scheduled {SEARCH_ACTION} needs output, such as {{"file": "ndjson"}}'
        raise InvalidParams(faults=[FieldError("/output", "output", "required", message)])
    return _operation_job(schedule, definition, selection, kind)


def _operation_job(schedule: Schedule, definition: ScheduleDefinition, selection: FieldSelection, kind: Kind) -> NewJob:
    call = prepare(kind.operation(definition.entity, definition.action), definition.params)
    operation = call.operation
    ensure_declared(selection, str(operation), operation.fields, operation.example)
    return NewJob(
        id=uuid4(),
        is_counted=False,
        organization_id=schedule.organization_id,
        connector_id=definition.connector_id,
        workspace_name=schedule.workspace_name,
        kind=kind.name,
        entity=operation.entity_id,
        action=operation.action_id,
        params=call.params,
        selection=replace(selection, limit=call.limit).as_document(),
        effect=call.effect,
        surface=Surface.SCHEDULE,
        find_by=operation.action.find_by,
        target=target_of(operation, call.params),
    )
