"""GET /api/v1/usage: calls over time, and the work in progress."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd


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
