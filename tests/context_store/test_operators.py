"""Every operator on every type, with null, missing and arrays: what a filter means, one line each."""

import msgspec
import pytest

from gateway.context_store.entities import register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import Layout, chosen
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore

from .conftest import Words, load
from .evaluation import evaluate

FIELDS = {
    "title": FieldType.STRING,
    "updated_at": FieldType.STRING,
    "count": FieldType.INTEGER,
    "price": FieldType.NUMBER,
    "open": FieldType.BOOLEAN,
    "tags": FieldType.ARRAY,
    "events": FieldType.ARRAY,
    "via": FieldType.OBJECT,
    "rating": FieldType.ANY,
    "properties": FieldType.OBJECT,
    "properties.email": FieldType.STRING,
}
RECORDS = {
    # every field has a value
    "full": {
        "title": "Printer on fire, ÜBER-hot",
        "updated_at": "2024-05-01T10:00:00Z",
        "count": 10,
        "price": 9.5,
        "open": True,
        "tags": ["vip", "Beta", 7, None],
        "events": [{"kind": "note", "by": {"id": 1}}, {"kind": "call", "by": {"id": 2}}],
        "via": {"channel": "web", "from": {"name": "Ann Lee"}},
        "rating": {"score": "good", "comment": "very fast"},
        "properties": {"email": "ann@example.com"},
    },
    # other values, so that order can tell
    "other": {
        "title": "printer",
        "updated_at": "2024-05-02T10:00:00Z",
        "count": 9,
        "price": 10,
        "open": False,
        "tags": ["eu"],
        "events": [{"kind": "sale", "by": {"id": 10}}],
        "via": {"channel": "email", "from": None},
        "rating": "good",
        "properties": {"email": "Bob@example.com"},
    },
    "null": dict.fromkeys([name for name in FIELDS if "." not in name]),
    "missing": {},
    # values of other types than declared count as missing in scalar fields
    "wrong": {
        "title": 10,
        "updated_at": 1714557600,
        "count": "10",
        "price": "9.5",
        "open": "true",
        "tags": "vip",
        "events": {"kind": "note"},
        "via": "web",
        "rating": [],
        "properties": {"email": ["ann@example.com"]},
    },
}
GONE = ["missing", "null", "wrong"]
NOT_FULL = ["missing", "null", "other", "wrong"]

CASES = [
    # eq
    ({"eq": {"title": "printer"}}, ["other"]),
    ({"eq": {"title": "Printer"}}, []),
    ({"eq": {"title": None}}, GONE),
    ({"eq": {"updated_at": "2024-05-01T10:00:00Z"}}, ["full"]),
    ({"eq": {"updated_at": None}}, GONE),
    ({"eq": {"count": 10}}, ["full"]),
    ({"eq": {"count": 10.0}}, ["full"]),
    ({"eq": {"count": None}}, GONE),
    ({"eq": {"price": 9.5}}, ["full"]),
    ({"eq": {"price": 10}}, ["other"]),
    ({"eq": {"price": None}}, GONE),
    ({"eq": {"open": True}}, ["full"]),
    ({"eq": {"open": False}}, ["other"]),
    ({"eq": {"open": None}}, GONE),
    ({"eq": {"tags": "vip"}}, ["full", "wrong"]),
    ({"eq": {"tags": 7}}, ["full"]),
    ({"eq": {"tags": ["eu"]}}, ["other"]),
    ({"eq": {"tags": ["vip"]}}, []),
    ({"eq": {"tags": None}}, ["missing", "null"]),
    ({"eq": {"events.kind": "note"}}, ["full", "wrong"]),
    ({"eq": {"events.by.id": 10}}, ["other"]),
    ({"eq": {"events": {"kind": "note"}}}, ["wrong"]),
    ({"eq": {"events": {"kind": "sale", "by": {"id": 10}}}}, ["other"]),
    ({"eq": {"via": {"channel": "email", "from": None}}}, ["other"]),
    ({"eq": {"via": None}}, ["missing", "null"]),
    ({"eq": {"via.channel": "web"}}, ["full"]),
    ({"eq": {"via.channel": None}}, GONE),
    ({"eq": {"via.from.name": "Ann Lee"}}, ["full"]),
    ({"eq": {"rating": "good"}}, ["other"]),
    ({"eq": {"rating.score": "good"}}, ["full"]),
    ({"eq": {"rating": None}}, ["missing", "null"]),
    ({"eq": {"properties.email": "ann@example.com"}}, ["full"]),
    ({"eq": {"properties.email": None}}, GONE),
    ({"eq": {"properties.phone": None}}, ["full", "missing", "null", "other", "wrong"]),
    # neq is not eq
    ({"neq": {"title": "printer"}}, ["full", "missing", "null", "wrong"]),
    ({"neq": {"title": None}}, ["full", "other"]),
    ({"neq": {"updated_at": None}}, ["full", "other"]),
    ({"neq": {"count": 10}}, NOT_FULL),
    ({"neq": {"price": 9.5}}, NOT_FULL),
    ({"neq": {"open": True}}, NOT_FULL),
    ({"neq": {"tags": "vip"}}, ["missing", "null", "other"]),
    ({"neq": {"via.channel": "web"}}, NOT_FULL),
    ({"neq": {"rating": "good"}}, ["full", "missing", "null", "wrong"]),
    # in
    ({"in": {"title": ["printer", "scanner"]}}, ["other"]),
    ({"in": {"title": ["printer", None]}}, ["missing", "null", "other", "wrong"]),
    ({"in": {"title": []}}, []),
    ({"in": {"count": [10, 11]}}, ["full"]),
    ({"in": {"count": [9.0, None]}}, ["missing", "null", "other", "wrong"]),
    ({"in": {"price": [9.5, 10]}}, ["full", "other"]),
    ({"in": {"open": [True, False]}}, ["full", "other"]),
    ({"in": {"tags": ["eu", 7]}}, ["full", "other"]),
    ({"in": {"tags": [["eu"], None]}}, ["missing", "null", "other"]),
    ({"in": {"tags": []}}, []),
    ({"in": {"events.kind": ["call", "sale"]}}, ["full", "other"]),
    ({"in": {"via": [{"channel": "email", "from": None}]}}, ["other"]),
    ({"in": {"rating": ["good"]}}, ["other"]),
    # gt gte lt lte
    ({"gt": {"title": "Printer on fire, ÜBER-hot"}}, ["other"]),
    ({"gte": {"title": "Printer on fire, ÜBER-hot"}}, ["full", "other"]),
    ({"lt": {"title": "printer"}}, ["full"]),
    ({"lte": {"title": "printer"}}, ["full", "other"]),
    ({"gt": {"updated_at": "2024-05-01T10:00:00Z"}}, ["other"]),
    ({"gte": {"updated_at": "2024-05-01"}, "lt": {"updated_at": "2024-05-02"}}, ["full"]),
    ({"gt": {"count": 9}}, ["full"]),
    ({"gte": {"count": 9}}, ["full", "other"]),
    ({"lt": {"count": 9.5}}, ["other"]),
    ({"lte": {"count": 10}}, ["full", "other"]),
    ({"gt": {"price": 9.5}}, ["other"]),
    ({"lt": {"price": 10}}, ["full"]),
    ({"gt": {"tags": "f"}}, ["full", "wrong"]),
    ({"gte": {"tags": 7}}, ["full"]),
    ({"lt": {"events.by.id": 2}}, ["full"]),
    ({"gt": {"via.channel": "f"}}, ["full"]),
    ({"lte": {"rating": "good"}}, ["other"]),
    ({"not": {"gt": {"count": 9}}}, ["missing", "null", "other", "wrong"]),
    # like
    ({"like": {"title": "PRINTER"}}, ["full", "other"]),
    ({"like": {"title": "printer%"}}, ["full", "other"]),
    ({"like": {"title": "print_r"}}, ["other"]),
    ({"like": {"title": "%über%"}}, ["full"]),
    ({"like": {"title": "\\%"}}, []),
    ({"like": {"tags": "bet"}}, ["full"]),
    ({"like": {"events.kind": "n_te"}}, ["full", "wrong"]),
    ({"like": {"via.from.name": "ann%"}}, ["full"]),
    ({"like": {"rating": "goo"}}, ["other"]),
    ({"like": {"properties.email": "%@EXAMPLE.com"}}, ["full", "other"]),
    # startswith endswith contains
    ({"startswith": {"title": "print"}}, ["full", "other"]),
    ({"endswith": {"title": "HOT"}}, ["full"]),
    ({"contains": {"title": "on fire"}}, ["full"]),
    ({"contains": {"title": "%"}}, []),
    ({"startswith": {"tags": "v"}}, ["full", "wrong"]),
    ({"endswith": {"events.kind": "ll"}}, ["full"]),
    ({"contains": {"rating.comment": "Y F"}}, ["full"]),
    # keyword fuzzy
    ({"keyword": {"title": "scanner PRINTER"}}, ["full", "other"]),
    ({"keyword": {"title": "print"}}, []),
    ({"keyword": {"title": "über"}}, ["full"]),
    ({"keyword": {"tags": "beta"}}, ["full"]),
    ({"keyword": {"events": "sale"}}, ["other"]),
    ({"keyword": {"via": "lee"}}, ["full"]),
    ({"keyword": {"via.from": "lee"}}, ["full"]),
    ({"keyword": {"rating": "good"}}, ["full", "other"]),
    ({"keyword": {"properties.email": "ann"}}, ["full"]),
    ({"keyword": {"updated_at": "01T10"}}, ["full"]),
    ({"fuzzy": {"title": "fire, prin"}}, ["full"]),
    ({"fuzzy": {"title": "prin"}}, ["full", "other"]),
    ({"fuzzy": {"title": "fire scanner"}}, []),
    ({"fuzzy": {"via": "le an"}}, ["full"]),
    ({"fuzzy": {"via.from.name": "le an"}}, ["full"]),
    ({"fuzzy": {"rating": "very go"}}, ["full"]),
    # array_contains
    ({"array_contains": {"tags": "vip"}}, ["full"]),
    ({"array_contains": {"tags": None}}, ["full"]),
    ({"array_contains": {"tags": ["vip", 7]}}, ["full"]),
    ({"array_contains": {"tags": ["vip", "eu"]}}, []),
    ({"array_contains": {"events": {"kind": "call"}}}, ["full"]),
    ({"array_contains": {"rating": "good"}}, []),
    # not and or
    ({"not": {"eq": {"open": True}}}, NOT_FULL),
    ({"not": {"not": {"eq": {"open": True}}}}, ["full"]),
    ({"and": [{"eq": {"open": True}}, {"gt": {"count": 9}}]}, ["full"]),
    ({"or": [{"eq": {"count": 9}}, {"keyword": {"title": "fire"}}]}, ["full", "other"]),
    ({"or": [{"eq": {"count": 9}}, {"eq": {"count": None}}], "eq": {"open": False}}, ["other"]),
    ({"eq": {"count": 10, "open": False}}, []),
    ({"not": {"or": [{"eq": {"tags": "eu"}}, {"like": {"title": "fire"}}]}}, GONE),
    ({}, ["full", "missing", "null", "other", "wrong"]),
]

STORE = ContextStore(b"k" * 32)


@pytest.fixture(
    params=[chosen(FIELDS), chosen(FIELDS, ["title", "price"]), Layout()], ids=["chosen", "declared", "bare"]
)
def layout(request):
    return request.param


@pytest.fixture(params=Words)
async def loaded(request, connection, tenant, layout):
    entity = await register(connection, tenant.connector_id, tenant.organization_id, "things", layout)
    documents = [(key, msgspec.json.encode({**record, "key": key})) for key, record in RECORDS.items()]
    await load(connection, entity, documents, request.param)


async def test_operators_mean_what_the_table_says(connection, tenant, loaded):
    for filter_, expected in CASES:
        query = parse({"query": {"filter": filter_}}, FIELDS)

        page = await STORE.search(connection, tenant.connector_id, "things", query)

        assert [msgspec.json.decode(record)["key"] for record in page.data] == expected, filter_


@pytest.mark.parametrize(("filter_", "expected"), CASES, ids=lambda case: msgspec.json.encode(case).decode()[:60])
def test_the_yardstick_agrees_with_the_table(filter_, expected):
    query = parse({"query": {"filter": filter_}}, FIELDS)

    found = sorted(key for key, record in RECORDS.items() if evaluate(query.filter, record))

    assert found == expected
