"""Workspaces, connectors and connect links."""

from gateway.contract.connectors import (
    ConnectLinkView,
    Connector,
    ConnectorPage,
    ConnectSessionView,
    Health,
    InspectionView,
    WorkspacePage,
)
from gateway.contract.jobs import DeletionView
from gateway.http.api import connect, connectors
from gateway.http.route import Route
from gateway.identity.model import Scope

READ, WRITE = Scope.READ, Scope.WRITE
_CONNECTORS = "/api/v1/integrations/connectors"
_CONNECTOR = _CONNECTORS + "/{connector_id}"

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/workspaces",
        connectors.list_workspaces,
        "List workspaces",
        "Workspaces",
        query=connectors.WorkspaceQuery,
        response=WorkspacePage,
        scope=READ,
        command="gateway workspaces",
    ),
    Route(
        "DELETE",
        "/api/v1/workspaces/{workspace_id}",
        connectors.delete_workspace,
        "Delete a workspace with everything in it",
        "Workspaces",
        response=DeletionView,
        answers={202: "The job that deletes it"},
        sends={202: ("Location",)},
        scope=WRITE,
        audit="workspace.delete",
    ),
    Route(
        "POST",
        _CONNECTORS,
        connectors.create_connector,
        "Create a connector from credentials",
        "Connectors",
        body=connectors.CreateConnector,
        errors=(409, 424, 502, 504),
        response=Connector,
        answers={201: "The connector", 200: "The existing connector, with new credentials"},
        sends={200: ("Location", "Deprecation", "Sunset", "Link"), 201: ("Location", "Deprecation", "Sunset", "Link")},
        scope=WRITE,
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
        _CONNECTORS,
        connectors.list_connectors,
        "List connectors",
        "Connectors",
        query=connectors.ConnectorQuery,
        response=ConnectorPage,
        scope=READ,
        command="gateway connectors list",
        python="print(await gateway.connectors.list())",
    ),
    Route(
        "GET",
        _CONNECTOR,
        connectors.get_connector,
        "Get a connector",
        "Connectors",
        response=Connector,
        sends={200: ("Deprecation", "Sunset", "Link")},
        scope=READ,
        command="gateway connectors show $CONNECTOR",
        python="print(await gateway.connectors.get(connector_id))",
    ),
    Route(
        "PATCH",
        _CONNECTOR,
        connectors.change_connector,
        "Change a connector's name, status or credentials",
        "Connectors",
        body=connectors.ChangeConnector,
        response=Connector,
        scope=WRITE,
        audit="connector.update",
        python='print(await gateway.connectors.update(connector_id, name="Help desk of Acme"))',
    ),
    Route(
        "DELETE",
        _CONNECTOR,
        connectors.delete_connector,
        "Delete a connector",
        "Connectors",
        response=DeletionView,
        answers={202: "The job that deletes it"},
        sends={202: ("Location",)},
        scope=WRITE,
        audit="connector.delete",
        command="gateway connectors delete $CONNECTOR",
        python="job = await gateway.connectors.delete(connector_id)\nawait job.wait()",
    ),
    Route(
        "POST",
        _CONNECTOR + "/check",
        connectors.check_connector,
        "Check a connector's credentials",
        "Connectors",
        response=Health,
        scope=READ,
        audit="connector.check",
        command="gateway connectors check $CONNECTOR",
        python='print(await gateway.connectors.check("support-desk"))',
    ),
    Route(
        "GET",
        _CONNECTOR + "/inspect",
        connectors.inspect_connector,
        "Inspect a connector",
        "Connectors",
        response=InspectionView,
        scope=READ,
        command="gateway connectors show $CONNECTOR",
        python='print(await gateway.connectors.inspect("support-desk"))',
    ),
    Route(
        "POST",
        "/api/v1/connect/sessions",
        connect.create_connect_session,
        "Create a link at which a person connects an application",
        "Connect links",
        body=connect.CreateConnectSession,
        response=ConnectLinkView,
        answers={201: "The link, good once"},
        sends={201: ("Location", "Cache-Control")},
        scope=WRITE,
        audit="connect_session.create",
    ),
    Route(
        "GET",
        "/api/v1/connect/sessions/{session_id}",
        connect.get_connect_session,
        "Get the state of a link",
        "Connect links",
        response=ConnectSessionView,
        answers={200: "The state of the link"},
        scope=READ,
    ),
)
