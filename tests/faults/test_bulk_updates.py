"""Bulk updates of real processes: batches side by side, killed in the middle, every ticket told once and in order."""

from collections.abc import AsyncIterator

import pytest

from tests.faults.arena import Arena, arena, ticket
from tests.faults.long_operations import long_storm
from tests.harness.waiting import eventually

TICKETS, BATCH = 3000, 100
PARAMS = {"ids": ",".join(map(str, range(1, TICKETS + 1))), "ticket": {"status": "solved"}}


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena() as opened:
        opened.upstream.batch_seconds = 1.0
        yield opened


@pytest.fixture(autouse=True)
def no_batches_left(gateway: Arena) -> None:
    gateway.upstream.updated.clear()
    gateway.upstream.created.clear()


async def test_batches_run_side_by_side_as_far_as_the_application_takes_them(gateway: Arena):
    async with gateway.desk() as desk:
        job = await desk.api.ended_job(await desk.submit("ticket_bulk_updates", "create", PARAMS))

    assert (job["status"], job["message"]) == ("succeeded", "3000 of 3000 tickets updated")
    assert set(gateway.upstream.updated.values()) == {1}
    assert 1 < gateway.upstream.most_batches <= 30


async def test_a_bulk_update_whose_worker_is_killed_continues_and_starts_no_batch_twice(gateway: Arena):
    async with gateway.desk() as desk:
        job = await desk.submit("ticket_bulk_updates", "create", PARAMS)
        await eventually(lambda: _all_started(gateway, job["id"]))
        await gateway.workers.pop().kill()
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        result = (await desk.api.get(f"/api/v1/jobs/{job['id']}/result")).json()["result"]

    assert ended["status"] == "succeeded"
    assert set(gateway.upstream.updated.values()) == {1}
    assert [each["id"] for each in result["results"]] == list(range(1, TICKETS + 1))
    assert (result["succeeded"], result["failed"]) == (TICKETS, 0)


async def test_a_bulk_update_canceled_in_the_middle_counts_what_was_done(gateway: Arena):
    gateway.upstream.room = 3
    async with gateway.desk() as desk:
        job = await desk.submit("ticket_bulk_updates", "create", PARAMS)
        await desk.api.job_once(job, lambda seen: seen["progress"] >= BATCH)
        await desk.api.post(f"/api/v1/jobs/{job['id']}/cancel")
        ended = await desk.api.ended_job(job)
        result = await desk.api.get(f"/api/v1/jobs/{job['id']}/result")
    gateway.upstream.room = 30

    done = len(gateway.upstream.updated) * BATCH
    assert (ended["status"], result.status, result.json()["code"]) == ("canceled", 409, "job_canceled")
    assert f"{done} of {TICKETS} tickets updated" in ended["message"]
    assert (ended["known"]["items_done"], len(result.json()["result"]["results"])) == (done, done)
    assert 0 < done < TICKETS


async def test_tickets_that_were_being_created_when_the_worker_was_killed_are_followed_and_not_created_again(
    gateway: Arena,
):
    tickets = [ticket(f"many-{number}")["ticket"] for number in range(500)]
    gateway.upstream.followed.clear()
    async with gateway.desk() as desk:
        job = await desk.submit("tickets", "create_many", {"tickets": tickets})
        # The worker polls a portion after it has saved the portion's id.
        await eventually(lambda: len(gateway.upstream.followed) == 5)
        await gateway.workers.pop().kill()
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        result = (await desk.api.get(f"/api/v1/jobs/{job['id']}/result")).json()["result"]

    assert (ended["status"], ended["message"]) == ("succeeded", "500 of 500 tickets created")
    assert [gateway.upstream.created[each["external_id"]] for each in tickets] == [1] * 500
    assert len({each["id"] for each in result["results"]}) == 500


async def test_a_worker_killed_during_a_start_leaves_its_tickets_unknown_and_the_others_are_followed(gateway: Arena):
    tickets = [ticket(f"lost-{number}")["ticket"] for number in range(500)]
    gateway.upstream.unanswered, gateway.upstream.batch_seconds = "lost-250", 6.0
    gateway.upstream.followed.clear()
    async with gateway.desk() as desk:
        job = await desk.submit("tickets", "create_many", {"tickets": tickets})
        await eventually(lambda: len(gateway.upstream.followed) == 4 and len(gateway.upstream.created) == 500)
        await gateway.workers.pop().kill()
        gateway.upstream.unanswered, gateway.upstream.batch_seconds = None, 1.0
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        document = (await desk.api.get(f"/api/v1/jobs/{job['id']}/result")).json()

    assert ended["status"] == "unknown"
    assert (ended["known"]["items_done"], ended["known"]["items_unknown"]) == (400, 100)
    assert "400 of 500 tickets created, 100 unknown" in ended["message"]
    result = document["result"]
    assert (result["succeeded"], result["failed"], result["unknown"]) == (400, 0, 100)
    assert [each["success"] for each in result["results"]] == [True] * 200 + [None] * 100 + [True] * 200
    assert set(gateway.upstream.created.values()) == {1}


async def test_a_storm_over_long_operations_loses_doubles_and_invents_nothing():
    report = await long_storm(operations=4, tickets=300, faults=2)

    assert report.is_clean, report.table()
    assert report.ended["operations"].total() == 4


async def _all_started(gateway: Arena, job_id: str) -> bool:
    """Whether every batch was taken, and the gateway knows it."""
    is_saved = await gateway.stores.value("SELECT in_flight_since IS NULL FROM jobs WHERE id = $1::text::uuid", job_id)
    return bool(is_saved) and len(gateway.upstream.updated) == TICKETS // BATCH
