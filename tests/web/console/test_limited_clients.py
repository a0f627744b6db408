"""A client that is limited to workspaces sees the numbers and names of their connectors alone, on every page."""

import html
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest

from gateway.access.audit.usage import MAX_READ
from gateway.access.identity.tokens import hashed, new_secret
from gateway.web.console.page import SPANS
from tests.harness.caller import Api
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.test_console import PAGES

FOREIGN = "canary-foreign"
#: all pages without an id, and the overview for every span and share
SHOWN = [*PAGES, *(f"/console?span={span}&by={by}" for span in SPANS for by in ("connector", "client", "all"))]
_COPY = """
    INSERT INTO context_entities (connector_id, organization_id, entity, layout, status, records, last_synced_at,
                                  next_sync_at)
    VALUES ($1, $2, $3, '{"keys": [], "worded": []}', 'ready', 7, now(), now() + interval '1 day')
    ON CONFLICT DO NOTHING
"""
_CALLS = """
    INSERT INTO audit (organization_id, at, actor, connector_id, what, outcome, took_ms)
    SELECT $1, now() - interval '3 days', $1, $2, 'tickets.get', 'succeeded', 5 FROM generate_series(1, $3::integer)
"""
_FAIL = "UPDATE jobs SET status = 'failed', finished_at = now() WHERE id = $1"


@dataclass(frozen=True)
class Limited:
    """An administrator of the workspace `own`, and connectors of it and of another workspace."""

    browser: ConsoleBrowser
    own_id: str
    foreign_id: str

    async def page(self, path: str) -> str:
        answer = await self.browser.get(path)
        assert answer.status == 200
        return answer.body.decode()

    async def drawn(self, path: str) -> int:
        """The calls that the plots of the page have."""
        [series] = re.findall(r'data-plots="([^"]+)"', await self.page(path))
        return sum(json.loads(html.unescape(series))["calls"])


@pytest.fixture
async def limited(front: FrontEnd, database_url: str, organization_id: UUID, api: Api) -> AsyncIterator[Limited]:
    own = await api.connector(workspace_name="own", name="own desk")
    foreign = await api.connector(workspace_name=f"{FOREIGN}-workspace", name=f"{FOREIGN}-desk")
    owner = await asyncpg.connect(database_url)
    for desk, entity in ((own, "tickets"), (foreign, f"{FOREIGN}-entity")):
        await desk.execute("tickets", "list")
        await owner.execute(_FAIL, UUID((await desk.submit("tickets", "list"))["id"]))
        await owner.execute(_COPY, UUID(desk.record["id"]), organization_id, entity)
        definition = {"connector_id": desk.record["id"], "entity": "tickets", "action": "list", "params": {}}
        schedule = {**definition, "name": f"of {desk.record['name']}", "cron": "@yearly"}
        (await api.post("/api/v1/schedules", schedule)).document(201)
    await owner.close()
    secret = new_secret()
    client_id = await front.services.identity.create_client(
        "limited", [organization_id], hashed(secret), EVERY_SCOPE, workspaces=["own"]
    )

    async def are_counted() -> bool:
        usage = (await api.get("/api/v1/usage?by=connector")).document()["by"]
        return len(usage) == 2 and all(each["calls"] >= 4 for each in usage)

    await eventually(are_counted)
    async with signed_in(front, str(client_id), secret) as browser:
        yield Limited(browser, own.record["id"], foreign.record["id"])


async def test_no_page_names_a_connector_of_another_workspace(limited: Limited):
    answers = {path: await limited.browser.get(path) for path in SHOWN}
    texts = {path: answer.body.decode() for path, answer in answers.items()}

    assert [path for path, text in texts.items() if FOREIGN in text or limited.foreign_id in text] == []
    assert {answer.status for answer in answers.values()} == {200, 403}  # pages of the whole organization are refused
    assert all("own desk" in texts[path] for path in ("/console/connectors", "/console/jobs", "/console/schedules"))
    assert (await limited.browser.get(f"/console/connectors/{limited.foreign_id}?span=month")).status == 404


@pytest.mark.parametrize("span", SPANS)
async def test_plots_and_shares_have_the_calls_of_the_own_connectors(limited: Limited, api: Api, span: str):
    usage = (await api.get("/api/v1/usage?by=connector")).document()["by"]
    [calls] = [each["calls"] for each in usage if each["id"] == limited.own_id]

    shares = await limited.page(f"/console?span={span}&by=connector")

    assert await limited.drawn(f"/console?span={span}") == calls
    assert await limited.drawn(f"/console/connectors/{limited.own_id}?span={span}") == calls
    assert re.findall(r'own desk</a></th><td class="number">(\d+)<', shares) == [str(calls)]


async def test_counts_are_those_of_the_own_workspace(limited: Limited):
    overview, health, jobs = [await limited.page(f"/console{page}") for page in ("", "/health", "/jobs")]

    assert "<strong>1</strong> connector</a>" in overview
    assert "<strong>1</strong> copy for search" in overview
    assert "<strong>1</strong> failed</a>" in overview
    assert health.count("<td>tickets</td>") == 1
    assert jobs.count('<th scope="row"><a href="/console/jobs/') == 1


async def test_a_month_with_too_many_calls_is_not_drawn_and_the_page_says_so(
    limited: Limited, database_url: str, organization_id: UUID
):
    owner = await asyncpg.connect(database_url)
    await owner.execute(_CALLS, organization_id, UUID(limited.own_id), MAX_READ + 1)
    await owner.close()

    page = await limited.page("/console?span=month")

    assert "There are too many calls to be drawn; choose a shorter time." in page
    assert "calls, 0 of them" not in page
    assert await limited.drawn("/console?span=hour") > 0
