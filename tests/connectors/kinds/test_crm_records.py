"""CRM by records: every action as it goes over the wire, property names both ways, and every answer."""

import msgspec
import pytest

from gateway.connectors.auth import checked_credentials
from gateway.connectors.responses import UpstreamResponse
from gateway.errors import (
    GatewayError,
    InvalidCredentials,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamBusy,
    UpstreamError,
    UpstreamFault,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from tests.connectors.judged import read
from tests.connectors.kinds.wire import Call

KIND = load_kind(shipped_specs() / "crm-records")
ORIGIN = "https://api.hubapi.com"
OBJECTS = "/crm/v3/objects"
SCHEMAS = "/crm-object-schemas/v3/schemas"
PRIVATE_APP = {"private_app_token": "private"}
OAUTH = {"refresh_token": "renewing", "access_token": "bearing"}
RECORD_ENTITIES = {"contacts": "contactId", "companies": "companyId", "deals": "dealId", "tickets": "ticketId"}


READING = {
    "properties": "email, crm_object_id,crm_owner_id",
    "propertiesWithHistory": "crm_lastmodifieddate",
    "associations": "contacts,deals",
    "archived": True,
}
READ = {
    "properties": "email,hs_object_id,hubspot_owner_id",
    "propertiesWithHistory": "hs_lastmodifieddate",
    "associations": "contacts,deals",
    "archived": "true",
}
SEARCHING = {
    "filterGroups": [
        {
            "filters": [
                {"propertyName": "crm_pipeline_stage", "operator": "IN", "values": ["1", "2"]},
                {"propertyName": "amount", "operator": "BETWEEN", "value": "10", "highValue": "20"},
            ]
        },
        {"filters": [{"propertyName": "crm_owner_id", "operator": "NOT_HAS_PROPERTY"}]},
    ],
    "properties": ["crm_object_id", "subject"],
    "sorts": [{"propertyName": "crm_lastmodifieddate", "direction": "ASCENDING"}],
    "query": "fire",
    "after": "200",
    "limit": 200,
}
SEARCHED = {
    "filterGroups": [
        {
            "filters": [
                {"propertyName": "hs_pipeline_stage", "operator": "IN", "values": ["1", "2"]},
                {"propertyName": "amount", "operator": "BETWEEN", "value": "10", "highValue": "20"},
            ]
        },
        {"filters": [{"propertyName": "hubspot_owner_id", "operator": "NOT_HAS_PROPERTY"}]},
    ],
    "properties": ["hs_object_id", "subject"],
    "sorts": [{"propertyName": "hs_lastmodifieddate", "direction": "ASCENDING"}],
    "query": "fire",
    "after": "200",
    "limit": 200,
}
CALLS = [
    *(
        Call(
            f"{entity}.list",
            {**READING, "limit": 50, "after": "NTI1Cg=="},
            f"{OBJECTS}/{entity}",
            {**READ, "limit": "50", "after": "NTI1Cg=="},
        )
        for entity in RECORD_ENTITIES
    ),
    Call("contacts.list", {}, f"{OBJECTS}/contacts", {"limit": "25"}),
    *(
        Call(
            f"{entity}.get",
            {member: "151", **READING, "idProperty": "crm_unique"},
            f"{OBJECTS}/{entity}/151",
            {**READ, "idProperty": "hs_unique"},
        )
        for entity, member in RECORD_ENTITIES.items()
    ),
    Call(
        "contacts.get",
        {"contactId": "ada@example.com", "idProperty": "email"},
        f"{OBJECTS}/contacts/ada@example.com",
        {"idProperty": "email"},
    ),
    *(
        Call(f"{entity}.api_search", SEARCHING, f"{OBJECTS}/{entity}/search", {}, "POST", SEARCHED)
        for entity in RECORD_ENTITIES
    ),
    Call("deals.api_search", {}, f"{OBJECTS}/deals/search", {}, "POST", {"limit": 25}),
    Call(
        "objects.list",
        {"objectType": "2-3444025", **READING},
        f"{OBJECTS}/2-3444025",
        {**READ, "limit": "25"},
    ),
    Call(
        "objects.get",
        {"objectType": "p1_car", "objectId": "7", **READING, "idProperty": "crm_vin"},
        f"{OBJECTS}/p1_car/7",
        {**READ, "idProperty": "hs_vin"},
    ),
    Call("schemas.list", {"archived": False}, SCHEMAS, {"archived": "false"}),
    Call("schemas.get", {"objectType": "p1_car"}, f"{SCHEMAS}/p1_car"),
]


def test_every_action_has_a_case():
    assert {call.action for call in CALLS} == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.action)
def test_an_action_makes_its_request(offline, call):
    call.assert_sent_by(offline("crm-records"), ORIGIN)


def test_search_is_understood_as_api_search(offline):
    [shown] = offline("crm-records").dry_run("deals", "search", {})

    assert shown["url"] == f"{ORIGIN}{OBJECTS}/deals/search"


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


ONE_FILTER = {"filters": [{"propertyName": "email", "operator": "EQ", "value": "x"}]}


def test_six_filter_groups_and_3000_characters_are_accepted():
    params = {"filterGroups": [ONE_FILTER] * 6, "query": "x" * 3000}

    assert validated(KIND.operation("contacts", "api_search"), params) == {**params, "limit": 25}


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("contacts.api_search", {"filterGroups": [ONE_FILTER] * 7}, "filterGroups", "at most 6 items"),
        ("contacts.api_search", {"query": "x" * 3001}, "query", "at most 3000 characters"),
        ("contacts.api_search", {"limit": 201}, "limit", "at most 200"),
        (
            "contacts.api_search",
            {"filterGroups": [{"filters": [{"operator": "LIKE"}]}]},
            "filterGroups.0.filters.0.operator",
            "allowed: BETWEEN, CONTAINS_TOKEN, EQ",
        ),
        (
            "contacts.api_search",
            {"filterGroups": [{"filters": [{"property": "email"}]}]},
            "filterGroups.0.filters.0.property",
            "did you mean propertyName?",
        ),
        (
            "contacts.api_search",
            {"filterGroups": [{"filters": [{"value": 5}]}]},
            "filterGroups.0.filters.0.value",
            "expected string",
        ),
        (
            "contacts.api_search",
            {"sorts": [{"propertyName": "email", "direction": "UP"}]},
            "sorts.0.direction",
            "ASCENDING, DESCENDING",
        ),
        ("contacts.api_search", {"properties": "email"}, "properties", "expected array"),
        ("contacts.list", {"limit": 101}, "limit", "at most 100"),
        (
            "contacts.list",
            {"limit": 51, "propertiesWithHistory": "email"},
            "limit",
            "at most 50 with propertiesWithHistory",
        ),
        ("objects.list", {}, "objectType", "objectType is missing"),
        ("contacts.list", {"properties": [["email"]]}, "properties", "expected string"),
        ("contacts.get", {"id": "1"}, "contactId", "contactId is missing"),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    found = {fault.field: fault.message for fault in refused.value.faults}
    assert said in found[field]


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
NEXT = {"paging": {"next": {"after": "25", "link": f"{ORIGIN}/next"}}}
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


@pytest.mark.parametrize(
    ("status", "category", "error"),
    [
        (400, "VALIDATION_ERROR", UpstreamRejected),
        (401, "EXPIRED_AUTHENTICATION", ReauthorizationRequired),
        (403, "MISSING_SCOPES", UpstreamRejected),
        (404, "OBJECT_NOT_FOUND", UpstreamNotFound),
        (409, "CONFLICT", UpstreamRejected),
        (423, "LOCKED", UpstreamBusy),
        (429, "RATE_LIMITS", UpstreamRateLimited),
        (500, "INTERNAL", UpstreamError),
    ],
)
def test_a_failure_is_read_for_what_it_means(status, category, error):
    body = {"status": "error", "message": "no", "correlationId": "c-1", "category": category}

    with pytest.raises(GatewayError) as raised:
        read(KIND.operation("contacts", "list"), UpstreamResponse(status, {}, msgspec.json.encode(body)))

    assert type(raised.value) is error
    assert raised.value.upstream == UpstreamFault(status, category, "no", "c-1")


def test_an_address_that_is_too_long_is_the_callers_to_shorten():
    with pytest.raises(UpstreamRejected):
        read(KIND.operation("contacts", "list"), UpstreamResponse(414, {}, b"<html>too long</html>"))


async def test_a_list_turns_pages_with_the_cursor_of_its_meta(upstream, connect):
    upstream.answers({"results": [{"id": "1"}], **NEXT})
    upstream.answers({"results": [{"id": "2"}]})

    pages = [page.decoded() async for page in connect("crm-records", PRIVATE_APP).pages("deals", "list", {"limit": 1})]

    assert pages == [[{"id": "1"}], [{"id": "2"}]]
    assert [asked.url.query_string for asked in upstream.received] == ["limit=1", "limit=1&after=25"]


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


@pytest.mark.parametrize(("credentials", "token"), [(PRIVATE_APP, "private"), (OAUTH, "bearing")])
async def test_a_request_carries_the_credentials_of_its_method(upstream, connect, credentials, token):
    upstream.answers({"results": []})

    await connect("crm-records", credentials).check()

    [asked] = upstream.received
    assert (asked.method, asked.url.raw_path_qs) == ("GET", f"{OBJECTS}/contacts?limit=1")
    assert asked.headers["Authorization"] == f"Bearer {token}"


@pytest.mark.parametrize(
    ("credentials", "field"),
    [
        ({"access_token": "x"}, "refresh_token"),
        ({"private_app_token": ""}, "private_app_token"),
        ({"private_app_token": "x", "api_key": "y"}, "api_key"),
    ],
)
def test_credentials_that_do_not_fit_are_named(credentials, field):
    with pytest.raises(InvalidCredentials) as refused:
        checked_credentials(KIND.spec, credentials)

    assert [fault.field for fault in refused.value.faults] == [field]


@pytest.mark.parametrize("entity", RECORD_ENTITIES)
def test_search_fields_of_the_context_store_keep_the_callers_names(entity):
    fields = KIND.entity(entity).search.fields

    assert "properties.crm_object_id" in fields
    assert not [name for name in fields if name.startswith(("properties.hs_", "properties.hubspot_"))]
