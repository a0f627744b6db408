"""What browsers come back with, and where they may land."""

import pytest
from yarl import URL

from gateway.access.identity.redirect_urls import redirect_error
from gateway.connectors.consent.flows import result_url
from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.messages import read_code, single
from gateway.upstream.oauth_tokens.model import TokenError

ALLOWED = ["https://app.example/redirected", "https://app.example/with?kept=1", "http://plain.example/redirected"]

_LOGIN_HOSTS = ("acme.my.salesforce.com", "login.salesforce.com")


@pytest.mark.parametrize(
    ("url", "is_embedded", "code"),
    [
        ("https://app.example/redirected", False, None),
        ("https://app.example/with?kept=1", False, None),
        ("https://app.example/redirected/", False, "not_allowed"),
        ("https://app.example/redirected?x=1", False, "not_allowed"),
        ("https://app.example:444/redirected", False, "not_allowed"),
        ("https://APP.example/redirected", False, "not_allowed"),
        ("https://app.example.evil.example/redirected", False, "not_allowed"),
        ("https://app.example/redirected#part", False, "fragment"),
        ("https://app.example/redirected#", False, "fragment"),
        ("https://app.example@evil.example/", False, "userinfo"),
        ("https://user:pass@app.example/redirected", False, "userinfo"),
        ("http://plain.example/redirected", False, "scheme"),
        ("http://plain.example/redirected", True, "scheme"),
        ("http://127.0.0.1:8123/any", False, "scheme"),
        ("http://127.0.0.1:8123/any", True, None),
        ("http://[::1]:9/any", True, None),
        ("http://localhost:3000/cb?x=1", True, None),
        ("http://localhost.evil.example/", True, "scheme"),
        ("http://127.0.0.1.evil.example/", True, "scheme"),
        ("http://10.0.0.1/", True, "scheme"),
        ("http://127.0.0.1:8123/a#b", True, "fragment"),
        ("http://127.0.0.1@evil.example/", True, "userinfo"),
        ("https:app.example/redirected", False, "format"),
        ("//app.example/redirected", False, "format"),
        ("/redirected", False, "format"),
        ("javascript:alert(1)", False, "format"),
        ("ftp://app.example/redirected", False, "format"),
        ("https://app.example\\@evil.example/", False, "format"),
        ("https://app.example/\r\nSet-Cookie: a=b", False, "format"),
        ("https://app.example/l\x00anding", False, "format"),
        ("https://äpp.example/redirected", False, "format"),
        ("https://app.example:99999/redirected", False, "format"),
        ("", False, "format"),
        ("https://*/cb", False, "format"),
        ("https://*.example/cb", False, "format"),
        ("https://app.example;sandbox/cb", False, "format"),
        ("https://app.example/" + "x" * 2000, False, "length"),
    ],
)
def test_redirect_urls_are_the_clients_own_or_loopback_when_embedded(
    url: str, is_embedded: bool, code: str | None
) -> None:
    fault = redirect_error(url, ALLOWED, is_embedded=is_embedded)

    assert (fault and fault.code) == code


@pytest.mark.parametrize(
    ("redirect_url", "landed"),
    [
        ("https://a.example/x", "https://a.example/x?error=a%26b"),
        ("https://a.example/x?kept=1&y", "https://a.example/x?kept=1&y&error=a%26b"),
        ("https://a.example/x?", "https://a.example/x?error=a%26b"),
        ("https://a.example/%2e?q=%20", "https://a.example/%2e?q=%20&error=a%26b"),
    ],
)
def test_the_query_of_the_redirect_url_is_kept_as_it_was_written(redirect_url: str, landed: str) -> None:
    assert result_url(redirect_url, None, {"error": "a&b"}) == landed


def test_the_callers_state_comes_back_as_it_was_given() -> None:
    assert result_url("https://a.example/x", "a b&c=ü", {"error": "e"}) == (
        "https://a.example/x?error=e&state=a+b%26c%3D%C3%BC"
    )


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ([("code", "c1")], "c1"),
        ([], "invalid_request"),
        ([("code", "")], "invalid_request"),
        ([("code", "c1"), ("code", "c2")], "invalid_request"),
        ([("error", "access_denied"), ("error_description", "no")], "access_denied"),
        ([("error", "access_denied"), ("code", "c1")], "access_denied"),
        ([("code", "c1"), ("iss", "https://app.asana.com")], "c1"),
        ([("code", "c1"), ("iss", "https://evil.example")], "invalid_request"),
        ([("code", "c1"), ("iss", "http://app.asana.com")], "invalid_request"),
        ([("code", "c1"), ("iss", "https://app.asana.com.evil.example")], "invalid_request"),
        ([("code", "c1"), ("iss", "https://app.asana.com/")], "invalid_request"),
        ([("code", "c1"), ("iss", "https://app.asana.com/other-tenant")], "invalid_request"),
        ([("code", "c1"), ("iss", "https://APP.asana.com")], "invalid_request"),
        ([("code", "c1"), ("iss", "nonsense")], "invalid_request"),
        ([("code", "c1"), ("iss", "")], "invalid_request"),
        ([("code", "c1"), ("iss", "https://app.asana.com"), ("iss", "https://evil.example")], "invalid_request"),
    ],
)
def test_a_callback_is_a_code_or_the_reason_why_not(
    catalog: Catalog, query: list[tuple[str, str]], outcome: str
) -> None:
    found = read_code(query, catalog.kind("work-management").spec, {}, None)

    assert (found.code if isinstance(found, TokenError) else found) == outcome


def test_the_operators_override_is_the_issuer_in_its_place(catalog: Catalog) -> None:
    spec, override = catalog.kind("work-management").spec, URL("http://127.0.0.1:9001")

    own = read_code([("code", "c"), ("iss", "http://127.0.0.1:9001")], spec, {}, override)
    theirs = read_code([("code", "c"), ("iss", "https://app.asana.com")], spec, {}, override)

    assert own == "c"
    assert isinstance(theirs, TokenError)


@pytest.mark.parametrize(
    ("issuer", "is_accepted"),
    [
        ("https://login.salesforce.com/id", True),
        ("https://login.salesforce.com", False),
        ("https://evil.example", False),
    ],
)
def test_a_spec_may_name_the_issuer(catalog: Catalog, issuer: str, is_accepted: bool) -> None:
    spec = catalog.kind("crm-query").spec
    assert spec.oauth is not None
    oauth = spec.oauth.model_copy(update={"issuer": "https://{login_host}/id"})
    query = [("code", "c"), ("iss", issuer)]

    code = read_code(query, spec.model_copy(update={"oauth": oauth}), {"login_host": "login.salesforce.com"}, None)

    assert (code == "c") is is_accepted


def test_another_account_of_the_application_is_another_issuer(catalog: Catalog) -> None:
    spec = catalog.kind("crm-query").spec
    query = [("code", "c"), ("iss", "https://acme.my.salesforce.com")]

    asked = [read_code(query, spec, {"login_host": host}, None) for host in _LOGIN_HOSTS]

    assert asked[0] == "c"
    assert isinstance(asked[1], TokenError)


@pytest.mark.parametrize(
    ("query", "value"),
    [([("state", "s")], "s"), ([], None), ([("state", "")], None), ([("state", "s"), ("state", "s")], None)],
)
def test_a_member_that_is_given_twice_counts_for_nothing(query: list[tuple[str, str]], value: str | None) -> None:
    assert single(query, "state") == value
