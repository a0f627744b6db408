"""What operations are sent: parameters of paths and queries, bodies, and an example of each."""

import re
from typing import Any

from pydantic import BaseModel

from gateway.http.api.tokens import RevokeToken, TokenRequest
from gateway.http.openapi.parts import ID, REF, Schema, ref, text
from gateway.http.openapi.paths import (
    CALLBACK,
    CONNECT_SESSIONS,
    CONNECTOR,
    CONNECTORS,
    CONSENT,
    EXECUTE,
    JOB,
    OAUTH_APPS,
    REVOKE,
    TOKEN,
    TOKENS,
)
from gateway.http.route import Route
from gateway.kinds.actions import SEARCH_ACTION
from gateway.oauth_server.metadata import AUTHORIZE, REGISTER

#: those of RFC 6749 and 7009 take forms, and answer with their own errors
FORMS: dict[str, type[BaseModel]] = {TOKEN: TokenRequest, REVOKE: RevokeToken}
_PATH_MEANINGS = {
    "connector_id": text("the connector's id", format="uuid"),
    "workspace_id": text("the workspace's id", format="uuid"),
    "job_id": text("the job's id", format="uuid"),
    "flow_id": text("the consent's id", format="uuid"),
    "session_id": text("the link's id", format="uuid"),
    "grant_id": text("the grant's id", format="uuid"),
    "client_id": text("the client's id", format="uuid"),
    "entity": text("the entity whose file it is, such as attachments"),
    "kind": text("the kind, such as support-desk"),
    "connector_type": text("the kind, such as support-desk"),
}
_PATH_EXAMPLES = {"entity": "attachments", "kind": "support-desk", "connector_type": "support-desk"}
_QUERY_EXAMPLES: dict[str, dict[str, Any]] = {
    f"{CONNECTOR}/download/{{entity}}": {"attachment_id": 2},
    "/api/v1/operations": {"query": "close a ticket"},
    "/api/v1/tools": {"format": "openai", "kind": "support-desk", "effect": "read"},
    "/api/v1/skills/docs": {"id": "support-desk", "section": "tickets"},
    "/api/v1/audit": {"limit": 20},
    "/api/v1/jobs": {"limit": 20},
    f"{JOB}/result": {"wait": 30},
    JOB: {"wait": 30},
    CONNECTORS: {"workspace_name": "acme"},
    "/api/v1/workspaces": {"name_contains": "acme"},
}
_CREDENTIALS = {"subdomain": "acme", "email": "agent@acme.com", "api_token": "…"}
_REDIRECT = "https://app.example.com/connected"
#: by method and path: name → body
_BODY_EXAMPLES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("POST", EXECUTE): {
        "list": {
            "entity": "tickets",
            "action": "list",
            "params": {"per_page": 2},
            "select_fields": ["id", "subject"],
        },
        "create": {
            "entity": "tickets",
            "action": "create",
            "params": {"ticket": {"subject": "The printer is on fire"}},
        },
        "search": {
            "entity": "tickets",
            "action": SEARCH_ACTION,
            "params": {"query": {"filter": {"eq": {"status": "open"}}, "sort": [{"updated_at": "desc"}]}, "limit": 10},
        },
        "download": {"entity": "attachments", "action": "download", "params": {"attachment_id": 2}},
    },
    ("POST", TOKENS): {"client": {"client_id": ID, "client_secret": "…"}},
    ("POST", TOKEN): {"client": {"grant_type": "client_credentials", "client_id": ID, "client_secret": "…"}},
    ("POST", REVOKE): {"token": {"token": "2YotnFZFEjr1zCsicMWpAA", "client_id": ID, "client_secret": "…"}},
    ("POST", CONNECTORS): {
        "key": {
            "workspace_name": "acme",
            "connector_type": "Support-Desk",
            "name": "Help desk",
            "credentials": _CREDENTIALS,
        }
    },
    ("PATCH", CONNECTOR): {
        "rename": {"name": "Help desk of Acme"},
        "disable": {"status": "disabled"},
        "credentials": {"credentials": _CREDENTIALS},
    },
    ("POST", f"{CONNECTORS}/oauth/initiate"): {
        "consent": {"workspace_name": "acme", "connector_type": "Team-Chat", "redirect_url": _REDIRECT}
    },
    ("PUT", OAUTH_APPS): {
        "app": {"connector_type": "team-chat", "configuration": {"client_id": "acme-agents", "client_secret": "…"}}
    },
    ("POST", f"{CONNECTOR}/context-store/sync"): {"tickets": {"entities": ["tickets"]}, "everything": {"full": True}},
    ("POST", CONNECT_SESSIONS): {"link": {"workspace_name": "acme", "connector_types": ["support-desk", "team-chat"]}},
    ("PATCH", "/api/v1/clients/{client_id}"): {"urls": {"redirect_urls": ["https://app.example.com/connected"]}},
    ("POST", f"{JOB}/retry"): {"unknown": {"confirm": True}},
    ("POST", REGISTER): {"host": {"redirect_uris": ["http://127.0.0.1:33418/callback"], "client_name": "My agent"}},
    ("POST", "/mcp"): {"tools": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}},
    ("POST", "/mcp/{kind}"): {"tools": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}},
}
#: schemas of bodies that no model reads
_SCHEMAS = {"/mcp": "JsonRpcRequest", "/mcp/{kind}": "JsonRpcRequest", REGISTER: "HostRegistration"}
#: may be left out
_OPTIONAL = {f"{CONNECTOR}/context-store/sync", f"{JOB}/retry"}
_FORM = "application/x-www-form-urlencoded"


def path_parameters(path: str) -> list[dict[str, Any]]:
    """The variables of a path."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_MEANINGS[name]["description"],
            "schema": _PATH_MEANINGS[name],
            "example": path_example(name),
        }
        for name in re.findall(r"{(\w+)}", path)
    ]


def path_example(name: str) -> str:
    return _PATH_EXAMPLES.get(name, ID)


#: what browsers bring along in a consent, which is read as it comes
_OF_BROWSERS: dict[str, dict[str, tuple[str, Schema]]] = {
    CONSENT: {"state": ("the consent, as `consent_url` has it", {"type": "string"})},
    CALLBACK: {
        "code": ("what the application gives for the consent (RFC 6749 §4.1.2)", {"type": "string"}),
        "state": ("the consent that it is for", {"type": "string"}),
        "iss": ("the authorization server (RFC 9207)", {"type": "string"}),
        "error": ("why there is no code", {"type": "string"}),
        "error_description": ("the same in the application's words", {"type": "string"}),
        "others": ("what applications add", {"type": "object", "additionalProperties": True}),
    },
}


def query_parameters(route: Route) -> list[dict[str, Any]]:
    """The members of its query string."""
    if route.query is None:
        return [
            {"name": name, "in": "query", "required": False, "description": meaning, "schema": schema}
            for name, (meaning, schema) in _OF_BROWSERS.get(route.path, {}).items()
        ]
    schema = route.query.model_json_schema(ref_template=f"{REF}{{model}}")
    examples = query_example(route)
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": member.get("description", ""),
            "schema": member,
            **({"style": "form", "explode": False} if _is_list(member) else {}),
            **({"example": examples[name]} if name in examples else {}),
        }
        for name, member in schema["properties"].items()
    ]
    if schema.get("additionalProperties") is True:
        params = {"type": "object", "description": schema["description"], "additionalProperties": True}
        parameters.append({"name": "params", "in": "query", "description": schema["description"], "schema": params})
    return parameters


def _is_list(schema: Schema) -> bool:
    """Whether its values are separated by commas."""
    return any(each.get("type") == "array" for each in schema.get("anyOf", ()))


def query_example(route: Route) -> dict[str, Any]:
    return _QUERY_EXAMPLES.get(route.path, {}) if route.query is not None else {}


def body_example(route: Route) -> dict[str, Any] | None:
    """The first of its bodies that the document shows."""
    return next(iter(_BODY_EXAMPLES.get((route.method, route.path), {}).values()), None)


def is_form(route: Route) -> bool:
    return route.path in FORMS or (route.path.startswith(AUTHORIZE) and route.method == "POST")


def request_body(route: Route) -> dict[str, Any] | None:
    """What its body is; None for an operation without one."""
    if route.method in ("GET", "HEAD", "DELETE"):
        return None
    examples = {name: {"value": value} for name, value in _BODY_EXAMPLES.get((route.method, route.path), {}).items()}
    shown = {"examples": examples} if examples else {}
    if route.path in FORMS:
        return {"required": True, "content": {_FORM: {"schema": ref(FORMS[route.path].__name__), **shown}}}
    if is_form(route):
        fields: Schema = {"type": "object", "description": "the fields of the page", "additionalProperties": True}
        return {"required": True, "content": {_FORM: {"schema": fields}}}
    name = _SCHEMAS.get(route.path) or (route.body.__name__ if route.body else None)
    if name is None:
        return None
    content = {"application/json": {"schema": ref(name), **shown}}
    return {"required": route.path not in _OPTIONAL, "content": content}


def search_condition() -> Schema:
    """What `params` is when the action is the search of the copy."""
    asks = {"properties": {"action": {"const": SEARCH_ACTION}}, "required": ["action"]}
    return {"if": asks, "then": {"properties": {"params": ref("SearchParams")}, "required": ["params"]}}
