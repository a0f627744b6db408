"""The messages that go out, kind by kind."""

from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from pydantic import SecretStr
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.kinds.authentication import Assertion, AuthMethod
from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.messages import (
    Code,
    ConsentParams,
    assertion_request,
    client_request,
    code_request,
    consent_url,
    endpoint,
    refresh_request,
    revoke_request,
)
from gateway.upstream.oauth_tokens.model import App

APP = App("app/1", SecretStr("s&cret"))
ENVIRONMENT = {"subdomain": "acme", "login_host": "login.salesforce.com"}
BASIC = "Basic YXBwLzE6cyZjcmV0"


@pytest.mark.parametrize(
    ("kind", "address", "scope", "further"),
    [
        ("support-desk", "https://acme.zendesk.com/oauth/authorizations/new", "read write", {}),
        ("crm-query", "https://login.salesforce.com/services/oauth2/authorize", "api refresh_token", {}),
        ("work-management", "https://app.asana.com/-/oauth_authorize", "default", {}),
        ("workspace-notes", "https://api.notion.com/v1/oauth/authorize", None, {"owner": ["user"]}),
    ],
)
def test_the_consent_address_is_the_kinds_own(
    catalog: Catalog, kind: str, address: str, scope: str | None, further: dict[str, list[str]]
) -> None:
    oauth = catalog.kind(kind).spec.oauth_endpoints
    consent = ConsentParams("https://g.example/callback", scope.split() if scope else [], "st@te", None)

    url = consent_url(oauth, endpoint(oauth.authorization_url, ENVIRONMENT, None), APP, consent)

    assert url.partition("?")[0] == address
    assert parse_qs(urlsplit(url).query) == {
        "response_type": ["code"],
        "client_id": ["app/1"],
        "redirect_uri": ["https://g.example/callback"],
        "state": ["st@te"],
        **({"scope": [scope]} if scope else {}),
        **further,
    }


def test_scopes_are_separated_as_the_application_does(catalog: Catalog) -> None:
    oauth = catalog.kind("team-chat").spec.oauth_endpoints

    url = consent_url(
        oauth, URL(oauth.authorization_url), APP, ConsentParams("https://g.example", ["a:read", "b:write"], "s", None)
    )

    assert parse_qs(urlsplit(url).query)["scope"] == ["a:read,b:write"]


def test_pkce_sends_the_challenge_of_the_rfcs_own_example(catalog: Catalog) -> None:
    oauth = catalog.kind("work-management").spec.oauth_endpoints
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

    url = consent_url(oauth, URL(oauth.authorization_url), APP, ConsentParams("https://g.example", [], "s", verifier))

    query = parse_qs(urlsplit(url).query)
    assert query["code_challenge"] == ["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"]
    assert query["code_challenge_method"] == ["S256"]
    assert verifier not in url


def test_an_override_moves_oauth_endpoints_and_keeps_their_paths(catalog: Catalog) -> None:
    oauth = catalog.kind("support-desk").spec.oauth_endpoints

    moved = endpoint(oauth.token_url, ENVIRONMENT, URL("http://127.0.0.1:9001"))

    assert str(moved) == "http://127.0.0.1:9001/oauth/tokens"


@pytest.mark.parametrize(
    ("kind", "content_type", "authorization", "members"),
    [
        ("support-desk", "application/json", None, {"client_id": "app/1", "client_secret": "s&cret"}),
        ("crm-records", "form", None, {"client_id": "app/1", "client_secret": "s&cret"}),
        ("work-management", "form", None, {"client_id": "app/1", "client_secret": "s&cret"}),
        ("workspace-notes", "application/json", BASIC, {}),
        ("team-chat", "form", BASIC, {}),
    ],
)
def test_the_app_proves_itself_as_the_application_wants_it(
    catalog: Catalog, kind: str, content_type: str, authorization: str | None, members: dict[str, str]
) -> None:
    oauth = catalog.kind(kind).spec.oauth_endpoints

    request = code_request(oauth, URL("https://a.example/token"), APP, Code("c+d", "https://g.example/cb", "v" * 43))

    assert content_type in request.headers["Content-Type"]
    assert request.headers.get("Authorization") == authorization
    assert _members(request.headers["Content-Type"], request.body) == {
        "grant_type": "authorization_code",
        "code": "c+d",
        "redirect_uri": "https://g.example/cb",
        "code_verifier": "v" * 43,
        **members,
    }


def test_a_code_is_exchanged_with_the_constant_members_of_the_kind_and_a_refresh_token_is_not(catalog: Catalog) -> None:
    oauth = catalog.kind("shopify").spec.oauth_endpoints
    address, code = URL("https://acme.myshopify.com/token"), Code("c1", "https://g.example/cb", None)

    bodies = [code_request(oauth, address, APP, code).body, refresh_request(oauth, address, APP, "r1").body]

    app = {"client_id": "app/1", "client_secret": "s&cret"}
    assert [_members("form", body) for body in bodies] == [
        # the token then expires and can be renewed
        {
            "grant_type": "authorization_code",
            "code": "c1",
            "redirect_uri": "https://g.example/cb",
            "expiring": "1",
            **app,
        },
        {"grant_type": "refresh_token", "refresh_token": "r1", **app},
    ]


@pytest.mark.parametrize(
    ("environment", "members"),
    [
        ({"user_id": "4080"}, {"grant_type": "client_credentials", "sub": "4080"}),
        ({}, {"grant_type": "client_credentials"}),
    ],
)
def test_client_credentials_are_sent_with_the_members_of_the_kind(catalog: Catalog, environment, members) -> None:
    oauth = catalog.kind("greenhouse").spec.oauth_endpoints

    request = client_request(oauth, URL(oauth.token_url), APP, environment)

    assert _members(request.headers["Content-Type"], request.body) == members
    assert request.headers["Authorization"].startswith("Basic ")


def test_client_credentials_ask_for_the_scopes_of_a_kind_that_says_nothing_else(catalog: Catalog) -> None:
    oauth = catalog.kind("zendesk-talk").spec.oauth_endpoints

    request = client_request(oauth, URL("https://a.example/token"), APP, {})

    assert _members(request.headers["Content-Type"], request.body)["scope"] == oauth.scope_separator.join(oauth.scopes)


def test_a_public_client_only_names_itself(catalog: Catalog) -> None:
    oauth = catalog.kind("team-chat").spec.oauth_endpoints

    request = refresh_request(oauth, URL("https://a.example/token"), App("public", SecretStr("")), "r1")

    assert "Authorization" not in request.headers
    assert _members(request.headers["Content-Type"], request.body) == {
        "grant_type": "refresh_token",
        "refresh_token": "r1",
        "client_id": "public",
    }


@pytest.mark.parametrize(
    ("kind", "method", "authorization", "members"),
    [
        ("support-desk", "DELETE", "Bearer a1", {}),
        ("team-chat", "POST", "Bearer a1", {}),
        (
            "work-management",
            "POST",
            None,
            {"token": "r1", "token_type_hint": "refresh_token", "client_id": "app/1", "client_secret": "s&cret"},
        ),
        ("workspace-notes", "POST", BASIC, {"token": "r1"}),
    ],
)
def test_a_grant_is_revoked_as_the_application_wants_it(
    catalog: Catalog, kind: str, method: str, authorization: str | None, members: dict[str, str]
) -> None:
    oauth = catalog.kind(kind).spec.oauth_endpoints
    credentials = {"access_token": "a1", "refresh_token": "r1"}

    request = revoke_request(oauth, URL("https://a.example/revoke"), APP, credentials)

    assert request is not None
    assert request.method == method
    assert request.headers.get("Authorization") == authorization
    assert _members(request.headers.get("Content-Type", ""), request.body) == members


def test_without_a_token_there_is_nothing_to_revoke(catalog: Catalog) -> None:
    oauth = catalog.kind("support-desk").spec.oauth_endpoints

    request = revoke_request(oauth, URL("https://a.example/revoke"), APP, {"refresh_token": "r1"})

    assert request is None


def _members(content_type: str, body: bytes | None) -> dict[str, str]:
    """The members of a body in either encoding."""
    if not body:
        return {}
    if "json" in content_type:
        return dict(msgspec.json.decode(body))
    return {name: values[0] for name, values in parse_qs(body.decode(), strict_parsing=True).items()}


def _signed_method(**credentials: str) -> AuthMethod:
    fields = {name: {"description": name} for name in ("key", *credentials)}
    return AuthMethod.model_validate(
        {"title": "Key", "scheme": "bearer", "credentials": fields, "assertion": {"key": "key"}}
    )


def test_an_assertion_is_sent_alone_unless_the_method_has_an_app(catalog: Catalog) -> None:
    oauth, address = catalog.kind("google-analytics-data-api").spec.oauth_endpoints, URL("https://a.example/token")
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "head.claims.signature"}

    alone = assertion_request(oauth, address, APP, _signed_method(), grant["assertion"])
    with_app = assertion_request(oauth, address, APP, _signed_method(client_secret="s"), grant["assertion"])

    assert _members("form", alone.body) == grant
    assert _members("form", with_app.body) == {**grant, "client_id": "app/1", "client_secret": "s&cret"}
    assert "head.claims.signature" in alone.secrets


@pytest.mark.parametrize(("has_id", "effect"), [(False, Effect.IDEMPOTENT), (True, Effect.WRITE)])
def test_an_assertion_that_is_accepted_once_is_not_sent_again(catalog: Catalog, has_id: bool, effect: Effect) -> None:
    oauth, method = catalog.kind("google-analytics-data-api").spec.oauth_endpoints, _signed_method()
    method = method.model_copy(update={"assertion": Assertion(key="key", has_id=has_id)})

    assert assertion_request(oauth, URL("https://a.example/token"), APP, method, "a.b.c").effect is effect
