"""Jobs whose tool of an MCP server answers with a task: canceled, lost and followed by another worker."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.jobs.model import StoredJob
from gateway.jobs.runner import Runner
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.prepared import prepare
from tests.harness.mcp_server import REPORT
from tests.harness.waiting import eventually
from tests.jobs.conftest import SHARES, WORKER
from tests.upstream.mcp_reached import KIND, TITLE, reaching

CALLED = "tools/call make_report"


@pytest.fixture
def runner(leases) -> Runner:
    return Runner(leases, WORKER, heartbeat=0.05)


async def work(connector: UpstreamConnector, job: StoredJob, run_context: Any) -> Any:
    operation = connector.kind.operation(KIND, "make_report").changed(effect=job.effect)
    return await connector.run(prepare(operation, TITLE), run_context)


def offering(*states: str, **members: Any):
    """A server whose tool answers with a task that has these states."""
    return reaching(tools=[REPORT], states=states, **members)


async def stored(jobs, job: StoredJob) -> StoredJob:
    return await jobs.get(job.organization_id, job.id)


def has_ended(jobs, job: StoredJob) -> Callable:
    async def ended() -> bool:
        return (await stored(jobs, job)).is_done

    return ended


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.READ])
async def test_canceling_a_job_cancels_its_task(jobs, runner, claimed, effect):
    job = await claimed(effect=effect)
    async with offering("working") as reached:
        runner.start(job, partial(work, await reached.connector()))
        await eventually(lambda: reached.server.looks.total() >= 2)
        await jobs.request_cancel(job.organization_id, job.id)
        runner.on_notify(str(job.id))
        await eventually(has_ended(jobs, job))

    ended = await stored(jobs, job)
    assert ended.status is JobStatus.CANCELED
    assert reached.server.canceled == {*reached.server.tasks}
    assert "part of it" in ended.message or effect is Effect.READ


async def test_a_task_whose_worker_is_lost_is_followed_by_another(jobs, claims, maintenance, runner, claimed, lost):
    job = await claimed()
    async with offering("working") as reached:
        connector = await reached.connector()
        runner.start(job, partial(work, connector))
        await eventually(lambda: reached.server.looks.total() >= 2)
        await lost(job)
        await maintenance.reap()
        reached.server.states = ("completed",)
        (again,) = await claims.claim("another", 1, SHARES)
        runner.start(again, partial(work, connector))
        await eventually(has_ended(jobs, job))

    assert (await stored(jobs, job)).status is JobStatus.SUCCEEDED
    assert reached.server.asked.count(CALLED) == 1


@pytest.mark.parametrize(("effect", "status"), [(Effect.WRITE, JobStatus.UNKNOWN), (Effect.READ, JobStatus.FAILED)])
async def test_a_task_that_asks_a_person_ends_as_what_is_known_of_it(jobs, runner, claimed, effect, status):
    job = await claimed(effect=effect)
    async with offering("input_required") as reached:
        runner.start(job, partial(work, await reached.connector()))
        await eventually(has_ended(jobs, job))

    ended = await stored(jobs, job)
    assert ended.status is status
    assert ended.error["known"]["run_id"] == next(iter(reached.server.tasks)) if effect is Effect.WRITE else True


async def test_a_write_whose_first_response_is_lost_ends_as_unknown(jobs, runner, claimed):
    job = await claimed()
    async with offering("working", streams=True) as reached:
        connector = await reached.connector()
        reached.server.is_cut = True
        runner.start(job, partial(work, connector))
        await eventually(has_ended(jobs, job))

    assert (await stored(jobs, job)).status is JobStatus.UNKNOWN
    assert reached.server.asked.count(CALLED) == 1


async def test_a_tool_that_failed_in_its_task_ends_as_failed(jobs, runner, claimed):
    job = await claimed()
    answer = {"content": [{"type": "text", "text": "no such project"}], "isError": True}
    async with offering("completed", answer=answer) as reached:
        runner.start(job, partial(work, await reached.connector()))
        await eventually(has_ended(jobs, job))

    ended = await stored(jobs, job)
    assert (ended.status, ended.error["code"]) == (JobStatus.FAILED, "upstream_rejected")
    assert "no such project" in ended.message
