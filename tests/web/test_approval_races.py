"""Races of approvals: of people, with lost workers, with policies, credentials and cancellations, and again."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from gateway.jobs.claims import Claims
from gateway.jobs.leases import LostLease
from gateway.jobs.model import StoredJob
from gateway.run.work import work_of
from tests.harness.caller import Api
from tests.harness.console import signed_in
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually
from tests.jobs.conftest import SHARES
from tests.web.test_approvals import APPROVALS, APPROVER, ASK, WRITES, Bench, bench  # noqa: F401 - a fixture
from tests.web.test_policies import CREATE, READ, UPDATE, put, run_jobs

LOSE = "UPDATE jobs SET status = 'queued', worker = NULL, lease_until = NULL WHERE id = $1"
OTHER_CREDENTIALS = {"email": "other@example.com", "api_token": "other", "subdomain": "acme"}
LEADS = """
    WITH leads AS (INSERT INTO groups (organization_id, name, scopes) VALUES ($1, 'leads', '{}') RETURNING name)
    INSERT INTO group_members (organization_id, group_name, client_id) SELECT $1, name, unnest($2::uuid[]) FROM leads
"""
ASK_UPDATES = f"""{READ}
@id("updates") @approval("Updates need a person.") permit(principal, action in Action::"idempotent", resource);
"""


async def claimed(bench: Bench) -> StoredJob:  # noqa: F811
    """The only queued job, as the worker has it that is about to run it."""
    services = bench.front.services
    [job] = await Claims(services.database, services.jobs.sealing).claim(services.process.name, 100, SHARES)
    return job


async def ran(bench: Bench, job: StoredJob) -> None:  # noqa: F811
    """The rest of the run of a worker that claimed the job."""
    services, done = bench.front.services, asyncio.Event()
    services.jobs.runner.start(job, work_of(services)[job.task], done.set)
    await done.wait()


async def submitted(bench: Bench, params: Any = UPDATE, action: str = "update") -> dict:  # noqa: F811
    job: dict = (await bench.desk.send("tickets", action, params)).document(202)["job"]
    return job


async def approval_of(bench: Bench, job: dict) -> dict:  # noqa: F811
    job = await bench.job(job)
    approval: dict = (await bench.approver.get(f"{APPROVALS}/{job['approval']['id']}")).document()
    return approval


async def went_on(bench: Bench, sql, job: dict) -> None:  # noqa: F811
    """A worker lets an approved job go on, and is lost before it sends anything."""
    store, lost = bench.front.services.operations.approvals.store, await claimed(bench)
    approval = await store.latest(lost)
    assert approval is not None
    assert await store.release(approval, lost)
    await sql(LOSE, job["id"])


@pytest.mark.parametrize("is_approved", [False, True])
async def test_only_the_worker_that_holds_the_job_changes_its_approval(bench: Bench, sql, is_approved):  # noqa: F811
    """A lost worker may be anywhere in its run, also just before it would release or give up the approval."""
    job, store = await submitted(bench), bench.front.services.operations.approvals.store
    lost = await claimed(bench)
    await sql(LOSE, job["id"])
    await run_jobs(bench.front)
    if is_approved:
        await bench.decide(await approval_of(bench, job))
        lost = await claimed(bench)
        await sql(LOSE, job["id"])
        await claimed(bench)
    stored = await store.latest(lost)
    assert stored is not None

    for change in (store.supersede, store.release):
        with pytest.raises(LostLease):
            await change(stored, lost)

    approval = await approval_of(bench, job)
    assert approval["status"] == ("approved" if is_approved else "pending")


async def test_a_worker_that_was_lost_before_it_asked_gives_up_no_approval(bench: Bench, sql):  # noqa: F811
    job = await submitted(bench)
    lost = await claimed(bench)
    await sql(LOSE, job["id"])
    await run_jobs(bench.front)

    await ran(bench, lost)

    approval = await approval_of(bench, job)
    assert ((await bench.job(job))["status"], approval["status"]) == ("waiting", "pending")
    await bench.decide(approval)
    assert (await bench.ended(job))["status"] == "succeeded"


@pytest.mark.parametrize("when", ["before the other goes on", "after the other has ended"])
async def test_a_worker_that_was_lost_with_an_approved_job_gives_up_no_approval(bench: Bench, sql, when):  # noqa: F811
    job, approval = await bench.asked()
    await bench.decide(approval)
    lost = await claimed(bench)
    await sql(LOSE, job["id"])
    other = await claimed(bench)
    runs = [other, lost] if when == "after the other has ended" else [lost, other]

    for each in runs:
        await ran(bench, each)

    ended, approval = await bench.job(job), await approval_of(bench, job)
    assert (ended["status"], ended["approval"]["status"], approval["status"]) == ("succeeded", "approved", "approved")
    steps = (await bench.agent.get("/api/v1/events?types=approval.*")).document()["data"]
    assert [each["type"] for each in steps] == ["approval.requested", "approval.approved"]


async def test_another_worker_finishes_what_one_began_with_an_approval(bench: Bench, sql):  # noqa: F811
    job, approval = await bench.asked()
    await bench.decide(approval)
    await went_on(bench, sql, job)

    assert (await bench.ended(job))["status"] == "succeeded"


async def test_credentials_that_were_replaced_after_a_job_went_on_send_nothing(bench: Bench, sql):  # noqa: F811
    job, approval = await bench.asked()
    await bench.decide(approval)
    await went_on(bench, sql, job)
    await bench.admin.call("PATCH", bench.desk.path, json={"credentials": OTHER_CREDENTIALS})

    ended = await bench.ended(job)

    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_changed")
    assert (await bench.ticket())["status"] == "open"


async def test_a_batch_that_goes_on_again_does_no_more_than_was_approved(bench: Bench, sql):  # noqa: F811
    """A policy that demands an approval of further lines, after the batch went on, does not find them approved."""
    await put(bench.admin, f'{ASK_UPDATES} permit(principal, action in Action::"write", resource);')
    lines = [
        {"entity": "tickets", "action": "update", "params": UPDATE},
        {"entity": "tickets", "action": "create", "params": CREATE},
    ]
    job = (await bench.agent.post(f"{bench.desk.path}/batch", {"operations": lines})).document(202)["job"]
    await run_jobs(bench.front)
    approval = await approval_of(bench, job)
    await bench.decide(approval)
    await went_on(bench, sql, job)
    await put(bench.admin, f'{ASK_UPDATES} @approval("So do creates.") permit(principal, action, resource);')

    ended = await bench.ended(job)

    result = (await bench.admin.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]
    assert (approval["items"], ended["status"]) == (1, "succeeded")
    assert [each["status"] for each in result["results"]] == ["succeeded", "failed"]
    assert result["results"][1]["error"]["code"] == "denied_by_policy"


async def test_the_same_arguments_again_need_another_approval(bench: Bench):  # noqa: F811
    headers = {"Idempotency-Key": "k"}
    job, approval = await bench.asked(**headers)
    await bench.decide(approval)
    await bench.ended(job)

    replayed = (await bench.desk.send("tickets", "update", UPDATE, headers)).document()
    again, other = await bench.asked()

    assert replayed["result"]["status"] == "solved"
    assert (again["status"], other["status"]) == ("waiting", "pending")
    assert other["id"] != approval["id"]
    refused = await bench.approver.post(f"{APPROVALS}/{approval['id']}/deny", {"digest": approval["digest"]})
    assert refused.document(409)["code"] == "conflict"


async def test_a_retry_of_an_approved_call_needs_another_approval(bench: Bench):  # noqa: F811
    missing = {"ticket_id": 10**12, "ticket": {"status": "solved"}}
    job, approval = await bench.asked(missing)
    await bench.decide(approval)
    failed = await bench.ended(job)

    again = (await bench.agent.post(f"/api/v1/jobs/{job['id']}/retry")).document(202)["job"]
    await run_jobs(bench.front)

    assert failed["status"] == "failed"
    assert (await bench.job(again))["status"] == "waiting"
    assert (await approval_of(bench, again))["id"] != approval["id"]


async def test_an_approval_at_the_same_moment_as_another_policy_approves_nothing(bench: Bench):  # noqa: F811
    job, approval = await bench.asked()

    decided, stored = await asyncio.gather(bench.decide(approval), put(bench.admin, ASK.replace("need", "want")))
    ended = await bench.ended(job)

    assert (decided.status in (200, 409), stored.status) == (True, 200)
    assert (ended["status"], ended["error"]["code"]) == ("canceled", "approval_changed")
    assert (await bench.ticket())["status"] == "open"


async def test_an_approval_at_the_moment_of_its_expiry_is_one_or_the_other(bench: Bench, sql):  # noqa: F811
    await put(bench.admin, f'{READ} @approval("Soon.") @expires("1m") {WRITES}')
    job, approval = await bench.asked()
    await sql("UPDATE approvals SET expires_at = now() + interval '10 milliseconds' WHERE job_id = $1", job["id"])
    approvals = bench.front.services.operations.approvals

    decided, *_ = await asyncio.gather(bench.decide(approval), *(approvals.end_jobs() for _ in range(5)))
    ended = await bench.ended(job)

    expected = {200: ("succeeded", "solved"), 409: ("canceled", "open")}[decided.status]
    assert (ended["status"], (await bench.ticket())["status"]) == expected


async def test_an_approval_at_the_moment_of_a_cancellation_is_one_or_the_other(bench: Bench):  # noqa: F811
    job, approval = await bench.asked()

    decided, canceled = await asyncio.gather(
        bench.decide(approval), bench.agent.post(f"/api/v1/jobs/{job['id']}/cancel")
    )
    ended = await bench.ended(job)

    assert (decided.status in (200, 409), canceled.status) == (True, 202)
    assert ended["status"] == "canceled"
    assert (await bench.ticket())["status"] == "open"


@pytest.mark.parametrize("count", [1, 2])
async def test_a_cancellation_does_not_wait_for_a_person_who_decides(bench: Bench, sql, count):  # noqa: F811
    await put(bench.admin, f'{READ} @approval("Two.") @approvers("Group::\\"leads\\", {count}") {WRITES}')
    lead = await bench.front.client(bench.organization_id, APPROVER)
    await sql(LEADS, bench.organization_id, [UUID(lead[0])])
    job, approval = await bench.asked()
    async with (
        Api.of(bench.front.base_url, *lead) as api,
        bench.front.services.database.system() as connection,
    ):
        async with connection.transaction():
            await connection.execute("SELECT FROM jobs WHERE id = $1 FOR KEY SHARE", UUID(job["id"]))
            await connection.execute("SELECT FROM approvals WHERE id = $1 FOR UPDATE", UUID(approval["id"]))
            deciding = asyncio.create_task(bench.decide(approval, api=api))
            await eventually(lambda: waits_for_lock(bench.front.services.database))
            canceled = await bench.agent.post(f"/api/v1/jobs/{job['id']}/cancel")
        decided = await deciding
    ended = await bench.ended(job)

    assert (canceled.status, decided.status) == (202, 409)
    assert ended["status"] == "canceled"
    assert (await bench.ticket())["status"] == "open"
    assert (await bench.approver.get(f"{APPROVALS}/{approval['id']}")).document()["status"] == "superseded"


async def test_two_people_at_the_same_moment_are_enough_where_two_are_needed(bench: Bench, sql):  # noqa: F811
    """Each word waits for the other one, so that the second one is counted together with the first."""
    await put(bench.admin, f'{READ} @approval("Two.") @approvers("Group::\\"leads\\", 2") {WRITES}')
    leads = [await bench.front.client(bench.organization_id, APPROVER) for _ in range(2)]
    await sql(LEADS, bench.organization_id, [UUID(client_id) for client_id, _ in leads])
    job, approval = await bench.asked()
    async with (
        Api.of(bench.front.base_url, *leads[0]) as one,
        Api.of(bench.front.base_url, *leads[1]) as other,
        bench.front.services.database.system() as connection,
    ):
        async with connection.transaction():
            await connection.execute("SELECT FROM approvals WHERE id = $1 FOR UPDATE", UUID(approval["id"]))
            words = [asyncio.create_task(bench.decide(approval, api=api)) for api in (one, other)]
            await eventually(lambda: waits_for_lock(bench.front.services.database, 2))
        answers = [await word for word in words]

    assert [each.status for each in answers] == [200, 200]
    assert (await bench.ended(job))["status"] == "succeeded"
    steps = (await bench.agent.get("/api/v1/events?types=approval.*")).document()["data"]
    assert [each["type"] for each in steps] == ["approval.requested", "approval.approved"]


async def test_a_link_that_is_opened_again_decides_nothing(bench: Bench):  # noqa: F811
    job, approval = await bench.asked()
    link = f"/console/approvals/{approval['id']}"
    for word in ("approve", "approve", "deny"):
        client = await bench.front.client(bench.organization_id, APPROVER)
        async with signed_in(bench.front, *client) as browser:
            form = {"digest": approval["digest"], "word": word, "reason": word}
            await browser.send(link, csrf=await browser.csrf(), **form)
        ended = await bench.ended(job)

    decided = (await bench.approver.get(f"{APPROVALS}/{approval['id']}")).document()
    assert [(each["decision"], each["reason"]) for each in decided["decisions"]] == [("approved", "approve")]
    assert (decided["status"], ended["status"]) == ("approved", "succeeded")


async def test_a_digest_or_a_key_is_good_for_one_call_alone(bench: Bench):  # noqa: F811
    job, approval = await bench.asked(**{"Idempotency-Key": "k"})
    other_params = {"ticket_id": 1, "ticket": {"status": "pending"}}
    _, other = await bench.asked(other_params)

    crossed = await bench.approver.post(f"{APPROVALS}/{other['id']}/approve", {"digest": approval["digest"]})
    await bench.decide(approval)
    await bench.ended(job)
    mismatched = await bench.desk.send("tickets", "update", other_params, {"Idempotency-Key": "k"})

    assert crossed.document(409)["code"] == "approval_changed"
    assert mismatched.document(422)["code"] == "idempotency_mismatch"
    assert (await bench.approver.get(f"{APPROVALS}/{other['id']}")).document()["status"] == "pending"
    assert (await bench.ticket())["status"] == "solved"


async def test_who_lost_the_access_in_between_approves_nothing(bench: Bench):  # noqa: F811
    client_id, secret = await bench.front.client(bench.organization_id, APPROVER)
    job, approval = await bench.asked()
    async with (
        Api.of(bench.front.base_url, client_id, secret) as late,
        signed_in(bench.front, client_id, secret) as browser,
    ):
        csrf, shown = await browser.csrf(), await late.get(f"{APPROVALS}/{approval['id']}")
        form = {"token": late.headers["Authorization"].split()[1], "client_id": client_id, "client_secret": secret}
        assert (await late.call("POST", "/oauth/revoke", data=form)).status == 200
        await browser.send("/console/sign-out", csrf=csrf)
        refused = await bench.decide(approval, api=late)
        word = {"digest": approval["digest"], "word": "approve", "reason": "late"}
        page = await browser.send(f"/console/approvals/{approval['id']}", csrf=csrf, **word)
    ended = await bench.ended(job)

    assert (shown.status, refused.status, page.status in (303, 403)) == (200, 401, True)
    assert (await approval_of(bench, ended))["decisions"] == []
    assert ended["status"] == "waiting"


#: how an approver loses the right to decide, after its word
LOSSES = {
    "group": "DELETE FROM group_members WHERE client_id = $1",
    "scope": "UPDATE clients SET scopes = array_remove(scopes, 'approve') WHERE id = $1",
    "workspaces": """
        WITH narrowed AS (UPDATE groups SET workspaces = '{}')
        UPDATE clients SET workspaces = ARRAY['elsewhere'] WHERE id = $1
    """,
    "organization": "DELETE FROM client_organizations WHERE client_id = $1",
    "client": "UPDATE clients SET disabled_at = now() WHERE id = $1",
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_the_word_of_an_approver_who_may_not_decide_any_more_does_not_count(bench: Bench, sql, loss):  # noqa: F811
    await put(bench.admin, f'{READ} @approval("Two.") @approvers("Group::\\"leads\\", 2") {WRITES}')
    leads = [await bench.front.client(bench.organization_id, APPROVER) for _ in range(3)]
    await sql(LEADS, bench.organization_id, [UUID(client_id) for client_id, _ in leads])
    job, approval = await bench.asked()
    statuses = []
    for number, lead in enumerate(leads):
        async with Api.of(bench.front.base_url, *lead) as api:
            assert (await bench.decide(approval, api=api)).status == 200
        if number == 0:
            await sql(LOSSES[loss], UUID(lead[0]))
        statuses.append((await bench.ended(job))["status"])

    assert statuses == ["waiting", "waiting", "succeeded"]
