"""Approvals on a real PostgreSQL."""

from uuid import uuid4

import pytest

from gateway.errors import JobCanceled
from gateway.operations.approvals.model import Proposal
from gateway.operations.approvals.store import ApprovalStore
from tests.jobs.conftest import (  # noqa: F401 - fixtures
    RETENTION,
    SEALING,
    claimed,
    claims,
    jobs,
    new_job,
    no_jobs_left,
    organization_id,
)


async def no_notice(connection, asked) -> None:
    """Nobody is told."""


async def test_a_job_whose_cancellation_was_requested_does_not_wait_for_an_approval(
    database,
    jobs,  # noqa: F811
    claimed,  # noqa: F811
    sql,
):
    """Its worker reads from the application what approvers are to see; the caller cancels it meanwhile."""
    job, store = await claimed(), ApprovalStore(database, SEALING, RETENTION)
    await jobs.request_cancel(job.organization_id, job.id)

    with pytest.raises(JobCanceled):
        await store.request(job, Proposal(digest="", account_id=uuid4(), items=1, requests=[]), [], 3600, no_notice)

    assert await sql("SELECT id FROM approvals WHERE job_id = $1", job.id) == []
