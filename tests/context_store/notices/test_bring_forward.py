"""Notices make the entities due that they were about: at once, after a run that began before, never against a pause."""

from uuid import UUID, uuid4

import pytest

from gateway.context_store.notices.model import Hook
from gateway.context_store.notices.notice import NoticedChange
from gateway.context_store.notices.store import PRUNE_CHANGES, HookStore
from gateway.context_store.sync import schedule
from gateway.errors import Unavailable
from gateway.foundation.db.pruning import prune
from gateway.foundation.vault.vault import Vault, parse_keys
from tests.harness.catalog import shipped_catalog
from tests.harness.processes import KEYS

DESK = shipped_catalog().kind("support-desk")
ORGANIZATION = "INSERT INTO organizations (id, name) VALUES ($1::uuid, $1::uuid::text)"
WORKSPACE = "INSERT INTO workspaces (id, organization_id, name) VALUES ($2, $1, 'support')"
CONNECTOR = """
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)
    VALUES ($3, $1, $2, 'support-desk', 'Support', 'active')
"""
SYNCHRONIZED = """
    UPDATE context_entities SET next_sync_at = now() + interval '1 hour', status = $2,
        last_synced_at = now() - make_interval(secs => $3)
    WHERE connector_id = $1
"""
DUE_IN = """
    SELECT entity, extract(epoch FROM next_sync_at - now())::float8 AS seconds FROM context_entities
    WHERE connector_id = $1
"""
JOB = "INSERT INTO jobs (id, organization_id, connector_id, task, status) VALUES ($1, $2, $3, 'synchronize', 'running')"


@pytest.fixture
def store(database) -> HookStore:
    return HookStore(database, Vault(parse_keys(KEYS)))


@pytest.fixture
async def hook(database, store, sql) -> Hook:
    """The hook of a connector with two entities, synchronized an hour ago and due in an hour."""
    return await new_hook(database, store, sql)


async def new_hook(database, store, sql) -> Hook:
    organization_id, workspace_id, connector_id = uuid4(), uuid4(), uuid4()
    await sql(ORGANIZATION, organization_id)
    await sql(WORKSPACE, organization_id, workspace_id)
    await sql(CONNECTOR, organization_id, workspace_id, connector_id)
    async with database.tenant(organization_id) as connection:
        await schedule.register_all(connection, connector_id, organization_id, DESK, ["tickets", "users"])
    await sql(SYNCHRONIZED, connector_id, "ready", 3600.0)
    return await store.create(organization_id, connector_id)


@pytest.fixture
def due_in(sql, hook):
    """Seconds until the next run, by entity."""

    async def read():
        return {row["entity"]: row["seconds"] for row in await sql(DUE_IN, hook.connector_id)}

    return read


async def claimed(database, hook: Hook, sql) -> UUID:
    """A running job that synchronizes the tickets."""
    job_id = uuid4()
    await sql(JOB, job_id, hook.organization_id, hook.connector_id)
    async with database.tenant(hook.organization_id) as connection:
        await connection.execute(
            "UPDATE context_entities SET held_by = $2 WHERE connector_id = $1 AND entity = 'tickets'",
            hook.connector_id,
            job_id,
        )
    return job_id


async def test_a_notice_makes_its_entity_due_and_no_other(store, hook, due_in):
    stored = [await store.store(hook, b"1", [NoticedChange("tickets")]) for _ in range(2)]

    counts = [await store.bring_forward(5.0) for _ in range(2)]

    due = await due_in()
    assert (stored, counts) == ([True, False], [1, 0])
    assert due["tickets"] <= 0 < 3000 < due["users"]


async def test_a_notice_during_a_run_makes_the_entity_due_after_it(database, store, hook, sql, due_in):
    job_id = await claimed(database, hook, sql)
    await store.store(hook, b"1", [NoticedChange("tickets")])

    during = await store.bring_forward(5.0), (await due_in())["tickets"]
    await sql("UPDATE jobs SET status = 'succeeded' WHERE id = $1", job_id)
    after = await store.bring_forward(5.0), (await due_in())["tickets"]

    assert (during[0], during[1] > 3000) == (0, True)
    assert (after[0], after[1] <= 0) == (1, True)


async def test_a_stream_of_notices_is_followed_by_runs_with_pauses(store, hook, sql, due_in):
    await sql(SYNCHRONIZED, hook.connector_id, "ready", 0.0)
    await store.store(hook, b"1", [NoticedChange("tickets")])

    await store.bring_forward(30.0)

    assert 0 < (await due_in())["tickets"] <= 30


async def test_an_entity_that_failed_waits_for_as_long_as_its_error_says(store, hook, sql, due_in):
    await sql(SYNCHRONIZED, hook.connector_id, "failed", 3600.0)
    await store.store(hook, b"1", [NoticedChange("tickets")])

    await store.bring_forward(5.0)

    assert (await due_in())["tickets"] > 3000


async def test_a_notice_of_a_record_is_taken_once_and_its_entity_is_not_due(store, hook, due_in):
    await store.store(hook, b"1", [NoticedChange("tickets", "7"), NoticedChange("users", "3")])
    await store.store(hook, b"2", [NoticedChange("tickets", "7")])

    count = await store.bring_forward(5.0)
    async with store.taken_records() as first:
        [taken] = first
    async with store.taken_records() as second:
        pass

    assert (count, (await due_in())["tickets"] > 3000) == (0, True)
    assert (taken.connector_id, taken.ids) == (hook.connector_id, {"tickets": ["7"], "users": ["3"]})
    assert second == []


async def test_records_whose_job_could_not_be_accepted_are_taken_again(store, hook):
    await store.store(hook, b"1", [NoticedChange("tickets", "7")])

    with pytest.raises(Unavailable):
        async with store.taken_records():
            raise Unavailable("PostgreSQL does not answer")
    async with store.taken_records() as again:
        assert [each.ids for each in again] == [{"tickets": ["7"]}]


async def test_while_a_job_reads_records_others_wait_for_the_next(store, hook, sql):
    job_id = uuid4()
    await sql(JOB, job_id, hook.organization_id, hook.connector_id)
    await sql("UPDATE jobs SET action = 'get' WHERE id = $1", job_id)
    await store.store(hook, b"1", [NoticedChange("tickets", "7")])

    async with store.taken_records() as during:
        pass
    await sql("UPDATE jobs SET status = 'succeeded' WHERE id = $1", job_id)
    async with store.taken_records() as after:
        pass

    assert (during, len(after)) == ([], 1)


@pytest.mark.parametrize(
    "others", [[NoticedChange("tickets")], [NoticedChange("tickets", str(number)) for number in range(50)]]
)
async def test_many_records_and_a_notice_without_one_make_the_entity_due(store, hook, due_in, others):
    await store.store(hook, b"1", [*others, NoticedChange("tickets", "a"), NoticedChange("users", "3")])

    count = await store.bring_forward(5.0)
    async with store.taken_records() as taken:
        pass

    assert (count, (await due_in())["tickets"] <= 0) == (1, True)
    assert [each.ids for each in taken] == [{"users": ["3"]}]


async def test_changes_of_an_entity_whose_list_will_be_read_are_one_row(store, hook, sql, due_in):
    for number in range(10):
        changes = [NoticedChange("tickets", f"{number}-{each}") for each in range(40)]
        await store.store(hook, b"%d" % number, [*changes, NoticedChange("users", str(number))])

    rows = await sql(
        "SELECT entity, count(*) FROM inbound_changes WHERE connector_id = $1 GROUP BY 1", hook.connector_id
    )
    await store.bring_forward(5.0)

    assert dict(map(tuple, rows)) == {"tickets": 2 * 40 + 1, "users": 10}
    assert (await due_in())["tickets"] <= 0


CHANGES = """
    INSERT INTO inbound_changes (connector_id, organization_id, entity, record_id)
    SELECT $1, $2, entity, $3 || number FROM unnest($4::text[]) AS entity, generate_series(1, 50) AS number
"""


async def test_organizations_take_turns_when_many_records_have_changed(database, store, hook, sql):
    hostile = await new_hook(database, store, sql)
    await sql(CHANGES, hostile.connector_id, hostile.organization_id, "", ["a", "b", "c", "d", "e"])
    await store.store(hook, b"1", [NoticedChange("tickets", "7")])

    async with store.taken_records() as taken:
        assert [each.ids for each in taken if each.connector_id == hook.connector_id] == [{"tickets": ["7"]}]
    await sql("DELETE FROM inbound_changes WHERE connector_id = $1", hostile.connector_id)


async def test_organizations_take_turns_when_many_entities_have_changed(database, store, hook, sql, due_in):
    hostile = await new_hook(database, store, sql)
    many = [f"e{number}" for number in range(300)]
    await sql(
        "INSERT INTO context_entities (connector_id, organization_id, entity, layout, next_sync_at) "
        "SELECT $1, $2, name, layout, now() + interval '1 hour' FROM context_entities, unnest($3::text[]) AS name "
        "WHERE connector_id = $4 AND entity = 'tickets'",
        hostile.connector_id, hostile.organization_id, many, hook.connector_id,
    )  # fmt: skip
    await store.store(hostile, b"1", [NoticedChange(entity) for entity in many])
    await store.store(hook, b"2", [NoticedChange("tickets")])

    await store.bring_forward(5.0)

    assert (await due_in())["tickets"] <= 0
    await sql("DELETE FROM inbound_changes WHERE connector_id = $1", hostile.connector_id)


async def test_changes_that_nothing_reads_are_deleted_after_a_week(database, store, hook, sql):
    await store.store(hook, b"1", [NoticedChange("unknown"), NoticedChange("tickets", "1")])
    await sql("UPDATE inbound_changes SET noticed_at = now() - interval '8 days' WHERE entity = 'unknown'")

    await prune(database, PRUNE_CHANGES)

    left = await sql("SELECT entity FROM inbound_changes WHERE connector_id = $1", hook.connector_id)
    assert [row["entity"] for row in left] == ["tickets"]
