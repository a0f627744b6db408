"""What the OpenAPI document says of answers holds for those that are really given: no header or member goes untold."""

import pytest

from gateway.http.openapi import openapi_document
from gateway.kinds.catalog import load_catalog

DOCUMENT = openapi_document(load_catalog(), "1", "http://localhost")
#: of the connection and the body, which OpenAPI leaves to HTTP
OF_HTTP = {"content-length", "content-type", "date", "connection", "transfer-encoding", "keep-alive"}
TICKETS = {"entity": "tickets", "action": "list", "params": {"per_page": 2}}
EXECUTE = "/api/v1/integrations/connectors/{connector_id}/execute"
ASYNC = {"Prefer": "respond-async"}

#: method, path, what is sent
CALLS = [
    ("GET", "/", {}),
    ("GET", "/healthz", {}),
    ("GET", "/openapi.json", {}),
    ("GET", "/docs", {}),
    ("POST", "/api/v1/account/applications/token", {"json": {"client_id": "nobody", "client_secret": "wrong"}}),
    ("GET", "/api/v1/workspaces", {}),
    ("GET", "/api/v1/integrations/connectors", {}),
    ("POST", "/api/v1/integrations/connectors", {"json": {"name": 1}}),
    ("GET", "/api/v1/integrations/connectors/{connector_id}", {}),
    ("PATCH", "/api/v1/integrations/connectors/{connector_id}", {"json": {"name": "Renamed"}}),
    ("POST", "/api/v1/integrations/connectors/{connector_id}/check", {}),
    ("GET", "/api/v1/integrations/connectors/{connector_id}/inspect", {}),
    ("POST", EXECUTE, {"json": TICKETS}),
    ("POST", EXECUTE, {"json": {**TICKETS, "dry_run": True}}),
    ("POST", EXECUTE, {"json": {**TICKETS, "params": {"sort_order": "up"}}}),
    ("POST", EXECUTE, {"json": TICKETS, "headers": {"Cache-Control": "max-age=60"}}),
    ("POST", EXECUTE, {"json": TICKETS, "headers": ASYNC}),
    ("POST", EXECUTE, {"json": {"entity": "attachments", "action": "download", "params": {"attachment_id": 1}}}),
    ("POST", EXECUTE, {"data": b"", "headers": {"Content-Encoding": "gzip"}}),
    (
        "GET",
        "/api/v1/integrations/connectors/{connector_id}/download/{entity}?attachment_id=1",
        {"headers": {"Range": "bytes=0-9"}},
    ),
    (
        "GET",
        "/api/v1/integrations/connectors/{connector_id}/download/{entity}?attachment_id=1",
        {"headers": {"Range": "bytes=99999999-"}},
    ),
    ("GET", "/api/v1/jobs", {}),
    ("GET", "/api/v1/jobs/{job_id}", {}),
    ("GET", "/api/v1/jobs/{job_id}/result", {}),
    ("POST", "/api/v1/jobs/{job_id}/cancel", {}),
    ("DELETE", "/api/v1/jobs/{job_id}", {}),
    ("DELETE", "/api/v1/integrations/connectors/{connector_id}", {}),
]


def resolved(node):
    """The node, or what it refers to."""
    while "$ref" in node:
        _, _, part, name = node["$ref"].split("/")
        node = DOCUMENT["components"][part][name]
    return node


def described(method, path, status):
    """What the document says of an answer; of a method that the path does not take, the error of any operation."""
    operation = DOCUMENT["paths"][path.partition("?")[0]].get(method.lower())
    if operation is None:
        return DOCUMENT["components"]["responses"][str(status)]
    return resolved(operation["responses"][str(status)])


def lower(names):
    return {name.lower() for name in names}


def untold(value, schema, at=""):
    """Pointers to the members that a schema with `properties` does not name."""
    schema = resolved(schema)
    if isinstance(value, list):
        return [each for item in value for each in untold(item, schema.get("items", {}), f"{at}/-")]
    known = schema.get("properties")
    if not isinstance(value, dict) or known is None:
        return []
    return [
        pointer
        for name, member in value.items()
        for pointer in (untold(member, known[name], f"{at}/{name}") if name in known else [f"{at}/{name}"])
    ]


@pytest.fixture
async def places(support_desk):
    """What stands for the variables of paths."""
    job = await support_desk.send("tickets", "list", {"per_page": 1}, headers=ASYNC)
    return {"connector_id": support_desk.record["id"], "entity": "attachments", "job_id": job.json()["job"]["id"]}


@pytest.mark.parametrize(("method", "path", "sent"), CALLS, ids=lambda value: str(value)[:80])
async def test_no_answer_has_a_header_or_a_member_that_the_document_does_not_tell(api, places, method, path, sent):
    answer = await api.call(method, path.format(**places), **sent)

    told = described(method, path, answer.status)
    assert lower(answer.headers) - OF_HTTP - lower(told["headers"]) == set()
    media_type = answer.headers.get("Content-Type", "").partition(";")[0]
    assert any(media_type == each or each == "*/*" for each in told["content"])
    schema = told["content"].get(media_type, {}).get("schema", {})
    if "json" in media_type:
        assert untold(answer.json(), schema) == []


def test_a_member_that_the_document_does_not_tell_is_found():
    schema = {"$ref": "#/components/schemas/Jobs"}

    assert untold({"data": [{"id": "1", "mood": "good"}], "next_cursor": None}, schema) == ["/data/-/mood"]
