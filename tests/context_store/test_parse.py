"""Bad searches: every fault with its place, its kind and the nearest known name."""

import pytest

from gateway.context_store.fields import FieldType
from gateway.context_store.search.filters import All, AnyOf, Condition, Not
from gateway.context_store.search.parse import DEFAULT_LIMIT, MAX_LIMIT, parse
from gateway.errors import InvalidQuery
from gateway.kinds.search_operators import Operator
from gateway.kinds.search_schema import search_example
from tests.harness.catalog import shipped_catalog

FIELDS = {
    "id": FieldType.INTEGER,
    "status": FieldType.STRING,
    "Id": FieldType.STRING,
    "updated_at": FieldType.STRING,
    "score": FieldType.NUMBER,
    "public": FieldType.BOOLEAN,
    "tags": FieldType.ARRAY,
    "via": FieldType.OBJECT,
    "properties.email": FieldType.STRING,
}


def deep(levels):
    return {"eq": {"status": "open"}} if levels == 0 else {"not": deep(levels - 1)}


FAULTS = [
    ({}, "/query", "type", "object"),
    ({"query": {"filters": {}}}, "/query/filters", "unknown_member", "did you mean filter?"),
    ({"query": {}, "page": 1}, "/page", "unknown_param", "known: cursor, fields, limit, query"),
    ({"query": {"filter": []}}, "/query/filter", "type", "a filter is an object of operators"),
    ({"query": {"filter": {"equals": {"status": "x"}}}}, "/query/filter/equals", "unknown_operator", "known: "),
    ({"query": {"filter": {"EQ": {"status": "x"}}}}, "/query/filter/EQ", "unknown_operator", "did you mean eq?"),
    ({"query": {"filter": {"eq": {"stauts": "x"}}}}, "/query/filter/eq/stauts", "unknown_field", "mean status?"),
    ({"query": {"filter": {"eq": {"a/b~c": "x"}}}}, "/query/filter/eq/a~1b~0c", "unknown_field", "known: "),
    ({"query": {"filter": {"eq": {"status.x": "x"}}}}, "/query/filter/eq/status.x", "unknown_field", "mean status?"),
    ({"query": {"filter": {"eq": {"properties.mai": 1}}}}, "/query/filter/eq/properties.mai", "unknown_field", "mean"),
    ({"query": {"filter": {"eq": {"via..x": 1}}}}, "/query/filter/eq/via..x", "unknown_field", "did you mean via?"),
    ({"query": {"filter": {"eq": "status"}}}, "/query/filter/eq", "type", "eq takes an object of fields"),
    ({"query": {"filter": {"eq": {}}}}, "/query/filter/eq", "type", "eq takes an object of fields"),
    ({"query": {"filter": {"and": {}}}}, "/query/filter/and", "type", "and takes an array"),
    ({"query": {"filter": {"or": []}}}, "/query/filter/or", "type", "at least one filter"),
    ({"query": {"filter": {"and": [{}, {"x": 1}]}}}, "/query/filter/and/1/x", "unknown_operator", "known: "),
    ({"query": {"filter": {"not": [{}]}}}, "/query/filter/not", "type", "a filter is an object"),
    ({"query": {"filter": deep(11)}}, "/query/filter" + "/not" * 11, "depth", "deeper than 10"),
    ({"query": {"filter": {"eq": {"status": 1}}}}, "/query/filter/eq/status", "type", "status (string): 1 is not"),
    ({"query": {"filter": {"eq": {"id": "1"}}}}, "/query/filter/eq/id", "type", '"1" is not a number'),
    ({"query": {"filter": {"eq": {"id": True}}}}, "/query/filter/eq/id", "type", "true is not a number"),
    ({"query": {"filter": {"eq": {"public": "yes"}}}}, "/query/filter/eq/public", "type", "is not true or false"),
    ({"query": {"filter": {"gt": {"public": True}}}}, "/query/filter/gt/public", "type", "the operator works on"),
    ({"query": {"filter": {"gt": {"score": None}}}}, "/query/filter/gt/score", "type", "use eq with null"),
    ({"query": {"filter": {"gt": {"via": 1}}}}, "/query/filter/gt/via", "type", "name one of its members"),
    ({"query": {"filter": {"lt": {"tags": [1]}}}}, "/query/filter/lt/tags", "type", "is not a string or a number"),
    ({"query": {"filter": {"eq": {"via": "web"}}}}, "/query/filter/eq/via", "type", "is not an object"),
    ({"query": {"filter": {"like": {"id": "1%"}}}}, "/query/filter/like/id", "type", "works on any, array, string"),
    ({"query": {"filter": {"like": {"status": 1}}}}, "/query/filter/like/status", "type", "1 is not a string"),
    ({"query": {"filter": {"like": {"status": "%a" * 9}}}}, "/query/filter/like/status", "type", "more than 8 %"),
    ({"query": {"filter": {"keyword": {"status": "--"}}}}, "/query/filter/keyword/status", "type", "has no word"),
    ({"query": {"filter": {"array_contains": {"status": "x"}}}}, "/query/filter/array_contains/status", "type", "on"),
    ({"query": {"filter": {"in": {"status": "x"}}}}, "/query/filter/in/status", "type", "must be an array"),
    ({"query": {"filter": {"in": {"id": [1, "2"]}}}}, "/query/filter/in/id", "type", '"2" is not a number'),
    ({"query": {"filter": {"in": {"id": [1] * 1001}}}}, "/query/filter/in/id", "type", "at most 1000"),
    ({"query": {"filter": {"eq": {"status": "x" * 4097}}}}, "/query/filter/eq/status", "type", "longer than 4096"),
    ({"query": {"filter": {"eq": {"status": "a\0"}}}}, "/query/filter/eq/status", "type", "NUL"),
    ({"query": {"filter": {"eq": {"status": "\ud800"}}}}, "/query/filter/eq/status", "type", "surrogate"),
    ({"query": {"filter": {"eq": {"score": float("inf")}}}}, "/query/filter/eq/score", "type", "out of range"),
    ({"query": {"filter": {"eq": {"id": 10**400}}}}, "/query/filter/eq/id", "type", "out of range"),
    ({"query": {"filter": {"eq": {"tags": ["x\0"]}}}}, "/query/filter/eq/tags", "type", "NUL"),
    ({"query": {"filter": {"or": [{"eq": {"id": 1}}] * 201}}}, "/query/filter/or/200/eq/id", "size", "at most 200"),
    ({"query": {"sort": {"id": "asc"}}}, "/query/sort", "type", "sort is an array"),
    ({"query": {"sort": ["id"]}}, "/query/sort/0", "type", "a sort entry is an object"),
    ({"query": {"sort": [{"id": "down"}]}}, "/query/sort/0/id", "enum", "allowed: asc, desc"),
    ({"query": {"sort": [{"field": "id", "direction": 1}]}}, "/query/sort/0/direction", "enum", "allowed: asc, desc"),
    ({"query": {"sort": [{"field": "id", "order": "asc"}]}}, "/query/sort/0/order", "unknown_member", "known"),
    ({"query": {"sort": [{"updatedat": "asc"}]}}, "/query/sort/0/updatedat", "unknown_field", "mean updated_at?"),
    ({"query": {"sort": [{"tags": "asc"}]}}, "/query/sort/0/tags", "type", "has no order"),
    ({"query": {"sort": [{"field": 1}]}}, "/query/sort/0/field", "type", "a field is a string"),
    ({"query": {}, "limit": 0}, "/limit", "range", f"from 1 to {MAX_LIMIT}"),
    ({"query": {}, "limit": MAX_LIMIT + 1}, "/limit", "range", f"from 1 to {MAX_LIMIT}"),
    ({"query": {}, "limit": True}, "/limit", "range", "limit is true"),
    ({"query": {}, "cursor": 5}, "/cursor", "type", "must be the string"),
    ({"query": {}, "fields": "id"}, "/fields", "type", "fields is an array"),
    ({"query": {}, "fields": []}, "/fields", "type", "1 to 200 paths"),
    ({"query": {}, "fields": ["id", "sttus"]}, "/fields/1", "unknown_field", "did you mean status?"),
    ({"query": {}, "fields": [["id"], [1]]}, "/fields/1", "type", "a path is"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("filter_", "example"),
    [
        ({"status": "open"}, '{"eq": {"status": "open"}}'),
        ({"statu": "open"}, '{"eq": {"status": "open"}}'),
        ({"status": {"eq": "open"}}, '{"eq": {"status": "open"}}'),
        ({"score": {"gt": 5}}, '{"gt": {"score": 5}}'),
        ({"status": ["open", "new"]}, '{"in": {"status": ["open","new"]}}'),
        ({"status": None}, '{"eq": {"status": null}}'),
        ({"via.channel": "web"}, '{"eq": {"via.channel": "web"}}'),
    ],
)
def test_a_field_where_an_operator_belongs_is_answered_with_the_filter_as_it_should_be(filter_, example):
    with pytest.raises(InvalidQuery) as caught:
        parse({"query": {"filter": filter_}}, FIELDS)

    (fault,) = caught.value.faults
    assert fault.code == "unknown_operator"
    assert fault.message.endswith(f"write {example}")


@pytest.mark.parametrize("limit", [2, 2.0, "2"])
def test_a_limit_is_a_whole_number_however_it_is_written(limit):
    assert parse({"query": {}, "limit": limit}, FIELDS).limit == 2


@pytest.mark.parametrize(("params", "pointer", "code", "words"), FAULTS, ids=[fault[1] for fault in FAULTS])
def test_a_fault_is_named_with_its_place(params, pointer, code, words):
    with pytest.raises(InvalidQuery) as caught:
        parse(params, FIELDS)

    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == (pointer, code)
    assert words in fault.message


def test_all_faults_are_named_at_once_below_the_callers_pointer():
    params = {"query": {"filter": {"eq": {"stauts": 1, "id": "x"}}, "sort": [{"nope": "asc"}]}, "limit": -1}

    with pytest.raises(InvalidQuery) as caught:
        parse(params, FIELDS, at="/params")

    assert [fault.pointer for fault in caught.value.faults] == [
        "/params/query/filter/eq/stauts",
        "/params/query/filter/eq/id",
        "/params/query/sort/0/nope",
        "/params/limit",
    ]
    told = [fault.message for fault in caught.value.faults]
    assert caught.value.detail == "; ".join([*told[:3], "and 1 more"])


def test_operators_and_fields_in_one_object_are_all_required():
    query = parse({"query": {"filter": {"eq": {"id": 1, "status": "x"}, "gt": {"score": 2}}}}, FIELDS)

    assert isinstance(query.filter, All)
    assert isinstance(query.filter.parts[0], All)
    assert isinstance(query.filter.parts[1], Condition)


def test_groups_become_a_tree():
    query = parse({"query": {"filter": {"or": [{"neq": {"id": 1}}, {"not": {"eq": {"id": 2}}}]}}}, FIELDS)

    assert isinstance(query.filter, AnyOf)
    assert all(isinstance(part, Not) and part.part.operator is Operator.EQ for part in query.filter.parts)


@pytest.mark.parametrize(
    "entry", [{"updated_at": "desc"}, {"field": "updated_at", "direction": "desc"}], ids=["short", "long"]
)
def test_both_forms_of_a_sort_entry_are_read(entry):
    query = parse({"query": {"sort": [entry]}}, FIELDS)

    assert [(sort.field.name, sort.descending) for sort in query.sort] == [("updated_at", True)]


def test_a_sort_without_direction_ascends():
    query = parse({"query": {"sort": [{"field": "id"}]}}, FIELDS)

    assert [(sort.field.name, sort.descending) for sort in query.sort] == [("id", False)]


def test_both_forms_of_a_projection_are_read():
    query = parse({"query": {}, "fields": ["id", "via.channel", ["via", "from"]]}, FIELDS)

    assert query.fields == (("id",), ("via", "channel"), ("via", "from"))


def test_an_empty_query_requests_all_in_pages_of_the_default_size():
    query = parse({"query": {}}, FIELDS)

    assert (query.filter, query.sort, query.limit) == (All(), (), DEFAULT_LIMIT)


def test_names_differ_by_case():
    query = parse({"query": {"filter": {"eq": {"Id": "001"}}}}, FIELDS)

    assert query.filter.field.type is FieldType.STRING


def test_the_example_of_each_search_is_accepted():
    for kind in shipped_catalog():
        for entity_id, entity in kind.spec.entities.items():
            if entity.search is not None:
                fields = {name: FieldType(type_) for name, type_ in entity.search.fields.items()}
                assert parse(search_example(entity.search), fields).limit == 10, f"{kind.name} {entity_id}"
