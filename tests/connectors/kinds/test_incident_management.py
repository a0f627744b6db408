"""Incident management: every action as it goes over the wire, and every answer as it comes back."""

from typing import Any

import pytest
from yarl import URL

from gateway.connectors.auth import checked_credentials
from gateway.connectors.responses import UpstreamResponse
from gateway.errors import (
    InvalidCredentials,
    InvalidParams,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.kinds.spec import Effect
from tests.connectors.judged import read

KIND = load_kind(shipped_specs() / "incident-management")
ID = "01FCNDV6P870EA6S7TK1DSYDG0"

#: entity, path, the member that holds one record, records on a page at most (0: all in one answer)
RESOURCES = [
    ("incidents", "/v2/incidents", "incident", 250),
    ("alerts", "/v2/alerts", "alert", 50),
    ("escalations", "/v2/escalations", "escalation", 50),
    ("users", "/v2/users", "user", 10_000),
    ("incident_updates", "/v2/incident_updates", None, 250),
    ("incident_roles", "/v2/incident_roles", "incident_role", 0),
    ("incident_statuses", "/v1/incident_statuses", "incident_status", 0),
    ("incident_timestamps", "/v2/incident_timestamps", "incident_timestamp", 0),
    ("severities", "/v1/severities", "severity", 0),
    ("custom_fields", "/v2/custom_fields", "custom_field", 0),
    ("catalog_types", "/v3/catalog_types", "catalog_type", 0),
    ("schedules", "/v2/schedules", "schedule", 10_000),
    ("teams", "/v3/teams", "team", 250),
]
PAGED = [(entity, path, maximum) for entity, path, _, maximum in RESOURCES if maximum]
UNPAGED = [(entity, path) for entity, path, _, maximum in RESOURCES if not maximum]
SINGLE = [(entity, path, member) for entity, path, member, _ in RESOURCES if member]


#: what the application leaves out of a list unless it is asked for it
MODES = [("mode[one_of]", mode) for mode in ("standard", "retrospective", "test", "tutorial")]
WHOLE = {"incidents": MODES, "users": [("include_inactive", "true")]}
MODES_ON_THE_WIRE = (
    "mode%5Bone_of%5D=standard&mode%5Bone_of%5D=retrospective&mode%5Bone_of%5D=test&mode%5Bone_of%5D=tutorial"
)


def test_every_action_has_a_case():
    lists = {f"{entity}.list" for entity, *_ in RESOURCES}
    gets = {f"{entity}.get" for entity, *_ in SINGLE}

    assert lists | gets == {str(operation) for operation in KIND.operations.values()}


@pytest.mark.parametrize(("entity", "path", "maximum"), PAGED)
def test_a_paged_list_asks_for_25_records_or_as_many_as_it_is_told(offline, entity, path, maximum):
    connector = offline("incident-management")

    [plain] = connector.dry_run(entity, "list")
    [full] = connector.dry_run(entity, "list", {"limit": maximum, "after": ID})

    whole = WHOLE.get(entity, [])
    assert (plain["method"], str(URL(plain["url"]).with_query(None))) == ("GET", f"https://api.incident.io{path}")
    assert list(URL(plain["url"]).query.items()) == [*whole, ("page_size", "25")]
    assert list(URL(full["url"]).query.items()) == [*whole, ("page_size", str(maximum)), ("after", ID)]
    assert plain["body"] is None


@pytest.mark.parametrize(("entity", "path"), UNPAGED)
def test_a_list_of_settings_comes_in_one_answer(offline, entity, path):
    [shown] = offline("incident-management").dry_run(entity, "list", {"limit": 5})

    assert (shown["method"], shown["url"]) == ("GET", f"https://api.incident.io{path}")


@pytest.mark.parametrize(("entity", "path", "member"), SINGLE)
def test_a_record_is_asked_for_by_its_id(offline, entity, path, member):
    [shown] = offline("incident-management").dry_run(entity, "get", {"id": ID})

    assert (shown["method"], shown["url"]) == ("GET", f"https://api.incident.io{path}/{ID}")


@pytest.mark.parametrize(("entity", "path", "member"), SINGLE)
def test_a_record_is_a_member_of_its_answer(entity, path, member):
    body = f'{{"{member}":{{"id":"{ID}","name":null}}}}'.encode()

    answer = read(KIND.operation(entity, "get"), UpstreamResponse(200, {}, body))

    assert answer.decoded() == {"id": ID, "name": None}


@pytest.mark.parametrize("entity", [entity for entity, *_ in RESOURCES])
def test_records_are_a_member_named_like_the_entity(entity):
    body = f'{{"{entity}":[{{"id":"{ID}"}}]}}'.encode()

    answer = read(KIND.operation(entity, "list"), UpstreamResponse(200, {}, body))

    assert answer.decoded() == [{"id": ID}]


@pytest.mark.parametrize(
    ("page", "meta"),
    [
        ('{"after":"01B","page_size":25,"total_record_count":40}', {"next_cursor": "01B"}),
        ('{"page_size":25}', {"next_cursor": None}),
    ],
)
def test_meta_is_the_cursor_of_the_next_page(page, meta):
    body = f'{{"incidents":[],"pagination_meta":{page}}}'.encode()

    answer = read(KIND.operation("incidents", "list"), UpstreamResponse(200, {}, body))

    assert answer.meta == meta


def test_everything_is_a_read():
    assert {operation.action.effect for operation in KIND.operations.values()} == {Effect.READ}


@pytest.mark.parametrize("operation", KIND.operations.values(), ids=str)
def test_every_example_is_valid(operation):
    assert validated(operation, operation.action.example).keys() >= operation.action.example.keys()


@pytest.mark.parametrize(
    ("action", "params", "field", "said"),
    [
        ("incidents.list", {"page_size": 251}, "page_size", "at most 250"),
        ("alerts.list", {"limit": 51}, "page_size", "at most 50"),
        ("escalations.list", {"page_size": 0}, "page_size", "at least 1"),
        ("severities.list", {"page_size": 5}, "page_size", "page_size is not a param"),
        ("severities.list", {"limit": 0}, "limit", "at least 1"),
        ("incidents.list", {"status": "closed"}, "status", "status is not a param"),
        ("incidents.get", {}, "id", "id is missing"),
        ("incidents.get", {"id": 4711}, "id", "expected string"),
    ],
)
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(action, params, field, said):
    with pytest.raises(InvalidParams) as refused:
        validated(KIND.operation(*action.split(".")), params)

    [fault] = refused.value.faults
    assert fault.field == field
    assert said in fault.message


@pytest.mark.parametrize(
    ("status", "type_", "error"),
    [
        (401, "authentication_error", ReauthorizationRequired),
        (402, "plan_error", UpstreamRejected),
        (403, "authorization_error", UpstreamRejected),
        (404, "not_found", UpstreamNotFound),
        (422, "validation_error", UpstreamRejected),
        (429, "rate_limit_exceeded", UpstreamRateLimited),
        (500, "internal_error", UpstreamError),
    ],
)
def test_a_failure_is_read_for_what_it_means(status, type_, error):
    body = (
        f'{{"type":"{type_}","status":{status},"request_id":"r1",'
        '"errors":[{"code":"invalid","message":"page_size is odd","source":{"pointer":"page_size"}}],'
        '"rate_limit":{"name":"api","limit":1200,"remaining":0}}'
    ).encode()

    with pytest.raises(error) as raised:
        read(KIND.operation("users", "list"), UpstreamResponse(status, {"retry-after": "7"}, body))

    said = raised.value.upstream
    assert type(raised.value) is error
    assert (said.status, said.code, said.message, said.request_id) == (status, type_, "page_size is odd", "r1")


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        ({}, "needs the credentials of one method: api_key"),
        ({"api_key": "k", "access_token": "t"}, "access_token is not a credential"),
    ],
)
def test_an_api_key_is_the_only_credential(credentials: dict[str, Any], said):
    with pytest.raises(InvalidCredentials, match=said):
        checked_credentials(KIND.spec, credentials)


def test_there_is_no_oauth():
    assert (KIND.spec.oauth, KIND.spec.oauth_method) == (None, None)


async def test_pages_are_turned_with_the_key_on_each_request(upstream, connect):
    upstream.answers({"incidents": [{"id": "01A"}], "pagination_meta": {"after": "01A", "page_size": 1}})
    upstream.answers({"incidents": [{"id": "01B"}], "pagination_meta": {"page_size": 1}})

    pages = connect("incident-management", {"api_key": "inc_1"}).pages("incidents", "list", {"page_size": 1})
    records = [page.decoded() async for page in pages]

    assert records == [[{"id": "01A"}], [{"id": "01B"}]]
    assert [received.url.raw_path_qs for received in upstream.received] == [
        f"/v2/incidents?{MODES_ON_THE_WIRE}&page_size=1",
        f"/v2/incidents?{MODES_ON_THE_WIRE}&page_size=1&after=01A",
    ]
    assert {received.headers["Authorization"] for received in upstream.received} == {"Bearer inc_1"}


async def test_the_health_check_asks_for_one_user(upstream, connect):
    upstream.answers({"users": [], "pagination_meta": {"page_size": 1}})

    await connect("incident-management", {"api_key": "inc_1"}).check()

    assert str(upstream.received[0].url) == "/v2/users?include_inactive=true&page_size=1"
