"""Words come right behind their records: nothing is missed meanwhile, and nothing of what is gone stays."""

import asyncio

import msgspec
import pytest

from gateway.context_store.entities import register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.records import mark_deleted, remove, upsert
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore
from gateway.context_store.word_index import catch_up

FIELDS = {"id": FieldType.INTEGER, "subject": FieldType.STRING}
STORE = ContextStore(b"k" * 32)
WORDS = "SELECT id FROM context_words WHERE entity_id = $1 ORDER BY id"


def record(number, subject):
    return str(number), msgspec.json.encode({"id": number, "subject": subject})


@pytest.fixture
async def entity(connection, tenant):
    return await register(connection, tenant.connector_id, tenant.organization_id, "tickets", chosen(FIELDS))


@pytest.fixture
def found(connection, tenant):
    async def found(word):
        query = parse({"query": {"filter": {"keyword": {"subject": word}}}}, FIELDS)
        page = await STORE.search(connection, tenant.connector_id, "tickets", query)
        return [msgspec.json.decode(record)["id"] for record in page.data]

    return found


async def indexed(connection, entity):
    return [row["id"] for row in await connection.fetch(WORDS, entity.id)]


async def test_a_record_is_found_by_its_words_before_and_after_they_are_indexed(connection, entity, found):
    await upsert(connection, entity, [record(1, "red door")])
    before = await found("door"), await indexed(connection, entity)

    assert await catch_up(connection, entity) == 1

    assert before == ([1], [])
    assert (await found("door"), await indexed(connection, entity)) == ([1], ["1"])


async def test_more_records_that_wait_than_are_worth_gathering_are_found_too(connection, entity, found):
    await upsert(connection, entity, [record(number, f"door {number}") for number in range(500)])

    assert await found("499") == [499]


async def test_a_changed_record_is_found_by_its_new_words_alone(connection, entity, found):
    await upsert(connection, entity, [record(1, "red door")])
    await catch_up(connection, entity)

    await upsert(connection, entity, [record(1, "blue door")])
    before = await found("red"), await found("blue")
    await catch_up(connection, entity)

    assert before == (await found("red"), await found("blue")) == ([], [1])


async def test_a_record_that_changed_while_it_waited_is_indexed_as_it_is(connection, entity, found):
    await upsert(connection, entity, [record(1, "red door")])
    await upsert(connection, entity, [record(1, "blue door")])

    assert await catch_up(connection, entity) == 2

    assert (await found("red"), await found("blue")) == ([], [1])


async def test_words_of_a_record_that_is_gone_are_dropped_and_not_indexed(connection, entity, found):
    await upsert(connection, entity, [record(1, "red door"), record(2, "blue door")])
    await catch_up(connection, entity)
    await upsert(connection, entity, [record(2, "green door")])

    await mark_deleted(connection, entity, ["1", "2"])
    await catch_up(connection, entity)

    assert (await found("door"), await indexed(connection, entity)) == ([], [])


async def test_what_was_interrupted_waits_on(connection, entity, found):
    await upsert(connection, entity, [record(1, "red door")])

    interrupted = connection.transaction()
    await interrupted.start()
    await catch_up(connection, entity)
    await interrupted.rollback()

    assert await found("door") == [1]
    assert await catch_up(connection, entity) == 1


async def test_processes_that_catch_up_at_once_do_the_work_once(database, connection, tenant, entity, found):
    await upsert(connection, entity, [record(number, "red door") for number in range(2_500)])

    async def one():
        async with database.tenant(tenant.organization_id) as own:
            return await catch_up(own, entity)

    assert sum(await asyncio.gather(one(), one(), one())) == 2_500
    assert len(await indexed(connection, entity)) == 2_500


async def test_nothing_is_left_of_a_connector_that_is_removed(connection, tenant, entity):
    await upsert(connection, entity, [record(1, "red door")])
    await catch_up(connection, entity)
    await upsert(connection, entity, [record(2, "red door")])

    await remove(connection, tenant.connector_id)

    assert await catch_up(connection, entity) == 0
    assert await indexed(connection, entity) == []
    assert await connection.fetchval("SELECT count(*) FROM context_pending_words") == 0
