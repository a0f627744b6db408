"""The authorization server of a kind (RFC 6749, PKCE by RFC 7636, revocation by RFC 7009), with a consent page."""

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from yarl import URL

from gateway.sandbox.calls import Call, Reply, decoded_basic
from gateway.sandbox.grants import Grants, Pair
from gateway.sandbox.signed_grants import JWT_BEARER, AssertionRefused, SignedGrant


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenStyle:
    """How a kind issues tokens, as far as it differs from the defaults."""

    #: lifetime of an access token in seconds
    lifetime: float = 3600
    #: whether the token response has `expires_in`
    sends_expires_in: bool = True
    #: whether a refresh makes both old tokens invalid and issues two new ones
    rotates: bool = False
    #: whether the response to a refresh repeats an unchanged refresh token
    repeats_refresh: bool = True
    #: where clients may send their id and secret
    client_authentication: tuple[Literal["basic", "body"], ...] = ("body",)
    encodings: tuple[Literal["form", "json"], ...] = ("form",)
    #: whether an error is a 200 with `ok: false`
    fails_softly: bool = False
    #: further members of the token response
    outputs: Callable[[Call, Pair], dict[str, Any]] = lambda call, pair: {}


class OAuthRefusal(Exception):
    """An error response of the token endpoint (RFC 6749 §5.2)."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.code, self.description, self.status = code, description, status


class AuthorizationServer:
    """Consent page, token endpoint and revocation of one application."""

    def __init__(
        self,
        title: str,
        style: TokenStyle,
        grants: Grants,
        *,
        has_client_grant: bool,
        signed_grant: SignedGrant | None = None,
    ) -> None:
        self._title, self._style, self._grants = title, style, grants
        #: the assertions that are exchanged for tokens
        self._signed_grant = signed_grant
        #: whether the grant `client_credentials` is supported
        self._has_client_grant = has_client_grant

    def consent_page(self, call: Call) -> Reply:
        """The page with the buttons Allow and Deny; 400 for a request without `client_id` or a valid `redirect_uri`."""
        params = call.query
        if not params.get("client_id") or not _is_address(params.get("redirect_uri", "")):
            return Reply(_page("Bad request", "<p>client_id and redirect_uri are needed.</p>"), 400, {}, "text/html")
        if params.get("response_type", "code") != "code":
            return self._redirect(params, {"error": "unsupported_response_type"})
        title = html.escape(self._title)
        scopes = html.escape(params.get("scope", "") or "everything the app was granted")
        form = (
            f"<p>An app asks for access: {scopes}</p>"
            f'<form method="post" action="{html.escape(call.path)}?{html.escape(urlencode(dict(params)))}">'
            '<button id="allow" name="decision" value="allow">Allow</button> '
            '<button id="deny" name="decision" value="deny">Deny</button></form>'
        )
        return Reply(_page(f"{title} (sandbox)", form), 200, {}, "text/html")

    def decide(self, call: Call) -> Reply:
        """The submitted decision: redirects to the client with a code or with `access_denied`."""
        params = call.query
        if not params.get("client_id") or not _is_address(params.get("redirect_uri", "")):
            return Reply(_page("Bad request", "<p>client_id and redirect_uri are needed.</p>"), 400, {}, "text/html")
        if call.body.get("decision") != "allow":
            return self._redirect(params, {"error": "access_denied", "error_description": "the user denied access"})
        challenge = params.get("code_challenge", "")
        if challenge and params.get("code_challenge_method") != "S256":
            return self._redirect(params, {"error": "invalid_request", "error_description": "only S256 is understood"})
        code = self._grants.consent(
            params["client_id"], params["redirect_uri"], params.get("scope", ""), challenge, call.now
        )
        return self._redirect(params, {"code": code})

    def token(self, call: Call) -> Reply:
        """Exchange a code, a refresh token, the client's credentials or an assertion for tokens.

        Errors follow RFC 6749 §5.2, or are a 200 with `ok: false`.
        """
        try:
            self._check_encoding(call)
            grant_type = call.body.get("grant_type", "authorization_code")
            if grant_type == JWT_BEARER:
                return self._issued_for_assertion(call)
            client_id = self._client(call)
            match grant_type:
                case "refresh_token":
                    return self._refreshed(call, client_id)
                case "client_credentials":
                    return self._issued_to_client(call, client_id)
                case _:
                    return self._redeemed(call, client_id)
        except OAuthRefusal as refusal:
            if self._style.fails_softly:
                return Reply({"ok": False, "error": refusal.code})
            return Reply({"error": refusal.code, "error_description": refusal.description}, refusal.status)

    def revoke(self, call: Call) -> Reply:
        """Make the token in the body, in the query or in the Authorization header invalid, and its pair."""
        bearer = call.headers.get("authorization", "").partition(" ")[2]
        self._grants.revoke(str(call.body.get("token") or call.query.get("token") or bearer))
        return Reply({"ok": True, "revoked": True} if self._style.fails_softly else {}, 200)

    def _check_encoding(self, call: Call) -> None:
        encoding = "form" if call.is_form else "json"
        if encoding not in self._style.encodings:
            raise OAuthRefusal("invalid_request", f"the body must be {' or '.join(self._style.encodings)}")

    def _client(self, call: Call) -> str:
        """The id of the authenticated client; any secret is accepted that does not begin with `bad`."""
        scheme, _, value = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic" and "basic" in self._style.client_authentication:
            client_id, _, secret = decoded_basic(value)
        elif "body" in self._style.client_authentication:
            client_id, secret = (str(call.body.get(name, "")) for name in ("client_id", "client_secret"))
        else:
            client_id, secret = "", ""
        if not client_id or not secret or secret.startswith("bad"):
            raise OAuthRefusal("invalid_client", "client authentication failed", 401)
        return client_id

    def _redeemed(self, call: Call, client_id: str) -> Reply:
        code, redirect_uri, verifier = (
            str(call.body.get(name, "")) for name in ("code", "redirect_uri", "code_verifier")
        )
        consent = self._grants.redeem(code, client_id, redirect_uri, verifier, call.now)
        if consent is None:
            softly = "invalid_code" if self._style.fails_softly else "invalid_grant"
            raise OAuthRefusal(
                softly, "the code is invalid, or does not belong to this client, redirect URI and verifier"
            )
        return self._token_reply(
            call, self._grants.issue(client_id, consent.scope, self._lifetime(call), call.now), True
        )

    def _issued_to_client(self, call: Call, client_id: str) -> Reply:
        """A token for the client itself (RFC 6749 §4.4); without a refresh token, because no person has consented."""
        if not self._has_client_grant:
            raise OAuthRefusal("unsupported_grant_type", "this server does not support client_credentials")
        scope = str(call.body.get("scope", ""))
        return self._token_reply(call, self._grants.issue(client_id, scope, self._lifetime(call), call.now), False)

    def _issued_for_assertion(self, call: Call) -> Reply:
        """A token for a signed JWT, which authenticates the client (RFC 7523 §2.1); without a refresh token."""
        if self._signed_grant is None:
            raise OAuthRefusal("unsupported_grant_type", "this server does not support signed JWTs")
        try:
            claims = self._signed_grant.verified(str(call.body.get("assertion", "")), self._grants.keys, call.now)
        except AssertionRefused as refused:
            raise OAuthRefusal("invalid_grant", str(refused)) from refused
        pair = self._grants.issue(str(claims["iss"]), str(claims.get("scope", "")), self._lifetime(call), call.now)
        return self._token_reply(call, pair, False)

    def _refreshed(self, call: Call, client_id: str) -> Reply:
        old = self._grants.pair_of(str(call.body.get("refresh_token", "")), client_id)
        if old is None:
            softly = "invalid_refresh_token" if self._style.fails_softly else "invalid_grant"
            raise OAuthRefusal(softly, "the refresh token is invalid")
        if self._style.rotates:
            self._grants.invalidate(old)
        refresh = None if self._style.rotates else old.refresh
        pair = self._grants.issue(client_id, old.scope, self._lifetime(call), call.now, refresh)
        return self._token_reply(call, pair, self._style.rotates or self._style.repeats_refresh)

    def _lifetime(self, call: Call) -> float:
        lifetime = str(call.body.get("expires_in", ""))
        return self._grants.lifetime or (float(lifetime) if lifetime.isdigit() else self._style.lifetime)

    def _token_reply(self, call: Call, pair: Pair, has_refresh: bool) -> Reply:
        answer: dict[str, Any] = {"ok": True} if self._style.fails_softly else {}
        answer |= {"access_token": pair.access, "token_type": "bearer", "scope": pair.scope}
        if has_refresh:
            answer["refresh_token"] = pair.refresh
        if self._style.sends_expires_in:
            answer["expires_in"] = max(1, int(self._lifetime(call)))
        return Reply(answer | self._style.outputs(call, pair), 200, {"Cache-Control": "no-store"})

    def _redirect(self, params: Mapping[str, str], members: Mapping[str, str]) -> Reply:
        """A redirect to the client's URI: its query is kept, and the members and the client's `state` are added."""
        state = {"state": params["state"]} if "state" in params else {}
        target = URL(params["redirect_uri"])
        query = urlencode([*parse_qsl(target.query_string), *members.items(), *state.items()])
        return Reply(None, 302, {"Location": f"{target.with_query(None)}?{query}"})


def _is_address(text: str) -> bool:
    try:
        url = URL(text)
    except ValueError:
        return False
    return bool(url.host) and url.scheme in ("http", "https")


def _page(title: str, content: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>{content}</html>'
    )
