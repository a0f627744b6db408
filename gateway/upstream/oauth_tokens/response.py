"""Reads the responses of an authorization server: tokens or a token error, and members of a callback's query. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from gateway.errors import (
    GatewayError,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from gateway.kinds.authentication import OAuthEndpoints
from gateway.kinds.members import JsonPath
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.oauth_tokens.model import SKEW, TokenError, TokenErrorKind, TokenSet
from gateway.upstream.redaction import Secrets
from gateway.upstream.responses import UpstreamResponse, value_at

#: RFC 6749 §5.2: errors that refuse the app itself rather than its grant
_APP_CODES = frozenset({"invalid_client", "unauthorized_client"})
#: seconds; a token with a longer `expires_in` counts as one that never expires
_LONGEST_LIFE = 10 * 365 * 86400
#: characters of an application's message that an error repeats
_WORDS = 200

#: query members as they came, repeated ones too
Query = Sequence[tuple[str, str]]


def read_tokens(
    spec: ConnectorSpec, response: UpstreamResponse, now: datetime, *, secrets: Iterable[str] = ()
) -> TokenSet | TokenError:
    """The tokens in an answer that came for a request sent at `now`; `secrets` never show in a reason."""
    oauth, document = spec.oauth_endpoints, _document(response.body)
    access = _member(oauth, document, "access_token")
    # Where an application's answers say whether they are a success, its token endpoint's do too: 200 can be a no.
    is_success = spec.failure.ok is None or value_at(document, (spec.failure.ok,)) is not False
    if 200 <= response.status < 300 and is_success and isinstance(access, str) and access.isprintable():
        return _tokens(spec, oauth, document, now)
    return _token_error(spec, response.status, document, tuple(secrets))


def unanswered(error: GatewayError) -> TokenError:
    """A token request without an answer; `is_lost` when the application may have acted on it."""
    return TokenError(
        "temporarily_unavailable",
        f"the application's token endpoint: {error.detail}",
        TokenErrorKind.TRANSIENT,
        next((cls for cls in (UpstreamTimeout, UpstreamRateLimited) if isinstance(error, cls)), UpstreamError),
        is_lost=error.is_outcome_unknown,
    )


def _document(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
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
    return {name: value for name, value in members.items() if isinstance(value, str) and value}


def _member(oauth: OAuthEndpoints, document: Any, name: str) -> Any:
    """A member of the answer where RFC 6749 §5.1 has it, else where the spec says that it lies."""
    value = document.get(name) if isinstance(document, dict) else None
    return value_at(document, oauth.outputs[name]) if value in (None, "") and name in oauth.outputs else value


def _end(lifetime: Any, now: datetime) -> datetime | None:
    """When a token ends that lives so many seconds; one of less than two minutes is renewed at half its life."""
    try:
        seconds = float(lifetime)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(lifetime, bool) or not 0 < seconds < _LONGEST_LIFE:
        return None
    return now + max(timedelta(seconds=seconds), timedelta(seconds=seconds / 2) + SKEW)


def _token_error(spec: ConnectorSpec, status: int, document: Any, secrets: tuple[str, ...]) -> TokenError:
    """Why there are no tokens. Only a clear refusal of the grant or the app counts against them."""
    code = _first_text(document, (("error",), *spec.failure.code, ("status",)))
    if status >= 500 or status == 429 or code is None:
        return _transient_error(status)
    description = _first_text(document, (("error_description",), *spec.failure.message, ("message",)))
    kind = _kind_of(spec.oauth_endpoints, status, code)
    return TokenError(printable(code, secrets), printable(description or "", secrets), kind, UpstreamError)


def _transient_error(status: int) -> TokenError:
    description = f"the application's token endpoint answered {status}"
    if status >= 500 or status == 429:
        error = UpstreamRateLimited if status == 429 else UpstreamError
        # After a proxy's 502 or 504 it is unknown what the application behind it did.
        return TokenError(
            "temporarily_unavailable", description, TokenErrorKind.TRANSIENT, error, is_lost=status >= 500
        )
    text = f"{description} without tokens that can be read"
    return TokenError("server_error", text, TokenErrorKind.TRANSIENT, UpstreamInvalidResponse, is_lost=status < 300)


def _kind_of(oauth: OAuthEndpoints, status: int, code: str) -> TokenErrorKind:
    if code == "invalid_grant" or code in oauth.invalid_grant_codes:
        return TokenErrorKind.GRANT
    is_of_app = code in _APP_CODES or code in oauth.invalid_client_codes or status == 401
    return TokenErrorKind.APP if is_of_app else TokenErrorKind.TRANSIENT


def _first_text(document: Any, paths: Iterable[JsonPath]) -> str | None:
    values = (value_at(document, path) for path in paths if isinstance(document, Mapping))
    return next((value for value in values if isinstance(value, str) and value), None)


def printable(text: str, secrets: Iterable[str] = ()) -> str:
    """An application's message for an error: short, in the characters of RFC 6749 §5.2, secrets masked."""
    masked = Secrets(secrets).masked(text)
    return "".join(each if " " <= each <= "~" and each not in '"\\' else " " for each in masked)[:_WORDS].strip()


def single(query: Query, name: str) -> str | None:
    """The one value of a member; None when it is missing, empty or given twice (RFC 6749 §3.1)."""
    values = [value for key, value in query if key == name]
    return values[0] or None if len(values) == 1 else None
