"""The OAuth model: apps, tokens, and the errors of a token endpoint."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, get_args

from pydantic import SecretStr
from yarl import URL

from gateway.errors import ConnectorNotReady, FieldError, GatewayError, InvalidCredentials, ReauthorizationRequired
from gateway.kinds.authentication import AuthMethod, ClientAuthentication
from gateway.kinds.spec import ConnectorSpec
from gateway.upstream.requests import checked_environment

if TYPE_CHECKING:
    from gateway.upstream.oauth_tokens.client_keys import ClientKeys

log = logging.getLogger(__name__)

#: a token is renewed this long before it ends
SKEW = timedelta(seconds=60)
#: the member of stored credentials that says how their app authenticates; without it, as the kind says
APP_AUTHENTICATION = "client_authentication"
_AUTHENTICATIONS: Mapping[str, ClientAuthentication] = {each: each for each in get_args(ClientAuthentication)}


@dataclass(frozen=True, slots=True)
class App:
    """An OAuth client as an application has registered it (RFC 6749 §2)."""

    client_id: str
    client_secret: SecretStr
    #: the organization's own, rather than the platform's
    is_own: bool = False
    #: whether the gateway has registered it, and may register another one in its place
    is_registered: bool = False
    #: how it authenticates at the token endpoint, if not as the kind says
    authentication: ClientAuthentication | None = None
    #: the keys that prove it in place of a secret
    keys: "ClientKeys | None" = None
    #: a JWT that they have signed for one request
    assertion: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class TokenSet:
    """A token response: the credentials, variables that it contained, and when the access token expires."""

    credentials: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)
    expires_at: datetime | None = None


class TokenErrorKind(StrEnum):
    """The cause of a token error."""

    #: the code or refresh token is refused permanently (`invalid_grant`)
    GRANT = "grant"
    #: the app's id or secret is refused (`invalid_client`)
    APP = "app"
    #: the private key in the credentials cannot sign; nothing was sent
    KEY = "key"
    #: the error says nothing about the grant, which stays valid
    TRANSIENT = "moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenError:
    """A token endpoint that gave no tokens, in the words of RFC 6749 §5.2, secrets already removed."""

    code: str
    description: str
    kind: TokenErrorKind
    #: the error that callers of the connector get if it is transient
    error: type[GatewayError]
    #: whether the request may have arrived and its response was lost
    is_lost: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.description}" if self.description else self.code


def is_due(expires_at: datetime | None, now: datetime) -> bool:
    """Whether an access token should be renewed before it is used."""
    return expires_at is not None and now >= expires_at - SKEW


def credentials_of(
    method: AuthMethod, app: App, tokens: TokenSet, old: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Credentials with new tokens in place; an old refresh token stays when no new one came (RFC 6749 §6).

    They contain the app that only its tokens name once another app has replaced it.
    """
    return {**(old or {}), **tokens.credentials, **credentials_of_app(method, app)}


def credentials_of_app(method: AuthMethod, app: App) -> dict[str, str]:
    """The members of credentials that name an app: its id, and how it proves itself if it is an organization's own.

    Tokens of an own app outlive it. The platform's secret stays in the settings.
    """
    members = {method.client_id: app.client_id} if app.client_id else {}
    if app.is_own and app.client_secret.get_secret_value():
        members[method.client_secret] = app.client_secret.get_secret_value()
    if app.authentication is not None:
        members[APP_AUTHENTICATION] = app.authentication
    return members


def app_in(method: AuthMethod, credentials: Mapping[str, str]) -> App:
    """The app that the credentials name; raises InvalidCredentials if they name none, but an assertion needs none."""
    client_id = credentials.get(method.client_id, "")
    if not client_id and method.assertion is None:
        message = f"{method.client_id} is missing: only the OAuth app that an access token was issued to can renew it"
        fault = FieldError(f"/credentials/{method.client_id}", method.client_id, "required", message)
        raise InvalidCredentials(message, faults=[fault])
    secret = SecretStr(credentials.get(method.client_secret, ""))
    authentication = _AUTHENTICATIONS.get(credentials.get(APP_AUTHENTICATION, ""))
    return App(client_id, secret, is_own=True, authentication=authentication)


def with_token_variables(
    spec: ConnectorSpec, environment: Mapping[str, str], tokens: TokenSet, override: URL | None
) -> dict[str, str]:
    """The variables with those of the token response; unchanged, with a warning, if these are not valid."""
    declared = {name: value for name, value in environment.items() if name in spec.environment}
    try:
        return checked_environment(spec, {**declared, **tokens.environment}, override)
    except InvalidCredentials as error:
        # The tokens are valid and perhaps the only ones, so they are stored nevertheless.
        log.warning("variables that came with a token are refused: %s", error.detail, extra={"kind": spec.kind})
        return dict(environment)


def missing_token_variables(spec: ConnectorSpec, environment: Mapping[str, str]) -> list[str]:
    """The variables that come with the first token and are still missing."""
    outputs = spec.oauth.outputs if spec.oauth else {}
    return [name for name in outputs if name in spec.environment and name not in environment]


def refused_proof(method: AuthMethod, token_error: TokenError) -> str:
    """What the application, or the gateway itself, has refused permanently, and why."""
    if token_error.kind is TokenErrorKind.KEY:
        return f"the private key cannot be used: {token_error.description}"
    proofs = {"client_credentials": "the client credentials", "jwt_bearer": "the JWT that the private key signed"}
    return f"the application refused {proofs.get(method.grant_type or '', 'the refresh token')} ({token_error})"


def gateway_error_of(method: AuthMethod, token_error: TokenError, app: App) -> GatewayError:
    """The error that callers of a connector get."""
    if token_error.kind in (TokenErrorKind.GRANT, TokenErrorKind.KEY):
        step = "authorize again" if method.grant_type is None else "give new credentials"
        return ReauthorizationRequired(f"{refused_proof(method, token_error)}; {step}")
    if token_error.kind is TokenErrorKind.APP:
        return ConnectorNotReady(
            f"the application refuses the OAuth app {app.client_id} ({token_error}): "
            "correct its client_id and client_secret"
        )
    return token_error.error(f"the access token could not be renewed: {token_error}")


def is_renewable(method: AuthMethod, credentials: Mapping[str, str]) -> bool:
    """Whether tokens can be renewed without the user: by a refresh token, client credentials or a private key."""
    if method.assertion is not None:
        return bool(credentials.get(method.assertion.key))
    if method.grant_type == "client_credentials":
        return bool(credentials.get(method.client_id) and credentials.get(method.client_secret))
    return bool(credentials.get("refresh_token"))


def require_refresh_token(credentials: Mapping[str, str]) -> str:
    """The refresh token; raises ReauthorizationRequired if there is none."""
    token = credentials.get("refresh_token")
    if not token:
        raise ReauthorizationRequired("the access token has expired and there is no refresh token; authorize again")
    return token
