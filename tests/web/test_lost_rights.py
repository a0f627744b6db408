"""Work that goes on without a token, of a person who has lost a right since: it ends, and shows nothing."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from tests.harness.caller import ASYNC, Api
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.test_connect_links import FORM, made, opened, sent
from tests.web.test_personal_connectors import CONNECTORS, connected, person_of
from tests.web.test_policies import READ, put, run_jobs

LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}
UPDATE = {"entity": "tickets", "action": "update", "params": {"ticket_id": 1, "ticket": {"status": "solved"}}}
ALL = {"scopes": ["read", "write"], "workspaces": None}
NO_WRITES, ELSEWHERE = {**ALL, "scopes": ["read"]}, {**ALL, "workspaces": ["other"]}


@dataclass(frozen=True)
class Team:
    """A person whose rights are those of the group `team`, a shared connector, and an administrator."""

    front: FrontEnd
    admin: Api
    person: Api
    person_id: str
    connector_id: str

    async def rights(self, rights: dict) -> None:
        (await self.admin.call("PUT", "/api/v1/groups/team", json=rights)).document()

    async def submitted(self, call: dict, end: str = "execute") -> str:
        """The id of a job of the person."""
        path = f"{CONNECTORS}/{self.connector_id}/{end}"
        return (await self.person.post(path, call, headers=ASYNC)).document(202)["job"]["id"]

    async def outcome(self, job_id: str) -> tuple[str, str | None]:
        """The status of a job and the code of its error, as the gateway has stored them."""
        async with self.front.services.database.system() as connection:
            row = await connection.fetchrow("SELECT status, error FROM jobs WHERE id = $1", UUID(job_id))
        return row["status"], None if row["error"] is None else json.loads(row["error"])["code"]


@pytest.fixture
async def team(front: FrontEnd) -> AsyncIterator[Team]:
    organization_id = await front.organization()
    async with front.api(organization_id, ["read", "write", "admin", "approve"]) as admin:
        await admin.call("PUT", "/api/v1/groups/team", json=ALL)
        person_id, person = await person_of(front, admin, [], workspaces=[], groups=["team"])
        shared = (await connected(admin, None)).document(201)
        yield Team(front, admin, person, person_id, shared["id"])


@pytest.mark.parametrize(
    ("lost", "read", "write"),
    [
        (NO_WRITES, ("succeeded", None), ("failed", "insufficient_scope")),
        (ELSEWHERE, ("failed", "insufficient_scope"), ("failed", "insufficient_scope")),
    ],
)
async def test_jobs_that_were_accepted_before_do_what_the_person_may_do_now(team: Team, lost: dict, read, write):
    jobs = [await team.submitted(each) for each in (LIST, UPDATE)]
    batch = await team.submitted({"operations": [LIST, UPDATE]}, "batch")
    export = await team.submitted({**LIST, "params": {"per_page": 100}, "output": {"file": "ndjson"}})
    await team.rights(lost)

    await run_jobs(team.front)
    await team.rights(ALL)
    results = (await team.person.get(f"/api/v1/jobs/{batch}/result")).document()["result"]["results"]

    assert [await team.outcome(each) for each in jobs] == [read, write]
    assert [(each["status"], each.get("error", {}).get("code")) for each in results] == [read, write]
    assert await team.outcome(export) == read


async def test_the_runs_of_a_schedule_do_what_the_person_may_do_now(team: Team, sql):
    timing = {"name": "nightly", "connector_id": team.connector_id, **UPDATE, "cron": "@daily"}
    schedule = (await team.person.post("/api/v1/schedules", timing)).document(201)

    async def run() -> tuple[str, str | None]:
        await sql("UPDATE schedules SET next_run_at = now() WHERE id = $1", UUID(schedule["id"]))
        await team.front.services.operations.due_runs.start()
        await run_jobs(team.front, is_background=True)
        found = await sql("SELECT id FROM jobs WHERE labels->>'schedule_id' = $1 ORDER BY created_at", schedule["id"])
        return await team.outcome(str(found[-1]["id"]))

    assert await run() == ("succeeded", None)
    await team.rights(NO_WRITES)
    assert await run() == ("failed", "insufficient_scope")
    await team.rights(ALL)
    assert await run() == ("succeeded", None)


async def test_an_approved_call_is_not_released_for_a_person_who_may_no_longer_make_it(team: Team):
    writes = 'permit(principal, action in [Action::"write", Action::"idempotent"], resource);'
    (await put(team.admin, f'{READ} @id("ask") @approval("Ask.") {writes}')).document()
    job_id = await team.submitted(UPDATE)
    await run_jobs(team.front)
    approval_id = (await team.person.get(f"/api/v1/jobs/{job_id}")).document()["approval"]["id"]
    path = f"/api/v1/approvals/{approval_id}"
    digest = (await team.admin.get(path)).document()["digest"]
    (await team.admin.post(f"{path}/approve", {"digest": digest})).document()

    await team.rights(NO_WRITES)
    await run_jobs(team.front)

    assert await team.outcome(job_id) == ("failed", "insufficient_scope")


@pytest.mark.parametrize("lost", [NO_WRITES, ELSEWHERE])
async def test_a_connect_link_connects_nothing_for_a_person_who_may_no_longer_connect(team: Team, lost: dict):
    _, path = await made(team.person, workspace_name="acme")
    _, renewal = await made(team.person, workspace_name="acme", connector_id=team.connector_id)
    await team.rights(lost)

    refused = [await opened(team.person, path), *[await sent(team.person, each, **FORM) for each in (path, renewal)]]

    assert [each.status for each in refused] == [404, 404, 404]
    assert len((await team.admin.get(CONNECTORS)).document()["data"]) == 1


@pytest.mark.usefixtures("deliveries")
async def test_a_webhook_of_a_person_gets_the_events_that_the_person_may_see_now(team: Team, sql):
    subscription = {"url": "https://r.example/in", "types": ["connector.created"]}
    webhook = (await team.person.post("/api/v1/webhooks", subscription)).document(201)
    (await team.admin.post("/api/v1/webhooks", subscription)).document(201)

    async def received(name: str, owner: str | None) -> bool:
        rows = await sql(DELIVERED, name)
        return owner in {None if row["owner_id"] is None else str(row["owner_id"]) for row in rows}

    for rights, name, is_seen in ((ALL, "A", True), (ELSEWHERE, "B", False), ({**ALL, "scopes": []}, "C", False)):
        await team.rights(rights)
        await connected(team.admin, None, name=name)
        await eventually(lambda name=name: received(name, None))
        if is_seen:
            await eventually(lambda name=name: received(name, team.person_id))
    await team.rights(ALL)
    await connected(team.admin, None, name="D")
    await eventually(lambda: received("D", team.person_id))

    assert webhook["status"] == "active"
    assert [await received(name, team.person_id) for name in "ABC"] == [True, False, False]


DELIVERED = """
    SELECT webhooks.owner_id FROM webhook_deliveries
    JOIN webhooks ON webhooks.id = webhook_id
    JOIN events ON events.organization_id = webhooks.organization_id AND last_id = event_id
    WHERE events.data::jsonb->>'name' = $1
"""
