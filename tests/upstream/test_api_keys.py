"""API keys where applications want them: in headers, in the query, behind a prefix; never in an error."""

import pytest

from gateway.errors import ReauthorizationRequired, UpstreamRejected
from gateway.kinds.authentication import AuthMethod
from gateway.kinds.catalog import Kind
from gateway.upstream.auth import StaticAuthorizer, headers_for
from gateway.upstream.rate_limits import RateScope
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.applications import Applications
from tests.kinds.small_kind import small_operation

URL = "https://api.example.com/v1/things"


def method(**members) -> AuthMethod:
    fields = {name: {"description": name, "secret": True} for name in ("key", "secret", "access_token")}
    return AuthMethod.model_validate({"title": "Key", "scheme": "api_key", "credentials": fields, **members})


@pytest.mark.parametrize(
    ("sent", "headers"),
    [
        ({"headers": {"X-Api-Key": "{key}"}}, {"X-Api-Key": "abc"}),
        ({"headers": {"Authorization": "Token token={key}"}}, {"Authorization": "Token token=abc"}),
        ({"headers": {"App-Key": "{key}", "App-Secret": "{secret}"}}, {"App-Key": "abc", "App-Secret": "d/e"}),
        ({"query": {"api_key": "{key}"}}, {"?api_key": "abc"}),
        ({"scheme": "basic", "username": "{key}", "password": "X"}, {"Authorization": "Basic YWJjOlg="}),
    ],
)
def test_a_key_goes_where_the_spec_says(sent, headers):
    assert headers_for(method(**sent), {"key": "abc", "secret": "d/e"}) == headers


def test_a_token_that_has_not_come_yet_is_requested_by_name():
    shopify = method(headers={"X-Access-Token": "{access_token}"}, oauth=True)

    with pytest.raises(ReauthorizationRequired, match="no access_token yet"):
        headers_for(shopify, {"key": "abc"})


def test_a_header_without_its_optional_credential_is_left_out():
    headers = {"Authorization": "Bearer {access_token}", "App-Key": "{key}"}
    optional = method(headers=headers, oauth=True)

    assert headers_for(optional, {"access_token": "t"}) == {"Authorization": "Bearer t"}
    assert headers_for(optional, {"access_token": "t", "key": "k"}) == {"Authorization": "Bearer t", "App-Key": "k"}


def test_a_header_without_its_required_credential_is_not_sent():
    fields = {"key": {"description": "key", "required": True, "secret": True}}
    required = AuthMethod.model_validate(
        {"title": "Key", "scheme": "api_key", "headers": {"App-Key": "{key}"}, "credentials": fields}
    )

    with pytest.raises(ReauthorizationRequired, match="no key yet"):
        headers_for(required, {})


@pytest.mark.parametrize(
    ("params", "asked"),
    [({}, f"{URL}?api_key=ab%26c%2Fdef"), ({"q": "x"}, f"{URL}?q=x&api_key=ab%26c%2Fdef")],
)
async def test_a_key_in_the_query_is_sent_and_masked_in_what_the_application_says(params, asked):
    kind = Kind(small_operation({"params": {"q": {}}}, failure={"message": ["error"]}).spec)
    authorizer = StaticAuthorizer(headers_for(method(query={"api_key": "{key}"}), {"key": "ab&c/def"}))
    with Applications() as web:
        web.get(asked, status=422, payload={"error": "no key ab&c/def, ab%26c%2Fdef"})
        async with Transport() as transport:
            connector = Upstreams(transport).connector(kind, {}, authorizer, RateScope(id="small:c-1", kind="small"))
            with pytest.raises(UpstreamRejected, match=r"no key \*\*\*, \*\*\*"):
                await connector.execute("things", "act", params)

        [[sent]] = web.requests.values()

    assert not any(name.startswith("?") for name in sent.kwargs["headers"])


async def test_a_key_behind_a_name_is_masked_too():
    kind = Kind(small_operation(failure={"message": ["error"]}).spec)
    authorizer = StaticAuthorizer({"Authorization": 'Token token="abcdef"'})
    with Applications() as web:
        web.get(URL, status=422, payload={"error": "abcdef is no token"})
        async with Transport() as transport:
            connector = Upstreams(transport).connector(kind, {}, authorizer, RateScope(id="small:c-1", kind="small"))
            with pytest.raises(UpstreamRejected, match=r": \*\*\* is no token"):
                await connector.execute("things", "act")


def test_a_dry_run_shows_where_the_credentials_go():
    key = method(headers={"X-Api-Key": "{key}"}, query={"secret": "{secret}"}).model_dump()
    kind = Kind(small_operation(authentication={"key": key}).spec)
    connector = Upstreams(Transport()).connector(
        kind, {}, StaticAuthorizer({}), RateScope(id="small:c-1", kind="small")
    )

    [shown] = connector.dry_run("things", "act")

    assert shown["url"] == f"{URL}?secret=***"
    assert shown["headers"] == {"Accept": "application/json", "X-Api-Key": "***"}
