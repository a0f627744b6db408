"""Responses match the OpenAPI document: it describes every header and member.

Every call of the tests is checked (`tests.harness.contract`); these are calls that no other test makes.
"""

import pytest

from tests.harness import contract
from tests.harness.caller import ASYNC

TICKETS = {"entity": "tickets", "action": "list", "params": {"per_page": 2}}
EXECUTE = "/api/v1/integrations/connectors/{connector_id}/execute"

#: method, path, arguments of the call
CALLS = [
    ("GET", "/", {}),
    ("GET", "/healthz", {}),
    ("GET", "/openapi.json", {}),
    ("GET", "/docs", {}),
    ("POST", "/api/v1/account/applications/token", {"json": {"client_id": "nobody", "client_secret": "wrong"}}),
    (
        "POST",
        "/oauth/token",
        {"data": {"grant_type": "client_credentials", "client_id": "nobody", "client_secret": "x"}},
    ),
    ("POST", "/oauth/token", {"data": {"grant_type": "password"}}),
    ("POST", "/oauth/revoke", {"data": {}}),
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
    (
        "POST",
        "/mcp/support-desk?workspace=acme",
        {
            "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            "headers": {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"},
        },
    ),
    ("DELETE", "/api/v1/integrations/connectors/{connector_id}", {}),
]


@pytest.fixture
async def places(support_desk):
    """The values of path variables."""
    job = await support_desk.send("tickets", "list", {"per_page": 1}, headers=ASYNC)
    return {"connector_id": support_desk.record["id"], "entity": "attachments", "job_id": job.json()["job"]["id"]}


@pytest.mark.parametrize(("method", "path", "sent"), CALLS, ids=lambda value: str(value)[:80])
async def test_every_response_matches_the_document(api, places, method, path, sent):
    answer = await api.call(method, path.format(**places), **sent)  # held to the document by the call itself

    assert answer.status < 500


JOBS = "/api/v1/jobs"
ENTRY = b'{"data": [], "next_cursor": null}'
ANSWERED = {"X-Request-Id": "1", "X-Content-Type-Options": "nosniff", "Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ((f"{JOBS}?limit=2", {}, None, 200, ANSWERED, ENTRY), None),
        ((JOBS, {}, None, 418, ANSWERED, ENTRY), "the status is not declared"),
        ((JOBS, {}, None, 200, {**ANSWERED, "X-Mood": "good"}, ENTRY), "the header x-mood is not declared"),
        (
            (JOBS, {}, None, 200, {**ANSWERED, "Content-Type": "text/csv"}, ENTRY),
            "the media type text/csv is not declared",
        ),
        ((JOBS, {}, None, 200, ANSWERED, b'{"data": [], "next_cursor": null, "mood": 1}'), "mood"),
        ((JOBS, {}, None, 200, ANSWERED, b'{"data": []}'), "next_cursor"),
        ((JOBS, {}, None, 200, ANSWERED, b'{"data": [{"id": "1"}], "next_cursor": null}'), "/data/0"),
        ((JOBS, {"X-Wish": "1"}, None, 200, ANSWERED, ENTRY), "the request's header x-wish is not declared"),
        ((f"{JOBS}?mood=good", {}, None, 200, ANSWERED, ENTRY), "?mood is not declared"),
        ((JOBS, {}, {"a": 1}, 200, ANSWERED, ENTRY), "a JSON body is not declared"),
        (("/console", {}, None, 418, {}, b""), None),
    ],
)
def test_a_response_that_does_not_match_the_document_is_detected(call, fault):
    found = contract.untold("GET", *call)

    assert (found == []) if fault is None else (fault in found[0])


@pytest.mark.parametrize(
    ("params", "is_told"),
    [
        ({"query": {"filter": {"not": {"or": [{"eq": {"status": "open"}}, {"in": {"id": [1, 2]}}]}}}}, True),
        ({"query": {"sort": [{"updated_at": "desc"}, {"field": "id", "direction": "asc"}]}, "fields": ["id"]}, True),
        ({"query": {"filter": {"status": {"eq": "open"}}}}, False),
        ({"query": {"filter": {"not": {"or": [{"equals": {"status": "open"}}]}}}}, False),
        ({"query": {"sort": [{"updated_at": "down"}]}}, False),
        ({"limit": 5}, False),
    ],
)
def test_the_query_language_is_a_schema_of_the_document(params, is_told):
    body = {"entity": "tickets", "action": "context_store_search", "params": params}
    answer = b'{"status": "success", "result": null, "connector_metadata": null}'
    path = EXECUTE.format(connector_id="1")

    found = contract.untold("POST", path, {}, body, 200, ANSWERED, answer)

    assert (found == []) is is_told
