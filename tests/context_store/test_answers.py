"""The SQL's answer equals plain Python's for the same filter on the same records."""

from functools import cmp_to_key

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context_store.entities import register
from gateway.context_store.fields import FieldType
from gateway.context_store.layout import Layout, chosen
from gateway.context_store.records import remove
from gateway.context_store.search.parse import parse
from gateway.context_store.search.search import ContextStore

from .conftest import Words, load
from .evaluation import evaluate, values_of

STORE = ContextStore(b"k" * 32)
FIELDS = {
    "id": FieldType.INTEGER,
    "subject": FieldType.STRING,
    "status": FieldType.STRING,
    "updated_at": FieldType.STRING,
    "created_at": FieldType.STRING,
    "score": FieldType.NUMBER,
    "public": FieldType.BOOLEAN,
    "tags": FieldType.ARRAY,
    "events": FieldType.ARRAY,
    "via": FieldType.OBJECT,
    "rating": FieldType.ANY,
    "properties.email": FieldType.STRING,
    "properties.rank": FieldType.INTEGER,
}
PATHS = ["via.channel", "via.from.name", "events.kind", "events.by.id", "rating.score", "tags.x"]

# Few characters and numbers, so that values meet; each with a reason to be confused.
text = st.text("aAbB1 -_%\\'\"éÉßΣσςЖжİiI日\n", max_size=6) | st.sampled_from(
    ["open", "Open door", "über ÜBER", "a" * 205, "a" * 206]
)
times = st.sampled_from(["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "2023-12-31T23:59:59Z", ""])
numbers = st.sampled_from([0, 1, 1.0, -1, 2, 1.5, 10**16, 10**16 + 1, 2**53 + 1, 1e300, 1e-320, -0.0]) | st.integers(
    -3, 3
)
scalars = st.none() | st.booleans() | numbers | text
json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "by", "id", "score", "x", "channel", "from", "name"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
VALUES = {
    "id": numbers,
    "subject": text,
    "status": text,
    "updated_at": times,
    "created_at": times | text,
    "score": numbers,
    "public": st.booleans(),
    "tags": st.lists(scalars, max_size=3),
    "events": st.lists(st.fixed_dictionaries({}, optional={"kind": json, "by": json}), max_size=2),
    "via": st.fixed_dictionaries({}, optional={"channel": json, "from": json}),
    "rating": json,
    "properties": st.fixed_dictionaries({}, optional={"email": text, "rank": numbers}),
}
records = st.lists(
    st.fixed_dictionaries({}, optional={name: value | st.none() | json for name, value in VALUES.items()}),
    min_size=1,
    max_size=12,
)

TYPED = {
    FieldType.STRING: text,
    FieldType.INTEGER: numbers,
    FieldType.NUMBER: numbers,
    FieldType.BOOLEAN: st.booleans(),
    FieldType.ARRAY: json,
    FieldType.ANY: json,
    FieldType.OBJECT: st.dictionaries(st.sampled_from(["channel", "from"]), json, max_size=2),
}
parts = text | st.sampled_from(["pen", "OPEN DO", "%pe_ d%", "ÜBE", "ber über%", "aaaa", "a" * 70])
sought = st.sampled_from(["a", "open", "door open", "é", "ΣΑ ab", "İ1", "日", "über", "1 a", "aaa"])


def conditions_on(name, type_):
    value = TYPED[type_]
    asked = [
        st.tuples(st.sampled_from(["eq", "neq"]), value | st.none()),
        st.tuples(st.just("in"), st.lists(value | st.none(), max_size=3)),
    ]
    if type_ not in (FieldType.BOOLEAN, FieldType.OBJECT):
        ordered = text | numbers if type_ in (FieldType.ARRAY, FieldType.ANY) else value
        asked.append(st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), ordered))
    if type_ in (FieldType.STRING, FieldType.ARRAY, FieldType.ANY):
        asked.append(st.tuples(st.sampled_from(["like", "startswith", "endswith", "contains"]), parts))
    if type_ in (FieldType.STRING, FieldType.ARRAY, FieldType.ANY, FieldType.OBJECT):
        asked.append(st.tuples(st.sampled_from(["keyword", "fuzzy"]), sought))
    if type_ in (FieldType.ARRAY, FieldType.ANY):
        asked.append(st.tuples(st.just("array_contains"), json.filter(lambda found: found is not None)))
    return st.one_of(asked).map(lambda pair: {pair[0]: {name: pair[1]}})


conditions = st.one_of(
    *(conditions_on(name, type_) for name, type_ in FIELDS.items()),
    *(conditions_on(path, FieldType.ANY) for path in PATHS),
)
filters = st.recursive(
    conditions,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"and": parts})
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"or": parts})
        | inner.map(lambda part: {"not": part})
    ),
    max_leaves=5,
)
SORTABLE = [name for name, type_ in FIELDS.items() if type_ not in (FieldType.ARRAY, FieldType.OBJECT, FieldType.ANY)]
sorts = st.lists(
    st.tuples(st.sampled_from(SORTABLE), st.sampled_from(["asc", "desc"])), max_size=3, unique_by=lambda sort: sort[0]
).map(lambda sorts: [{name: direction} for name, direction in sorts])
layouts = st.sampled_from([chosen(FIELDS), chosen(FIELDS, ["status", "subject", "score"]), Layout()])

property_test = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


async def stored(connection, tenant, layout, documents, words=Words.INDEXED):
    await remove(connection, tenant.connector_id)
    entity = await register(connection, tenant.connector_id, tenant.organization_id, "things", layout)
    records = [(key, msgspec.json.encode(document)) for key, document in documents.items()]
    await load(connection, entity, records, words)


def keyed(documents):
    return {f"{number:02}": {**document, "key": f"{number:02}"} for number, document in enumerate(documents)}


def keys(page):
    return [msgspec.json.decode(record)["key"] for record in page.data]


def compared(sort):
    """How two (id, record) compare in the order of the sort."""

    def key(entry, document):
        found = [value for value in values_of(entry.field, document) if value is not None]
        if not found:
            return None
        value = found[0]
        return value[:200] if isinstance(value, str) else _double(value)

    def compare(left, right):
        for entry in sort:
            first, second = key(entry, left[1]), key(entry, right[1])
            if first == second:
                continue
            if first is None or second is None:
                return 1 if first is None else -1
            return (1 if first > second else -1) * (-1 if entry.descending else 1)
        is_descending = bool(sort) and sort[-1].descending
        return (1 if left[0] > right[0] else -1) * (-1 if is_descending else 1)

    return compare


def _double(value):
    return value if isinstance(value, bool) else 0.0 if abs(value) < 1e-300 else float(value)


@property_test
@given(
    documents=records,
    asked=st.lists(filters, min_size=1, max_size=8),
    layout=layouts,
    words=st.sampled_from(Words),
)
async def test_a_filter_finds_what_plain_python_finds(connection, tenant, documents, asked, layout, words):
    documents = keyed(documents)
    await stored(connection, tenant, layout, documents, words)

    for filter_ in asked:
        query = parse({"query": {"filter": filter_}}, FIELDS)
        page = await STORE.search(connection, tenant.connector_id, "things", query)

        assert keys(page) == [key for key, document in documents.items() if evaluate(query.filter, document)], filter_


@property_test
@given(documents=records, filter_=filters | st.just({}), sort=sorts, limit=st.integers(1, 4), layout=layouts)
async def test_pages_together_are_the_whole_answer_in_order(
    connection, tenant, documents, filter_, sort, limit, layout
):
    documents = keyed(documents)
    await stored(connection, tenant, layout, documents)
    params = {"query": {"filter": filter_, "sort": sort}, "limit": limit}
    query = parse(params, FIELDS)
    matching = [(key, document) for key, document in documents.items() if evaluate(query.filter, document)]

    found, cursor = [], None
    for _ in range(len(documents) + 1):
        query = parse({**params, "cursor": cursor}, FIELDS)
        page = await STORE.search(connection, tenant.connector_id, "things", query)
        found += keys(page)
        cursor = page.cursor
        if not page.has_more:
            break

    assert found == [key for key, _ in sorted(matching, key=cmp_to_key(compared(query.sort)))]
    assert cursor is None
