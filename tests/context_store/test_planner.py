"""Pages, cursors, projections and what a search tells beside its records."""

from datetime import UTC, datetime
from uuid import uuid4

import msgspec
import pytest

from gateway.context_store.entities import finalize, find, finish, register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.records import mark_deleted
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore
from gateway.errors import InvalidQuery

from .conftest import load

FIELDS = {
    "id": FieldType.INTEGER,
    "subject": FieldType.STRING,
    "status": FieldType.STRING,
    "updated_at": FieldType.STRING,
    "created_at": FieldType.STRING,
    "user": FieldType.OBJECT,
    "comments": FieldType.ARRAY,
}
STORE = ContextStore(b"k" * 32)
NEWEST = [{"updated_at": "desc"}]


def ticket(number, **members):
    return {"id": number, "status": "open", "updated_at": f"2024-01-{number:02}", **members}


async def add(connection, entity, *tickets):
    await load(connection, entity, [(str(ticket["id"]), msgspec.json.encode(ticket)) for ticket in tickets])


@pytest.fixture
async def entity(connection, tenant):
    return await register(connection, tenant.connector_id, tenant.organization_id, "tickets", chosen(FIELDS))


@pytest.fixture
def ask(connection, tenant):
    async def ask(filter_=None, sort=(), store=STORE, **params):
        query = parse({"query": {"filter": filter_ or {}, "sort": list(sort)}, **params}, FIELDS)
        return await store.search(connection, tenant.connector_id, "tickets", query)

    return ask


def ids(page):
    return [msgspec.json.decode(record)["id"] for record in page.data]


async def test_the_next_page_starts_after_the_last_record_whatever_changed(connection, entity, ask):
    await add(connection, entity, *map(ticket, range(1, 7)))
    first = await ask(sort=NEWEST, limit=2)

    await add(connection, entity, ticket(9), ticket(2, updated_at="2024-01-20"))
    await mark_deleted(connection, entity, ["5"])
    second = await ask(sort=NEWEST, limit=2, cursor=first.cursor)
    third = await ask(sort=NEWEST, limit=2, cursor=second.cursor)

    assert [ids(first), ids(second), ids(third)] == [[6, 5], [4, 3], [1]]
    assert (third.has_more, third.cursor) == (False, None)


async def test_limit_and_fields_may_change_between_pages(connection, entity, ask):
    await add(connection, entity, *map(ticket, range(1, 6)))
    first = await ask(sort=NEWEST, limit=1)

    second = await ask(sort=NEWEST, limit=3, fields=["id"], cursor=first.cursor)

    assert list(map(msgspec.json.decode, second.data)) == [{"id": 4}, {"id": 3}, {"id": 2}]


@pytest.mark.parametrize(
    "change",
    [
        {"filter_": {"eq": {"status": "new"}}},
        {"sort": [{"updated_at": "asc"}]},
        {"store": ContextStore(b"x" * 32)},
    ],
    ids=["other filter", "other sort", "other key"],
)
async def test_a_cursor_is_valid_for_its_own_search_only(connection, entity, ask, change):
    await add(connection, entity, ticket(1), ticket(2))
    first = await ask(sort=NEWEST, limit=1)

    with pytest.raises(InvalidQuery) as caught:
        await ask(**{"sort": NEWEST, "cursor": first.cursor, **change})

    assert caught.value.faults[0].pointer == "/cursor"


@pytest.mark.parametrize("cursor", ["", "x", "ä", "AAAA" * 20, "%%%"])
async def test_a_made_up_cursor_is_refused(connection, entity, ask, cursor):
    await add(connection, entity, ticket(1))

    with pytest.raises(InvalidQuery):
        await ask(cursor=cursor)


async def test_a_changed_cursor_is_refused(connection, entity, ask):
    await add(connection, entity, ticket(1), ticket(2))
    first = await ask(sort=NEWEST, limit=1)

    with pytest.raises(InvalidQuery):
        await ask(sort=NEWEST, cursor=first.cursor[:-1] + ("A" if first.cursor[-1] != "A" else "B"))


async def test_fields_are_kept_by_path_in_objects_and_arrays(connection, entity, ask):
    document = ticket(1, user={"name": "Ann", "mail": "a@x"}, comments=[{"by": 1, "text": "x"}, 5])
    await add(connection, entity, document)

    page = await ask(fields=["id", ["user", "name"], "comments.by", "subject"])

    assert list(map(msgspec.json.decode, page.data)) == [{"id": 1, "user": {"name": "Ann"}, "comments": [{"by": 1}, 5]}]


async def test_a_search_before_the_first_load_is_empty_and_says_so(ask):
    page = await ask()

    assert (page.data, page.has_more, page.cursor, page.as_of, page.total_synced) == ([], False, None, None, 0)


async def test_a_search_says_how_fresh_and_how_many(connection, entity, ask):
    await add(connection, entity, *map(ticket, range(1, 4)))
    as_of = datetime(2024, 5, 1, tzinfo=UTC)
    await finish(connection, entity, as_of=as_of, next_sync_at=None, full=True)

    page = await ask({"eq": {"id": 2}})

    assert (ids(page), page.as_of, page.total_synced) == ([2], as_of, 3)
    assert isinstance(page.took_ms, int)


async def test_a_registration_anew_is_noticed(connection, tenant, entity, ask):
    await add(connection, entity, ticket(1))
    await ask()
    await connection.execute("DELETE FROM context_entities WHERE id = $1", entity.id)
    anew = await register(connection, tenant.connector_id, tenant.organization_id, "tickets", chosen(FIELDS))
    await add(connection, anew, ticket(2))

    page = await ask()

    assert ids(page) == [2]


async def test_a_search_that_takes_too_long_is_stopped_and_named(owner, connection, entity, ask):
    await add(connection, entity, ticket(1))

    async with owner.transaction():
        await owner.execute("LOCK context_records IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(InvalidQuery, match="too expensive: narrow it") as caught:
            await ask(store=ContextStore(b"k" * 32, time_limit=0.05))

    assert caught.value.faults[0].code == "too_expensive"


async def test_index_scans_and_bitmap_scans_find_the_same(connection, tenant, entity, ask):
    tickets = [ticket(number % 28 + 1, subject="printer" if number else "printer needle") for number in range(28)]
    await add(connection, entity, *tickets)
    await finalize(connection, entity)

    measured = await find(connection, tenant.connector_id, "tickets")
    common = await ask({"keyword": {"subject": "printer"}}, sort=NEWEST, limit=3)
    rare = await ask({"keyword": {"subject": "needle"}}, sort=NEWEST, limit=3)

    assert measured.common[f"{entity.id}/0/printer"] == 1.0
    assert (ids(common), ids(rare)) == ([28, 27, 26], [1])


async def test_a_connector_without_the_entity_has_no_records(connection, entity, ask):
    await add(connection, entity, ticket(1))

    query = parse({"query": {}}, FIELDS)
    page = await STORE.search(connection, uuid4(), "tickets", query)

    assert page.data == []


async def test_words_are_looked_up_in_their_index_alone(owner, entity):
    await owner.execute("SET ROLE gateway_context_search")
    await owner.execute("SET enable_seqscan = off; SET enable_indexscan = off")

    plan = await owner.fetch(
        "EXPLAIN SELECT id FROM context_words WHERE terms @@ $1::tsquery AND entity_id + 0 = $2", "'1/0/x'", entity.id
    )

    assert [row[0].split(" on ")[1].split()[0] for row in plan if "Scan" in row[0]] == [
        "context_words",
        "context_words_terms",
    ]
