"""Connectors and workspaces: create, list, read, change, check, delete."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

import msgspec
from aiohttp import web
from msgspec.structs import asdict
from pydantic import Field, StringConstraints

from gateway.access.identity.model import Scope
from gateway.contract.connectors import (
    MCP,
    Connector,
    ConnectorPage,
    ConnectorRequest,
    ConnectorSelection,
    ConnectorSettings,
    ConnectorStatus,
    Health,
    IfExists,
    InspectionView,
    UnhealthyView,
    UsableEntityView,
    WorkspacePage,
    WorkspaceView,
)
from gateway.contract.cursors import page_of, read_cursor
from gateway.contract.jobs import DeletionView
from gateway.errors import GatewayError, InvalidParams, UnknownConnectorType
from gateway.jobs.model import StoredJob
from gateway.kinds.catalog import Catalog
from gateway.kinds.spec import KIND_NAME
from gateway.kinds.suggestions import canonical
from gateway.kinds.sunsets import call_sunsets, explain_refusal, sunset_headers
from gateway.upstream.mcp_servers import McpAddress
from gateway.web.bodies import Body, Name, QueryString, json_response, path_id, read_body, read_query
from gateway.web.keys import CALLER, REQUEST_ID, SERVICES
from gateway.web.route import CONNECTOR, CONNECTORS, Route

_CREDENTIALS = {"subdomain": "acme", "email": "agent@acme.com", "api_token": "…"}


class McpServer(Body):
    """An MCP server whose tools become the operations of a kind of its own."""

    EXAMPLES: ClassVar = {"server": {"url": "https://mcp.tracker.example/mcp"}}

    url: str = Field(min_length=1, max_length=2_000, description="the https URL of the server (Streamable HTTP)")
    kind: Annotated[str, StringConstraints(pattern=KIND_NAME, max_length=60)] | None = Field(
        None, description="the name of the kind; made from the server's name when left out"
    )
    header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,60}$")] | None = Field(
        None, description="the header of `credentials.access_token`; `Authorization: Bearer` when left out"
    )
    query: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,60}$")] | None = Field(
        None, description="the member of the query that is `credentials.access_token`, in place of a header"
    )


class CreateConnector(Body):
    """A new connector."""

    EXAMPLES: ClassVar = {
        "key": {
            "workspace_name": "acme",
            "connector_type": "Support-Desk",
            "name": "Help desk",
            "credentials": _CREDENTIALS,
        },
        "mcp": {
            "workspace_name": "acme",
            "connector_type": "Mcp",
            "mcp_server": {"url": "https://mcp.tracker.example/mcp"},
            "credentials": {"access_token": "…"},
        },
    }

    workspace_name: Name = Field(description="the workspace; a new name creates it")
    connector_type: str = Field(max_length=100, description="the kind, such as Support-Desk; `Mcp` with `mcp_server`")
    mcp_server: McpServer | None = Field(
        None,
        description="for the type `Mcp`: an MCP server. Whoever may import kinds accepts its tools by this call, as "
        "writes; if they differ from those that were accepted before, the answer is 409 and a draft shows how",
    )
    name: Name | None = Field(None, description="display name; the application's name when left out")
    credentials: dict[str, Any] = Field(
        max_length=100,
        description="the credential fields of the kind's authentication method; never returned. A value may be the "
        'reference `{"$secret": "vault://HOST/MOUNT/PATH#FIELD"}` to a secret, if the operator allows it',
    )
    environment: dict[str, Any] = Field(
        default_factory=dict, max_length=100, description="the kind's variables, such as subdomain"
    )
    validate_: bool = Field(True, alias="validate", description="check the credentials at the application first")
    owner: Annotated[str, StringConstraints(max_length=47)] | None = Field(
        None, description="whose own connector it is: `me`, or a person's id; shared when left out"
    )
    if_exists: Literal["create", "fail", "update"] = Field(
        "create",
        description="if the workspace has a connector of this name: create another one, fail with a 409 that has its "
        "connector_id, or update its credentials; it keeps its id (200)",
    )


class ChangeConnector(Body):
    """Changes of a connector."""

    EXAMPLES: ClassVar = {
        "rename": {"name": "Help desk of Acme"},
        "disable": {"status": "disabled"},
        "credentials": {"credentials": _CREDENTIALS},
    }

    name: Name | None = Field(None, description="the new display name")
    credentials: dict[str, Any] | None = Field(
        None,
        max_length=100,
        description="new credentials, or references to secrets; the old ones stay until the application has accepted "
        "these",
    )
    status: Literal["active", "disabled"] | None = Field(None, description="`disabled` stops all calls")


class ConnectorQuery(QueryString):
    """The filter and page of connectors."""

    EXAMPLE: ClassVar = {"workspace_name": "acme"}

    workspace_name: str | None = Field(None, description="only those of this workspace")
    connector_type: str | None = Field(None, description="only those of this kind, such as support-desk")
    definition_id: str | None = Field(None, description="only those of the kind with this id")
    status: ConnectorStatus | None = Field(None, description="only those with this status")
    usable: bool = Field(False, description="only those that the caller can call: none of other people")
    limit: int | None = Field(None, ge=1, le=1000, description="maximum connectors of a page; all when left out")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class WorkspaceQuery(QueryString):
    """The filter and page of workspaces."""

    EXAMPLE: ClassVar = {"name_contains": "acme"}

    name_contains: str | None = Field(None, description="only those whose name contains this")
    limit: int | None = Field(None, ge=1, le=1000, description="maximum workspaces of a page; 1000 when left out")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


def _sunset_headers(connector: Connector, catalog: Catalog) -> dict[str, str]:
    kind = catalog.kinds.get(connector.kind)
    return {} if kind is None else sunset_headers(call_sunsets(kind.spec, connector.auth_method))


async def create_connector(request: web.Request) -> web.Response:
    """Creates a connector in a workspace; a new workspace name creates the workspace. The kind's variables, such as
    `subdomain`, may be in `environment` or in `credentials`. Unless `validate` is false, the gateway first checks the
    credentials at the application; if it refuses them, the response is 422 `invalid_credentials` and names the field.
    Credentials are sealed and never returned. Of a credential that is a reference to a secret, the reference is stored,
    and the value is read when it is used.
    """
    body, caller, services = await read_body(request, CreateConnector), request[CALLER], request.app[SERVICES]
    kind = body.connector_type
    require_server(kind, body.mcp_server)
    if body.mcp_server is not None:
        address = _server_address(body.mcp_server, body.credentials)
        kind = await services.connectors.imports.serve_server(caller, address)
    connector_request = ConnectorRequest(
        workspace_name=body.workspace_name,
        connector_type=kind,
        settings=_settings(body),
        credentials=body.credentials,
        environment=body.environment,
        validate=body.validate_,
        if_exists=IfExists(body.if_exists),
        owner=body.owner,
    )
    connector, is_new = await services.connectors.change.create(caller, connector_request)
    location = {"Location": f"/api/v1/integrations/connectors/{connector.id}"}
    return json_response(
        connector, 201 if is_new else 200, {**location, **_sunset_headers(connector, services.catalog)}
    )


def require_server(connector_type: str, server: Body | None) -> None:
    """Raise InvalidParams unless a request names both the type `Mcp` and a server, or neither."""
    if (server is None) == (connector_type.lower() == MCP):
        raise InvalidParams('an MCP server needs `connector_type: "Mcp"` and `mcp_server` with its url')


def _server_address(server: McpServer, credentials: Mapping[str, Any]) -> McpAddress:
    """The server and the token with which its tools are listed; raises InvalidParams."""
    token = credentials.get("access_token")
    if token is not None and not isinstance(token, str):
        raise InvalidParams("credentials.access_token must be a string")
    if server.header is not None and server.query is not None:
        raise InvalidParams("mcp_server has both header and query; the access token is sent in one of them")
    return McpAddress(url=server.url, token=token, header=server.header, query=server.query, kind=server.kind)


async def list_connectors(request: web.Request) -> ConnectorPage:
    """All matching connectors; with `limit` in pages."""
    query, caller, services = read_query(request, ConnectorQuery), request[CALLER], request.app[SERVICES]
    kinds = {kind.spec.definition_id: kind.name for kind in services.catalog}
    kind = await _kind_named(request, query.connector_type) if query.connector_type else None
    if query.definition_id is not None:
        named = kinds.get(query.definition_id, "")
        kind = named if kind in (None, named) else ""
    selection = ConnectorSelection(workspace_name=query.workspace_name, kind=kind, status=query.status)
    return await services.connectors.change.find(
        caller, selection, query.cursor, query.limit, with_personal=not query.usable
    )


async def _kind_named(request: web.Request, name: str) -> str:
    """The name of a kind, or of one that is not served but has connectors; raises UnknownConnectorType."""
    services = request.app[SERVICES]
    try:
        return services.catalog.kind(name).name
    except UnknownConnectorType:
        if not await services.connectors.access.find(
            request[CALLER], ConnectorSelection(kind=canonical(name)), limit=1
        ):
            raise
        return canonical(name)


async def get_connector(request: web.Request) -> web.Response:
    """One connector, without its credentials."""
    services = request.app[SERVICES]
    connector = await services.connectors.change.get(request[CALLER], path_id(request, "connector_id"))
    return json_response(connector, headers=_sunset_headers(connector, services.catalog))


async def change_connector(request: web.Request) -> Connector:
    """Changes the name, disables (`status: disabled`) or enables (`active`) the connector, or replaces its credentials.
    The old credentials stay until the application has accepted the new ones.
    """
    body, caller, services = await read_body(request, ChangeConnector), request[CALLER], request.app[SERVICES]
    connector_id = path_id(request, "connector_id")
    status = None if body.status is None else ConnectorStatus(body.status)
    return await services.connectors.change.change(
        caller, connector_id, _settings(body), credentials=body.credentials, status=status
    )


def _settings(body: CreateConnector | ChangeConnector) -> ConnectorSettings:
    """The settings that the body has."""
    given = body.model_dump(include=set(get_type_hints(ConnectorSettings)), exclude_unset=True)
    return msgspec.convert(given, ConnectorSettings)


async def delete_connector(request: web.Request) -> web.Response:
    """Deletes the connector at once. A job revokes its grant, if the application supports that, and deletes its
    records, job results, stored files and secrets.
    """
    caller, services = request[CALLER], request.app[SERVICES]
    job = await services.operations.deletion.delete_connector(
        caller, path_id(request, "connector_id"), request[REQUEST_ID]
    )
    return _deletion(job)


async def check_connector(request: web.Request) -> Health:
    """Calls the kind's health check: `healthy`, or `unhealthy` with the reason."""
    caller, services = request[CALLER], request.app[SERVICES]
    opened = await services.connectors.resolver.get_for(caller, path_id(request, "connector_id"))
    opened.require_active()
    try:
        await opened.connector.check()
    except GatewayError as error:
        explain_refusal(error, opened.connector.kind.spec, opened.record.auth_method)
        return Health("unhealthy", UnhealthyView(error.code, error.detail, error.retryable), error.detail)
    if opened.connector.kind.health_check is None:
        return Health("healthy", message="the kind has no health check, so the credentials were not tried")
    return Health("healthy")


async def inspect_connector(request: web.Request) -> InspectionView:
    """Whether the connector is ready, its operations and the state of its copies."""
    caller, services = request[CALLER], request.app[SERVICES]
    connector_id = path_id(request, "connector_id")
    connector = await services.connectors.change.get(caller, connector_id)
    kind = services.catalog.served(connector.kind)
    operations = [
        UsableEntityView(entity, kind.actions_of(entity), spec.description)
        for entity, spec in kind.spec.entities.items()
    ]
    return InspectionView(
        **asdict(connector),
        ready=connector.status is ConnectorStatus.ACTIVE,
        operations=operations,
        context_store=await services.copy.synchronization.freshness(caller, connector_id, kind.name),
        docs_skill_id=kind.name,
    )


async def list_workspaces(request: web.Request) -> WorkspacePage:
    """The organization's workspaces by name, with the number of their connectors."""
    query, caller, services = read_query(request, WorkspaceQuery), request[CALLER], request.app[SERVICES]
    limit = query.limit or 1000
    workspaces = await services.connectors.access.workspaces(
        caller, query.name_contains, read_cursor(query.cursor), limit + 1
    )
    page, next_cursor = page_of(workspaces, limit, lambda each: (each.name, each.id))
    data = [WorkspaceView(str(each.id), each.name, each.connectors, each.created_at) for each in page]
    return WorkspacePage(data, next_cursor)


async def delete_workspace(request: web.Request) -> web.Response:
    """Starts a job that deletes the workspace and its connectors: it revokes their grants and deletes records, results,
    stored files and secrets.
    """
    caller, services = request[CALLER], request.app[SERVICES]
    job = await services.operations.deletion.delete_workspace(
        caller, path_id(request, "workspace_id"), request[REQUEST_ID]
    )
    return _deletion(job)


def _deletion(job: StoredJob) -> web.Response:
    return json_response(DeletionView(str(job.id)), 202, {"Location": f"/api/v1/jobs/{job.id}"})


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/workspaces",
        list_workspaces,
        "List workspaces",
        "Workspaces",
        query=WorkspaceQuery,
        response=WorkspacePage,
        scope=Scope.READ,
        command="gateway workspaces",
    ),
    Route(
        "DELETE",
        "/api/v1/workspaces/{workspace_id}",
        delete_workspace,
        "Delete a workspace with everything in it",
        "Workspaces",
        response=DeletionView,
        answers={202: "The job that deletes it"},
        sends={202: ("Location",)},
        scope=Scope.WRITE,
        audit="workspace.delete",
    ),
    Route(
        "POST",
        CONNECTORS,
        create_connector,
        "Create a connector from credentials",
        "Connectors",
        body=CreateConnector,
        errors=(409, 424, 502, 504),
        response=Connector,
        answers={201: "The connector", 200: "The existing connector, with new credentials"},
        sends={200: ("Location", "Deprecation", "Sunset", "Link"), 201: ("Location", "Deprecation", "Sunset", "Link")},
        scope=Scope.WRITE,
        audit="connector.create",
        command=(
            "gateway connect support-desk --env subdomain=acme --credential email=agent@acme.com "
            "--credential api_token=@token"
        ),
        python=(
            'credentials = {"subdomain": "acme", "email": "agent@acme.com", "api_token": "…"}\n'
            'print(await gateway.connectors.create("support-desk", credentials, name="Help desk"))'
        ),
    ),
    Route(
        "GET",
        CONNECTORS,
        list_connectors,
        "List connectors",
        "Connectors",
        query=ConnectorQuery,
        response=ConnectorPage,
        scope=Scope.READ,
        command="gateway connectors list",
        python="print(await gateway.connectors.list())",
        in_session=True,
    ),
    Route(
        "GET",
        CONNECTOR,
        get_connector,
        "Get a connector",
        "Connectors",
        response=Connector,
        sends={200: ("Deprecation", "Sunset", "Link")},
        scope=Scope.READ,
        command="gateway connectors show $CONNECTOR",
        python="print(await gateway.connectors.get(connector_id))",
        in_session=True,
    ),
    Route(
        "PATCH",
        CONNECTOR,
        change_connector,
        "Change a connector's name, status or credentials",
        "Connectors",
        body=ChangeConnector,
        response=Connector,
        scope=Scope.WRITE,
        audit="connector.update",
        python='print(await gateway.connectors.update(connector_id, name="Help desk of Acme"))',
    ),
    Route(
        "DELETE",
        CONNECTOR,
        delete_connector,
        "Delete a connector",
        "Connectors",
        response=DeletionView,
        answers={202: "The job that deletes it"},
        sends={202: ("Location",)},
        scope=Scope.WRITE,
        audit="connector.delete",
        command="gateway connectors delete $CONNECTOR",
        python="job = await gateway.connectors.delete(connector_id)\nawait job.wait()",
    ),
    Route(
        "POST",
        CONNECTOR + "/check",
        check_connector,
        "Check a connector's credentials",
        "Connectors",
        response=Health,
        scope=Scope.READ,
        audit="connector.check",
        command="gateway connectors check $CONNECTOR",
        python='print(await gateway.connectors.check("support-desk"))',
        in_session=True,
    ),
    Route(
        "GET",
        CONNECTOR + "/inspect",
        inspect_connector,
        "Inspect a connector",
        "Connectors",
        response=InspectionView,
        errors=(409,),
        scope=Scope.READ,
        command="gateway connectors show $CONNECTOR",
        python='print(await gateway.connectors.inspect("support-desk"))',
        in_session=True,
    ),
)
