"""What answers of token endpoints mean."""

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest

from gateway.errors import UpstreamError, UpstreamInvalidResponse, UpstreamRateLimited
from gateway.kinds.catalog import Catalog
from gateway.upstream.oauth_tokens.messages import printable, read_tokens
from gateway.upstream.oauth_tokens.model import TokenError, TokenErrorKind, TokenSet
from gateway.upstream.responses import UpstreamResponse

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _answer(status: int, body: object) -> UpstreamResponse:
    return UpstreamResponse(status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("kind", "body", "tokens"),
    [
        (
            "work-management",
            {"access_token": "a", "refresh_token": "r", "expires_in": 3600, "data": {"id": 1}},
            TokenSet({"access_token": "a", "refresh_token": "r"}, {}, NOW + timedelta(hours=1)),
        ),
        (
            "work-management",
            {"access_token": "a", "expires_in": "3600"},
            TokenSet({"access_token": "a"}, {}, NOW + timedelta(hours=1)),
        ),
        (
            "workspace-notes",
            {"access_token": "a", "refresh_token": None, "bot_id": "b"},
            TokenSet({"access_token": "a"}),
        ),
        (
            "crm-query",
            {"access_token": "a", "instance_url": "https://acme.my.salesforce.com", "issued_at": "1"},
            TokenSet({"access_token": "a"}, {"instance_url": "https://acme.my.salesforce.com"}),
        ),
        (
            "team-chat",
            {"ok": True, "access_token": "bot", "authed_user": {"id": "U1"}, "expires_in": 43200, "refresh_token": "r"},
            TokenSet({"access_token": "bot", "refresh_token": "r"}, {}, NOW + timedelta(hours=12)),
        ),
        ("team-chat", {"ok": True, "authed_user": {"access_token": "user"}}, TokenSet({"access_token": "user"})),
        (
            "team-chat",
            {"ok": True, "authed_user": {"access_token": "user", "refresh_token": "r", "expires_in": 43200}},
            TokenSet({"access_token": "user", "refresh_token": "r"}, {}, NOW + timedelta(hours=12)),
        ),
    ],
)
def test_tokens_are_found_with_what_comes_along(catalog: Catalog, kind: str, body: object, tokens: TokenSet) -> None:
    result = read_tokens(catalog.kind(kind).spec, _answer(200, body), NOW)

    assert result == tokens


@pytest.mark.parametrize("lifetime", [None, True, 0, -5, "soon", [], 1e300, float("nan")])
def test_a_lifetime_that_is_none_means_that_the_end_is_unknown(catalog: Catalog, lifetime: object) -> None:
    body = json.dumps({"access_token": "a", "expires_in": lifetime}).replace("NaN", '"NaN"').encode()

    result = read_tokens(catalog.kind("work-management").spec, _answer(200, body), NOW)

    assert result == TokenSet({"access_token": "a"})


def test_a_token_of_less_than_two_minutes_is_renewed_at_half_its_life(catalog: Catalog) -> None:
    result = read_tokens(
        catalog.kind("work-management").spec, _answer(200, {"access_token": "a", "expires_in": 20}), NOW
    )

    assert isinstance(result, TokenSet)
    assert result.expires_at == NOW + timedelta(seconds=70)


@pytest.mark.parametrize(
    ("kind", "status", "body", "code", "kind_of_error", "is_lost"),
    [
        (
            "work-management",
            400,
            {"error": "invalid_grant", "error_description": "x"},
            "invalid_grant",
            TokenErrorKind.GRANT,
            False,
        ),
        ("work-management", 401, {"error": "invalid_grant"}, "invalid_grant", TokenErrorKind.GRANT, False),
        (
            "team-chat",
            200,
            {"ok": False, "error": "invalid_refresh_token"},
            "invalid_refresh_token",
            TokenErrorKind.GRANT,
            False,
        ),
        (
            *("team-chat", 200, {"ok": False, "error": "bad_client_secret"}),
            *("bad_client_secret", TokenErrorKind.APP, False),
        ),
        (
            *("team-chat", 200, {"ok": False, "error": "invalid_client_id"}),
            *("invalid_client_id", TokenErrorKind.APP, False),
        ),
        (
            *("crm-query", 400, {"error": "inactive_user", "error_description": "user is inactive"}),
            *("inactive_user", TokenErrorKind.GRANT, False),
        ),
        (
            *("crm-query", 400, {"error": "inactive_org", "error_description": "organization locked"}),
            *("inactive_org", TokenErrorKind.GRANT, False),
        ),
        ("team-chat", 200, {"ok": False, "error": "ratelimited"}, "ratelimited", TokenErrorKind.TRANSIENT, False),
        ("team-chat", 200, {"ok": False, "error": "x", "access_token": "a"}, "x", TokenErrorKind.TRANSIENT, False),
        ("work-management", 401, {"error": "invalid_client"}, "invalid_client", TokenErrorKind.APP, False),
        ("workspace-notes", 401, {"code": "unauthorized", "message": "m"}, "unauthorized", TokenErrorKind.APP, False),
        ("work-management", 400, {"error": "unauthorized_client"}, "unauthorized_client", TokenErrorKind.APP, False),
        *(
            (
                *(kind, 403, {"error": "unauthorized_client", "error_description": "refresh_token is invalid"}),
                *("unauthorized_client", TokenErrorKind.GRANT, False),
            )
            for kind in ("jira", "confluence")
        ),
        (
            *("jira", 403, {"error": "unauthorized_client", "error_description": "client is not allowed"}),
            *("unauthorized_client", TokenErrorKind.APP, False),
        ),
        ("work-management", 400, {"error": "invalid_request"}, "invalid_request", TokenErrorKind.TRANSIENT, False),
        ("work-management", 500, {"error": "invalid_grant"}, "temporarily_unavailable", TokenErrorKind.TRANSIENT, True),
        ("work-management", 503, b"<html>", "temporarily_unavailable", TokenErrorKind.TRANSIENT, True),
        ("work-management", 429, b"", "temporarily_unavailable", TokenErrorKind.TRANSIENT, False),
        ("work-management", 200, b"<html>welcome</html>", "server_error", TokenErrorKind.TRANSIENT, True),
        ("work-management", 200, {"token_type": "bearer"}, "server_error", TokenErrorKind.TRANSIENT, True),
        ("work-management", 200, {"access_token": "a\r\nX: y"}, "server_error", TokenErrorKind.TRANSIENT, True),
        ("work-management", 200, {"access_token": 5}, "server_error", TokenErrorKind.TRANSIENT, True),
        ("work-management", 200, b"[" * 100_000, "server_error", TokenErrorKind.TRANSIENT, True),
        ("work-management", 302, b"", "server_error", TokenErrorKind.TRANSIENT, False),
        ("work-management", 404, ["no"], "server_error", TokenErrorKind.TRANSIENT, False),
    ],
)
def test_only_a_plain_refusal_counts_against_the_grant(
    catalog: Catalog, kind: str, status: int, body: object, code: str, kind_of_error: TokenErrorKind, is_lost: bool
) -> None:
    result = read_tokens(catalog.kind(kind).spec, _answer(status, body), NOW)

    assert isinstance(result, TokenError)
    assert (result.code, result.kind, result.is_lost) == (code, kind_of_error, is_lost)


@pytest.mark.parametrize(
    ("status", "error"), [(429, UpstreamRateLimited), (502, UpstreamError), (200, UpstreamInvalidResponse)]
)
def test_a_transient_error_says_what_callers_get(catalog: Catalog, status: int, error: type) -> None:
    result = read_tokens(catalog.kind("work-management").spec, _answer(status, b"?"), NOW)

    assert isinstance(result, TokenError)
    assert result.error is error


def test_secrets_that_an_application_repeats_are_taken_out(catalog: Catalog) -> None:
    body = {"error": "invalid_grant", "error_description": "r-secret was used before"}

    result = read_tokens(catalog.kind("work-management").spec, _answer(400, body), NOW, secrets=["r-secret", ""])

    assert str(result) == "invalid_grant: *** was used before"


@pytest.mark.parametrize(
    ("text", "repeated"),
    [
        ('a"b\\c', "a b c"),
        ("line\r\nSet-Cookie: x", "line  Set-Cookie: x"),
        ("é" * 3 + "e", "e"),
        ("x" * 900, "x" * 200),
    ],
)
def test_an_applications_words_are_repeated_in_plain_characters(text: str, repeated: str) -> None:
    assert printable(text) == repeated


def test_tokens_do_not_show_in_what_is_printed(catalog: Catalog) -> None:
    result = read_tokens(catalog.kind("work-management").spec, _answer(200, {"access_token": "canary"}), NOW)

    assert "canary" not in repr(result)


def test_a_secret_is_taken_out_in_base64_too(catalog: Catalog) -> None:
    echoed = b64encode(b"app-1:a-long-client-secret").decode()
    body = {"error": "invalid_client", "error_description": f"Basic {echoed} is refused"}

    result = read_tokens(
        catalog.kind("work-management").spec, _answer(401, body), NOW, secrets=["a-long-client-secret"]
    )

    assert isinstance(result, TokenError)
    assert b64encode(b"client-secret")[4:-4].decode() not in result.description
    assert result.description.endswith("is refused")
