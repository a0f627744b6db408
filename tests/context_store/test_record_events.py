"""Writes into the copy add one event for each record that changed, in the transaction that writes it."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.context_store.entities import begin, register
from gateway.context_store.layout import Layout
from gateway.context_store.records import BATCH_ROWS, mark_deleted, upsert
from gateway.context_store.sweeps import Sweep
from gateway.events.feed import Feed
from gateway.events.model import EventFilter

EARLIER = datetime(2024, 1, 1, tzinfo=UTC)
LATER = EARLIER + timedelta(hours=1)


def record(id_, name="a"):
    return id_, f'{{"id":"{id_}","name":"{name}"}}'.encode()


@pytest.fixture
async def entity(connection, tenant):
    return await register(connection, tenant.connector_id, tenant.organization_id, "things", Layout())


@pytest.fixture
def told(database, tenant):
    """`await told()`: types and record ids of the events after the last that it read."""
    after = 0

    async def read():
        nonlocal after
        page = await Feed(database).read(tenant.organization_id, EventFilter(entity="things"), after, 1000)
        after = page.next_after
        return [(event.type.removeprefix("record."), event.data["record_id"]) for event in page.events]

    return read


async def test_new_changed_and_deleted_records_are_reported_apart(connection, entity, told):
    await upsert(connection, entity, [record("1"), record("2")], observed_at=EARLIER)
    assert await told() == [("created", "1"), ("created", "2")]

    await upsert(connection, entity, [record("1"), record("2", "b"), record("3")], observed_at=EARLIER)
    assert await told() == [("created", "3"), ("updated", "2")]

    await mark_deleted(connection, entity, ["2", "9"], observed_at=LATER)
    assert await told() == [("deleted", "2")]

    await upsert(connection, entity, [record("2", "b")], observed_at=LATER + timedelta(seconds=1))
    assert await told() == [("created", "2")]


async def test_what_an_older_response_says_is_no_change(connection, entity, told):
    await upsert(connection, entity, [record("1", "new")], observed_at=LATER)
    await told()

    await upsert(connection, entity, [record("1", "old")], observed_at=EARLIER)
    await mark_deleted(connection, entity, ["1"], observed_at=EARLIER)

    assert await told() == []


async def test_a_full_synchronization_says_what_the_application_no_longer_has(connection, entity, told):
    await upsert(connection, entity, [record("1"), record("2")], observed_at=EARLIER)
    await told()
    generation = await begin(connection, entity, full=True)
    await upsert(connection, entity, [record("1")], generation=generation)

    await Sweep(entity, generation, LATER).delete(connection, again=False)

    assert await told() == [("deleted", "2")]


async def test_a_large_write_costs_a_row_for_each_batch(connection, entity, owner, tenant):
    await upsert(connection, entity, [record(str(number)) for number in range(2 * BATCH_ROWS + 1)])

    rows = await owner.fetch(
        "SELECT size FROM events WHERE organization_id = $1 AND entity = 'things' ORDER BY sequence",
        tenant.organization_id,
    )

    assert [row["size"] for row in rows] == [BATCH_ROWS, BATCH_ROWS, 1]
