"""CRM by records, beside what is tested of every kind: property names both ways, and searches."""

import pytest

from gateway.errors import UpstreamRejected
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.upstream.responses import UpstreamResponse
from tests.upstream.judged import read
from tests.upstream.kinds.tables.crm_records import NEXT, OBJECTS, ONE_FILTER, ORIGIN, PRIVATE_APP, RECORD_ENTITIES

KIND = load_kind(shipped_specs() / "crm-records")


def test_search_is_understood_as_api_search(offline):
    [shown] = offline("crm-records").dry_run("deals", "search", {})

    assert shown["url"] == f"{ORIGIN}{OBJECTS}/deals/search"


def test_six_filter_groups_and_3000_characters_are_accepted():
    params = {"filterGroups": [ONE_FILTER] * 6, "query": "x" * 3000}

    assert validated(KIND.operation("contacts", "api_search"), params) == {**params, "limit": 25}


RECORD = {
    "id": "1",
    "properties": {"email": "a", "hs_object_id": "1", "hubspot_owner_id": "9", "hs_pipeline_stage": None},
    "propertiesWithHistory": {"hs_lastmodifieddate": [{"value": "x"}]},
    "archived": False,
}

OUR_RECORD = {
    "id": "1",
    "properties": {"email": "a", "crm_object_id": "1", "crm_owner_id": "9", "crm_pipeline_stage": None},
    "propertiesWithHistory": {"crm_lastmodifieddate": [{"value": "x"}]},
    "archived": False,
}

NEXT_META = {"next_cursor": "25", "next_link": f"{ORIGIN}/next"}

END_META = {"next_cursor": None, "next_link": None}

SCHEMA = {
    "name": "car",
    "properties": [{"name": "hs_object_id", "label": "Id"}, {"name": "vin"}],
    "requiredProperties": ["vin"],
    "searchableProperties": ["hs_name"],
    "primaryDisplayProperty": "hs_name",
}

OUR_SCHEMA = {
    "name": "car",
    "properties": [{"name": "crm_object_id", "label": "Id"}, {"name": "vin"}],
    "requiredProperties": ["vin"],
    "searchableProperties": ["crm_name"],
    "primaryDisplayProperty": "crm_name",
}


@pytest.mark.parametrize(
    ("action", "params", "body", "records", "meta"),
    [
        ("contacts.list", {}, {"results": [RECORD], **NEXT}, [OUR_RECORD], NEXT_META),
        ("contacts.list", {}, {"results": []}, [], END_META),
        ("contacts.get", {"contactId": "1"}, RECORD, OUR_RECORD, None),
        ("contacts.create", {"properties": {"email": "a"}}, RECORD, OUR_RECORD, None),
        ("deals.update", {"dealId": "1", "properties": {"amount": "5"}}, RECORD, OUR_RECORD, None),
        ("tickets.delete", {"ticketId": "1"}, b"", None, None),
        ("deals.api_search", {}, {"total": 9, "results": [RECORD], **NEXT}, [OUR_RECORD], {"total": 9, **NEXT_META}),
        ("deals.api_search", {}, {"total": 0, "results": []}, [], {"total": 0, **END_META}),
        ("objects.list", {"objectType": "car"}, {"results": [RECORD]}, [OUR_RECORD], END_META),
        ("objects.get", {"objectType": "car", "objectId": "1"}, RECORD, OUR_RECORD, None),
        ("schemas.list", {}, {"results": [SCHEMA]}, [OUR_SCHEMA], None),
        ("schemas.get", {"objectType": "car"}, SCHEMA, OUR_SCHEMA, None),
    ],
)
async def test_an_answer_is_read_into_records_and_meta(upstream, connect, action, params, body, records, meta):
    upstream.answers(body)

    answer = await connect("crm-records", PRIVATE_APP).execute(*action.split("."), params)

    assert answer.decoded() == records
    assert answer.meta == meta


def test_an_address_that_is_too_long_is_the_callers_to_shorten():
    with pytest.raises(UpstreamRejected):
        read(KIND.operation("contacts", "list"), UpstreamResponse(414, {}, b"<html>too long</html>"))


async def test_a_search_turns_pages_in_its_body(upstream, connect):
    upstream.answers({"total": 2, "results": [{"id": "1"}], **NEXT})
    upstream.answers({"total": 2, "results": [{"id": "2"}]})
    connector = connect("crm-records", PRIVATE_APP)

    pages = [page.decoded() async for page in connector.pages("deals", "api_search", {"query": "x"})]

    assert pages == [[{"id": "1"}], [{"id": "2"}]]
    assert [asked.body for asked in upstream.received] == [
        {"limit": 25, "query": "x"},
        {"limit": 25, "query": "x", "after": "25"},
    ]


@pytest.mark.parametrize("entity", RECORD_ENTITIES)
def test_search_fields_of_the_context_store_keep_the_callers_names(entity):
    fields = KIND.entity(entity).search.fields

    assert "properties.crm_object_id" in fields
    assert not [name for name in fields if name.startswith(("properties.hs_", "properties.hubspot_"))]
