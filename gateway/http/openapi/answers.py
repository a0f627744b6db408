"""What each operation answers when all is well: media types, schemas and an example."""

from typing import Any

from gateway.http.openapi import connector_schemas, discovery_schemas, kind_schemas, mcp_schemas, work_schemas
from gateway.http.openapi.errors import form_errors, is_form_error, problems
from gateway.http.openapi.parts import Schema, ref
from gateway.http.openapi.paths import (
    CALLBACK,
    CONNECT_SESSIONS,
    CONNECTOR,
    CONNECTOR_TYPES,
    CONNECTORS,
    CONSENT,
    DOWNLOAD,
    EXECUTE,
    JOB,
    OAUTH_APPS,
    REVOKE,
    TOKEN,
    TOKENS,
)
from gateway.http.route import Route
from gateway.oauth_server.metadata import AUTHORIZE, REGISTER, RESOURCE_METADATA, SERVER_METADATA

SCHEMAS: dict[str, Schema] = {
    **connector_schemas.SCHEMAS,
    **work_schemas.SCHEMAS,
    **kind_schemas.SCHEMAS,
    **discovery_schemas.SCHEMAS,
    **mcp_schemas.SCHEMAS,
}
#: the schema of a JSON answer by method, path and status
ANSWERS: dict[tuple[str, str, int], str] = {
    ("POST", TOKENS, 200): "Token",
    ("POST", TOKEN, 200): "GrantedToken",
    ("GET", "/api/v1/workspaces", 200): "Workspaces",
    ("DELETE", "/api/v1/workspaces/{workspace_id}", 202): "Deletion",
    ("POST", CONNECTORS, 200): "Connector",
    ("POST", CONNECTORS, 201): "Connector",
    ("GET", CONNECTORS, 200): "Connectors",
    ("GET", CONNECTOR, 200): "Connector",
    ("PATCH", CONNECTOR, 200): "Connector",
    ("DELETE", CONNECTOR, 202): "Deletion",
    ("POST", f"{CONNECTOR}/check", 200): "Health",
    ("GET", f"{CONNECTOR}/inspect", 200): "Inspection",
    ("POST", f"{CONNECTORS}/oauth/initiate", 200): "StartedConsent",
    ("GET", f"{CONNECTORS}/oauth/flows/{{flow_id}}", 200): "Consent",
    ("PUT", OAUTH_APPS, 200): "OAuthApp",
    ("GET", OAUTH_APPS, 200): "OAuthApps",
    ("GET", f"{CONNECTOR}/context-store", 200): "ContextStore",
    ("POST", f"{CONNECTOR}/context-store/sync", 202): "AcceptedJob",
    ("POST", CONNECT_SESSIONS, 201): "ConnectLink",
    ("GET", f"{CONNECT_SESSIONS}/{{session_id}}", 200): "ConnectSession",
    ("POST", EXECUTE, 200): "Result",
    ("POST", EXECUTE, 202): "AcceptedJob",
    ("GET", "/api/v1/jobs", 200): "Jobs",
    ("GET", JOB, 200): "Job",
    ("GET", f"{JOB}/result", 200): "Result",
    ("GET", f"{JOB}/result", 202): "AcceptedJob",
    ("POST", f"{JOB}/cancel", 202): "Job",
    ("POST", f"{JOB}/retry", 202): "AcceptedJob",
    ("GET", CONNECTOR_TYPES, 200): "KindSummaries",
    ("GET", f"{CONNECTOR_TYPES}/{{kind}}", 200): "Kind",
    ("GET", "/api/v1/operations", 200): "Operations",
    ("GET", "/api/v1/tools", 200): "Tools",
    ("GET", "/api/v1/skills/docs", 200): "SkillDocs",
    ("GET", "/api/v1/audit", 200): "AuditEntries",
    ("GET", "/api/v1/usage", 200): "Usage",
    ("GET", RESOURCE_METADATA, 200): "ResourceMetadata",
    ("GET", f"{RESOURCE_METADATA}/mcp", 200): "ResourceMetadata",
    ("GET", f"{RESOURCE_METADATA}/mcp/{{kind}}", 200): "ResourceMetadata",
    ("GET", SERVER_METADATA, 200): "ServerMetadata",
    ("POST", REGISTER, 201): "RegisteredHost",
    ("POST", REGISTER, 400): "OAuthError",
    ("GET", "/api/v1/grants", 200): "Grants",
    ("GET", "/api/v1/clients", 200): "Clients",
    ("PATCH", "/api/v1/clients/{client_id}", 200): "Client",
    ("GET", "/api/v1/health/checks", 200): "HealthChecks",
    ("GET", "/", 200): "Signpost",
    ("GET", "/healthz", 200): "Alive",
    ("GET", "/readyz", 200): "Readiness",
    ("GET", "/readyz", 503): "Readiness",
    ("GET", "/openapi.json", 200): "OpenAPI",
}
#: beside JSON, or instead of it
_OTHER_TYPES: dict[tuple[str, str, int], tuple[str, ...]] = {
    ("POST", EXECUTE, 200): ("*/*",),
    ("GET", f"{JOB}/result", 200): ("application/x-ndjson", "*/*"),
    ("GET", f"{JOB}/events", 200): ("text/event-stream",),
    ("GET", "/docs", 200): ("text/html",),
    ("GET", "/metrics", 200): ("text/plain",),
    ("GET", CONSENT, 400): ("text/plain",),
    ("GET", CALLBACK, 400): ("text/plain",),
}
_BYTES = {
    ("POST", EXECUTE, 206),
    ("GET", f"{JOB}/result", 206),
    *((method, DOWNLOAD, status) for method in ("GET", "HEAD") for status in (200, 206)),
}
_TEXT_EXAMPLES = {
    "text/event-stream": 'id: 2\nevent: status\ndata: {"status":"running","progress":0}\n\n',
    "application/x-ndjson": '{"id":1,"subject":"The printer is on fire"}\n',
    "text/plain": "gateway_requests_total 1.0\n",
}
_BODILESS = {204, 303, 304}


def answer_content(route: Route, status: int) -> dict[str, Any]:
    """The media types of an answer with the schema and an example of each; none where it has no body."""
    place = (route.method, route.path, status)
    if status in _BODILESS or (route.path == REVOKE and status == 200):
        return {}
    if route.path.startswith("/mcp"):
        return _rpc(status)
    if route.path.startswith(AUTHORIZE):
        return {"text/html": {"schema": {"type": "string"}}, **(problems(status) if status >= 400 else {})}
    if is_form_error(route, status):
        return form_errors()
    if place in _BYTES or (route.path == f"{JOB}/result" and route.method == "HEAD"):
        return {"*/*": {}}
    content = {**_json(ANSWERS.get(place)), **{each: _text(each) for each in _OTHER_TYPES.get(place, ())}}
    return {**content, **(problems(status) if status >= 400 else {})}


def _json(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    examples = SCHEMAS[name].get("examples", [])
    return {"application/json": {"schema": ref(name), **({"example": examples[0]} if examples else {})}}


def _text(media_type: str) -> dict[str, Any]:
    if media_type == "*/*":
        return {}
    example = _TEXT_EXAMPLES.get(media_type)
    return {"schema": {"type": "string"}, **({"example": example} if example else {})}


def _rpc(status: int) -> dict[str, Any]:
    if status == 202:
        return {}
    stream = {"text/event-stream": {"schema": {"type": "string"}}} if status == 200 else {}
    return {**_json("JsonRpcResponse"), **stream, **(problems(status) if status >= 400 else {})}
