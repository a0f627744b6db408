"""Approvals of work that an earlier attempt began, and of calls whose policies read `context.approved`."""

from uuid import UUID

import pytest

from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.operations.batches.journal import Journal, parts_of
from gateway.operations.batches.model import ItemResult, ItemStatus, StoredOperation
from tests.harness.caller import Api
from tests.harness.sandbox import fault
from tests.web.test_approval_races import LEADS, LOSE, OTHER_CREDENTIALS, approval_of, claimed
from tests.web.test_approvals import APPROVER, ASK, WRITES, Bench, bench  # noqa: F401 - a fixture
from tests.web.test_policies import EVERYTHING, READ, UPDATE, put, run_jobs
from tests.web.test_schedules import SLOT_CAME

UNLESS_APPROVED = f"""{EVERYTHING}
@id("ask") @approval("Writes need a person.")
forbid(principal, action in [Action::"write", Action::"idempotent", Action::"support-desk.tickets.list"], resource)
unless {{ context.approved }};
"""


async def replaced(bench: Bench) -> None:  # noqa: F811
    await bench.admin.call("PATCH", bench.desk.path, json={"credentials": OTHER_CREDENTIALS})


@pytest.mark.parametrize("output", [None, {"file": "ndjson"}])
async def test_a_policy_that_reads_whether_a_call_is_approved_lets_only_that_call_go_on(bench: Bench, output):  # noqa: F811
    await put(bench.admin, UNLESS_APPROVED)
    action, params = ("update", UPDATE) if output is None else ("list", {})
    answer = await bench.desk.send("tickets", action, params, **({} if output is None else {"output": output}))
    job = answer.document(202)["job"]
    await run_jobs(bench.front)
    await replaced(bench)
    await bench.decide(await approval_of(bench, job))

    ended = await bench.ended(job)

    assert (ended["status"], ended["error"] and ended["error"]["code"]) == ("canceled", "approval_changed")
    assert (await bench.job(job))["approval"]["status"] == "superseded"


@pytest.mark.parametrize("output", [None, {"file": "ndjson"}])
async def test_a_call_goes_on_if_policies_demand_less_of_one_that_is_approved(bench: Bench, output):  # noqa: F811
    """One approval is demanded of every call, and another one only of calls that are not approved."""
    await put(bench.admin, f'{UNLESS_APPROVED.replace(EVERYTHING, "")} @approval("Always.") {EVERYTHING}')
    action, params = ("update", UPDATE) if output is None else ("list", {})
    answer = await bench.desk.send("tickets", action, params, **({} if output is None else {"output": output}))
    job = answer.document(202)["job"]
    await run_jobs(bench.front)
    await bench.decide(await approval_of(bench, job))

    assert (await bench.ended(job))["status"] == "succeeded"


async def test_an_approved_call_whose_policy_reads_that_it_is_approved_counts_once(bench: Bench):  # noqa: F811
    await put(bench.admin, UNLESS_APPROVED)
    await bench.admin.call("PUT", "/api/v1/budgets/main", json={"per": "month", "calls": 1000})
    job, approval = await bench.asked()
    await bench.decide(approval)

    ended = await bench.ended(job)

    budget = (await bench.admin.get("/api/v1/budgets/main")).document()
    assert (ended["status"], budget["spent"]["writes"]) == ("succeeded", 1)


async def began(bench: Bench, sql, job: StoredJob, journal: Journal | None = None) -> None:  # noqa: F811
    """A worker is lost while a write of the job is in flight; of a batch it has stored this journal before."""
    context = JobRunContext(bench.front.services.jobs.runner._leases, job)
    if journal is None:
        await context.mark_in_flight()
    else:
        done = StoredOperation("tickets", "update", {"ticket_id": 1, "ticket": {"status": "solved"}})
        line = ItemResult.of(0, done, ItemStatus.SUCCEEDED).line()
        await context.save(journal.document(), parts_of({0: line}))
    await sql(LOSE, job.id)


@pytest.mark.parametrize("word", ["denied", "expired", "superseded"])
async def test_a_write_that_may_have_been_sent_is_unknown_if_it_is_not_approved(bench: Bench, sql, word):  # noqa: F811
    await put(bench.admin, EVERYTHING)
    job = (await bench.desk.send("tickets", "update", UPDATE, {"Prefer": "respond-async"})).document(202)["job"]
    await began(bench, sql, await claimed(bench))
    await put(bench.admin, ASK)
    await run_jobs(bench.front)
    assert (await bench.job(job))["status"] == "waiting"

    await sql("UPDATE approvals SET status = $2 WHERE job_id = $1", job["id"], word)
    ended = await bench.ended(job)

    assert (ended["status"], ended["done"], ended["safe_to_retry"]) == ("unknown", True, True)


@pytest.mark.parametrize("is_in_flight", [False, True])
async def test_a_batch_that_is_not_approved_says_what_was_done_before(bench: Bench, sql, is_in_flight):  # noqa: F811
    await put(bench.admin, EVERYTHING)
    lines = [{"entity": "tickets", "action": "update", "params": {**UPDATE, "ticket_id": each}} for each in (1, 2)]
    job = (await bench.agent.post(f"{bench.desk.path}/batch", {"operations": lines})).document(202)["job"]
    journal = Journal(2)
    journal.finish(0, ItemStatus.SUCCEEDED)
    if is_in_flight:
        journal.begin([1], is_repeatable=True)
    await began(bench, sql, await claimed(bench), journal)
    await put(bench.admin, ASK)
    await run_jobs(bench.front)
    approval = await approval_of(bench, job)

    await bench.decide(approval, "deny")
    ended = await bench.ended(job)

    result = (await bench.admin.get(f"/api/v1/jobs/{job['id']}/result")).document(409)
    assert [each["url"].rpartition("/")[2] for each in approval["requests"]] == ["2.json"]
    assert ended["status"] == ("unknown" if is_in_flight else "canceled")
    assert "1 of 2 operations done" in ended["message"]
    assert result["result"]["results"][0]["status"] == "succeeded"


async def test_the_error_of_a_write_that_goes_on_has_no_text_of_a_redacted_member(bench: Bench, sql):  # noqa: F811
    """The job of a schedule is stored without the paths that policies redact."""
    await put(bench.admin, f'@redact("email") {EVERYTHING}')
    body = {"name": "s", "connector_id": bench.desk.record["id"], "entity": "tickets", "action": "update"}
    schedule = (await bench.agent.post("/api/v1/schedules", {**body, "params": UPDATE, "cron": "@daily"})).document(201)
    job = (await bench.agent.post(f"/api/v1/schedules/{schedule['id']}/run")).document(202)["job"]
    lost = await claimed(bench)
    await JobRunContext(bench.front.services.jobs.runner._leases, lost).save({"begun": True}, {})
    await sql(LOSE, lost.id)

    taken = {"error": "RecordInvalid", "description": "vera@example.com is the email of another user"}
    async with fault(bench.front.sandbox_url, status=422, body=taken):
        ended = await bench.ended(job)

    assert (ended["status"], ended["error"]["upstream"]["status"]) == ("failed", 422)
    assert "vera" not in str(ended)


async def test_a_worker_that_is_lost_when_it_finds_another_account_leaves_nothing_to_go_on_with(
    bench: Bench,  # noqa: F811
    sql,
):
    job, approval = await bench.asked()
    await bench.decide(approval)
    store, lost = bench.front.services.operations.approvals.store, await claimed(bench)
    stored = await store.latest(lost)
    assert stored is not None
    assert await store.release(stored, lost)
    await JobRunContext(bench.front.services.jobs.runner._leases, lost).save({"begun": True}, {})
    await replaced(bench)
    await store.supersede(stored, lost)
    await sql(LOSE, job["id"])

    ended = await bench.ended(job)

    assert (ended["status"], ended["error"] and ended["error"]["code"]) == ("canceled", "approval_changed")
    assert (await bench.ticket())["status"] == "open"


async def test_an_approval_is_not_given_up_while_the_application_refuses_to_show_the_record(bench: Bench):  # noqa: F811
    job, approval = await bench.asked()
    await bench.decide(approval)

    async with fault(bench.front.sandbox_url, method="GET", status=429, headers={"Retry-After": "100"}):
        await run_jobs(bench.front)

    waiting = await bench.job(job)
    assert (waiting["status"], waiting["approval"]["status"]) == ("waiting", "approved")
    assert waiting["next_attempt_at"] is not None


async def test_a_word_after_another_of_the_same_person_is_a_conflict(bench: Bench, sql):  # noqa: F811
    await put(bench.admin, f'{READ} @approval("Two.") @approvers("Group::\\"leads\\", 2") {WRITES}')
    lead = await bench.front.client(bench.organization_id, APPROVER)
    await sql(LEADS, bench.organization_id, [UUID(lead[0])])
    _, approval = await bench.asked()
    async with Api.of(bench.front.base_url, *lead) as api:
        first = await bench.decide(approval, api=api)
        again = await bench.decide(approval, api=api)
        other = await bench.decide(approval, "deny", api=api)

    assert (first.status, again.status) == (200, 200)
    assert other.document(409)["code"] == "conflict"


@pytest.mark.parametrize("overlap", ["skip", "queue"])
async def test_what_waits_of_a_schedule_is_what_was_asked_for(bench: Bench, sql, overlap):  # noqa: F811
    """A run that waits is the previous run; what is changed later is for later runs."""
    body = {"name": "s", "connector_id": bench.desk.record["id"], "entity": "tickets", "action": "update"}
    members = {"params": UPDATE, "cron": "@daily", "overlap": overlap}
    schedule = (await bench.agent.post("/api/v1/schedules", {**body, **members})).document(201)
    url, due = f"/api/v1/schedules/{schedule['id']}", bench.front.services.operations.due_runs
    await sql(SLOT_CAME, schedule["id"], 0.0)
    await due.start()
    await run_jobs(bench.front, is_background=True)
    [job_id] = (await bench.agent.get(url)).document()["job_ids"]
    job = await bench.job({"id": job_id})
    approval = await approval_of(bench, job)
    await sql(SLOT_CAME, schedule["id"], 0.0)
    await due.start()
    later = (await bench.agent.get(url)).document()
    pending = {"ticket_id": 1, "ticket": {"status": "pending"}}
    assert (await bench.agent.call("PATCH", url, json={"params": pending, "enabled": False})).status == 200
    assert (await bench.agent.call("DELETE", url)).status == 204
    await bench.decide(approval)
    await run_jobs(bench.front, is_background=True)

    ended = await bench.job(job)

    assert (later["job_ids"], later["last_missed"] is None) == ([job_id], overlap == "queue")
    assert (job["status"], ended["status"]) == ("waiting", "succeeded")
    assert (await bench.ticket())["status"] == "solved"
