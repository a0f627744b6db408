"""Schemas and examples of what the main operations answer, as the OpenAPI document tells them."""

from typing import Any

from gateway.credentials.store import ConnectorStatus
from gateway.http.route import Route
from gateway.jobs.model import JobStatus

_REF = "#/components/schemas/"
_ID = "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"
_TIME = "2026-03-01T09:00:00Z"


def _object(example: dict[str, Any], **members: dict[str, Any]) -> dict[str, Any]:
    """An object that always has these members, as the example has."""
    return {"type": "object", "required": sorted(example), "properties": members, "examples": [example]}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _nullable(type_: str, description: str, **more: Any) -> dict[str, Any]:
    return {"type": [type_, "null"], "description": description, **more}


def _page(of: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["data", "next_cursor"],
        "properties": {
            "data": {"type": "array", "items": {"$ref": _REF + of}},
            "next_cursor": _nullable("string", "`cursor` of the call that gives the next page; null at the end"),
        },
    }


_MOMENT = {"format": "date-time"}
_CONNECTOR_EXAMPLE = {
    "id": _ID,
    "name": "Help desk",
    "workspace_name": "acme",
    "connector_type": "Support-Desk",
    "kind": "support-desk",
    "definition_id": "5f0c1d2e-8a3b-4c4d-9e5f-6a7b8c9d0e1f",
    "status": "active",
    "status_reason": None,
    "auth_method": "api_token",
    "environment": {"subdomain": "acme"},
    "created_at": _TIME,
    "updated_at": _TIME,
    "summarized_source_template": {"id": "5f0c1d2e-8a3b-4c4d-9e5f-6a7b8c9d0e1f", "name": "Support-Desk"},
}
_JOB_EXAMPLE = {
    "id": _ID,
    "url": f"https://gateway.example.com/api/v1/jobs/{_ID}",
    "status": "running",
    "done": False,
    "total": 250,
    "progress": 100,
    "message": "100 of 250 tickets updated",
    "connector_id": _ID,
    "workspace_name": "acme",
    "entity": "ticket_bulk_updates",
    "action": "create",
    "attempt": 1,
    "cancel_requested": False,
    "created_at": _TIME,
    "started_at": _TIME,
    "finished_at": None,
    "next_attempt_at": None,
    "expires_at": None,
    "result_url": None,
    "error": None,
    "known": None,
    "safe_to_retry": None,
    "labels": {},
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "Token": _object(
        {"access_token": "…", "token_type": "bearer", "expires_in": 900, "organization_id": _ID},
        access_token=_text("to be sent as `Authorization: Bearer …`"),
        token_type={"const": "bearer"},
        expires_in={"type": "integer", "description": "seconds that the token lives"},
        organization_id=_nullable("string", "the client's organization; null when it can access several"),
    ),
    "Connector": _object(
        _CONNECTOR_EXAMPLE,
        id=_text("the connector's id", format="uuid"),
        name=_text("its display name"),
        workspace_name=_text("the workspace that it belongs to"),
        connector_type=_text("the kind, in its display form"),
        kind=_text("the kind"),
        definition_id=_text("the kind's own id", format="uuid"),
        status=_text("whether it can be used", enum=[status.value for status in ConnectorStatus]),
        status_reason=_nullable("string", "why it is so, and what of it will end"),
        auth_method=_nullable("string", "how it authenticates"),
        environment={"type": "object", "description": "the kind's variables that are no secrets"},
        created_at=_text("when it was made", **_MOMENT),
        updated_at=_text("when it was changed", **_MOMENT),
        summarized_source_template={
            "type": "object",
            "description": "the kind once more, as known clients read it",
            "properties": {"id": _text("definition_id"), "name": _text("connector_type")},
        },
    ),
    "Connectors": _page("Connector"),
    "Job": _object(
        _JOB_EXAMPLE,
        id=_text("the job's id", format="uuid"),
        url=_text("where it is"),
        status=_text("how far it is", enum=[status.value for status in JobStatus]),
        done={"type": "boolean", "description": "whether it has ended"},
        total=_nullable("integer", "items that there are to do, once that is known"),
        progress={"type": "integer", "description": "items that are done"},
        message=_nullable("string", "how it stands, for people"),
        connector_id=_nullable("string", "the connector that it works on"),
        workspace_name=_nullable("string", "that connector's workspace"),
        entity=_nullable("string", "the operation's entity"),
        action=_text("the operation's action, or the task"),
        attempt={"type": "integer", "description": "how often it was begun"},
        cancel_requested={"type": "boolean", "description": "whether somebody wants it to stop"},
        created_at=_text("when it was accepted", **_MOMENT),
        started_at=_nullable("string", "when it was first begun", **_MOMENT),
        finished_at=_nullable("string", "when it ended", **_MOMENT),
        next_attempt_at=_nullable("string", "when it goes on, while it waits", **_MOMENT),
        expires_at=_nullable("string", "when its result is dropped", **_MOMENT),
        result_url=_nullable("string", "where its result is, once there is one"),
        error={"type": ["object", "null"], "description": "what it failed with: the members of a Problem"},
        known={"type": ["object", "null"], "description": "of an `unknown` end: what is sure of it"},
        safe_to_retry=_nullable("boolean", "of an `unknown` end: whether it can be done again without harm"),
        labels={"type": "object", "description": "the caller's own", "additionalProperties": {"type": "string"}},
    ),
    "Jobs": _page("Job"),
    "AcceptedJob": {
        "type": "object",
        "required": ["status", "result", "job"],
        "properties": {
            "status": {"const": "accepted"},
            "result": {"$ref": _REF + "Job"},
            "job": {"$ref": _REF + "Job"},
        },
    },
    "Deletion": _object({"job_id": _ID}, job_id=_text("the job that deletes it", format="uuid")),
    "Result": {
        "type": "object",
        "required": ["status", "result", "connector_metadata"],
        "properties": {
            "status": {"const": "success"},
            "result": {"description": "the records of a list or search; the record of a get, create or update"},
            "next": {
                "type": ["object", "null"],
                "description": "of lists and searches: the params of the call for the next page; null at the end",
            },
            "connector_metadata": {
                "type": ["object", "null"],
                "description": "what the application says beside its records",
            },
            "execution_metadata": {
                "type": "object",
                "properties": {
                    "connector_instance_id": _text("the connector"),
                    "execution_time_ms": {"type": "integer"},
                    "request_id": _text("the request"),
                },
            },
            "dry_run": {"const": True, "description": "nothing was sent; `result` is the requests"},
        },
        "examples": [
            {
                "status": "success",
                "result": [{"id": 1, "subject": "The printer is on fire"}],
                "next": {"per_page": 1, "page": 2},
                "connector_metadata": {"next_page": None, "previous_page": None, "count": 1},
                "execution_metadata": {"connector_instance_id": _ID, "execution_time_ms": 41, "request_id": "5e1f…"},
            }
        ],
    },
}

_CONNECTORS = "/api/v1/integrations/connectors"
_CONNECTOR = _CONNECTORS + "/{connector_id}"
_JOB = "/api/v1/jobs/{job_id}"
#: the schema of an answer by method, path and status
ANSWERS: dict[tuple[str, str, int], str] = {
    ("POST", "/api/v1/account/applications/token", 200): "Token",
    ("POST", _CONNECTORS, 201): "Connector",
    ("GET", _CONNECTORS, 200): "Connectors",
    ("GET", _CONNECTOR, 200): "Connector",
    ("PATCH", _CONNECTOR, 200): "Connector",
    ("DELETE", _CONNECTOR, 202): "Deletion",
    ("DELETE", "/api/v1/workspaces/{workspace_id}", 202): "Deletion",
    ("POST", _CONNECTOR + "/execute", 200): "Result",
    ("POST", _CONNECTOR + "/execute", 202): "AcceptedJob",
    ("POST", _CONNECTOR + "/context-store/sync", 202): "AcceptedJob",
    ("GET", "/api/v1/jobs", 200): "Jobs",
    ("GET", _JOB, 200): "Job",
    ("GET", f"{_JOB}/result", 200): "Result",
    ("GET", f"{_JOB}/result", 202): "AcceptedJob",
    ("POST", f"{_JOB}/cancel", 202): "Job",
    ("POST", f"{_JOB}/retry", 202): "AcceptedJob",
}


def answer_schema(route: Route, status: int) -> dict[str, Any]:
    """The media type's schema where the answer has one."""
    name = ANSWERS.get((route.method, route.path, status))
    return {} if name is None else {"schema": {"$ref": _REF + name}}
