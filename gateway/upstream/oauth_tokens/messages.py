"""The messages of OAuth 2.0, pure: consent, code, token requests and their responses, revocation.

authlib implements the protocol; the spec has an application's deviations (`OAuthEndpoints`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7009.parameters import prepare_revoke_token_request
from authlib.oauth2.rfc7636.challenge import create_s256_code_challenge
from yarl import URL

from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    ReauthorizationRequired,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from gateway.foundation import payloads
from gateway.kinds.authentication import AuthMethod, OAuthEndpoints
from gateway.kinds.members import JsonPath, value_at
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.oauth_tokens.model import SKEW, App, TokenError, TokenErrorKind, TokenSet
from gateway.upstream.redaction import NO_SECRETS, Secrets
from gateway.upstream.requests import UpstreamRequest, relocated
from gateway.upstream.responses import UpstreamResponse

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
#: the spec language's words for RFC 6749 §2.3.1 → authlib's
_STYLES = {"basic": "client_secret_basic", "body": "client_secret_post", "none": "none"}
#: RFC 6749 §5.2: errors that refuse the app itself rather than its grant
_APP_CODES = frozenset({"invalid_client", "unauthorized_client"})
#: members of requests that are secrets (RFC 6749 §2.3.1, §4.1.3, §6; RFC 7636 §4.5; RFC 7009 §2.1; RFC 7523 §2.1)
_SECRET_MEMBERS = frozenset(
    {"assertion", "client_assertion", "client_secret", "code", "code_verifier", "refresh_token", "token"}
)
#: the grant of a signed JWT (RFC 7523 §2.1)
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
#: the type of a signed JWT that proves a client (RFC 7523 §2.2)
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#: seconds that the clocks of both sides may differ before a refused assertion is taken for the clock's fault
_CLOCK_DIFFERENCE = 30
#: seconds; a token with a longer `expires_in` counts as one that never expires
_LONGEST_LIFE = 10 * 365 * 86400
#: characters of an application's message that an error repeats
_WORDS = 200

#: query members as they came, repeated ones too
Query = Sequence[tuple[str, str]]


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
    """The URL that the user's browser is sent to (RFC 6749 §4.1.1, RFC 7636 §4.3)."""
    members = {name: value for name, value in oauth.authorization_params.items() if value and name != "response_type"}
    if consent.verifier:
        members |= {
            "code_challenge": create_s256_code_challenge(consent.verifier),
            "code_challenge_method": "S256",
        }
    members |= _resource(oauth)
    scope = oauth.scope_separator.join(consent.scopes)
    url = prepare_grant_uri(
        str(address), app.client_id, "code", consent.callback, scope=scope, state=consent.state, **members
    )
    return str(url)


def read_code(
    query: Query, spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None
) -> str | TokenError:
    """The code, or why there is none (RFC 6749 §4.1.2); an `iss` is compared as a whole string (RFC 9207 §2.4)."""
    issuers = {value for key, value in query if key == "iss"}
    if issuers and issuers != {issuer_of(spec, environment, override)}:
        return _grant_error("invalid_request", "the answer comes from another authorization server (iss)")
    if not issuers and spec.oauth_endpoints.names_issuer:
        return _grant_error("invalid_request", "the answer does not say which authorization server it comes from (iss)")
    if error := single(query, "error"):
        return _grant_error(printable(error), printable(single(query, "error_description") or ""))
    code = single(query, "code")
    return code or _grant_error("invalid_request", "the application sent no code")


def issuer_of(spec: ConnectorSpec, environment: Mapping[str, str], override: URL | None) -> str:
    """The issuer identifier of the kind's authorization server; that of an MCP server as its metadata spell it."""
    oauth = spec.oauth_endpoints
    if oauth.issuer is not None and spec.mcp is not None:
        return oauth.issuer
    if oauth.issuer is not None:
        return str(endpoint(oauth.issuer, environment, override))
    return str(endpoint(oauth.authorization_url, environment, override).origin())


def _grant_error(code: str, description: str) -> TokenError:
    return TokenError(code=code, description=description, kind=TokenErrorKind.GRANT, error=UpstreamInvalidResponse)


def single(query: Query, name: str) -> str | None:
    """The one value of a member; None when it is missing, empty or given twice (RFC 6749 §3.1)."""
    values = [value for key, value in query if key == name]
    return values[0] or None if len(values) == 1 else None


def code_request(oauth: OAuthEndpoints, address: URL, app: App, code: Code) -> UpstreamRequest:
    """A code for tokens (RFC 6749 §4.1.3). A write: a code is valid once."""
    own = {"redirect_uri": code.callback, "code": code.code, "code_verifier": code.verifier, **_resource(oauth)}
    form = prepare_token_request("authorization_code", **(oauth.code_params | own))
    return _request(oauth, "POST", address=address, app=app, form=form, effect=Effect.WRITE)


def refresh_request(oauth: OAuthEndpoints, address: URL, app: App, refresh_token: str) -> UpstreamRequest:
    """A refresh token for new tokens (RFC 6749 §6). A write: a refresh token that rotates is valid once too."""
    form = prepare_token_request("refresh_token", refresh_token=refresh_token, **_resource(oauth))
    return _request(oauth, "POST", address=address, app=app, form=form, effect=Effect.WRITE)


def client_request(oauth: OAuthEndpoints, address: URL, app: App, environment: Mapping[str, str]) -> UpstreamRequest:
    """The app's own credentials for a token (RFC 6749 §4.4). A repeated request does no harm."""
    named = {name: re.fullmatch(r"{(\w+)}", text) for name, text in oauth.client_params.items()}
    own = {
        name: text if (variable := named[name]) is None else environment.get(variable[1], "")
        for name, text in oauth.client_params.items()
    }
    members = {"scope": oauth.scope_separator.join(oauth.scopes), **_resource(oauth), **own}
    form = prepare_token_request("client_credentials", **{name: value for name, value in members.items() if value})
    return _request(oauth, "POST", address=address, app=app, form=form, effect=Effect.IDEMPOTENT)


def assertion_request(
    oauth: OAuthEndpoints, address: URL, app: App, method: AuthMethod, assertion: str
) -> UpstreamRequest:
    """A signed JWT for a token (RFC 7523 §2.1); the app adds its own proof only if the method has a secret for it.

    A repeated request does no harm, unless the application accepts each JWT once.
    """
    form = prepare_token_request(_JWT_BEARER, assertion=assertion)
    is_once = method.assertion is not None and method.assertion.has_id
    return _request(
        oauth,
        "POST",
        address=address,
        app=app if method.client_secret in method.credentials else None,
        form=form,
        effect=Effect.WRITE if is_once else Effect.IDEMPOTENT,
    )


def unsigned(reason: str) -> TokenError:
    """The private key in the credentials cannot sign."""
    return TokenError(code="invalid_key", description=reason, kind=TokenErrorKind.KEY, error=ReauthorizationRequired)


def of_clock(error: TokenError, headers: Mapping[str, str], sent_at: datetime) -> TokenError:
    """A refused assertion as a passing error if the clocks of both sides differ: its times may be what was refused."""
    try:
        ahead = round((sent_at - parsedate_to_datetime(headers["date"])).total_seconds())
    except (KeyError, TypeError, ValueError):
        return error
    if error.kind is not TokenErrorKind.GRANT or abs(ahead) <= _CLOCK_DIFFERENCE:
        return error
    side = "ahead of" if ahead > 0 else "behind"
    clock = f"the clock of the gateway (of its PostgreSQL) is {abs(ahead)} s {side} the application's: correct it"
    text = f"{error.description.rstrip('.')}; {clock}" if error.description else clock
    return replace(error, kind=TokenErrorKind.TRANSIENT, description=text)


def _resource(oauth: OAuthEndpoints) -> dict[str, str]:
    """The resource that tokens are for (RFC 8707 §2)."""
    return {} if oauth.resource is None else {"resource": oauth.resource}


def revoke_request(
    oauth: OAuthEndpoints,
    address: URL,
    app: App | None,
    credentials: Mapping[str, str],
    *,
    is_secret_in_form: bool = False,
) -> UpstreamRequest | None:
    """The revocation request: RFC 7009, or the application's own; None if a token or an app for it is missing.

    `is_secret_in_form` adds the app's secret to the form, perhaps an empty one, however the app authenticates.
    """
    access, refresh = credentials.get("access_token"), credentials.get("refresh_token")
    if oauth.revocation_style == "bearer":
        headers = {"Authorization": f"Bearer {access}", "Accept": _JSON}
        if not access:
            return None
        return UpstreamRequest(
            method=oauth.revocation_method,
            url=address,
            headers=headers,
            body=None,
            effect=Effect.IDEMPOTENT,
            operation="oauth.revoke",
        )
    if app is None or not (refresh or access):
        return None
    # Where the body is JSON, it is the application's own form of RFC 7009, which knows no hint.
    hint = None if oauth.encoding == "json" else "refresh_token" if refresh else "access_token"
    form, _ = prepare_revoke_token_request(refresh or access, hint)
    own = app.authentication or oauth.client_authentication
    if oauth.revocation_authentication and own not in oauth.revocation_authentication:
        own = oauth.revocation_authentication[0]
    if is_secret_in_form and own != "body":
        form = f"{form}&{urlencode({'client_secret': app.client_secret.get_secret_value()})}"
    return _request(
        oauth,
        oauth.revocation_method,
        address=address,
        app=replace(app, authentication=own),
        form=form,
        effect=Effect.IDEMPOTENT,
        operation="oauth.revoke",
    )


def _request(
    oauth: OAuthEndpoints,
    method: str,
    address: URL,
    app: App | None,
    form: str,
    effect: Effect,
    operation: str = "oauth.token",
) -> UpstreamRequest:
    """A form with the app's proof (RFC 6749 §2.3.1), if any, written as JSON if the application reads no forms."""
    secret, headers = "", dict[str, str]()
    if app is not None and app.assertion is not None:
        proof = {"client_assertion_type": _CLIENT_ASSERTION, "client_assertion": app.assertion.get_secret_value()}
        form = f"{form}&{urlencode({'client_id': app.client_id, **proof})}"
    elif app is not None and app.client_id:
        secret = app.client_secret.get_secret_value()
        # An app without a secret is a public client: it only names itself.
        style = app.authentication or oauth.client_authentication
        if oauth.resource is not None and secret and style == "basic":
            # Servers of the official MCP SDK look a client up by this member, whatever proves that it is the client.
            form = f"{form}&{urlencode({'client_id': app.client_id})}"
        authentication = ClientAuth(app.client_id, secret, _STYLES.get(style, "none") if secret else "none")
        _, headers, form = authentication.prepare(method, "", {}, form)
    if oauth.encoding == "json":
        content_type, body = _JSON, msgspec.json.encode(dict(parse_qsl(form, keep_blank_values=True)))
    else:
        content_type, body = _FORM, form.encode()
    return UpstreamRequest(
        method=method,
        url=address,
        headers={"Accept": _JSON, "Content-Type": content_type, **headers},
        body=body,
        effect=effect,
        operation=operation,
        secrets=(secret, *(value for name, value in parse_qsl(form) if name in _SECRET_MEMBERS)),
    )


def read_tokens(spec: ConnectorSpec, response: UpstreamResponse, now: datetime) -> TokenSet | TokenError:
    """The tokens in an answer that came for a request sent at `now`; the request's secrets are masked in errors."""
    oauth, document = spec.oauth_endpoints, _document(response.body)
    access = _member(oauth, document, "access_token")
    # If an application's answers have a success flag, its token endpoint's have it too: a 200 can be a failure.
    is_success = spec.failure.ok is None or value_at(document, (spec.failure.ok,)) is not False
    if 200 <= response.status < 300 and is_success and isinstance(access, str) and access.isprintable():
        return _tokens(spec, oauth, document, now)
    return _token_error(spec, response.status, document, response.secrets)


def unanswered(error: GatewayError) -> TokenError:
    """A token request without an answer; `is_lost` when the application may have acted on it."""
    return TokenError(
        code="temporarily_unavailable",
        description=f"the application's token endpoint: {error.detail}",
        kind=TokenErrorKind.TRANSIENT,
        error=next((cls for cls in (UpstreamTimeout, UpstreamRateLimited) if isinstance(error, cls)), UpstreamError),
        is_lost=error.is_outcome_unknown,
    )


def _document(body: bytes) -> Any:
    try:
        return payloads.value(body)
    except UpstreamInvalidResponse:
        return None


def _tokens(spec: ConnectorSpec, oauth: OAuthEndpoints, document: Any, now: datetime) -> TokenSet:
    declared = {name for method in spec.authentication.values() for name in method.credentials}
    credentials = ("access_token", "refresh_token", *(name for name in oauth.outputs if name in declared))
    return TokenSet(
        _texts(oauth, document, credentials),
        _texts(oauth, document, (name for name in oauth.outputs if name in spec.environment)),
        _end(_member(oauth, document, "expires_in"), now),
    )


def _texts(oauth: OAuthEndpoints, document: Any, names: Iterable[str]) -> dict[str, str]:
    members = {name: _member(oauth, document, name) for name in names}
    return {name: payloads.storable(value) for name, value in members.items() if isinstance(value, str) and value}


def _member(oauth: OAuthEndpoints, document: Any, name: str) -> Any:
    """A member of the answer if RFC 6749 §5.1 has it, else at its path in the spec's `outputs`."""
    value = document.get(name) if isinstance(document, dict) else None
    return value_at(document, oauth.outputs[name]) if value in (None, "") and name in oauth.outputs else value


def _end(lifetime: Any, now: datetime) -> datetime | None:
    """When a token with this lifetime in seconds expires; one of less than two minutes is renewed at half of it."""
    try:
        seconds = float(lifetime)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(lifetime, bool) or not 0 < seconds < _LONGEST_LIFE:
        return None
    return now + max(timedelta(seconds=seconds), timedelta(seconds=seconds / 2) + SKEW)


def _token_error(spec: ConnectorSpec, status: int, document: Any, secrets: Secrets) -> TokenError:
    """Why there are no tokens. Only a clear refusal makes the grant or the app invalid."""
    code = _first_text(document, (("error",), *spec.failure.code, ("status",)))
    if status >= 500 or status == 429 or code is None:
        return _transient_error(status)
    description = _first_text(document, (("error_description",), *spec.failure.message, ("message",))) or ""
    kind = _kind_of(spec.oauth_endpoints, status, code, description)
    return TokenError(
        code=printable(code, secrets), description=printable(description, secrets), kind=kind, error=UpstreamError
    )


def _transient_error(status: int) -> TokenError:
    description = f"the application's token endpoint answered {status}"
    if status >= 500 or status == 429:
        error = UpstreamRateLimited if status == 429 else UpstreamError
        # After a proxy's 502 or 504 it is unknown what the application behind it did.
        return TokenError(
            code="temporarily_unavailable",
            description=description,
            kind=TokenErrorKind.TRANSIENT,
            error=error,
            is_lost=status >= 500,
        )
    text = f"{description} without tokens that can be read"
    return TokenError(
        code="server_error",
        description=text,
        kind=TokenErrorKind.TRANSIENT,
        error=UpstreamInvalidResponse,
        is_lost=status < 300,
    )


def _kind_of(oauth: OAuthEndpoints, status: int, code: str, description: str) -> TokenErrorKind:
    if code == "invalid_grant" or not {code, description}.isdisjoint(oauth.invalid_grant_codes):
        return TokenErrorKind.GRANT
    is_of_app = code in _APP_CODES or code in oauth.invalid_client_codes or status == 401
    return TokenErrorKind.APP if is_of_app else TokenErrorKind.TRANSIENT


def _first_text(document: Any, paths: Iterable[JsonPath]) -> str | None:
    values = (value_at(document, path) for path in paths if isinstance(document, Mapping))
    return next((value for value in values if isinstance(value, str) and value), None)


def printable(text: str, secrets: Secrets = NO_SECRETS) -> str:
    """An application's message for an error: short, in the characters of RFC 6749 §5.2, secrets masked."""
    masked = secrets.masked(text)
    return "".join(each if " " <= each <= "~" and each not in '"\\' else " " for each in masked)[:_WORDS].strip()
