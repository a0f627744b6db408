"""What hosts may ask: pure."""

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from gateway.access.oauth_server.hosts import host_of, redirect_uris_of
from gateway.access.oauth_server.model import Host
from gateway.access.oauth_server.requests import is_redirect_uri, is_verified, redirect_of, request_of
from gateway.errors import OAuthError

HOST = Host("h", "Host", ("https://host.example/callback", "http://127.0.0.1:3000/callback", "cursor://oauth/callback"))
RESOURCES = ("https://gateway.example/mcp", "https://gateway.example/mcp/team-chat")
VERIFIER = "v" * 43
GOOD = {
    "response_type": "code",
    "code_challenge": create_s256_code_challenge(VERIFIER),
    "code_challenge_method": "S256",
    "state": "s",
    "resource": "https://gateway.example/mcp/team-chat",
    "scope": "read offline_access",
}


@pytest.mark.parametrize(
    "uri",
    ["https://host.example/callback", "http://127.0.0.1:51234/callback", "cursor://oauth/callback"],
)
def test_a_redirect_goes_where_the_host_registered_on_any_port_of_the_loopback(uri):
    assert redirect_of({"redirect_uri": uri}, HOST) == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://host.example/callback/",
        "https://host.example:444/callback",
        "https://evil.example/callback",
        "http://127.0.0.1:3000/other",
        "http://localhost:3000/callback",
        "https://host.example/callback#x",
        "cursor://oauth/other",
    ],
)
def test_a_redirect_anywhere_else_is_refused(uri):
    with pytest.raises(OAuthError):
        redirect_of({"redirect_uri": uri}, HOST)


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://host.example/",
        "https://a@host.example/",
        "https://a;b/",
        "//x",
        "x y:z",
    ],
)
def test_an_address_that_a_browser_would_run_or_leak_to_is_no_redirect_uri(uri):
    assert not is_redirect_uri(uri)


def test_a_good_request_keeps_what_was_asked():
    asked = request_of(GOOD, HOST, HOST.redirect_uris[0], RESOURCES)

    assert (asked.scopes, asked.resource, asked.state) == (("read",), GOOD["resource"], "s")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"resource": "https://gateway.example/other"}, "invalid_target"),
        ({"state": "s" * 3000}, "invalid_request"),
    ],
)
def test_what_cannot_be_given_is_refused_by_its_code(change, code):
    with pytest.raises(OAuthError) as refusal:
        request_of({**GOOD, **change}, HOST, HOST.redirect_uris[0], RESOURCES)

    assert refusal.value.code == code


@pytest.mark.parametrize(("verifier", "expected"), [(VERIFIER, True), ("w" * 43, False), ("short", False), ("", False)])
def test_only_the_verifier_behind_the_challenge_holds(verifier, expected):
    assert is_verified(verifier, GOOD["code_challenge"]) is expected


DOCUMENT = {
    "client_id": "https://host.example/client.json",
    "client_name": "Host",
    "redirect_uris": ["https://host.example/callback"],
}


def test_a_metadata_document_makes_a_host():
    assert host_of(DOCUMENT["client_id"], DOCUMENT).redirect_uris == ("https://host.example/callback",)


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_name": None},
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"token_endpoint_auth_method": "client_secret_basic"},
    ],
)
def test_a_metadata_document_that_does_not_hold_is_refused(change):
    with pytest.raises(OAuthError):
        host_of("https://host.example/client.json", {**DOCUMENT, **change})


def test_redirect_uris_are_a_list():
    with pytest.raises(OAuthError):
        redirect_uris_of({"redirect_uris": "https://host.example/"})
