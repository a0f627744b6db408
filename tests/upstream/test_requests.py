"""Params into requests: where each lands on the wire, and that no value can leave its place."""

from typing import Any

import msgspec
import pytest
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import ConnectorNotReady, InvalidCredentials, InvalidParams, UpstreamInvalidResponse
from gateway.upstream.encoding import upstream_segment
from gateway.upstream.prepared import PreparedCall, effect_of, prepare
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.requests import UpstreamRequest, base_address, checked_environment, relocated
from gateway.upstream.session import UpstreamSession
from tests.kinds.small_kind import small_operation

ORIGIN = "https://api.example.com"
ANY = {"id": {}, "q": {}, "name": {}}
BY_ID = {"request": "GET /things/{id}", "params": ANY}


def build(operation, params, environment, override=None) -> UpstreamRequest:
    return PreparedCall.of(operation, params).request(base_address(operation.spec, environment, override))


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("../secret", "..%2Fsecret"),
        ("%2e%2e", "%252e%252e"),
        ("..%2f", "..%252f"),
        ("a?b=c", "a%3Fb%3Dc"),
        ("a#b", "a%23b"),
        ("a;b", "a%3Bb"),
        ("a\\b", "a%5Cb"),
        ("@evil.example", "%40evil.example"),
        ("ü 😀", "%C3%BC%20%F0%9F%98%80"),
        ("...", "..."),
        (5, "5"),
        (True, "true"),
    ],
)
def test_a_path_value_stays_within_its_segment(value, segment):
    request = build(small_operation(BY_ID), {"id": value}, {})

    assert str(request.url) == f"{ORIGIN}/v1/things/{segment}"


@pytest.mark.parametrize("value", ["", ".", "..", "a\r\nHost: evil", "a\nb", "a\tb", "a\x00b", "a\x7fb"])
def test_a_path_value_that_could_climb_or_break_the_line_is_refused(value):
    with pytest.raises(InvalidParams, match="one plain path segment"):
        build(small_operation(BY_ID), {"id": value}, {})


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a&b=c", "a%26b%3Dc"),
        ("a b+c", "a%20b%2Bc"),
        ("a\r\nb", "a%0D%0Ab"),
        ("100%", "100%25"),
        (["a", "b c"], "a&q=b%20c"),
        ({"a": 1}, "%7B%22a%22%3A1%7D"),
        (False, "false"),
        (1.5, "1.5"),
    ],
)
def test_a_query_value_stays_within_its_member(value, written):
    request = build(small_operation({"params": ANY}), {"q": value}, {})

    assert str(request.url) == f"{ORIGIN}/v1/things?q={written}"


def test_a_query_value_of_null_is_left_out():
    request = build(small_operation({"params": ANY}), {"q": None}, {})

    assert str(request.url) == f"{ORIGIN}/v1/things"


def test_params_land_where_the_spec_says():
    params = {
        "id": {},
        "body_member": {"as": "bodyMember"},
        "query_member": {"in": "query", "as": "query-member"},
        "header_member": {"in": "header", "as": "X-Member"},
    }
    action = {"request": "POST /things/{id}", "effect": "write", "params": params, "constant_query": {"always": "1"}}
    operation = small_operation(action, headers={"X-Version": "7"}, content_type="application/json; charset=utf-8")

    request = build(operation, {"id": 1, "body_member": [None], "query_member": "q", "header_member": "h"}, {})

    assert request.method == "POST"
    assert str(request.url) == f"{ORIGIN}/v1/things/1?always=1&query-member=q"
    assert request.headers == {
        "Accept": "application/json",
        "X-Version": "7",
        "X-Member": "h",
        "Content-Type": "application/json; charset=utf-8",
    }
    assert msgspec.json.decode(request.body) == {"bodyMember": [None]}
    assert request.effect is Effect.WRITE


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("DELETE", None), ("POST", b"{}"), ("PUT", b"{}")])
def test_methods_that_carry_a_body_always_do(method, body):
    request = build(small_operation({"request": f"{method} /things", "effect": "idempotent"}), {}, {})

    assert request.body == body


RANGED = {"params": {"range_header": {"in": "header", "as": "Range"}}}


@pytest.mark.parametrize("value", ["bytes=0-1\r\nX-Injected: 1", "bytes=0-1\x00", "bytes=ü", "a\tb"])
def test_a_header_value_cannot_add_a_header(value):
    with pytest.raises(InvalidParams, match="printable ASCII") as refused:
        build(small_operation({**RANGED, "download": {}}), {"range_header": value}, {})

    assert refused.value.faults[0].field == "range_header"


@pytest.mark.parametrize(
    ("download", "headers"),
    [
        ({}, {"Accept": "application/json", "Range": "bytes=0-1"}),
        ({"url": "file.url"}, {"Accept": "application/json"}),
    ],
)
def test_a_range_goes_with_the_request_that_fetches_the_bytes(download, headers):
    request = build(small_operation({**RANGED, "download": download}), {"range_header": "bytes=0-1"}, {})

    assert request.headers == headers


def test_an_alternative_stands_in_when_its_param_is_left_out():
    operation = small_operation(
        {
            "request": "GET /things/{id}/parts",
            "records": "parts",
            "params": ANY,
            "alternatives": [{"without": "id", "request": "GET /parts"}],
        }
    )

    assert build(operation, {"id": 1, "q": "x"}, {}).url.path == "/v1/things/1/parts"
    assert build(operation, {"q": "x"}, {}).url.path == "/v1/parts"


@pytest.mark.parametrize(
    ("params", "effect"),
    [
        ({}, Effect.IDEMPOTENT),
        ({"thing": {}}, Effect.IDEMPOTENT),
        ({"thing": {"note": None}}, Effect.IDEMPOTENT),
        ({"thing": "text"}, Effect.IDEMPOTENT),
        ({"thing": {"note": ""}}, Effect.WRITE),
        ({"thing": {"note": {"body": "x"}}}, Effect.WRITE),
    ],
)
def test_a_param_can_make_an_update_a_write(params, effect):
    operation = small_operation({"request": "PUT /things", "effect": "idempotent", "write_if": "thing.note"})

    assert effect_of(operation, params) is effect


@pytest.mark.parametrize("override", ["http://127.0.0.1:9001", "https://proxy.example"])
def test_an_override_replaces_scheme_host_and_port_and_keeps_the_rest(override):
    request = build(small_operation(BY_ID), {"id": "a/b", "q": "x y"}, {}, URL(override))

    assert str(request.url) == f"{override}/v1/things/a%2Fb?q=x%20y"


def test_an_address_without_an_override_stays():
    assert relocated(URL("https://a.example/x?y=1"), None) == URL("https://a.example/x?y=1")


ENVIRONMENT = {
    "subdomain": {"description": "first label", "example": "acme"},
    "server": {"description": "the account's server", "type": "origin", "required": False},
}
VARIED = small_operation(server="https://{subdomain}.example.com/v1/", environment=ENVIRONMENT, hosts=["*.example.com"])


def test_variables_fill_the_address():
    assert base_address(VARIED.spec, {"subdomain": "acme"}) == "https://acme.example.com/v1"


def test_an_address_without_its_variable_is_not_ready():
    with pytest.raises(ConnectorNotReady, match="no subdomain yet"):
        base_address(VARIED.spec, {})


@pytest.mark.parametrize(
    "server",
    [
        "https://x.example.com",
        "https://X.Example.COM/",
        "HTTPS://x.example.com:443",
        "https://x.exam\nple.com",
        "https://x.example.com\t",
        " https://x.example.com",
    ],
)
def test_an_origin_is_kept_as_it_was_parsed(server):
    variables = checked_environment(VARIED.spec, {"subdomain": "a", "server": server})

    assert variables["server"] == "https://x.example.com"


@pytest.mark.parametrize("value", ["V3-x", 7, "a/../b", "ü?", "%2e"])
def test_an_id_of_the_applications_stays_one_segment(value):
    segment = upstream_segment(small_operation(), value)

    assert URL(f"https://x/{segment}/end", encoded=True).parts == ("/", str(value), "end")


@pytest.mark.parametrize("value", ["", ".", "..", "a\nb", "a\x00", None, True, 1.5, {"a": 1}, ["a"]])
def test_what_cannot_be_a_segment_is_no_id(value):
    with pytest.raises(UpstreamInvalidResponse):
        upstream_segment(small_operation(), value)


ACCOUNT = {"account": {"description": "account", "type": "text"}, "site": {"description": "site", "required": False}}
PLACED = small_operation(
    {
        "request": "GET /things",
        "params": {**ANY, "market": {"default": "{account}"}},
        "constant_query": {"of": "{account}", "ids": '{"in": ["{account}"]}'},
        "headers": {"X-Of": "a/{account}"},
    },
    environment=ACCOUNT,
    headers={"X-Version": "1"},
)


def session_of(environment) -> UpstreamSession:
    """A session that only builds requests."""
    unused: Any = None
    return UpstreamSession(
        spec=PLACED.spec,
        environment=environment,
        authorizer=unused,
        scope=RateScope(id="small", kind="small"),
        transport=unused,
    )


def test_variables_of_a_connector_are_sent_in_headers_and_in_the_query():
    call = prepare(PLACED, {"q": "{account}", "name": "of=%7Baccount%7D"})

    request = session_of({"account": "A_1.b~c"}).request(call)

    in_query = {"of": "A_1.b~c", "ids": '{"in": ["A_1.b~c"]}', "q": "{account}", "name": "of=%7Baccount%7D"}
    in_query["market"] = "A_1.b~c"
    assert request.url.query == in_query
    assert {name: request.headers[name] for name in ("X-Of", "X-Version")} == {"X-Of": "a/A_1.b~c", "X-Version": "1"}


def test_a_variable_is_the_default_of_a_param_that_callers_may_give():
    request = session_of({"account": "mine"}).request(prepare(PLACED, {"market": "other"}))

    assert request.url.query["market"] == "other"


def test_a_request_without_a_variable_that_it_needs_is_not_ready():
    with pytest.raises(ConnectorNotReady, match="no account yet"):
        session_of({}).request(PreparedCall.of(PLACED, {}))


@pytest.mark.parametrize("value", ["a/b", "..", "a b", "a\r\nb", "a?b", "a@b", "", "a" * 201])
def test_a_text_variable_is_one_segment(value):
    with pytest.raises(InvalidCredentials):
        checked_environment(PLACED.spec, {"account": value})


REGIONAL = {"region": {"description": "r", "type": "text", "enum": ["com", "com.au"], "default": "com"}}


@pytest.mark.parametrize(("given", "region"), [({}, "com"), ({"region": "com.au"}, "com.au")])
def test_a_variable_may_have_one_of_its_values(given, region):
    spec = small_operation(environment=REGIONAL).spec

    assert checked_environment(spec, given) == {"region": region}


def test_another_value_of_a_variable_is_refused_with_those_it_may_have():
    spec = small_operation(environment=REGIONAL).spec

    with pytest.raises(InvalidCredentials, match=r"region must be one of com, com\.au"):
        checked_environment(spec, {"region": "evil.example"})


@pytest.mark.parametrize("subdomain", ["a", "acme-2", "0x", "a" * 63])
def test_one_dns_label_is_a_subdomain(subdomain):
    assert checked_environment(VARIED.spec, {"subdomain": subdomain}) == {"subdomain": subdomain}


@pytest.mark.parametrize(
    ("environment", "faults"),
    [
        ({}, {"subdomain": "required"}),
        ({"subdomain": None}, {"subdomain": "required"}),
        ({"subdomain": 5}, {"subdomain": "type"}),
        ({"subdomain": "a.b"}, {"subdomain": "pattern"}),
        ({"subdomain": "a/b"}, {"subdomain": "pattern"}),
        ({"subdomain": "a:1"}, {"subdomain": "pattern"}),
        ({"subdomain": "ä"}, {"subdomain": "pattern"}),
        ({"subdomain": "a", "server": "https://x.example.org"}, {"server": "pattern"}),
        ({"subdomain": "a", "server": "http://x.example.com"}, {"server": "pattern"}),
        ({"subdomain": "a", "server": "https://x.example.com:8080"}, {"server": "pattern"}),
        ({"subdomain": "a", "server": "https://10.0.0.1"}, {"server": "pattern"}),
        ({"subdomain": "a", "server": "https://["}, {"server": "pattern"}),
        ({"subdomian": "a"}, {"subdomian": "unknown", "subdomain": "required"}),
    ],
)
def test_every_fault_of_the_variables_is_named(environment, faults):
    with pytest.raises(InvalidCredentials) as refused:
        checked_environment(VARIED.spec, environment)

    assert {fault.field: fault.code for fault in refused.value.faults} == faults
