"""Due runs: each comes once, to one job, and comes again when that job is lost."""

import asyncio
import re
from uuid import uuid4

import pytest

from gateway.context_store.sync import schedule
from gateway.context_store.sync.schedule import Intervals
from gateway.errors import UpstreamError, UpstreamRateLimited, UpstreamRejected
from gateway.kinds.catalog import Catalog
from gateway.kinds.sources import SpecError
from gateway.settings import SettingsError
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
def due_runs_of(database, tenant):
    """The due runs of this connector that are claimed now."""

    async def called():
        async with database.system() as connection:
            due = await schedule.claim_due(connection, shipped_catalog().kinds)
            return [run for run in due if run.connector_id == tenant.connector_id]

    return called


async def test_a_due_run_is_claimed_once_however_many_look(copies, due_runs_of):
    called = await asyncio.gather(*(due_runs_of() for _ in range(8)))

    [run] = [run for runs in called for run in runs]
    assert sorted(run.entities) == NAMES


async def test_organizations_take_turns_when_many_entities_are_due(copies, due_runs_of, owner, tenant, make_tenant):
    hostile = await make_tenant()
    many = (
        "SELECT $2, $3, 'e' || n, layout, now() - interval '1 hour' FROM context_entities, generate_series(1, 300) AS n"
    )
    await owner.execute(
        "INSERT INTO context_entities (connector_id, organization_id, entity, layout, next_sync_at) "
        f"{many} WHERE id = $1", copies[0].id, hostile.connector_id, hostile.organization_id,
    )  # fmt: skip

    [run] = await due_runs_of()

    assert sorted(run.entities) == NAMES
    held = "SELECT count(*) FROM context_entities WHERE held_by IS NOT NULL AND connector_id = $1"
    assert await owner.fetchval(held, hostile.connector_id) <= 200 - len(NAMES)
    await owner.execute("DELETE FROM context_entities WHERE connector_id = $1", hostile.connector_id)


async def test_a_run_whose_job_was_never_accepted_is_due_again(copies, due_runs_of, owner, tenant):
    first = await due_runs_of()
    await owner.execute(OVERDUE, tenant.connector_id)

    second = await due_runs_of()

    assert len(first) == len(second) == 1
    assert first[0].job_id != second[0].job_id


@pytest.mark.parametrize(("status", "is_called"), [("queued", False), ("running", False), ("waiting", False)])
async def test_while_its_job_continues_a_run_is_not_claimed_again(
    copies, due_runs_of, owner, tenant, status, is_called
):
    [run] = await due_runs_of()
    await owner.execute(JOB, run.job_id, tenant.organization_id, tenant.connector_id, status)
    await owner.execute(OVERDUE, tenant.connector_id)

    assert bool(await due_runs_of()) is is_called


@pytest.mark.parametrize("status", ["needs_reauth", "disabled", "pending"])
async def test_a_connector_that_cannot_be_called_has_no_due_runs(copies, due_runs_of, owner, tenant, status):
    await owner.execute("UPDATE connectors SET status = $2 WHERE id = $1", tenant.connector_id, status)

    assert await due_runs_of() == []


async def test_an_entity_belongs_to_one_job_until_that_has_ended(copies, database, owner, tenant):
    one, other = uuid4(), uuid4()
    await owner.execute(JOB, one, tenant.organization_id, tenant.connector_id, "running")
    async with database.tenant(tenant.organization_id) as connection:
        taken = await schedule.claim(connection, copies[0], one)
        again = await schedule.claim(connection, copies[0], one)
        refused = await schedule.claim(connection, copies[0], other)
        await owner.execute("UPDATE jobs SET status = 'failed' WHERE id = $1", one)
        freed = await schedule.claim(connection, copies[0], other)
        await schedule.release(connection, copies[0], other)
        released = await schedule.claim(connection, copies[0], one)

    assert (taken, again, refused, freed, released) == (True, True, False, True, True)


async def test_a_write_may_make_a_run_due_now(copies, database, due_runs_of, tenant):
    await due_runs_of()
    async with database.tenant(tenant.organization_id) as connection:
        await schedule.release(connection, copies[0], uuid4())
        await schedule.run_soon(connection, copies[0])

    [run] = await due_runs_of()

    assert run.entities == ["groups"]


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


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("suport-desk", "there is no kind 'suport-desk'; did you mean support-desk?"),
        ("suport-desk.tickets", "there is no kind 'suport-desk'; did you mean support-desk?"),
        ("support-desk.tikets", "support-desk has no synchronized entity 'tikets'; did you mean tickets?"),
        ("support-desk.", "support-desk has no synchronized entity ''; known: "),
    ],
)
def test_an_interval_of_what_is_not_synchronized_is_refused_with_the_nearest_name(name, fault):
    with pytest.raises(SettingsError, match=f"^GATEWAY_SYNC_EVERY: {re.escape(fault)}"):
        Intervals({"support-desk": 60, "support-desk.tickets": 5, name: 60}).require_known(shipped_catalog())


@pytest.mark.parametrize("refused", [{}, {"parcels": SpecError([])}])
def test_an_interval_of_a_kind_that_is_not_served_is_accepted(refused):
    catalog = Catalog([DESK], refused)

    Intervals({"parcels": 60, "parcels.items": 5}).require_known(catalog)


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
