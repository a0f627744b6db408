"""The log of requests to applications, through the API."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from gateway.upstream.sent_requests import SentRequest
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import PATIENCE


async def logged(api: Api, **query: str) -> list[dict[str, Any]]:
    """The requests; waits for the first, because they are written in batches."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found: list[dict[str, Any]] = (await api.get("/api/v1/requests", params=query)).document()["data"]
            if found:
                return found


async def test_the_requests_of_a_call_are_found_by_its_request_id(api: Api, support_desk: ConnectorApi):
    answer = await support_desk.send("tickets", "list", {"per_page": 2})

    request = (await logged(api, request_id=answer.headers["X-Request-Id"]))[0]

    assert request["connector_id"] == support_desk.record["id"]
    assert (request["operation"], request["method"], request["status"]) == ("tickets.list", "GET", 200)
    assert request["path"] == "/api/v2/tickets.json"
    assert request["bytes_in"] > 0


async def test_failed_requests_are_found_by_their_status(api: Api, support_desk: ConnectorApi):
    await support_desk.send("tickets", "list", {"per_page": 2})
    await support_desk.send("tickets", "get", {"ticket_id": 10**9})

    failed = await logged(api, status="failed")

    assert {request["status"] for request in failed} == {404}
    assert await logged(api, status="4xx") == failed
    assert (await api.get("/api/v1/requests", params={"status": "5xx"})).document()["data"] == []


async def test_a_request_that_no_caller_asked_for_has_the_request_id_null(
    api: Api, support_desk: ConnectorApi, front: FrontEnd
):
    connector = UUID(support_desk.record["id"])
    front.services.logs.requests.note(
        SentRequest(connector_id=connector, at=0.0, method="GET", path="/x", attempt=1, duration_ms=1, bytes_out=0)
    )

    [request] = await logged(api, connector_id=str(connector))

    assert "request_id" in request
    assert request["request_id"] is None


@pytest.mark.parametrize("status", ["6xx", "abc", "99", "4xxx"])
async def test_an_invalid_status_is_refused(api: Api, status: str):
    assert (await api.get("/api/v1/requests", params={"status": status})).status == 422


async def test_requests_are_listed_in_pages(api: Api, support_desk: ConnectorApi):
    for number in (1, 2, 3):
        await support_desk.send("tickets", "get", {"ticket_id": number})
    async with asyncio.timeout(PATIENCE):
        while len(everything := await logged(api)) < 3:
            pass

    first = (await api.get("/api/v1/requests", params={"limit": 2})).document()
    second = (await api.get("/api/v1/requests", params={"limit": 1000, "cursor": first["next_cursor"]})).document()

    assert first["data"] + second["data"] == everything


async def test_an_entry_of_the_audit_log_names_record_members_client_and_application(
    api: Api, support_desk: ConnectorApi
):
    await support_desk.execute("tickets", "update", {"ticket_id": 1, "ticket": {"status": "open", "priority": "high"}})

    async with asyncio.timeout(PATIENCE):
        while not (found := (await api.get("/api/v1/audit", params={"target": "1"})).document()["data"]):
            pass

    (entry,) = found
    assert (entry["what"], entry["target"], entry["application"]) == ("tickets.update", "1", "Zendesk")
    assert entry["changed"] == ["ticket.priority", "ticket.status"]
    assert entry["actor"]["name"]
    for query in ({"operation": "tickets.update"}, {"actor": entry["actor"]["name"], "outcome": "succeeded"}):
        assert entry in (await api.get("/api/v1/audit", params=query)).document()["data"]
    assert (await api.get("/api/v1/audit", params={"outcome": "upstream_error"})).document()["data"] == []
    assert (await api.get("/api/v1/audit", params={"actor": "no such client"})).document()["data"] == []


async def test_a_created_record_is_the_target_of_its_entry(api: Api, support_desk: ConnectorApi):
    made = await support_desk.execute("tickets", "create", {"ticket": {"subject": "Fire", "comment": {"body": "x"}}})

    async with asyncio.timeout(PATIENCE):
        query = {"operation": "tickets.create"}
        while not (found := (await api.get("/api/v1/audit", params=query)).document()["data"]):
            pass

    assert found[0]["target"] == str(made["result"]["id"])
    assert found[0]["changed"] == ["ticket.comment", "ticket.subject"]
