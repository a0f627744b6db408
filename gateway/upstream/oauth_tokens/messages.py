"""The messages of OAuth 2.0 that we send, pure: the consent address, token requests, revocation.

Protocol pieces are authlib's; what each application does in its own way is in its spec (`OAuthEndpoints`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import msgspec
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7009.parameters import prepare_revoke_token_request
from authlib.oauth2.rfc7636.challenge import create_s256_code_challenge
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.kinds.authentication import OAuthEndpoints
from gateway.upstream.oauth_tokens.model import App
from gateway.upstream.requests import UpstreamRequest, relocated

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
#: our words for RFC 6749 §2.3.1 → authlib's
_STYLES = {"basic": "client_secret_basic", "body": "client_secret_post"}


@dataclass(frozen=True, slots=True)
class ConsentParams:
    """The scopes, the redirect URI and the state of one consent."""

    callback: str
    scopes: Sequence[str]
    state: str = field(repr=False)
    #: the PKCE code verifier (RFC 7636); None if the application does not support PKCE
    verifier: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Code:
    """The answer to a consent, to be exchanged for tokens once."""

    code: str = field(repr=False)
    callback: str
    verifier: str | None = field(repr=False)


def endpoint(template: str, environment: Mapping[str, str], override: URL | None) -> URL:
    """An OAuth address of the kind with its variables filled in, moved to the operator's override if there is one."""
    return relocated(URL(template.format_map(environment), encoded=True), override)


def consent_url(oauth: OAuthEndpoints, address: URL, app: App, consent: ConsentParams) -> str:
    """Where the user's browser is sent (RFC 6749 §4.1.1, RFC 7636 §4.3)."""
    members = {name: value for name, value in oauth.authorization_params.items() if value and name != "response_type"}
    if consent.verifier:
        members |= {
            "code_challenge": create_s256_code_challenge(consent.verifier),
            "code_challenge_method": "S256",
        }
    scope = oauth.scope_separator.join(consent.scopes)
    url = prepare_grant_uri(
        str(address), app.client_id, "code", consent.callback, scope=scope, state=consent.state, **members
    )
    return str(url)


def code_request(oauth: OAuthEndpoints, address: URL, app: App, code: Code) -> UpstreamRequest:
    """A code for tokens (RFC 6749 §4.1.3). A write: a code is good once."""
    form = prepare_token_request(
        "authorization_code", redirect_uri=code.callback, code=code.code, code_verifier=code.verifier
    )
    return _request(oauth, "POST", address, app, form, Effect.WRITE)


def refresh_request(oauth: OAuthEndpoints, address: URL, app: App, refresh_token: str) -> UpstreamRequest:
    """A refresh token for new tokens (RFC 6749 §6). A write: a refresh token that rotates is good once too."""
    form = prepare_token_request("refresh_token", refresh_token=refresh_token)
    return _request(oauth, "POST", address, app, form, Effect.WRITE)


def client_request(oauth: OAuthEndpoints, address: URL, app: App) -> UpstreamRequest:
    """The app's own credentials for a token (RFC 6749 §4.4). Asking twice gives two tokens, and harms nothing."""
    scope = oauth.scope_separator.join(oauth.scopes)
    form = prepare_token_request("client_credentials", **({"scope": scope} if scope else {}))
    return _request(oauth, "POST", address, app, form, Effect.IDEMPOTENT)


def revoke_request(
    oauth: OAuthEndpoints, address: URL, app: App | None, credentials: Mapping[str, str]
) -> UpstreamRequest | None:
    """The revocation request: RFC 7009, or the application's own; None if a token or an app for it is missing."""
    access, refresh = credentials.get("access_token"), credentials.get("refresh_token")
    if oauth.revocation_style == "bearer":
        headers = {"Authorization": f"Bearer {access}", "Accept": _JSON}
        if not access:
            return None
        return UpstreamRequest(oauth.revocation_method, address, headers, None, Effect.IDEMPOTENT, "oauth.revoke")
    if app is None or not (refresh or access):
        return None
    # Where the body is JSON, it is the application's own form of RFC 7009, which knows no hint.
    hint = None if oauth.encoding == "json" else "refresh_token" if refresh else "access_token"
    form, _ = prepare_revoke_token_request(refresh or access, hint)
    return _request(oauth, oauth.revocation_method, address, app, form, Effect.IDEMPOTENT, "oauth.revoke")


def _request(
    oauth: OAuthEndpoints,
    method: str,
    address: URL,
    app: App,
    form: str,
    effect: Effect,
    operation: str = "oauth.token",
) -> UpstreamRequest:
    """A form with the app's proof (RFC 6749 §2.3.1), written as JSON where the application reads no forms."""
    secret = app.client_secret.get_secret_value()
    # An app without a secret is a public client: it only names itself.
    proof = ClientAuth(app.client_id, secret, _STYLES[oauth.client_authentication] if secret else "none")
    _, headers, form = proof.prepare(method, "", {}, form)
    if oauth.encoding == "json":
        content_type, body = _JSON, msgspec.json.encode(dict(parse_qsl(form, keep_blank_values=True)))
    else:
        content_type, body = _FORM, form.encode()
    headers = {"Accept": _JSON, "Content-Type": content_type, **headers}
    return UpstreamRequest(method, address, headers, body, effect, operation)
