"""`gateway api`, and the commands that list workspaces, grants and logs."""

import pytest

from tests.client.contract import example
from tests.client.stub import CONNECTOR_ID


async def test_a_request_is_sent_with_a_token_and_its_answer_printed(command, stub):
    listed = await command("api", "get", "workspaces")
    whole = await command("api", "GET", "/api/v1/audit", "-q", "limit=2")

    assert listed.json()["data"][0]["name"] == "default"
    assert [entry["what"] for entry in whole.json()["data"]] == [example("AuditEntry")["what"]]
    assert stub.queries[-1] == {"limit": "2"}
    assert stub.headers[-1]["Authorization"].startswith("Bearer ")


async def test_a_body_and_headers_are_sent_unchanged(command, stub):
    ended = await command(
        *("api", "POST", f"integrations/connectors/{CONNECTOR_ID}/execute"),
        *("-d", '{"entity": "tickets", "action": "list", "params": {}}', "-H", "Idempotency-Key=k1"),
    )

    assert ended.code == 0
    assert stub.bodies[-1] == {"entity": "tickets", "action": "list", "params": {}}
    assert stub.headers[-1]["Idempotency-Key"] == "k1"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("api", "GET", "nowhere"), 4, ""),
        (("api", "POST", "jobs", "-d", "[1"), 2, "is not a JSON object"),
        (("api", "FETCH", "jobs"), 2, "FETCH"),
        (("audit", "--limit", "0"), 2, "0 is not in the range"),
    ],
)
async def test_an_invalid_or_unknown_request_is_refused_with_a_message(command, words, code, message):
    ended = await command(*words)

    assert ended.code == code
    assert message in ended.err
    assert "Traceback" not in ended.err


async def test_a_token_is_printed_alone(command):
    ended = await command("token")

    assert ended.out == "t1\n"


async def test_requests_to_applications_are_listed(command, stub):
    ended = await command("logs", "--status", "failed", "--job", "j-1")

    assert [request["path"] for request in ended.json()] == [example("Request")["path"]]
    assert stub.queries[-1] == {"job_id": "j-1", "status": "failed", "limit": "20"}


async def test_workspaces_and_the_audit_log_are_listed(command, stub):
    workspaces = await command("workspaces")
    audit = await command(
        "audit", "--connector", CONNECTOR_ID, "--actor", "agent", "--outcome", "succeeded", "--limit", "5"
    )

    assert [each["name"] for each in workspaces.json()] == ["default"]
    assert [entry["what"] for entry in audit.json()] == [example("AuditEntry")["what"]]
    assert stub.queries[-1] == {
        "connector_id": CONNECTOR_ID,
        "actor": "agent",
        "outcome": "succeeded",
        "limit": "5",
    }


async def test_grants_are_listed_and_revoked(command, stub):
    listed = await command("grants", "list")
    revoked = await command("grants", "revoke", "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11")

    assert listed.json() == [example("Grant")]
    assert (revoked.code, revoked.out) == (0, "")
    assert revoked.err == "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11 is revoked\n"
    assert stub.revoked == ["0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"]


async def test_jobs_are_listed_by_connector(command, stub):
    ended = await command("jobs", "list", "--connector", CONNECTOR_ID)

    assert ended.code == 0
    assert stub.queries[-1]["connector_id"] == CONNECTOR_ID
