"""Pruning: what has outlived its time goes, however much of it there is and however many prune at once."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from gateway.contract.jobs import JobStatus
from gateway.errors import ResultExpired
from gateway.foundation.db.pruning import BATCH
from gateway.jobs import results
from gateway.jobs.leases import JobOutcome
from gateway.jobs.pruning import prune_jobs
from gateway.upstream.responses import ROOT

OLD_JOBS = """
    INSERT INTO jobs (id, organization_id, status, expires_at)
    SELECT gen_random_uuid(), $1, 'succeeded', now() - interval '25 hours' FROM generate_series(1, $2::integer)
"""


async def test_an_expired_result_is_dropped_and_its_job_stays_for_a_while(jobs, leases, database, claimed, sql):
    job = await claimed()
    head = {"result": None, "collected": ROOT, "meta": None, "parts": 1}
    await leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED, result=head, part=1, lines="1\n"))
    await sql("UPDATE jobs SET expires_at = now() - interval '1 second' WHERE id = $1", job.id)

    await prune_jobs(database)
    expired = await jobs.get(job.organization_id, job.id)

    assert await jobs.head(expired) is None
    assert await sql("SELECT FROM job_results WHERE job_id = $1", job.id) == []
    with pytest.raises(ResultExpired):
        results.require_result(expired, None)


async def test_a_job_is_forgotten_a_day_after_its_result(jobs, leases, database, claimed, sql):
    job = await claimed()
    await leases.finish(job, JobOutcome(status=JobStatus.FAILED))
    await sql("UPDATE jobs SET expires_at = now() - interval '25 hours' WHERE id = $1", job.id)

    await prune_jobs(database)

    assert await sql("SELECT FROM jobs WHERE id = $1", job.id) == []


async def test_more_than_a_batch_goes_at_once(database, sql, organization_id):
    await sql(OLD_JOBS, organization_id, 2 * BATCH + 1)

    pruned = await prune_jobs(database)

    assert pruned == 2 * BATCH + 1
    assert await sql("SELECT FROM jobs") == []


async def test_several_that_prune_at_once_share_the_rows(database, sql, organization_id):
    await sql(OLD_JOBS, organization_id, 3 * BATCH)

    pruned = await asyncio.gather(*(prune_jobs(database) for _ in range(3)))

    assert sum(pruned) == 3 * BATCH
    assert await sql("SELECT FROM jobs") == []


async def test_rows_that_another_is_at_are_left_to_it(database, database_url, sql, organization_id):
    await sql(OLD_JOBS, organization_id, 10)
    another = await asyncpg.connect(database_url)
    async with another.transaction():
        await another.fetch("SELECT FROM jobs WHERE organization_id = $1 LIMIT 4 FOR UPDATE", organization_id)

        pruned = await prune_jobs(database)
    await another.close()

    assert pruned == 6


@pytest.mark.parametrize("minutes", [59, 61])
async def test_scheduled_synchronizations_are_kept_for_an_hour(database, sql, organization_id, minutes):
    await sql(
        """
        INSERT INTO jobs (id, organization_id, task, status, finished_at)
        VALUES (gen_random_uuid(), $1, 'synchronize', 'succeeded', now() - make_interval(mins => $2))
        """,
        organization_id,
        minutes,
    )

    await prune_jobs(database)

    assert len(await sql("SELECT FROM jobs")) == (minutes < 60)


async def test_operations_of_a_batch_go_with_its_result_or_when_its_request_was_broken_off(database, claimed, sql):
    job = await claimed(task="batch")
    for job_id, age in ((job.id, "2 hours"), (uuid4(), "2 hours"), (uuid4(), "1 minute")):
        await sql(
            "INSERT INTO batch_inputs (job_id, organization_id, first_index, lines, stored_at) "
            f"VALUES ($1, $2, 0, '', now() - interval '{age}')",
            job_id,
            job.organization_id,
        )

    await prune_jobs(database)
    left_while_it_runs = len(await sql("SELECT FROM batch_inputs"))
    await sql("UPDATE jobs SET expires_at = now() - interval '1 second' WHERE id = $1", job.id)
    await prune_jobs(database)

    assert (left_while_it_runs, len(await sql("SELECT FROM batch_inputs"))) == (2, 1)
