"""What counts once, whatever happened to the first attempt, and what counts nothing because it was refused."""

import asyncio

import pytest

from gateway.jobs.claims import Claims
from gateway.jobs.run_context import JobRunContext
from gateway.run.work import work_of
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.sandbox import fault
from tests.harness.waiting import eventually
from tests.jobs.conftest import SHARES
from tests.web.test_budgets import OPEN, UPDATE, counted, spent  # noqa: F401 - a fixture
from tests.web.test_budgets import put as put_budget
from tests.web.test_policies import DRIVE, EVERYTHING, UPLOAD, put, run_jobs

LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 2}}


async def run_of_schedule(api: Api, desk: ConnectorApi, output: dict | None) -> dict:
    body = {"name": "s", "connector_id": desk.record["id"], "entity": "tickets", "action": "list", "cron": "@daily"}
    members = {"params": {"per_page": 2}} if output is None else {"output": output}
    schedule = (await api.post("/api/v1/schedules", {**body, **members})).document(201)
    job: dict = (await api.post(f"/api/v1/schedules/{schedule['id']}/run")).document(202)["job"]
    return job


async def stopped(front: FrontEnd) -> None:
    """A worker runs the queued job, and shuts down before the outcome is stored: the job is queued again."""
    services = front.services
    leases = services.jobs.runner._leases
    for job in await Claims(services.database, services.jobs.sealing).claim(services.process.name, 100, SHARES):
        await work_of(services)[job.task](job, JobRunContext(leases, job))
        assert await leases.requeue(job)


async def has_ended(front: FrontEnd, api: Api) -> bool:
    await run_jobs(front)
    jobs = (await api.get("/api/v1/jobs")).document()["data"]
    return bool(jobs) and all(each["done"] for each in jobs)


@pytest.mark.parametrize("output", [None, {"file": "csv"}])
async def test_a_run_of_a_schedule_counts_once_if_its_worker_shuts_down(
    front: FrontEnd,
    api: Api,
    counted: ConnectorApi,  # noqa: F811
    output,
):
    await run_of_schedule(api, counted, output)

    await stopped(front)
    await run_jobs(front)

    assert (await spent(api))["calls"] == 1


@pytest.mark.parametrize("output", [None, {"file": "csv"}])
async def test_a_run_of_a_schedule_does_not_count_against_itself_when_it_goes_on(
    front: FrontEnd, api: Api, support_desk: ConnectorApi, output
):
    cedar = f"{EVERYTHING} forbid(principal, action, resource) when {{ context.calls.today >= 1 }};"
    assert (await put(api, cedar)).status == 200
    job = await run_of_schedule(api, support_desk, output)

    await stopped(front)
    await run_jobs(front)

    assert (await api.get(f"/api/v1/jobs/{job['id']}")).document()["status"] == "succeeded"


async def test_a_file_that_the_application_refused_for_the_moment_counts_nothing(
    front: FrontEnd,
    api: Api,
    counted: ConnectorApi,  # noqa: F811
):
    async with fault(front.sandbox_url, status=429, headers={"Retry-After": "100"}):
        refused = await api.get(f"{counted.path}/download/attachments?attachment_id=2")

    assert refused.status == 429
    assert (await spent(api))["calls"] == 0


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("action", "params"), [("get", {"ticket_id": 1}), ("update", UPDATE)])
async def test_a_call_that_the_application_refused_for_the_moment_counts_nothing(
    front: FrontEnd,
    api: Api,
    counted: ConnectorApi,  # noqa: F811
    status,
    action,
    params,
):
    async with fault(front.sandbox_url, status=status, headers={"Retry-After": "100"}):
        refused = await counted.send("tickets", action, params)

    assert (refused.status in (429, 502), refused.headers["Retry-After"]) == (True, "100")
    assert (await spent(api))["calls"] == 0


@pytest.mark.parametrize("headers", [{}, {"Upload-Complete": "?0", "Upload-Length": "3"}])
async def test_an_upload_that_the_application_refused_for_the_moment_counts_nothing(
    front: FrontEnd,
    api: Api,
    counted: ConnectorApi,  # noqa: F811
    headers,
):
    path = f"{(await api.connector('google-drive', DRIVE)).path}/upload/files_upload"
    async with fault(front.sandbox_url, status=429, headers={"Retry-After": "100"}):
        content = b"" if headers else b"abc"
        refused = await api.call("POST", path, params=UPLOAD, data=content, headers=headers)

    assert refused.status == 429
    assert (await spent(api))["calls"] == 0


async def test_a_call_whose_key_was_used_for_another_counts_nothing(
    api: Api,
    counted: ConnectorApi,  # noqa: F811
):
    key = {"Idempotency-Key": "k"}
    await counted.send("tickets", "update", UPDATE, headers=key)
    other = {"ticket_id": 2, "ticket": {"status": "solved"}}

    for headers in (key, {**key, "Prefer": "respond-async"}):
        assert (await counted.send("tickets", "update", other, headers=headers)).status == 422

    assert (await spent(api))["calls"] == 1


async def test_repetitions_of_a_call_that_is_in_flight_count_nothing(
    front: FrontEnd,
    api: Api,
    counted: ConnectorApi,  # noqa: F811
):
    key = {"Idempotency-Key": "k"}
    async with fault(front.sandbox_url, latency_ms=1000):
        answers = await asyncio.gather(*(counted.send("tickets", "update", UPDATE, headers=key) for _ in range(3)))

    assert sorted(each.status for each in answers) == [200, 409, 409]
    assert (await spent(api))["calls"] == 1


async def test_the_records_of_a_job_count_once_if_its_caller_waits(
    front: FrontEnd,
    api: Api,
    counted: ConnectorApi,  # noqa: F811
):
    waiting = asyncio.create_task(counted.send("tickets", "list", {"per_page": 4}, {"Prefer": "wait=20"}))
    await eventually(lambda: has_ended(front, api))

    assert (await waiting).status == 200
    assert (await spent(api))["records"] == 4


async def test_the_records_of_a_read_that_goes_on_as_a_job_count(tmp_path, database_url: str, redis_url: str):
    async with front_end(tmp_path, database_url, redis_url, inline_budget=0.1) as front, front.api() as api:
        desk = await api.connector()
        await put_budget(api, **OPEN)
        async with fault(front.sandbox_url, latency_ms=500):
            job = (await desk.send("tickets", "list", {"per_page": 4})).document(202)["job"]
            await eventually(lambda: has_ended(front, api))

        assert (await api.get(f"/api/v1/jobs/{job['id']}")).document()["status"] == "succeeded"
        assert (await spent(api))["records"] == 4
