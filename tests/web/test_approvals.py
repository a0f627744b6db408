"""Approvals through the API: a call waits until somebody else approves exactly what it would send."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from uuid import UUID

import aiohttp
import pytest

from gateway.foundation.proof import verified
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.command_line import invoked
from tests.harness.console import signed_in
from tests.harness.in_process import FrontEnd
from tests.harness.processes import bare_environment
from tests.harness.waiting import eventually
from tests.web.test_personal_connectors import person_of
from tests.web.test_policies import CREATE, EVERYTHING, READ, UPDATE, put, run_jobs, tool
from tests.web.test_schedules import SLOT_CAME

APPROVALS = "/api/v1/approvals"
WRITES = 'permit(principal, action in [Action::"write", Action::"idempotent"], resource);'
ASK = f'{READ} @id("ask") @approval("Writes need a person.") {WRITES}'
APPROVER = ["read", "approve"]
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@dataclass(frozen=True)
class Bench:
    """An agent whose writes need an approval, an administrator, and somebody who approves."""

    front: FrontEnd
    organization_id: UUID
    admin: Api
    agent: Api
    approver: Api
    desk: ConnectorApi

    async def asked(self, params=UPDATE, action="update", **headers: str) -> tuple[dict, dict]:
        """A call that waits: its job and its approval."""
        answer = await self.desk.send("tickets", action, params, headers)
        job = answer.document(202)["job"]
        await run_jobs(self.front)
        job = await self.job(job)
        return job, (await self.approver.get(f"{APPROVALS}/{job['approval']['id']}")).document()

    async def job(self, job: dict) -> dict:
        return (await self.agent.get(f"/api/v1/jobs/{job['id']}")).document()

    async def decide(self, approval: dict, word: str = "approve", api: Api | None = None, **members) -> Answer:
        body = {"digest": approval["digest"], **members}
        return await (api or self.approver).post(f"{APPROVALS}/{approval['id']}/{word}", body)

    async def ended(self, job: dict) -> dict:
        """The job after workers had time for it."""
        await self.front.services.operations.approvals.end_jobs()
        await run_jobs(self.front)
        return await self.job(job)

    async def ticket(self) -> dict:
        return (await self.desk.execute("tickets", "get", {"ticket_id": 1}))["result"]


@pytest.fixture
async def bench(front: FrontEnd) -> AsyncIterator[Bench]:
    organization_id = await front.organization()
    async with (
        front.api(organization_id, ["read", "write", "admin"]) as admin,
        front.api(organization_id, ["read", "write"]) as agent,
        front.api(organization_id, APPROVER) as approver,
    ):
        desk = (await admin.connector()).through(agent)
        await desk.execute("tickets", "update", {"ticket_id": 1, "ticket": {"status": "open"}})
        assert (await put(admin, ASK)).status == 200
        yield Bench(front, organization_id, admin, agent, approver, desk)


async def test_a_call_waits_for_its_approval_and_goes_on_by_itself(bench: Bench):
    job, approval = await bench.asked()

    assert (job["status"], job["done"]) == ("waiting", False)
    assert {**job["approval"], "expires_at": None} == {
        "id": approval["id"],
        "status": "pending",
        "reason": "Writes need a person.",
        "url": approval["url"],
        "expires_at": None,
    }
    assert (approval["status"], approval["job_id"], approval["items"]) == ("pending", job["id"], 1)
    assert approval["digest"].startswith("sha-256=:")
    [request] = approval["requests"]
    assert (request["method"], request["body"]) == ("PUT", {"ticket": {"status": "solved"}})
    assert "***" in request["headers"].values()
    assert approval["changes"] == [{"record": "1", "member": "ticket.status", "old": "open", "new": "solved"}]
    assert (await bench.ticket())["status"] == "open"

    approved = (await bench.decide(approval, reason="Looks right.")).document()
    ended = await bench.ended(job)

    assert approved["status"] == "approved"
    [decision] = approved["decisions"]
    assert (decision["decision"], decision["reason"]) == ("approved", "Looks right.")
    assert (ended["status"], ended["approval"]["status"]) == ("succeeded", "approved")
    result = (await bench.agent.get(f"/api/v1/jobs/{job['id']}/result")).document()
    assert result["result"]["status"] == "solved"
    assert (await bench.ticket())["status"] == "solved"


async def test_a_read_that_is_permitted_does_not_wait(bench: Bench):
    assert (await bench.desk.send("tickets", "list", {"per_page": 1})).status == 200


@pytest.mark.parametrize("headers", [{}, {"Prefer": "respond-async"}, {"Idempotency-Key": "k"}, {"Prefer": "wait=1"}])
async def test_a_denied_call_is_not_sent_and_says_so(bench: Bench, headers):
    job, approval = await bench.asked(**headers)

    denied = (await bench.decide(approval, "deny", reason="Not now.")).document()
    ended = await bench.job(job)

    assert denied["status"] == "denied"
    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_denied")
    assert (await bench.agent.get(f"/api/v1/jobs/{job['id']}/result")).document(409)["code"] == "approval_denied"
    assert (await bench.ticket())["status"] == "open"


BOTH = {"ticket_id": 1, "ticket": {"status": "solved", "subject": "mine"}}
#: the agent writes and asks, and others read whole records
SECRET = (
    'permit(principal, action in Action::"read", resource) unless {{ principal == Client::"{0}" }};\n'
    + WRITES.join(['@id("ask") @approval("Writes need a person.") ', "\n"])
)
CHANGED = ["ticket.status", "ticket.subject"]


@pytest.mark.parametrize(
    ("cedar", "shown", "redacted"),
    [
        (
            '@redact("subject") permit(principal == Client::"{0}", action in Action::"read", resource);',
            1,
            ["subject"],
        ),
        ('@redact("*") permit(principal == Client::"{0}", action in Action::"read", resource);', 0, ["*"]),
        ("", 0, ["*"]),
        ('permit(principal == Client::"{0}", action in Action::"read", resource);', 2, None),
    ],
    ids=["a redacted member", "everything redacted", "no reads at all", "nothing redacted"],
)
async def test_who_asks_sees_no_old_value_that_policies_redact(bench: Bench, tmp_path, cedar, shown, redacted):
    client_id, secret = await bench.front.client(bench.organization_id, ["read", "write", "approve"])
    await put(bench.admin, (SECRET + cedar).format(client_id))
    environment = {
        **bare_environment(),
        "GATEWAY_URL": bench.front.base_url,
        "GATEWAY_CLIENT_ID": client_id,
        "GATEWAY_CLIENT_SECRET": secret,
    }
    async with Api.of(bench.front.base_url, client_id, secret) as asking:
        job = (await bench.desk.through(asking).send("tickets", "update", BOTH)).document(202)["job"]
        await run_jobs(bench.front)
        approval_id = (await asking.get(f"/api/v1/jobs/{job['id']}")).document()["approval"]["id"]
        own = (await asking.get(f"{APPROVALS}/{approval_id}")).document()
        whole = (await bench.approver.get(f"{APPROVALS}/{approval_id}")).document()
    async with signed_in(bench.front, client_id, secret) as browser:
        page = (await browser.get(f"/console/approvals/{approval_id}")).body.decode()
    command = await invoked("approvals", "show", approval_id, "-o", "json", environment=environment, directory=tmp_path)

    assert [each["member"] for each in whole["changes"]] == CHANGED
    assert own["changes"] == whole["changes"][:shown]
    assert own.get("redacted") == redacted
    assert "redacted" not in whole
    old = whole["changes"][1]["old"]
    assert [old in each for each in (json.dumps(own), page, command.out)] == [shown == 2] * 3
    assert own["requests"] == whole["requests"]


async def test_a_guess_at_a_redacted_value_is_not_confirmed(bench: Bench):
    """A change that is shown only if the value differs would tell whether the guess is right."""
    seen = (await bench.desk.execute("tickets", "get", {"ticket_id": 1}))["result"]["subject"]
    client_id, secret = await bench.front.client(bench.organization_id, ["read", "write", "approve"])
    redact = '@redact("subject") permit(principal == Client::"{0}", action in Action::"read", resource);'
    await put(bench.admin, (SECRET + redact).format(client_id))

    async def changes(api: Api, subject: str) -> list[dict]:
        params = {"ticket_id": 1, "ticket": {"status": "solved", "subject": subject}}
        job = (await bench.desk.through(api).send("tickets", "update", params)).document(202)["job"]
        await run_jobs(bench.front)
        approval_id = (await api.get(f"/api/v1/jobs/{job['id']}")).document()["approval"]["id"]
        return (await api.get(f"{APPROVALS}/{approval_id}")).document()["changes"]

    async with Api.of(bench.front.base_url, client_id, secret) as asking:
        assert await changes(asking, seen) == await changes(asking, f"{seen} not")


async def test_the_requester_cannot_approve(bench: Bench):
    async with bench.front.api(bench.organization_id, ["read", "write", "approve"]) as both:
        job = (await bench.desk.through(both).send("tickets", "update", UPDATE)).document(202)["job"]
        await run_jobs(bench.front)
        job = (await both.get(f"/api/v1/jobs/{job['id']}")).document()
        approval = (await both.get(f"{APPROVALS}/{job['approval']['id']}")).document()

        refused = await bench.decide(approval, api=both)

    assert refused.document(403)["code"] == "approver_is_requester"


async def test_only_the_scope_approve_sees_and_decides(bench: Bench):
    _, approval = await bench.asked()

    answers = [
        await bench.admin.get(APPROVALS),
        await bench.agent.get(f"{APPROVALS}/{approval['id']}"),
        await bench.decide(approval, api=bench.admin),
    ]

    assert [each.document(403)["code"] for each in answers] == ["insufficient_scope"] * 3


async def test_another_digest_approves_nothing(bench: Bench):
    job, approval = await bench.asked()

    refused = await bench.approver.post(f"{APPROVALS}/{approval['id']}/approve", {"digest": "sha-256=:eA==:"})

    assert refused.document(409)["code"] == "approval_changed"
    assert (await bench.ended(job))["status"] == "waiting"


@pytest.mark.parametrize(("first", "second", "status"), [("approve", "approve", 200), ("approve", "deny", 409)])
async def test_the_same_word_again_changes_nothing_and_another_is_a_conflict(bench: Bench, first, second, status):
    job, approval = await bench.asked()
    await bench.decide(approval, first)
    await bench.ended(job)

    again = await bench.decide(approval, second)

    assert again.status == status
    assert len((await bench.approver.get(f"{APPROVALS}/{approval['id']}")).document()["decisions"]) == 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_changed_policy_supersedes_an_approval(bench: Bench, when):
    job, approval = await bench.asked()
    if when == "after":
        await bench.decide(approval)
    await put(bench.admin, ASK.replace("need a person", "need a lead"))

    late = await bench.decide(approval)
    ended = await bench.ended(job)

    assert late.document(409)["code"] == "approval_changed"
    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_changed")
    assert (await bench.ticket())["status"] == "open"


async def test_credentials_that_were_replaced_supersede_an_approval(bench: Bench):
    job, approval = await bench.asked()
    await bench.decide(approval)
    credentials = {"email": "other@example.com", "api_token": "other", "subdomain": "acme"}
    changed = await bench.admin.call("PATCH", bench.desk.path, json={"credentials": credentials})
    assert changed.status == 200, changed.body

    ended = await bench.ended(job)

    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_changed")
    assert (await bench.ticket())["status"] == "open"


async def test_a_record_that_changed_since_supersedes_an_approval(bench: Bench):
    job, approval = await bench.asked()
    await bench.decide(approval)
    async with bench.front.api() as other:
        desk = await other.connector()
        await desk.execute("tickets", "update", {"ticket_id": 1, "ticket": {"status": "pending"}})

    ended = await bench.ended(job)

    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_changed")


async def test_an_approval_expires(bench: Bench):
    await put(bench.admin, f'{READ} @approval("Soon.") @expires("1m") {WRITES}')
    job, approval = await bench.asked()
    async with bench.front.services.database.system() as connection:
        await connection.execute("UPDATE approvals SET expires_at = now() WHERE job_id = $1", UUID(job["id"]))

    refused = await bench.decide(approval)
    ended = await bench.ended(job)

    assert refused.document(409)["code"] == "approval_expired"
    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_expired")


async def test_a_canceled_job_asks_nobody(bench: Bench):
    job, approval = await bench.asked()

    await bench.agent.post(f"/api/v1/jobs/{job['id']}/cancel")

    late = await bench.decide(approval)
    assert late.document(409)["code"] == "approval_changed"
    assert (await bench.job(job))["status"] == "canceled"


async def test_as_many_approve_as_the_policy_demands(bench: Bench):
    await put(bench.admin, f'{READ} @approval("Two.") @approvers("Group::\\"leads\\", 2") {WRITES}')
    job, approval = await bench.asked()

    refused = await bench.decide(approval)

    assert refused.document(403)["code"] == "insufficient_scope"
    assert (await bench.job(job))["status"] == "waiting"


async def test_who_approves_gives_the_reason_that_the_policy_demands(bench: Bench):
    await put(bench.admin, f'{READ} @approval("Writes.") @reason("Which customer agreed?") {WRITES}')
    job, approval = await bench.asked()

    refused = [await bench.decide(approval), await bench.decide(approval, reason="  ")]
    async with signed_in(bench.front, *await bench.front.client(bench.organization_id, APPROVER)) as browser:
        page = (await browser.get(f"/console/approvals/{approval['id']}")).body.decode()
    approved = (await bench.decide(approval, reason="Ada of Acme.")).document()
    other, denied = await bench.asked({"ticket_id": 2, "ticket": {"status": "solved"}})
    await bench.decide(denied, "deny")

    assert approval["questions"] == ["Which customer agreed?"]
    assert [each.document(422)["errors"][0]["field"] for each in refused] == ["reason", "reason"]
    assert "Which customer agreed?" in page
    assert approved["decisions"][0]["reason"] == "Ada of Acme."
    assert ((await bench.ended(job))["status"], (await bench.job(other))["status"]) == ("succeeded", "canceled")


async def test_two_words_at_once_decide_once(bench: Bench):
    job, approval = await bench.asked()
    async with bench.front.api(bench.organization_id, APPROVER) as other:
        answers = await asyncio.gather(bench.decide(approval), bench.decide(approval, "deny", api=other))

    assert sorted(each.status for each in answers) == [200, 409]
    ended = await bench.ended(job)
    expected = "succeeded" if answers[0].status == 200 else "canceled"
    assert ended["status"] == expected


async def test_the_writes_of_a_batch_are_approved_together(bench: Bench):
    lines = [
        {"entity": "tickets", "action": "get", "params": {"ticket_id": 1}},
        {"entity": "tickets", "action": "update", "params": UPDATE},
        {"entity": "tickets", "action": "update", "params": {"ticket_id": 2, "ticket": {"status": "solved"}}},
    ]
    job = (await bench.agent.post(f"{bench.desk.path}/batch", {"operations": lines})).document(202)["job"]
    await run_jobs(bench.front)
    waiting = await bench.job(job)
    approval = (await bench.approver.get(f"{APPROVALS}/{waiting['approval']['id']}")).document()

    await bench.decide(approval)
    ended = await bench.ended(job)

    assert (waiting["status"], approval["items"], len(approval["requests"])) == ("waiting", 2, 2)
    assert ended["status"] == "succeeded", ended
    result = (await bench.agent.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]
    assert [each["status"] for each in result["results"]] == ["succeeded"] * 3


async def test_an_approval_shows_a_hundred_requests_and_a_thousand_changes_at_most(bench: Bench):
    ticket = {
        "subject": "new", "type": "incident", "priority": "urgent", "status": "hold", "assignee_id": 7, "group_id": 7,
        "tags": ["new"], "external_id": "new", "custom_fields": [{"id": 7, "value": "new"}],
        "due_at": "2026-12-01T00:00:00Z", "collaborator_ids": [7],
    }  # fmt: skip
    lines = [{"entity": "tickets", "action": "update", "params": {"ticket_id": 1, "ticket": ticket}}] * 101
    job = (await bench.agent.post(f"{bench.desk.path}/batch", {"operations": lines})).document(202)["job"]
    await run_jobs(bench.front)

    approval = (await bench.approver.get(f"{APPROVALS}/{(await bench.job(job))['approval']['id']}")).document()

    assert (approval["items"], len(approval["requests"]), len(approval["changes"])) == (101, 100, 1000)


async def test_approvals_are_listed_filtered_and_paged(bench: Bench):
    job, first = await bench.asked()
    await bench.decide(first)
    await bench.ended(job)
    _, second = await bench.asked()
    connector = bench.desk.record["id"]

    async def listed(query: str) -> list[str]:
        return [each["id"] for each in (await bench.approver.get(f"{APPROVALS}?{query}")).document()["data"]]

    page = (await bench.approver.get(f"{APPROVALS}?limit=1")).document()
    assert [each["id"] for each in page["data"]] == [second["id"]]
    assert await listed(f"limit=1&cursor={page['next_cursor']}") == [first["id"]]
    assert await listed("status=pending") == [second["id"]]
    assert await listed(f"connector_id={connector}&requested_by={first['requested_by']['client']['id']}") == [
        second["id"],
        first["id"],
    ]
    assert await listed("requested_by=0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11") == []


async def test_each_step_of_an_approval_is_an_event(bench: Bench):
    job, approval = await bench.asked()
    await bench.decide(approval)
    await bench.ended(job)

    events = (await bench.admin.get("/api/v1/events?types=approval.*")).document()["data"]

    assert [each["type"] for each in events] == ["approval.requested", "approval.approved"]
    assert {each["data"]["approval_id"] for each in events} == {approval["id"]}


async def test_another_organization_and_another_workspace_see_no_approval(bench: Bench):
    _, approval = await bench.asked()
    async with bench.front.api(None, APPROVER) as stranger:
        assert (await stranger.get(f"{APPROVALS}/{approval['id']}")).status == 404
        assert (await bench.decide(approval, api=stranger)).status == 404
        assert (await stranger.get(APPROVALS)).document()["data"] == []


async def test_an_agent_gets_the_link_for_a_person(bench: Bench):
    answer = asyncio.create_task(
        tool(bench.front, bench.agent, "write", operation="support-desk.tickets.update", params=UPDATE)
    )
    while not answer.done():
        await run_jobs(bench.front)
        await asyncio.wait([answer], timeout=0.05)

    job = answer.result()["structuredContent"]
    assert (job["status"], job["approval"]["status"]) == ("waiting", "pending")
    assert job["approval"]["url"].endswith(f"/console/approvals/{job['approval']['id']}")


async def test_a_task_asks_with_the_link_and_goes_on_by_itself(bench: Bench):
    job, approval = await bench.asked()
    async with aiohttp.ClientSession(headers=bench.agent.headers) as session:
        raw = Raw(session, f"{bench.front.base_url}/mcp")
        asking = (await raw("tasks/get", {"taskId": job["id"]}, capabilities=TASKS)).document["result"]
        await bench.decide(approval)
        await bench.ended(job)
        ended = (await raw("tasks/get", {"taskId": job["id"]}, capabilities=TASKS)).document["result"]

    assert asking["status"] == "input_required"
    assert asking["inputRequests"]["approval"]["params"]["url"] == approval["url"]
    assert ended["status"] == "completed"


async def test_a_person_approves_on_the_console_without_scripts(bench: Bench):
    job, approval = await bench.asked()
    client_id, secret = await bench.front.client(bench.organization_id, APPROVER)
    async with signed_in(bench.front, client_id, secret) as browser:
        listed = await browser.get("/console/approvals")
        page = await browser.get(f"/console/approvals/{approval['id']}")
        form = {"digest": approval["digest"], "word": "approve", "reason": "<b>fine</b>"}
        await browser.send(f"/console/approvals/{approval['id']}", csrf=await browser.csrf(), **form)
        decided = await browser.get(f"/console/approvals/{approval['id']}")

    assert approval["id"].encode() in listed.body
    assert all(each in page.body for each in (b"ticket.status", b"solved", b"Writes need a person."))
    assert b"&lt;b&gt;fine&lt;/b&gt;" in decided.body
    assert (await bench.ended(job))["status"] == "succeeded"


async def test_an_approved_call_is_taken_from_budgets_when_it_goes_on(bench: Bench):
    async def spent() -> int:
        return (await bench.admin.get("/api/v1/budgets/b")).document()["spent"]["writes"]

    await bench.admin.call("PUT", "/api/v1/budgets/b", json={"per": "day", "writes": 1})
    job, approval = await bench.asked()
    before = await spent()
    await bench.decide(approval)
    first = await bench.ended(job)
    other, approval = await bench.asked({"ticket_id": 2, "ticket": {"status": "solved"}})
    await bench.decide(approval)
    second = await bench.ended(other)

    assert (before, await spent()) == (0, 1)
    assert (first["status"], second["status"], second["error"]["code"]) == ("succeeded", "failed", "budget_spent")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"action": "update", "params": UPDATE}, ("tickets.update", True)),
        ({"action": "list", "params": {"per_page": 1}}, ("tickets.list", False)),
        ({"action": "list", "output": {"file": "ndjson"}}, ("tickets.list", False)),
    ],
    ids=["a write that is approved", "a read", "an export"],
)
async def test_the_entry_of_a_schedules_job_says_which_policy_decided(bench: Bench, sql, operation, expected):
    what, is_asked = expected
    await put(bench.admin, f'@id("reads") {READ} {ASK.removeprefix(READ)}')
    body = {"name": "s", "connector_id": bench.desk.record["id"], "entity": "tickets", "cron": "0 0 * * *", **operation}
    schedule = (await bench.agent.post("/api/v1/schedules", body)).document(201)
    await sql(SLOT_CAME, schedule["id"], 0.0)
    await bench.front.services.operations.due_runs.start()
    await run_jobs(bench.front, is_background=True)
    [job_id] = (await bench.agent.get(f"/api/v1/schedules/{schedule['id']}")).document()["job_ids"]
    job = await bench.job({"id": job_id})
    if is_asked:
        await bench.decide((await bench.approver.get(f"{APPROVALS}/{job['approval']['id']}")).document())
        await run_jobs(bench.front, is_background=True)
    ended = await bench.job(job)

    async def entries() -> list[dict]:
        found = (await bench.admin.get(f"/api/v1/audit?operation={what}&limit=2")).document()["data"]
        return found if found[-1]["outcome"] == "accepted" else []

    newest, accepted = await eventually(entries)
    mark = newest["approval"]
    assert (ended["status"], newest["outcome"]) == ("succeeded", "succeeded")
    assert (newest["policies"], accepted["policies"]) == ([{True: "ask", False: "reads"}[is_asked]], [])
    assert (mark["id"] if mark else None) == (job["approval"]["id"] if is_asked else None)


async def test_the_entry_of_a_retried_job_says_which_policy_decided_then(bench: Bench):
    await put(bench.admin, EVERYTHING)
    missing = {**UPDATE, "ticket_id": 10**12}
    failed = (await bench.desk.send("tickets", "update", missing, {"Prefer": "respond-async"})).document(202)["job"]
    await run_jobs(bench.front)
    await put(bench.admin, f'@id("later") {EVERYTHING}')

    again = (await bench.agent.post(f"/api/v1/jobs/{failed['id']}/retry")).document(202)
    await run_jobs(bench.front)

    entries = (await bench.admin.get("/api/v1/audit?operation=tickets.update&outcome=failed")).document()["data"]
    assert again["job"]["id"] != failed["id"]
    assert [each["policies"] for each in entries] == [["later"], ["main"]]


async def test_entries_of_the_audit_log_say_which_policy_decided_and_who_approved(bench: Bench):
    job, approval = await bench.asked()
    [word] = (await bench.decide(approval)).document()["decisions"]
    await bench.ended(job)
    await put(
        bench.admin, f'{ASK} @id("never") forbid(principal, action == Action::"support-desk.tickets.create", resource);'
    )
    await bench.desk.send("tickets", "create", CREATE)

    async def entries_of(operation: str) -> list[dict]:
        return (await bench.admin.get(f"/api/v1/audit?operation={operation}")).document()["data"]

    await eventually(lambda: entries_of("tickets.create"))
    newest = (await entries_of("tickets.update"))[0]
    [denied] = await entries_of("tickets.create")
    lines = (await bench.admin.get("/api/v1/audit/export")).body.decode().splitlines()
    keys = [each["public_key"] for each in (await bench.admin.get("/api/v1/audit/keys")).document()]
    settled = [json.loads(line) for line in lines if f'"call_id":"{job["id"]}"' in line][-1]

    assert (newest["outcome"], newest["policies"]) == ("succeeded", ["ask"])
    mark = {"id": approval["id"], "approved_by": [word["by"]]}
    assert (newest["approval"], settled["approval"]) == (mark, mark)
    assert (settled["kind"], settled["policies"]) == ("settlement", ["ask"])
    assert (denied["outcome"], denied["policies"], denied["approval"]) == ("denied_by_policy", ["never"], None)
    assert verified(lines, keys).fault is None


async def test_what_a_suspended_person_asked_for_is_superseded_at_once(bench: Bench):
    person_id, person = await person_of(bench.front, bench.admin, ["read", "write"])
    job, approval = await replace(bench, agent=person, desk=bench.desk.through(person)).asked()

    await bench.admin.call("PATCH", f"/api/v1/people/{person_id}", json={"status": "suspended"})
    decided = await bench.decide(approval)
    ended = await replace(bench, agent=bench.admin).ended(job)

    assert (decided.status, decided.json()["code"]) == (409, "approval_changed")
    assert (await bench.approver.get(f"{APPROVALS}/{approval['id']}")).document()["status"] == "superseded"
    assert (ended["status"], ended["approval"]["status"]) == ("canceled", "superseded")
    assert (await bench.ticket())["status"] == "open"
