"""Schemas and examples of tokens, workspaces, connectors, consents and connect links."""

from gateway.connect_links.store import SessionStatus
from gateway.connectors.model import ConnectorStatus
from gateway.context_store.entities import Status
from gateway.http.openapi.parts import (
    ID,
    MOMENT,
    TIME,
    Schema,
    array,
    by_name,
    flag,
    nullable,
    number,
    page,
    record,
    ref,
    text,
)
from gateway.oauth_client.store import FlowStatus

_KIND_ID = "5f0c1d2e-8a3b-4c4d-9e5f-6a7b8c9d0e1f"
CONNECTOR = {
    "id": ID,
    "name": "Help desk",
    "workspace_name": "acme",
    "connector_type": "Support-Desk",
    "kind": "support-desk",
    "definition_id": _KIND_ID,
    "status": "active",
    "status_reason": None,
    "auth_method": "api_token",
    "environment": {"subdomain": "acme"},
    "created_at": TIME,
    "updated_at": TIME,
    "summarized_source_template": {"id": _KIND_ID, "name": "Support-Desk"},
}
_CONNECTOR_MEMBERS: dict[str, Schema] = {
    "id": text("the connector's id", format="uuid"),
    "name": text("its display name"),
    "workspace_name": text("the workspace that it belongs to"),
    "connector_type": text("the kind, in its display form"),
    "kind": text("the kind"),
    "definition_id": text("the kind's own id", format="uuid"),
    "status": text("whether it can be used", enum=[status.value for status in ConnectorStatus]),
    "status_reason": nullable("string", "why it is so, and what of it will end"),
    "auth_method": nullable("string", "how it authenticates"),
    "environment": by_name({}, "the kind's variables that are no secrets"),
    "created_at": text("when it was made", **MOMENT),
    "updated_at": text("when it was changed", **MOMENT),
    "summarized_source_template": {
        "type": "object",
        "description": "the kind once more, as known clients read it",
        "required": ["id", "name"],
        "properties": {"id": text("definition_id"), "name": text("connector_type")},
    },
}
_FRESHNESS = {
    "status": "ready",
    "records": 1204,
    "synchronized": True,
    "last_synced_at": TIME,
    "next_sync_at": TIME,
    "age_seconds": 41,
    "error": None,
}
_APP = {
    "connector_type": "support-desk",
    "configuration": {"client_id": "acme-agents"},
    "created_at": TIME,
    "updated_at": TIME,
}
_TOKEN: dict[str, Schema] = {
    "access_token": text("to be sent as `Authorization: Bearer …`"),
    "token_type": {"const": "bearer", "description": "always `bearer`"},
    "expires_in": number("seconds that the token lives"),
}
_BEARER = {"access_token": "2YotnFZFEjr1zCsicMWpAA", "token_type": "bearer", "expires_in": 900}
_WORKSPACE = {"id": ID, "name": "acme", "connectors": 2, "created_at": TIME}

SCHEMAS: dict[str, Schema] = {
    "Token": record(
        {**_BEARER, "organization_id": ID},
        **_TOKEN,
        organization_id=nullable("string", "the client's organization; null when it can access several"),
    ),
    "GrantedToken": record(
        {**_BEARER, "scope": "read write"},
        **_TOKEN,
        scope=text("what it may do, separated by spaces"),
        refresh_token=text("of a person's consent: gets the next token, once"),
    ),
    "OAuthError": record(
        {"error": "invalid_client", "error_description": "the client is unknown or the secret is wrong"},
        error=text("the code, of RFC 6749 §5.2"),
        error_description=text("what is wrong"),
    ),
    "Workspace": record(
        _WORKSPACE,
        id=text("the workspace's id", format="uuid"),
        name=text("the name that connectors and consents gave it"),
        connectors=number("how many connectors are in it"),
        created_at=text("when it came into being", **MOMENT),
    ),
    "Workspaces": page("Workspace", _WORKSPACE),
    "Connector": record(CONNECTOR, **_CONNECTOR_MEMBERS),
    "Connectors": page("Connector", CONNECTOR),
    "Health": record(
        {"status": "healthy"},
        status=text("whether the application takes the credentials", enum=["healthy", "unhealthy"]),
        message=text("of an unhealthy one: what is wrong"),
        reason={
            "type": "object",
            "description": "of an unhealthy one: the error that a call would get",
            "required": ["code", "message", "retryable"],
            "properties": {
                "code": text("the error's code"),
                "message": text("what is wrong"),
                "retryable": flag("whether it may pass by itself"),
            },
        },
    ),
    "Freshness": record(
        _FRESHNESS,
        status=text("how the copy stands", enum=[status.value for status in Status]),
        records=number("how many records it holds"),
        synchronized=flag("whether it was ever complete"),
        last_synced_at=nullable("string", "when it was last brought up to date", **MOMENT),
        next_sync_at=nullable("string", "when it will be again", **MOMENT),
        age_seconds=nullable("integer", "seconds since then"),
        error={"anyOf": [ref("JobError"), {"type": "null"}], "description": "why the last try failed"},
    ),
    "Inspection": record(
        {
            **CONNECTOR,
            "ready": True,
            "operations": [{"entity": "tickets", "actions": ["list", "get"], "description": "Customer requests."}],
            "context_store": {"tickets": _FRESHNESS},
            "docs_skill_id": "support-desk",
        },
        **_CONNECTOR_MEMBERS,
        ready=flag("whether operations can be executed now"),
        operations=array(
            {
                "type": "object",
                "required": ["entity", "actions", "description"],
                "properties": {
                    "entity": text("what the actions are of"),
                    "actions": array(text("an action"), "what can be done"),
                    "description": text("what the entity is"),
                },
            },
            "what it may be used for",
        ),
        context_store=by_name(ref("Freshness"), "the copies, by entity"),
        docs_skill_id=text("`id` of GET /api/v1/skills/docs"),
    ),
    "ContextStore": record(
        {"entities": {"tickets": _FRESHNESS}}, entities=by_name(ref("Freshness"), "the copies, by entity")
    ),
    "StartedConsent": record(
        {
            "consent_url": "https://gateway.example.com/api/v1/integrations/connectors/oauth/consent?flow=5e1f0c3d",
            "flow_id": ID,
            "expires_at": TIME,
        },
        consent_url=text("where to send the user's browser", format="uri"),
        flow_id=text("to ask where the consent stands", format="uuid"),
        expires_at=text("until when it can be given", **MOMENT),
    ),
    "Consent": record(
        {"flow_id": ID, "status": "pending", "expires_at": TIME},
        flow_id=text("the consent's id", format="uuid"),
        status=text("where it stands", enum=[status.value for status in FlowStatus]),
        expires_at=text("until when it can be given", **MOMENT),
        connector_id=text("of a completed one: the connector", format="uuid"),
        error=text("of a failed one: the code, of RFC 6749 §4.1.2.1"),
        error_description=text("of a failed one: what went wrong"),
    ),
    "OAuthApp": record(
        _APP,
        connector_type=text("the kind"),
        configuration={
            "type": "object",
            "description": "the app; its secret never comes back",
            "required": ["client_id"],
            "properties": {"client_id": text("the app's id")},
        },
        created_at=text("when it was first set", **MOMENT),
        updated_at=text("when it was last set", **MOMENT),
    ),
    "OAuthApps": record({"data": [_APP]}, data=array(ref("OAuthApp"), "one for each kind that has one")),
    "ConnectLink": record(
        {"id": ID, "url": "https://gateway.example.com/connect/5e1f0c3d", "expires_at": TIME},
        id=text("to ask where the link stands", format="uuid"),
        url=text("for the person who connects; good once", format="uri"),
        expires_at=text("until when it is good", **MOMENT),
    ),
    "ConnectSession": record(
        {"id": ID, "status": "pending", "expires_at": TIME},
        id=text("the link's id", format="uuid"),
        status=text("where it stands", enum=[status.value for status in SessionStatus]),
        expires_at=text("until when it is good", **MOMENT),
        connector_id=text("of a completed one: the connector", format="uuid"),
    ),
}
