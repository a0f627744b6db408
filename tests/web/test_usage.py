"""GET /api/v1/usage: calls over time, and the work in progress."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.access.identity.tokens import hashed, new_secret
from gateway.web.bodies import CLOUD_EVENTS
from tests.harness.caller import Api, ConnectorApi
from tests.harness.clients import EVERY_SCOPE
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually


async def _usage(api: Api) -> list[dict[str, Any]]:
    return (await api.get("/api/v1/usage")).json()["data"]


async def test_calls_and_errors_are_counted_with_their_duration(api: Api):
    await api.connector()
    await api.post(
        "/api/v1/integrations/connectors", {"workspace_name": "w", "connector_type": "none", "credentials": {}}
    )

    points = await _usage(api)
    while sum(point["calls"] for point in points) < 2:  # the log is written in batches
        points = await _usage(api)

    assert sum(point["errors"] for point in points) == 1
    assert any(point["p50_ms"] is not None for point in points)
    assert len(points) in (61, 62)


async def test_work_in_progress_is_that_of_the_callers_organization(api: Api, front: FrontEnd):
    connector = await api.connector()
    await connector.submit("tickets", "list")

    async with front.api() as other:
        theirs = (await other.get("/api/v1/usage")).json()["in_progress"]
    ours = (await api.get("/api/v1/usage")).json()["in_progress"]

    jobs = {"queued": 0, "running": 0, "waiting": 0}
    copies = {"copies": 0, "failed": 0, "incomplete": 0, "held_deletions": 0, "oldest_synced_at": None}
    assert theirs == {**jobs, **copies}
    assert ours["queued"] >= 1
    assert (ours["running"], ours["waiting"], ours["failed"]) == (0, 0, 0)


@pytest.mark.parametrize("query", ["step=5", "step=10&since=2020-01-01T00:00:00Z", "since=yesterday"])
async def test_an_invalid_span_is_refused(api: Api, query: str):
    assert (await api.get(f"/api/v1/usage?{query}")).status == 422


async def test_a_month_in_steps_of_a_day_is_within_the_limit_of_points(api: Api):
    since = (datetime.now(UTC) - timedelta(days=30)).isoformat().replace("+00:00", "Z")

    answer = await api.get(f"/api/v1/usage?step=86400&since={since}")

    assert len(answer.json()["data"]) in (31, 32)


@dataclass(frozen=True)
class TwoWorkspaces:
    """A caller of an organization, one that is limited to the workspace `own`, and a connector in each workspace."""

    organization_id: UUID
    limited_id: str
    whole: Api
    limited: Api
    own: ConnectorApi
    other: ConnectorApi


@pytest.fixture
async def two(front: FrontEnd) -> AsyncIterator[TwoWorkspaces]:
    organization_id, secret = await front.organization(), new_secret()
    client_id = await front.services.identity.create_client(
        "limited", [organization_id], hashed(secret), EVERY_SCOPE, workspaces=["own"]
    )
    async with (
        front.api(organization_id) as whole,
        Api.of(front.base_url, str(client_id), secret) as limited,
    ):
        own, other = [await whole.connector(workspace_name=name, name=name) for name in ("own", "other")]
        await own.execute("tickets", "list")
        assert (await other.send("tickets", "get", {"ticket_id": 10**12})).status == 404
        await own.through(limited).execute("tickets", "list")
        yield TwoWorkspaces(organization_id, str(client_id), whole, limited, own, other)


async def test_a_client_limited_to_workspaces_sees_the_usage_of_their_connectors(two: TwoWorkspaces):
    await two.other.submit("tickets", "list")

    async def counted() -> dict[str, Any] | None:
        view: dict[str, Any] = (await two.limited.get("/api/v1/usage?by=workspace")).document()
        counts = [sum(each["calls"] for each in view[name]) for name in ("by", "data")]
        return view if counts == [3, 3] else None

    usage = await eventually(counted)

    assert [(each["name"], each["calls"], each["errors"]) for each in usage["by"]] == [("own", 3, 0)]
    assert (sum(each["calls"] for each in usage["data"]), usage["in_progress"]["queued"]) == (3, 0)
    assert max(each["p95_ms"] or 0 for each in usage["data"]) > 0
    assert (await two.whole.get("/api/v1/usage")).document()["in_progress"]["queued"] == 1


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("workspace", [("own", 3, 0), ("other", 2, 1)]),
        ("connector", [("own", 3, 0), ("other", 2, 1)]),
        ("client", [("test", 4, 1), ("limited", 1, 0)]),
    ],
)
async def test_calls_are_counted_by_what_the_query_names(two: TwoWorkspaces, by: str, expected: Any):
    async def counted() -> list[dict[str, Any]] | None:
        shares: list[dict[str, Any]] = (await two.whole.get(f"/api/v1/usage?by={by}")).document()["by"]
        return shares if sum(each["calls"] for each in shares) >= 5 else None

    shares = await eventually(counted)

    assert [(each["name"], each["calls"], each["errors"]) for each in shares] == expected


async def _published(two: TwoWorkspaces, front: FrontEnd) -> None:
    """Publish the usage of the calls of the fixture as if two days had gone by."""

    async def are_noted() -> bool:
        return len((await two.whole.get("/api/v1/audit?operation=tickets.list")).document()["data"]) == 2

    await eventually(are_noted)
    await front.services.logs.chain.seal()
    await front.services.logs.metering.publish(datetime.now(UTC) + timedelta(days=2))


async def test_usage_is_exported_as_cloud_events(two: TwoWorkspaces, front: FrontEnd):
    await _published(two, front)

    page = (await two.whole.get("/api/v1/usage/events")).document()
    batch = await two.whole.get("/api/v1/usage/events?limit=2", headers={"Accept": CLOUD_EVENTS})
    rest = (await two.whole.get(batch.headers["Link"].split(">")[0].lstrip("<"))).document()

    events = page["data"]
    assert batch.headers["Content-Type"] == CLOUD_EVENTS
    assert [*json.loads(batch.body), *rest["data"]] == events
    assert (await two.whole.get(f"/api/v1/usage/events?after={page['next_cursor']}")).document()["data"] == []
    assert {(each["specversion"], each["type"], each["source"]) for each in events} == {
        ("1.0", "gateway.usage.hour", f"urn:gateway:organization:{two.organization_id}")
    }
    assert [each["sequence"] for each in events] == sorted(each["sequence"] for each in events)
    used = {(each["data"]["workspace_name"], each["subject"] == two.limited_id): each["data"] for each in events}
    calls = {key: (data["calls"], data["succeeded"], data["failed"]) for key, data in used.items()}
    assert calls == {("other", False): (1, 0, 1), ("own", False): (1, 1, 0), ("own", True): (1, 1, 0)}


async def test_a_limited_client_gets_the_events_of_its_workspaces(two: TwoWorkspaces, front: FrontEnd):
    await _published(two, front)

    events = (await two.limited.get("/api/v1/usage/events")).document()["data"]

    assert {each["data"]["workspace_name"] for each in events} == {"own"}
    assert sum(each["data"]["calls"] for each in events) == 2


async def test_the_person_for_whom_a_client_called_is_in_the_event(front: FrontEnd):
    organization_id = await front.organization()
    async with front.api(organization_id, [*EVERY_SCOPE, "delegate"]) as client:
        desk = await client.connector()
        body = {"person": {"subject": "ada"}, "expires_in": 600}
        session = (await client.post("/api/v1/sessions", body)).document(201)
        headers = {"Authorization": f"Bearer {session['token']}"}
        call = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}
        await client.post(f"{desk.path}/execute", call, headers=headers)

        async def events() -> list[dict[str, Any]]:
            await front.services.logs.chain.seal()
            await front.services.logs.metering.publish(datetime.now(UTC) + timedelta(days=2))
            found: list[dict[str, Any]] = (await client.get("/api/v1/usage/events")).document()["data"]
            return found

        [event] = await eventually(events)

    assert event["data"]["person_id"] == session["person"]["id"]
    assert event["subject"] == event["data"]["client_id"] != session["person"]["id"]
