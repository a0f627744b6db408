"""Each way in which a caller's job ends adds one event, in the transaction that ends it."""

import pytest

from gateway.contract.jobs import JobStatus
from gateway.events.feed import Feed
from gateway.events.model import EventFilter
from gateway.jobs.leases import JobOutcome, LostLease
from gateway.jobs.maintenance import MAX_LOSSES_AMONG_OTHERS


@pytest.fixture
def told(database, organization_id):
    """`await told()`: types and job ids of the organization's events."""

    async def read():
        page = await Feed(database).read(organization_id, EventFilter(), None, 100)
        return [(str(event.type), event.data["job_id"]) for event in page.events]

    return read


@pytest.mark.parametrize("status", [JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.UNKNOWN, JobStatus.CANCELED])
async def test_a_job_that_a_worker_ends_adds_one_event(status, leases, claimed, told):
    job = await claimed(labels={"ticket": "7"})
    await leases.progress(job, 1, 2, "half done")

    await leases.finish(job, JobOutcome(status=status))

    assert await told() == [(f"job.{status}", str(job.id))]


async def test_the_event_names_the_operation_and_the_labels(leases, claimed, database, organization_id):
    job = await claimed(workspace_name="acme", labels={"ticket": "7"})
    await leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED))

    (event,) = (await Feed(database).read(organization_id, EventFilter(), None, 100)).events

    assert event.connector_id == job.connector_id
    assert event.data == {
        "job_id": str(job.id), "status": "succeeded", "entity": "tickets", "action": "create",
        "workspace_name": "acme", "labels": {"ticket": "7"},
    }  # fmt: skip


async def test_a_queued_job_that_is_canceled_adds_one_event(jobs, new_job, organization_id, told):
    job = (await jobs.accept(new_job())).job

    await jobs.request_cancel(organization_id, job.id)

    assert await told() == [("job.canceled", str(job.id))]


async def test_a_write_that_loses_its_worker_adds_one_event(leases, maintenance, claimed, lost, told):
    job = await claimed()
    await leases.mark_in_flight(job)
    await lost(job)

    await maintenance.reap()
    await maintenance.reap()

    assert await told() == [("job.unknown", str(job.id))]


async def test_a_job_that_is_given_up_adds_one_event(maintenance, claimed, lost, sql, told):
    job = await claimed()
    await sql("UPDATE jobs SET worker_losses = $2 WHERE id = $1", job.id, MAX_LOSSES_AMONG_OTHERS)
    await lost(job)

    await maintenance.reap()

    assert await told() == [("job.failed", str(job.id))]


async def test_a_synchronization_of_the_schedule_adds_none(leases, claimed, told):
    await leases.finish(await claimed(task="synchronize", client_id=None), JobOutcome(status=JobStatus.SUCCEEDED))

    assert await told() == []


async def test_a_worker_that_lost_its_lease_adds_none(leases, claimed, sql, told):
    job = await claimed()
    await sql("UPDATE jobs SET fence = fence + 1 WHERE id = $1", job.id)

    with pytest.raises(LostLease):
        await leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED))

    assert await told() == []
