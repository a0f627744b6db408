"""Turns: each comes once, to one job, and comes again when that job is lost."""

import asyncio
from uuid import uuid4

import pytest

from gateway.context_store.sync import schedule
from gateway.context_store.sync.schedule import Intervals
from gateway.errors import UpstreamError, UpstreamRateLimited, UpstreamRejected
from tests.harness.catalog import shipped_catalog

DESK = shipped_catalog().kind("support-desk")
NAMES = ["groups", "tickets"]
JOB = """
    INSERT INTO jobs (id, organization_id, connector_id, task, status) VALUES ($1, $2, $3, 'synchronize', $4)
"""
OVERDUE = "UPDATE context_entities SET next_sync_at = now() - interval '1 second' WHERE connector_id = $1"
WHEN_DUE = "SELECT extract(epoch FROM next_sync_at - now()) FROM context_entities WHERE id = $1"


@pytest.fixture
async def copies(database, tenant):
    """The entities of one connector, due at once."""
    async with database.tenant(tenant.organization_id) as connection:
        return await schedule.register_all(connection, tenant.connector_id, tenant.organization_id, DESK, NAMES)


@pytest.fixture
def turns_of(database, tenant):
    """The turns of this connector that are called now."""

    async def called():
        async with database.system() as connection:
            return [turn for turn in await schedule.call(connection) if turn.connector_id == tenant.connector_id]

    return called


async def test_a_turn_is_called_once_however_many_look(copies, turns_of):
    called = await asyncio.gather(*(turns_of() for _ in range(8)))

    [turn] = [turn for turns in called for turn in turns]
    assert sorted(turn.entities) == NAMES


async def test_a_turn_whose_job_was_never_accepted_comes_again(copies, turns_of, owner, tenant):
    first = await turns_of()
    await owner.execute(OVERDUE, tenant.connector_id)

    second = await turns_of()

    assert len(first) == len(second) == 1
    assert first[0].job_id != second[0].job_id


@pytest.mark.parametrize(("status", "is_called"), [("queued", False), ("running", False), ("waiting", False)])
async def test_while_its_job_goes_on_a_turn_is_not_called_again(copies, turns_of, owner, tenant, status, is_called):
    [turn] = await turns_of()
    await owner.execute(JOB, turn.job_id, tenant.organization_id, tenant.connector_id, status)
    await owner.execute(OVERDUE, tenant.connector_id)

    assert bool(await turns_of()) is is_called


@pytest.mark.parametrize("status", ["needs_reauth", "disabled", "pending"])
async def test_a_connector_that_cannot_be_called_has_no_turns(copies, turns_of, owner, tenant, status):
    await owner.execute("UPDATE connectors SET status = $2 WHERE id = $1", tenant.connector_id, status)

    assert await turns_of() == []


async def test_an_entity_belongs_to_one_job_until_that_has_ended(copies, database, owner, tenant):
    one, other = uuid4(), uuid4()
    await owner.execute(JOB, one, tenant.organization_id, tenant.connector_id, "running")
    async with database.tenant(tenant.organization_id) as connection:
        taken = await schedule.take(connection, copies[0], one)
        again = await schedule.take(connection, copies[0], one)
        refused = await schedule.take(connection, copies[0], other)
        await owner.execute("UPDATE jobs SET status = 'failed' WHERE id = $1", one)
        freed = await schedule.take(connection, copies[0], other)
        await schedule.give_back(connection, copies[0], other)
        given_back = await schedule.take(connection, copies[0], one)

    assert (taken, again, refused, freed, given_back) == (True, True, False, True, True)


async def test_a_write_may_let_a_turn_come_now(copies, database, turns_of, tenant):
    await turns_of()
    async with database.tenant(tenant.organization_id) as connection:
        await schedule.give_back(connection, copies[0], uuid4())
        await schedule.run_soon(connection, copies[0])

    [turn] = await turns_of()

    assert turn.entities == ["groups"]


async def test_connectors_that_lack_copies_are_found(copies, database, make_tenant, tenant):
    bare = await make_tenant()
    async with database.system() as connection:
        complete = await schedule.unregistered(connection, {"support-desk": len(NAMES)}, 1000)
        lacking = await schedule.unregistered(connection, {"support-desk": len(NAMES) + 1}, 1000)

    found = {connector_id for connector_id, _, _ in complete}
    assert (bare.connector_id in found, tenant.connector_id in found) == (True, False)
    assert tenant.connector_id in {connector_id for connector_id, _, _ in lacking}


@pytest.mark.parametrize(
    ("overrides", "seconds"),
    [
        ({}, 300),
        ({"support-desk": 60}, 60),
        ({"support-desk": 60, "support-desk.tickets": 5}, 5),
        ({"team-chat": 1}, 300),
    ],
)
def test_an_operator_may_set_how_often(overrides, seconds):
    assert Intervals(overrides).of("support-desk", "tickets", DESK.entity("tickets").search.sync) == seconds


def test_what_began_together_does_not_stay_together():
    waits = {schedule.jittered(100) for _ in range(50)}

    assert len(waits) > 40
    assert min(waits) >= 90
    assert max(waits) <= 110


@pytest.mark.parametrize(
    ("error", "interval", "seconds"),
    [
        (UpstreamRateLimited("slow down", retry_after=7), 900, 7),
        (UpstreamError("away"), 900, 60),
        (UpstreamError("away"), 5, 5),
        (UpstreamRejected("no"), 900, 900),
        (UpstreamRejected("no"), 86_400, 3600),
    ],
)
def test_a_run_that_failed_is_tried_again_when_that_may_help(error, interval, seconds):
    assert schedule.after_failure(error, interval) == seconds
