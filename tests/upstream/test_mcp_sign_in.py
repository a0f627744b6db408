"""Where people sign in to an MCP server: by its challenge and the metadata of strangers, hostile ones too."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from yarl import URL

from gateway.errors import InvalidParams, UpstreamError, UpstreamInvalidResponse
from gateway.kinds.authentication import OAuthEndpoints
from gateway.upstream.challenges import Challenge, challenge_in
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.mcp_servers import McpAddress, url_of
from gateway.upstream.mcp_sign_in import McpSignIn, sign_in_of
from gateway.upstream.oauth_tokens.registration import read_registration, registration_body
from gateway.upstream.oauth_tokens.server_metadata import (
    resource_metadata_urls,
    server_metadata_urls,
)
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams
from tests.harness.mcp_sign_in import (
    ISSUER,
    PROVIDER_PATH,
    RESOURCE,
    RESOURCE_PATH,
    SERVER_PATH,
    SignInServer,
    answering,
    sign_in_server,
)

KIND = "tracker"
CALLBACK = "https://gateway.example/callback"


@asynccontextmanager
async def reached(server: SignInServer) -> AsyncIterator[Upstreams]:
    async with sign_in_server(server), Transport(EgressPolicy.of([server.origin])) as transport:
        yield Upstreams(transport, {KIND: server.origin, "mcp": server.origin})


async def found(server: SignInServer, url: str = RESOURCE, kind: str | None = KIND) -> McpSignIn:
    async with reached(server) as upstreams:
        return await sign_in_of(upstreams, McpAddress(url=url, kind=kind))


CHALLENGES = {
    "none": ("", Challenge()),
    "another scheme": ('Basic realm="x"', Challenge()),
    "quoted": (
        'Bearer resource_metadata="https://a.io/x", scope="a b", error="invalid_token"',
        Challenge("https://a.io/x", ("a", "b"), "invalid_token"),
    ),
    "bare and in another case": ("bearer Scope=a", Challenge(None, ("a",))),
    "after another scheme": ('Basic realm="Bearer scope=x", Bearer scope="a"', Challenge(None, ("a",))),
    "before another scheme": ('Bearer scope="a", Digest scope="b"', Challenge(None, ("a",))),
    "a second Bearer with the metadata": (
        'Bearer scope="a", Basic realm="x", Bearer resource_metadata="https://a.io/x", scope="b"',
        Challenge("https://a.io/x", ("b",)),
    ),
    "a first Bearer without params": ('Bearer, Bearer resource_metadata="https://a.io/x"', Challenge("https://a.io/x")),
    "two Bearers without the metadata": ('Bearer scope="a", Bearer error="x"', Challenge(None, ("a",))),
    "after a token68": ('Negotiate YWJj==, Bearer scope="a"', Challenge(None, ("a",))),
    "escaped": (r'Bearer error="a\"b"', Challenge(None, (), 'a"b')),
    "no scopes": ('Bearer scope="a\x00 \t"', Challenge()),
    "endless": ("Bearer " + "!" * 30_000, Challenge()),
    "an open quote": ('Bearer scope="' + "\\x" * 15_000, Challenge()),
}


@pytest.mark.parametrize(("header", "read"), CHALLENGES.values(), ids=CHALLENGES)
def test_a_challenge_is_read(header: str, read: Challenge):
    assert challenge_in({"www-authenticate": header}) == read


def test_well_known_urls_are_tried_in_the_order_of_the_specification():
    by_path = resource_metadata_urls(URL("https://a.io/public/mcp"), Challenge())
    by_root = resource_metadata_urls(URL("https://a.io/"), Challenge())

    assert by_path == (
        "https://a.io/.well-known/oauth-protected-resource/public/mcp",
        "https://a.io/.well-known/oauth-protected-resource",
    )
    assert by_root == ("https://a.io/.well-known/oauth-protected-resource",)
    assert server_metadata_urls("https://a.io/tenant1") == (
        "https://a.io/.well-known/oauth-authorization-server/tenant1",
        "https://a.io/.well-known/openid-configuration/tenant1",
        "https://a.io/tenant1/.well-known/openid-configuration",
    )
    assert server_metadata_urls("https://a.io") == (
        "https://a.io/.well-known/oauth-authorization-server",
        "https://a.io/.well-known/openid-configuration",
    )


async def test_the_challenge_names_the_metadata_and_the_scopes():
    server = SignInServer()

    sign_in = await found(server)

    assert (sign_in.kind, sign_in.oauth["issuer"], sign_in.oauth["resource"]) == (KIND, ISSUER, RESOURCE)
    assert (sign_in.oauth["scopes"], sign_in.oauth["pkce"], sign_in.oauth["names_issuer"]) == (
        ("issues:read",),
        True,
        True,
    )
    assert server.fetched == [RESOURCE_PATH, SERVER_PATH]


FALLBACKS = {
    "at the path of the server": ({}, {}, [RESOURCE_PATH, SERVER_PATH]),
    "at the root": (
        {RESOURCE_PATH: answering("", 404), RESOURCE_PATH.removesuffix("/mcp"): None},
        {},
        [RESOURCE_PATH, RESOURCE_PATH.removesuffix("/mcp"), SERVER_PATH],
    ),
    "OpenID Connect Discovery": (
        {SERVER_PATH: answering("", 404), PROVIDER_PATH: None},
        {},
        [RESOURCE_PATH, SERVER_PATH, "/.well-known/openid-configuration/tenant", PROVIDER_PATH],
    ),
}


@pytest.mark.parametrize(("instead", "_", "fetched"), FALLBACKS.values(), ids=FALLBACKS)
async def test_without_a_challenge_the_well_known_urls_are_tried(instead, _, fetched):
    server = SignInServer(challenge=None)
    documents = {PROVIDER_PATH: server.document(), RESOURCE_PATH.removesuffix("/mcp"): server._resource()}
    server.instead = {path: each or answering(documents[path]) for path, each in instead.items()}

    sign_in = await found(server)

    assert server.fetched == fetched
    assert sign_in.oauth["scopes"] == ("issues:all",)


async def test_scopes_are_left_out_if_nobody_names_any_and_offline_access_is_added_to_others():
    without = await found(SignInServer(challenge=None, resource={"scopes_supported": None}))
    offline = await found(SignInServer(metadata={"scopes_supported": ["offline_access"]}))

    assert "scopes" not in without.oauth
    assert offline.oauth["scopes"] == ("issues:read", "offline_access")


async def test_the_next_authorization_server_is_tried_if_the_metadata_of_the_first_cannot_be_used():
    server = SignInServer(resource={"authorization_servers": ["https://gone.io", ISSUER]})

    assert (await found(server)).oauth["issuer"] == ISSUER


async def test_a_kind_without_a_name_gets_that_of_the_server_or_of_its_host():
    named = await found(SignInServer(resource={"resource_name": "Acme Issues MCP Server"}), kind=None)
    unnamed = await found(SignInServer(), kind=None)

    assert (named.kind, unnamed.kind) == ("acme-issues", "tracker")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
async def test_the_bearer_challenge_is_found_in_any_of_several_headers(order: Sequence[int]):
    own = f'Bearer resource_metadata="https://mcp.tracker.io{RESOURCE_PATH}", scope="issues:own"'
    lines = (own, 'Basic realm="x"', 'Bearer error="invalid_token"')

    sign_in = await found(SignInServer(challenge="\n".join(lines[each] for each in order)))

    assert sign_in.oauth["scopes"] == ("issues:own",)


async def moved(_: web.Request) -> web.Response:
    return web.Response(status=307, headers={"Location": "http://169.254.169.254/latest"})


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    try:
        while True:
            await response.write(b" " * 65_536)
    except ConnectionError:
        return response


SERVER, RESOURCES = "metadata", "resource"
HOSTILE = {
    "another issuer": ({SERVER: {"issuer": "https://evil.io"}}, "its issuer is https://evil.io"),
    "an issuer with a slash more": ({SERVER: {"issuer": f"{ISSUER}/"}}, "its issuer is"),
    "an issuer in another case": ({SERVER: {"issuer": ISSUER.replace("auth", "AUTH")}}, "its issuer is"),
    "a token endpoint without https": ({SERVER: {"token_endpoint": "http://auth.tracker.io/t"}}, "only https"),
    "a token endpoint in a private network": ({SERVER: {"token_endpoint": "https://10.0.0.1/t"}}, "public name"),
    "a token endpoint on this machine": ({SERVER: {"token_endpoint": "https://localhost/t"}}, "public name"),
    "a token endpoint with a user": ({SERVER: {"token_endpoint": "https://u:p@auth.tracker.io/t"}}, "plain https"),
    "a token endpoint with a variable": ({SERVER: {"token_endpoint": "https://auth.tracker.io/{x}"}}, "braces"),
    "a consent page that is a script": ({SERVER: {"authorization_endpoint": "javascript:alert(1)"}}, "refused"),
    "a registration endpoint without https": ({SERVER: {"registration_endpoint": "http://a.io/"}}, "only https"),
    "no PKCE": ({SERVER: {"code_challenge_methods_supported": None}}, "no S256"),
    "plain PKCE": ({SERVER: {"code_challenge_methods_supported": ["plain"]}}, "no S256"),
    "no client authentication that is known": (
        {SERVER: {"token_endpoint_auth_methods_supported": ["private_key_jwt"], "registration_endpoint": None}},
        "client_secret_basic",
    ),
    "no token endpoint": ({SERVER: {"token_endpoint": None}}, "token_endpoint"),
    "another server's resource": ({RESOURCES: {"resource": "https://mcp.bank.io/mcp"}}, "another one"),
    "a resource below the server": ({RESOURCES: {"resource": f"{RESOURCE}/inner"}}, "another one"),
    "a resource beside the server": ({RESOURCES: {"resource": "https://mcp.tracker.io/mc"}}, "another one"),
    "no authorization server": ({RESOURCES: {"authorization_servers": []}}, "no authorization_servers"),
    "an issuer without https": ({RESOURCES: {"authorization_servers": ["http://auth.tracker.io"]}}, "only https"),
    "an issuer in a private network": ({RESOURCES: {"authorization_servers": ["https://192.168.0.1"]}}, "public name"),
    "metadata that are no object": ({"instead": {SERVER_PATH: answering("[]")}}, "no such metadata"),
    "metadata that are no JSON": ({"instead": {SERVER_PATH: answering("<html>")}}, "no such metadata"),
    "metadata too deep": ({"instead": {SERVER_PATH: answering("[" * 100_000)}}, "no such metadata"),
    "metadata that move": ({"instead": {RESOURCE_PATH: moved}}, "which is not followed"),
    "metadata without an end": ({"instead": {SERVER_PATH: endless}}, "larger than 256 KiB"),
    "a challenge that names a private network": (
        {"challenge": 'Bearer resource_metadata="https://169.254.169.254/x"'},
        "public name",
    ),
    "a challenge that names http": ({"challenge": 'Bearer resource_metadata="http://mcp.tracker.io/x"'}, "only https"),
}


@pytest.mark.parametrize(("members", "words"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_metadata_are_refused_with_the_reason(members, words):
    with pytest.raises(InvalidParams, match=words):
        await found(SignInServer(**members))


async def test_an_error_does_not_repeat_the_queries_of_strangers():
    challenge = 'Bearer resource_metadata="https://mcp.tracker.io/x?key=canary-1"'

    with pytest.raises(InvalidParams) as raised:
        await found(SignInServer(challenge=challenge, resource={"resource": "https://a.io?key=canary-1"}))

    assert "canary" not in raised.value.detail


@pytest.mark.parametrize("resource", [RESOURCE, f"{RESOURCE}/", "https://mcp.tracker.io", "https://mcp.tracker.io/"])
async def test_a_resource_may_be_the_server_or_what_it_is_a_part_of(resource):
    sign_in = await found(SignInServer(resource={"resource": resource}))

    assert sign_in.oauth["resource"] == resource


@pytest.mark.parametrize(
    ("methods", "ours"),
    [
        (None, "basic"),
        (["client_secret_post", "client_secret_basic"], "body"),
        (["none", "client_secret_basic", "client_secret_post"], "basic"),
        (["client_secret_post"], "body"),
        (["none", "private_key_jwt"], "none"),
        (["private_key_jwt"], "private_key_jwt"),
    ],
)
async def test_the_client_authenticates_as_the_server_supports_it(methods, ours):
    sign_in = await found(SignInServer(metadata={"token_endpoint_auth_methods_supported": methods}))

    assert sign_in.oauth["client_authentication"] == ours


OAUTH = OAuthEndpoints(token_url=f"{ISSUER}/token", client_authentication="basic")


@pytest.mark.parametrize(("callback", "kind"), [(CALLBACK, b'"web"'), ("http://127.0.0.1:1/callback", b'"native"')])
def test_a_registration_says_what_kind_of_application_the_gateway_is(callback: str, kind: bytes):
    assert b'"application_type":' + kind in registration_body(
        OAUTH, callback, "https://gateway.example", "https://gateway.example/keys"
    )


REFUSALS = {
    "a refusal": (
        400,
        b'{"error":"invalid_redirect_uri","error_description":"only https"}',
        UpstreamError,
        "only https",
    ),
    "a failure": (500, b"oops", UpstreamError, "status 500"),
    "no client_id": (201, b"{}", UpstreamInvalidResponse, "no client_id"),
    "an empty client_id": (201, b'{"client_id":""}', UpstreamInvalidResponse, "cannot be sent"),
    "a client_id with a line": (201, b'{"client_id":"a\\nb"}', UpstreamInvalidResponse, "cannot be sent"),
    "a secret with a line": (201, b'{"client_id":"a","client_secret":"a\\nb"}', UpstreamInvalidResponse, "cannot"),
}


@pytest.mark.parametrize(("status", "body", "error", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_registration_that_is_refused_or_of_no_use_says_why(status, body, error, words):
    with pytest.raises(error, match=words):
        read_registration(OAUTH, status, body)


@pytest.mark.parametrize(
    ("body", "authentication", "secret"),
    [
        (b'{"client_id":"a","client_secret":"s"}', "basic", "s"),
        (b'{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}', "body", "s"),
        (b'{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"none"}', "none", ""),
        (b'{"client_id":"a"}', "none", ""),
    ],
)
def test_the_server_decides_how_a_registered_client_authenticates(body, authentication, secret):
    made = read_registration(OAUTH, 201, body)

    assert (made.authentication, made.client_secret) == (authentication, secret)
    assert "client_secret" not in repr(made)


QUERIES = {
    "a member that tells accounts apart": ("?project_ref=abc&read_only=true", None),
    "a key": ("?apiKey=canary-1", "apiKey"),
    "a token": ("?access_token=canary-1", "access_token"),
    "a signature": ("?team=1&sig=canary-1", "sig"),
    "a member twice": ("?team=1&team=2", "team"),
    "braces": ("?team={x}", "braces"),
}


@pytest.mark.parametrize(("query", "refused"), QUERIES.values(), ids=QUERIES)
def test_the_query_of_a_url_is_kept_unless_it_is_a_credential(query: str, refused: str | None):
    upstreams, address = Upstreams(Transport()), McpAddress(url=RESOURCE + query)
    if refused is None:
        assert url_of(upstreams, address).raw_query_string == query[1:]
        return

    with pytest.raises(InvalidParams, match=refused) as raised:
        url_of(upstreams, address)
    assert "canary" not in raised.value.detail
