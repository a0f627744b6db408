"""Writing: in bulk, idempotent, newest wins, deletions stay deletions; tenants never meet."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest

from gateway.context_store.entities import begin, checkpoint, checkpoint_sweep, fail, find, finish, freshness, register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.records import BATCH_ROWS, Written, delete_tombstones, mark_deleted, remove, upsert
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore
from gateway.context_store.sweeps import Sweep
from gateway.errors import NotFound, UpstreamError
from tests.harness.databases import waits_for_lock
from tests.harness.waiting import eventually

FIELDS = {"id": FieldType.STRING, "name": FieldType.STRING, "rank": FieldType.NUMBER, "updated_at": FieldType.STRING}
STORE = ContextStore(b"k" * 32)
EARLIER = datetime(2024, 1, 1, tzinfo=UTC)
LATER = EARLIER + timedelta(hours=1)


def record(id_, **members):
    return id_, msgspec.json.encode({"id": id_, **members})


async def registered(connection, tenant, name="things"):
    return await register(connection, tenant.connector_id, tenant.organization_id, name, chosen(FIELDS))


async def bind(connection, tenant):
    await connection.execute("SELECT set_config('gateway.tenant', $1, false)", str(tenant.organization_id))


@pytest.fixture
async def entity(connection, tenant):
    return await registered(connection, tenant)


@pytest.fixture
def stored(connection, tenant):
    async def stored(filter_=None):
        query = parse({"query": {"filter": filter_ or {}}}, FIELDS)
        page = await STORE.search(connection, tenant.connector_id, "things", query)
        return {found["id"]: found.get("name") for found in map(msgspec.json.decode, page.data)}

    return stored


async def total(connection, tenant):
    return (await find(connection, tenant.connector_id, "things")).records


async def test_records_are_added_changed_or_left_as_they_are(connection, tenant, entity, stored):
    first = await upsert(connection, entity, [record("a", name="1"), record("b", name="1")])

    again = await upsert(connection, entity, [record("a", name="1"), record("b", name="2"), record("c", name="1")])

    assert (first, again) == (Written(added=2), Written(added=1, changed=1, unchanged=1))
    assert await stored() == {"a": "1", "b": "2", "c": "1"}
    assert await total(connection, tenant) == 3


async def test_a_change_is_in_the_next_search_by_word_and_by_key(connection, entity, stored):
    await upsert(connection, entity, [record("a", name="old words", updated_at="2024")])

    await upsert(connection, entity, [record("a", name="new words", updated_at="2025")])

    assert await stored({"keyword": {"name": "old"}}) == {}
    assert await stored({"keyword": {"name": "new"}, "eq": {"updated_at": "2025"}}) == {"a": "new words"}


async def test_a_record_is_handed_out_as_the_text_it_came_as(connection, tenant, entity):
    text = b'{"name" : "n", "id":"a", "rank": 1.50, "name_before": null}'
    await upsert(connection, entity, [("a", text)])

    page = await STORE.search(connection, tenant.connector_id, "things", parse({"query": {}}, FIELDS))

    assert [bytes(found) for found in page.data] == [text]


async def test_of_two_with_one_id_the_later_counts(connection, entity, stored):
    await upsert(connection, entity, [record("a", name="1"), record("a", name="2")])

    assert await stored() == {"a": "2"}


async def test_many_records_are_written_in_batches(connection, tenant, entity):
    count = BATCH_ROWS * 2 + 1

    written = await upsert(connection, entity, (record(str(number)) for number in range(count)))

    assert written == Written(added=count)
    assert await total(connection, tenant) == count


async def test_an_older_answer_never_overwrites_a_newer_one(connection, entity, stored):
    await upsert(connection, entity, [record("a", name="newer")], observed_at=LATER)

    written = await upsert(connection, entity, [record("a", name="older")], observed_at=EARLIER)

    assert written == Written(unchanged=1)
    assert await stored() == {"a": "newer"}


async def test_a_deleted_record_is_not_found_and_not_counted(connection, tenant, entity, stored):
    await upsert(connection, entity, [record("a", name="secret"), record("b")])

    assert await mark_deleted(connection, entity, ["a", "a", "unknown"]) == 1

    assert await stored() == {"b": None}
    assert await total(connection, tenant) == 1
    assert await connection.fetchval("SELECT document::text FROM context_records WHERE id = 'a'") == "{}"


async def test_a_page_read_before_a_deletion_does_not_bring_the_record_back(connection, tenant, entity, stored):
    await mark_deleted(connection, entity, ["a"], observed_at=LATER)

    await upsert(connection, entity, [record("a")], observed_at=EARLIER)

    assert await stored() == {}
    assert await total(connection, tenant) == 0


async def test_a_record_that_came_back_is_found_and_counted(connection, tenant, entity, stored):
    await upsert(connection, entity, [record("a")], observed_at=EARLIER)
    await mark_deleted(connection, entity, ["a"], observed_at=EARLIER)

    written = await upsert(connection, entity, [record("a")], observed_at=LATER)

    assert written == Written(added=1)
    assert await stored() == {"a": None}
    assert await total(connection, tenant) == 1


async def test_a_full_sweep_buries_what_it_did_not_meet(connection, tenant, entity, stored):
    await upsert(connection, entity, [record("same"), record("changed", name="1"), record("gone")])
    generation = await begin(connection, entity, full=True)
    began_at = datetime.now(UTC)

    await upsert(
        connection, entity, [record("same"), record("changed", name="2"), record("new")], generation=generation
    )
    await upsert(connection, entity, [record("written meanwhile")])
    sweep = Sweep(entity, generation, began_at)
    tombstoned = await sweep.delete(connection, again=False)
    await sweep.end(connection)

    assert tombstoned == 1
    assert await stored() == {"changed": "2", "new": None, "same": None, "written meanwhile": None}
    assert await total(connection, tenant) == 4
    assert await connection.fetchval("SELECT count(*) FROM context_marks WHERE entity_id = $1", entity.id) == 0


async def test_a_second_sweep_needs_marks_of_its_own(connection, entity, stored):
    await upsert(connection, entity, [record("a"), record("b")])
    first = await begin(connection, entity, full=True)
    await upsert(connection, entity, [record("a"), record("b")], generation=first)
    await Sweep(entity, first, datetime.now(UTC)).end(connection)

    second = await begin(connection, entity, full=True)
    await upsert(connection, entity, [record("a")], generation=second)
    await Sweep(entity, second, datetime.now(UTC)).delete(connection, again=False)

    assert await stored() == {"a": None}


async def test_an_interrupted_sweep_continues_under_its_generation(connection, tenant, entity):
    first = await begin(connection, entity, full=True)
    await checkpoint_sweep(connection, entity, first, "page 7")

    again = await begin(connection, entity, full=True)
    resumed = await find(connection, tenant.connector_id, "things")
    await finish(connection, entity, as_of=LATER, next_sync_at=None, full=True)
    following = await begin(connection, entity, full=True)

    assert (again, resumed.sweep_cursor, following) == (first, "page 7", first + 1)


async def test_old_tombstones_are_forgotten(connection, entity):
    await mark_deleted(connection, entity, ["old", "young"])
    await connection.execute("UPDATE context_records SET deleted_at = now() - interval '8 days' WHERE id = 'old'")

    assert await delete_tombstones(connection, entity, days=7) == 1

    assert [row["id"] for row in await connection.fetch("SELECT id FROM context_records")] == ["young"]


async def test_a_record_that_comes_back_while_its_tombstone_is_forgotten_stays(database, tenant, connection, entity):
    await mark_deleted(connection, entity, ["back"])
    await connection.execute("UPDATE context_records SET deleted_at = now() - interval '8 days'")
    async with database.tenant(tenant.organization_id) as another, another.transaction():
        await upsert(another, entity, [record("back")])
        forgetting = asyncio.create_task(delete_tombstones(connection, entity, days=7))
        await eventually(lambda: waits_for_lock(database))
    await forgetting

    assert [row["id"] for row in await connection.fetch("SELECT id FROM context_records")] == ["back"]


ODD = [
    (b'{"id":"a","name":"x\\u0000y"}', "x\ufffdy"),
    (b'{"id":"a","name":"\\ud800!"}', "\ufffd!"),
    (b'{"id":"a","name":"\xff!"}', "\ufffd!"),
    (b'{"id":"a","name":"huge","rank":1e999999}', "huge"),
    (b'{"id":"a","name":"long","rank":1' + b"0" * 400 + b"}", "long"),
    (b'{"id":"a","name":"deep","rank":1e999999,"below":' + b"[" * 900 + b"]" * 900 + b"}", "deep"),
    (b'{"id":"a","name":"tiny","rank":1e-400}', "tiny"),
    (b'{"id":"a","name":"large","rank":-123456789012345678901234567890}', "large"),
]


@pytest.mark.parametrize(("document", "name"), ODD, ids=[name for _, name in ODD])
async def test_an_odd_record_does_not_stop_the_others(connection, entity, stored, document, name):
    await upsert(connection, entity, [record("b", name="fine"), ("a", document)])

    found = await stored()

    assert found["b"] == "fine"
    assert found["a"].strip("\ufffd!") == name.strip("\ufffd!")


async def test_an_odd_record_is_unchanged_when_it_comes_again(connection, entity):
    document = b'{"id":"a","name":"x\\u0000y"}'
    await upsert(connection, entity, [("a", document)])

    assert await upsert(connection, entity, [("a", document)]) == Written(unchanged=1)


async def test_an_id_may_hold_anything_but_nul(connection, entity, stored):
    await upsert(connection, entity, [record("a'b\\c,{}\"é\n")])

    assert await stored() == {"a'b\\c,{}\"é\n": None}


async def test_another_tenants_records_are_not_found_even_by_their_connector(connection, make_tenant, entity, stored):
    await upsert(connection, entity, [record("mine", name="secret word")])
    stranger = await make_tenant()

    await bind(connection, stranger)

    assert await stored() == {}
    assert await stored({"keyword": {"name": "secret"}}) == {}
    assert await connection.fetchval("SELECT count(*) FROM context_records") == 0
    assert (
        await connection.fetchval(
            "SELECT context_candidates($1, $2::text::tsquery, 9)", entity.id, f"'{entity.id}/0/secret'"
        )
        == []
    )


async def test_a_remembered_entity_is_no_way_past_row_security(connection, tenant, make_tenant, entity, stored):
    await upsert(connection, entity, [record("mine", name="secret word")])
    before = await stored({"keyword": {"name": "secret"}})
    stranger = await make_tenant()

    await bind(connection, stranger)

    assert before == {"mine": "secret word"}
    assert await stored({"keyword": {"name": "secret"}}) == {}


async def test_a_connector_removed_leaves_nothing(connection, make_tenant, tenant, entity):
    await upsert(connection, entity, [record("a"), record("b")], generation=1)
    await upsert(connection, entity, [record("a")], generation=1)
    other = await make_tenant()
    await connection.execute("SELECT set_config('gateway.tenant', '*', false)")
    kept = await registered(connection, other)
    await upsert(connection, kept, [record("kept")])

    assert await remove(connection, tenant.connector_id) == 2

    assert await freshness(connection, tenant.connector_id) == []
    assert await connection.fetchval("SELECT count(*) FROM context_records WHERE entity_id = $1", entity.id) == 0
    assert await connection.fetchval("SELECT count(*) FROM context_marks WHERE entity_id = $1", entity.id) == 0
    assert await connection.fetchval("SELECT count(*) FROM context_records WHERE entity_id = $1", kept.id) == 1


async def test_writing_to_a_removed_entity_says_so(connection, tenant, entity):
    await remove(connection, tenant.connector_id)

    with pytest.raises(NotFound):
        await upsert(connection, entity, [record("a")])


async def test_registering_again_changes_nothing(connection, tenant, entity):
    again = await register(connection, tenant.connector_id, tenant.organization_id, "things", chosen({}))

    assert again == entity


async def test_freshness_says_how_each_entity_stands(connection, tenant, entity):
    other = await registered(connection, tenant, "others")
    await begin(connection, entity, full=False)
    await checkpoint(connection, entity, "2024-01-01")
    await finish(connection, entity, as_of=EARLIER, next_sync_at=LATER, full=False)
    await fail(connection, other, UpstreamError("the application is down"), LATER)

    failed, ready = await freshness(connection, tenant.connector_id)

    assert (ready.status, ready.cursor, ready.last_synced_at, ready.next_sync_at) == (
        "ready",
        "2024-01-01",
        EARLIER,
        LATER,
    )
    assert (failed.status, failed.error["code"], failed.last_synced_at) == ("failed", "upstream_error", None)


async def test_an_entity_of_an_unknown_connector_cannot_be_found(connection):
    assert await find(connection, uuid4(), "things") is None
