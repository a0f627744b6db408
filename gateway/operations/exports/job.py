"""The job of an export: pure."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.errors import FieldError, InvalidParams
from gateway.jobs.model import NewJob
from gateway.jobs.tasks import EXPORT
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.operations.call import OperationCall
from gateway.operations.exports.model import ExportParams
from gateway.operations.searches import prepared_search
from gateway.upstream.field_selection import EVERYTHING, ensure_declared
from gateway.upstream.prepared import prepare


def new_export(kind: Kind, call: OperationCall, organization_id: UUID, workspace_name: str) -> NewJob:
    """The job that collects the call's list into a file of the format `call.file`.

    Raises the errors of the call, and InvalidParams for an operation that is neither a list nor a search.
    """
    assert call.file is not None
    entity, action, params = _checked(kind, call)
    return NewJob(
        id=uuid4(),
        organization_id=organization_id,
        connector_id=call.connector_id,
        workspace_name=workspace_name,
        task=EXPORT.name,
        kind=kind.name,
        entity=entity,
        action=action,
        params=msgspec.to_builtins(ExportParams(call.file, dict(params))),
        selection=call.selection.as_document(),
        surface=call.surface,
        labels=call.labels,
        request_id=call.request_id,
        callback=call.callback,
    )


def _checked(kind: Kind, call: OperationCall) -> tuple[str, str, Mapping[str, Any]]:
    """Entity, action and the params of the first page."""
    if call.action == SEARCH_ACTION:
        params, _ = prepared_search(kind, call.entity, call.params, call.selection)
        return call.entity, call.action, params
    operation = kind.operation(call.entity, call.action)
    if not operation.is_list or operation.action.runs == "job":
        message = f"{operation}: output is for list, api_search and {SEARCH_ACTION}; leave it out"
        raise InvalidParams(faults=[FieldError("/output", "output", "not_a_list", message)])
    if call.selection != EVERYTHING:
        ensure_declared(call.selection, str(operation), operation.fields, operation.example)
    return operation.entity_id, operation.action_id, prepare(operation, call.params).params
