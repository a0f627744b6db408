"""Parts of words: found through the dictionary, in every word that has them, whatever wrote the record."""

import msgspec
import pytest

from gateway.context_store import term_dictionary
from gateway.context_store.entities import begin, register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import chosen
from gateway.context_store.records import drop_unused_terms, mark_deleted, remove
from gateway.context_store.search.parse import parse
from gateway.context_store.search.planner import plan_search
from gateway.context_store.search.search import ContextStore
from gateway.context_store.search.terms import Vocabulary

from .conftest import load

FIELDS = {"id": FieldType.INTEGER, "subject": FieldType.STRING, "tags": FieldType.ARRAY}
STORE = ContextStore(b"k" * 32)
OTHERS = [{"id": number, "subject": f"nothing{number}"} for number in range(term_dictionary.MAX_WORDS + 1)]


async def add(connection, entity, *records):
    await load(connection, entity, [(str(record["id"]), msgspec.json.encode(record)) for record in records])


def read(filter_):
    return parse({"query": {"filter": filter_}}, FIELDS)


@pytest.fixture
async def entity(connection, tenant):
    return await register(connection, tenant.connector_id, tenant.organization_id, "tickets", chosen(FIELDS))


@pytest.fixture
async def large(connection, entity):
    """An entity that has more words with `nothing` than are asked for one by one."""
    await add(connection, entity, *OTHERS)
    return entity


@pytest.fixture
def ask(connection, tenant):
    async def ask(filter_):
        page = await STORE.search(connection, tenant.connector_id, "tickets", read(filter_))
        return [msgspec.json.decode(record)["id"] for record in page.data]

    return ask


async def terms(connection, entity):
    rows = await connection.fetch("SELECT term FROM context_terms WHERE entity_id = $1 ORDER BY term", entity.id)
    return [row["term"].rpartition("/")[2] for row in rows]


async def looked_up(connection, entity, part):
    """What the dictionary tells of a part of a word of the subject."""
    parts = Vocabulary.of(entity).parts(read({"contains": {"subject": part}}).filter)
    return await term_dictionary.containing(connection, entity, parts)


CASES = [
    ({"like": {"subject": "int"}}, [1001, 1002]),
    ({"like": {"subject": "%RINT%ire%"}}, [1001]),
    ({"like": {"subject": "repr_nt%"}}, [1002]),
    ({"contains": {"subject": "ter on f"}}, [1001]),
    ({"endswith": {"subject": "fire"}}, [1001]),
    ({"endswith": {"subject": "printer"}}, []),
    ({"contains": {"subject": "nowhere"}}, []),
    ({"contains": {"subject": "x" * 70}}, [1003]),
    ({"contains": {"subject": "end of a long text"}}, [1004]),
    ({"contains": {"tags": "eta"}}, [1002]),
    ({"or": [{"contains": {"subject": "rinter"}}, {"contains": {"tags": "eta"}}]}, [1001, 1002]),
    ({"not": {"contains": {"subject": "nothing"}}}, [1001, 1002, 1003, 1004]),
]


@pytest.mark.parametrize(("filter_", "expected"), CASES)
async def test_records_are_found_by_parts_of_their_words(connection, large, ask, filter_, expected):
    await add(
        connection,
        large,
        {"id": 1001, "subject": "Printer on fire"},
        {"id": 1002, "subject": "Reprint", "tags": ["vip", "beta"]},
        {"id": 1003, "subject": "y" * 10 + "x" * 80},
        {"id": 1004, "subject": "word " * 5_000 + "end of a long text"},
    )

    assert sorted(await ask(filter_)) == expected


async def test_a_search_for_a_part_asks_the_word_index(connection, tenant, large):
    await add(connection, large, {"id": 1001, "subject": "Printer"})

    found = await looked_up(connection, large, "rint")
    plan = plan_search(large, read({"contains": {"subject": "rint"}}), found)

    assert [term.rpartition("/")[2] for part in found.values() for term in part] == ["printer"]
    assert "printer'" in plan.words.text


async def test_a_part_of_too_many_words_is_left_to_the_records(connection, large, ask):
    found = await looked_up(connection, large, "nothing")

    assert list(found.values()) == [None]
    assert len(await ask({"contains": {"subject": "nothing"}})) == len(OTHERS)


async def test_numbers_and_short_words_are_not_in_the_dictionary(connection, entity):
    await add(connection, entity, {"id": 1, "subject": "it is 100 printer", "tags": [17, "eu"]})

    assert await terms(connection, entity) == ["100", "printer"]


async def test_words_that_no_record_has_any_more_are_dropped(connection, entity):
    await add(connection, entity, {"id": 1, "subject": "red door"}, {"id": 2, "subject": "red secret"})
    await mark_deleted(connection, entity, ["2"])
    await add(connection, entity, {"id": 1, "subject": "red window"})

    await drop_unused_terms(connection, entity)

    assert await terms(connection, entity) == ["red", "window"]


async def test_the_dictionary_goes_with_the_connector(connection, tenant, entity):
    await add(connection, entity, {"id": 1, "subject": "red door"})

    await remove(connection, tenant.connector_id)

    assert await terms(connection, entity) == []


async def test_the_words_of_others_are_out_of_reach(database, make_tenant, connection, large):
    await add(connection, large, {"id": 1001, "subject": "Printer"})
    other = await make_tenant()

    async with database.tenant(other.organization_id) as foreign:
        assert await looked_up(foreign, large, "rint") == {}
        assert await terms(foreign, large) == []


async def test_records_read_again_by_a_sweep_keep_their_words(connection, entity):
    await add(connection, entity, {"id": 1, "subject": "red door"})
    await begin(connection, entity, full=True)

    await add(connection, entity, {"id": 1, "subject": "red door"})

    assert await terms(connection, entity) == ["door", "red"]
