"""Names of fields as known clients write them."""

import pytest

from gateway.context_store.search.names import Names, with_declared_names
from gateway.context_store.sync.schedule import search_fields
from gateway.context_store.sync.sources import synchronized
from gateway.errors import InvalidQuery
from tests.harness.catalog import shipped_catalog

FIELDS = {
    "id": "string",
    "createdAt": "string",
    "type": "string",
    "properties": "object",
    "properties.crm_object_id": "string",
    "properties.crm_owner_id": "string",
    "properties.email": "string",
}
NAMES = Names(FIELDS, {"crm_owner_id": "hubspot_owner_id", "crm_*": "hs_*"})
CATALOG = shipped_catalog()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("id", "id"),
        ("created_at", "createdAt"),
        ("type_", "type"),
        ("properties_email", "properties.email"),
        ("properties.hs_object_id", "properties.crm_object_id"),
        ("properties_hs_object_id", "properties.crm_object_id"),
        ("properties_crm_object_id", "properties.crm_object_id"),
        ("properties_hubspot_owner_id", "properties.crm_owner_id"),
        ("properties.hs_rank", "properties.crm_rank"),
        ("properties.rank", "properties.rank"),
        ("nothing", "nothing"),
        (7, 7),
    ],
)
def test_a_name_means_the_field_that_it_can_only_mean(written, meant):
    assert NAMES.declared(written) == meant


def test_every_place_of_a_search_that_names_fields_is_understood():
    params = {
        "query": {
            "filter": {
                "and": [{"eq": {"type_": "a"}}, {"not": {"or": [{"gt": {"created_at": "2026"}}]}}],
                "like": {"properties_email": "%@x"},
            },
            "sort": [{"created_at": "desc"}, {"field": "type_", "direction": "asc"}],
        },
        "fields": ["properties_email", ["properties", "email"], ["created_at"]],
        "limit": 5,
    }

    assert with_declared_names(params, NAMES) == {
        "query": {
            "filter": {
                "and": [{"eq": {"type": "a"}}, {"not": {"or": [{"gt": {"createdAt": "2026"}}]}}],
                "like": {"properties.email": "%@x"},
            },
            "sort": [{"createdAt": "desc"}, {"field": "type", "direction": "asc"}],
        },
        "fields": ["properties.email", ["properties", "email"], ["createdAt"]],
        "limit": 5,
    }


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"query": 5},
        {"query": {"filter": [], "sort": "id"}},
        {"query": {"filter": {"and": 3, "eq": 4, "not": None}}, "fields": 3},
        {"query": {"sort": [7, None]}, "fields": [3, [], [4]]},
        {"query": {"filter": {"eq": {"type": 1, "type_": 2}}}},
    ],
)
def test_what_is_no_search_is_left_for_the_parser_to_complain_about(params):
    assert with_declared_names(params, NAMES) == params


def test_an_operator_that_clients_know_and_we_do_not_is_refused_in_words():
    with pytest.raises(InvalidQuery) as refused:
        with_declared_names({"query": {"filter": {"not": {"any": {"tags": {}}}}}}, NAMES, "/params")

    [fault] = refused.value.faults
    assert (fault.pointer, fault.code) == ("/params/query/filter/not/any", "unknown_operator")
    assert "array_contains" in fault.message


def test_no_two_fields_of_an_entity_answer_to_one_name():
    for kind in CATALOG:
        for entity in synchronized(kind):
            fields = search_fields(kind, entity)
            names = Names(fields, kind.spec.property_names)
            declared = {name: names.declared(name.replace(".", "_")) for name in fields}
            assert declared == {name: name for name in fields}, f"{kind.name} {entity}"
