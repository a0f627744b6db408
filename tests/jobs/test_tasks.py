"""Tasks: a worker claims jobs of the tasks that it knows, and callers do with a job what its task allows."""

import pytest

from gateway.contract.jobs import JobStatus
from gateway.jobs.claims import Claims
from gateway.jobs.tasks import (
    DELETE_CONNECTOR,
    DELETE_PERSON,
    DELETE_WORKSPACE,
    OPERATION,
    SYNCHRONIZE,
    TASKS,
    retry_refusal,
)
from tests.jobs.conftest import SEALING, SHARES, WORKER

NEWER = "of a newer version"


async def test_a_worker_leaves_jobs_of_unknown_tasks_in_the_queue(jobs, claims, new_job):
    await jobs.accept(new_job(task=NEWER))
    known = await jobs.accept(new_job())

    claimed = await claims.claim(WORKER, 5, SHARES)

    assert [job.id for job in claimed] == [known.job.id]


async def test_a_queue_full_of_unknown_tasks_does_not_hide_the_known_job_behind_them(jobs, claims, new_job):
    for _ in range(20):
        await jobs.accept(new_job(task=NEWER))
    known = await jobs.accept(new_job())

    claimed = await claims.claim(WORKER, 1, SHARES)

    assert [job.id for job in claimed] == [known.job.id]


async def test_a_newer_worker_claims_what_an_older_one_left(jobs, claims, new_job, database):
    left = await jobs.accept(new_job(task=NEWER))
    await claims.claim(WORKER, 5, SHARES)

    claimed = await Claims(database, SEALING, [*TASKS, NEWER]).claim("newer", 5, SHARES)

    assert [job.id for job in claimed] == [left.job.id]


async def test_poison_candidates_of_unknown_tasks_are_left_as_well(jobs, claims, new_job, sql):
    await jobs.accept(new_job(task=NEWER))
    await sql("UPDATE jobs SET worker_losses = 2")

    assert await claims.claim_poison_candidates(WORKER, 5, is_group=True) == []


@pytest.mark.parametrize(
    ("task", "is_canceled"),
    [
        (OPERATION, True),
        (SYNCHRONIZE, True),
        (DELETE_CONNECTOR, False),
        (DELETE_WORKSPACE, False),
        (DELETE_PERSON, False),
    ],
)
async def test_a_task_says_whether_its_jobs_can_be_canceled(jobs, new_job, task, is_canceled: bool):
    job = (await jobs.accept(new_job(task=task.name))).job

    canceled = await jobs.request_cancel(job.organization_id, job.id)

    assert (canceled is not None) is is_canceled


@pytest.mark.parametrize(
    ("task", "status", "expected"),
    [
        (OPERATION.name, JobStatus.FAILED, True),
        (OPERATION.name, JobStatus.CANCELED, True),
        (OPERATION.name, JobStatus.UNKNOWN, True),
        (OPERATION.name, JobStatus.SUCCEEDED, False),
        (OPERATION.name, JobStatus.RUNNING, False),
        (SYNCHRONIZE.name, JobStatus.FAILED, True),
        (DELETE_CONNECTOR.name, JobStatus.FAILED, False),
        (DELETE_WORKSPACE.name, JobStatus.FAILED, False),
        (DELETE_PERSON.name, JobStatus.FAILED, False),
        (NEWER, JobStatus.FAILED, False),
    ],
)
async def test_a_task_says_whether_its_jobs_can_be_retried(jobs, new_job, sql, task: str, status, expected: bool):
    job = (await jobs.accept(new_job(task=task))).job
    await sql("UPDATE jobs SET status = $2 WHERE id = $1", job.id, status)

    assert (retry_refusal(await jobs.get(job.organization_id, job.id)) is None) is expected
