"""Connectors and workspaces: create, list, look at, change, check, delete."""

from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from gateway.connectors.model import ConnectorRecord, ConnectorStatus
from gateway.connectors.service import ConnectorRequest, IfExists
from gateway.errors import GatewayError
from gateway.http.bodies import Body, Name, QueryString, path_id, read_body, read_query
from gateway.http.keys import CALLER, REQUEST_ID, SERVICES
from gateway.http.responses import cursor_of, json_response, read_cursor, read_time_cursor
from gateway.jobs.model import StoredJob, moment
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.sunsets import call_sunsets, described_sunset, explain_refusal, sunset_headers


class CreateConnector(Body):
    """A new connector."""

    workspace_name: Name = Field(description="the workspace, which comes into being by being named")
    connector_type: str = Field(max_length=100, description="the kind, such as Support-Desk")
    name: Name | None = Field(None, description="display name; the kind's title when left out")
    credentials: dict[str, Any] = Field(description="what the kind's authentication method takes; never comes back")
    environment: dict[str, Any] = Field(default_factory=dict, description="the kind's variables, such as subdomain")
    validate_: bool = Field(True, alias="validate", description="ask the application before the connector is stored")
    if_exists: Literal["create", "fail", "update"] = Field(
        "create",
        description="where the workspace has a connector of this name: create another one, fail with a 409 that names "
        "it (connector_id), or update it: it takes the credentials and keeps its id (200)",
    )


class ChangeConnector(Body):
    """What to change of a connector."""

    name: Name | None = Field(None, description="the new display name")
    credentials: dict[str, Any] | None = Field(None, description="new credentials; the old stay until these are good")
    status: Literal["active", "disabled"] | None = Field(None, description="`disabled` stops all calls")


class ConnectorQuery(QueryString):
    """Which connectors."""

    workspace_name: str | None = Field(None, description="only those of this workspace")
    connector_type: str | None = Field(None, description="only those of this kind, such as support-desk")
    definition_id: str | None = Field(None, description="only those of the kind with this id")
    status: ConnectorStatus | None = Field(None, description="only those with this status")
    limit: int | None = Field(None, ge=1, le=1000, description="how many a page holds; all when left out")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class WorkspaceQuery(QueryString):
    """Which workspaces."""

    name_contains: str | None = Field(None, description="only those whose name contains this")
    limit: int | None = Field(None, ge=1, le=1000, description="how many a page holds; 1000 when left out")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


def connector_view(record: ConnectorRecord, catalog: Catalog) -> dict[str, Any]:
    """The connector as callers see it; credentials never come back, not even masked."""
    spec = catalog.kind(record.kind).spec
    return {
        "id": str(record.id),
        "name": record.name,
        "workspace_name": record.workspace_name,
        "connector_type": spec.display_name,
        "kind": record.kind,
        "definition_id": spec.definition_id,
        "status": record.status.value,
        "status_reason": _status_reason(record, spec),
        "auth_method": record.auth_method,
        "environment": record.environment,
        "created_at": moment(record.created_at),
        "updated_at": moment(record.updated_at),
        "summarized_source_template": {"id": spec.definition_id, "name": spec.display_name},
    }


def _status_reason(record: ConnectorRecord, spec: ConnectorSpec) -> str | None:
    """Why the connector stands as it does, and what of it will end."""
    reasons = (record.status_reason, described_sunset(spec, record.auth_method))
    return "; ".join(reason for reason in reasons if reason) or None


def _ending_headers(record: ConnectorRecord, catalog: Catalog) -> dict[str, str]:
    return sunset_headers(call_sunsets(catalog.kind(record.kind).spec, record.auth_method))


async def create_connector(request: web.Request) -> web.Response:
    """POST …/connectors: a connector from credentials that the application has accepted."""
    body, caller, services = await read_body(request, CreateConnector), request[CALLER], request.app[SERVICES]
    connector_request = ConnectorRequest(
        body.workspace_name,
        body.connector_type,
        body.name,
        body.credentials,
        body.environment,
        body.validate_,
        IfExists(body.if_exists),
    )
    record, is_new = await services.connector_service.create(caller, connector_request)
    if is_new:
        await services.synchronization.begin(record, caller.client_id)
    location = {"Location": f"/api/v1/integrations/connectors/{record.id}"}
    headers = {**location, **_ending_headers(record, services.catalog)}
    return json_response(connector_view(record, services.catalog), 201 if is_new else 200, headers)


async def list_connectors(request: web.Request) -> web.Response:
    """GET …/connectors: all that match, or a page of them when a limit is given."""
    query, caller, services = read_query(request, ConnectorQuery), request[CALLER], request.app[SERVICES]
    kinds = {kind.spec.definition_id: kind.name for kind in services.catalog}
    kind = services.catalog.kind(query.connector_type).name if query.connector_type else None
    if query.definition_id is not None:
        named = kinds.get(query.definition_id, "")
        kind = named if kind in (None, named) else ""
    records = await services.connector_store.find(
        caller.organization_id,
        workspace_name=query.workspace_name,
        kind=kind,
        status=query.status,
        after=read_time_cursor(query.cursor),
        limit=None if query.limit is None else query.limit + 1,
    )
    page = records[: query.limit]
    next_cursor = cursor_of((page[-1].created_at, page[-1].id)) if len(records) > len(page) else None
    data = [connector_view(record, services.catalog) for record in page]
    return json_response({"data": data, "next_cursor": next_cursor})


async def get_connector(request: web.Request) -> web.Response:
    """GET …/connectors/{id}."""
    services = request.app[SERVICES]
    record = await services.connector_store.get(request[CALLER].organization_id, path_id(request, "connector_id"))
    headers = _ending_headers(record, services.catalog)
    return json_response(connector_view(record, services.catalog), headers=headers)


async def change_connector(request: web.Request) -> web.Response:
    """PATCH …/connectors/{id}: name, status, or new credentials under the same id."""
    body, caller, services = await read_body(request, ChangeConnector), request[CALLER], request.app[SERVICES]
    record = await services.connector_store.get(caller.organization_id, path_id(request, "connector_id"))
    status = None if body.status is None else ConnectorStatus(body.status)
    changed = await services.connector_service.change(
        caller, record, name=body.name, credentials=body.credentials, status=status
    )
    return json_response(connector_view(changed, services.catalog))


async def delete_connector(request: web.Request) -> web.Response:
    """DELETE …/connectors/{id}: gone at once for callers; a job drops everything that belonged to it."""
    caller, services = request[CALLER], request.app[SERVICES]
    job = await services.deletion.delete_connector(caller, path_id(request, "connector_id"), request[REQUEST_ID])
    return _deletion(job)


async def check_connector(request: web.Request) -> web.Response:
    """POST …/connectors/{id}/check: ask the application now."""
    caller, services = request[CALLER], request.app[SERVICES]
    opened = await services.connectors.get(caller.organization_id, path_id(request, "connector_id"))
    opened.require_active()
    try:
        await opened.connector.check()
    except GatewayError as error:
        explain_refusal(error, opened.connector.kind.spec, opened.record.auth_method)
        reason = {"code": error.code, "message": error.detail, "retryable": error.retryable}
        return json_response({"status": "unhealthy", "reason": reason, "message": error.detail})
    return json_response({"status": "healthy"})


async def inspect_connector(request: web.Request) -> web.Response:
    """GET …/connectors/{id}/inspect: what an agent can do with it now."""
    caller, services = request[CALLER], request.app[SERVICES]
    record = await services.connector_store.get(caller.organization_id, path_id(request, "connector_id"))
    kind = services.catalog.kind(record.kind)
    operations = [
        {"entity": entity, "actions": kind.actions_of(entity), "description": spec.description}
        for entity, spec in kind.spec.entities.items()
    ]
    return json_response(
        {
            **connector_view(record, services.catalog),
            "ready": record.status is ConnectorStatus.ACTIVE,
            "operations": operations,
            "context_store": await services.synchronization.freshness(record),
            "docs_skill_id": record.kind,
        }
    )


async def list_workspaces(request: web.Request) -> web.Response:
    """GET /api/v1/workspaces."""
    query, caller, services = read_query(request, WorkspaceQuery), request[CALLER], request.app[SERVICES]
    limit = query.limit or 1000
    workspaces = await services.identity.workspaces(
        caller.organization_id, query.name_contains, read_cursor(query.cursor), limit + 1
    )
    page = workspaces[:limit]
    data = [
        {
            "id": str(workspace.id),
            "name": workspace.name,
            "connectors": workspace.connectors,
            "created_at": moment(workspace.created_at),
        }
        for workspace in page
    ]
    next_cursor = cursor_of((page[-1].name, page[-1].id)) if len(workspaces) > len(page) else None
    return json_response({"data": data, "next_cursor": next_cursor})


async def delete_workspace(request: web.Request) -> web.Response:
    """DELETE /api/v1/workspaces/{id}: it and everything in it, as a job."""
    caller, services = request[CALLER], request.app[SERVICES]
    job = await services.deletion.delete_workspace(caller, path_id(request, "workspace_id"), request[REQUEST_ID])
    return _deletion(job)


def _deletion(job: StoredJob) -> web.Response:
    return json_response({"job_id": str(job.id)}, 202, {"Location": f"/api/v1/jobs/{job.id}"})
