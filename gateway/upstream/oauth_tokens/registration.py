"""Registers an OAuth app at an authorization server (RFC 7591): the request and its response. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.errors import UpstreamError, UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.kinds.authentication import ClientAuthentication, OAuthEndpoints
from gateway.upstream.oauth_tokens.client_keys import SIGNED, SIGNING_ALGORITHM
from gateway.upstream.oauth_tokens.messages import printable

#: the name that people see on consent pages
CLIENT_NAME = "Agent connector gateway"
#: the spec language's words for the client authentication of RFC 7591 §2
_METHODS: Mapping[ClientAuthentication, str] = {
    "basic": "client_secret_basic",
    "body": "client_secret_post",
    "none": "none",
    SIGNED: SIGNED,
}
_MAX_ID, _MAX_SECRET = 1_000, 4_000


class _Registered(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 7591 §3.2.1."""

    client_id: str
    client_secret: str = ""
    client_secret_expires_at: int = 0
    token_endpoint_auth_method: str | None = None


class _RegistrationRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 7591 §3.2.2."""

    error: str = ""
    error_description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """An app as the authorization server has registered it."""

    client_id: str
    client_secret: str = field(repr=False)
    #: how it authenticates, which the server decides
    authentication: ClientAuthentication
    #: when the secret expires; None if it does not
    expires_at: datetime | None


def client_metadata(
    redirect_uri: str, client_uri: str, authentication: str, jwks_uri: str | None = None
) -> dict[str, Any]:
    """The metadata of the gateway as a client (RFC 7591 §2), which it registers or publishes.

    `jwks_uri` is where its keys are, if it signs.
    """
    signed = {} if jwks_uri is None else {"jwks_uri": jwks_uri, "token_endpoint_auth_signing_alg": SIGNING_ALGORITHM}
    return {
        "client_name": CLIENT_NAME,
        "client_uri": client_uri,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": authentication,
        **signed,
    }


def registration_body(
    oauth: OAuthEndpoints, redirect_uri: str, client_uri: str, jwks_uri: str, scopes: Sequence[str] = ()
) -> bytes:
    """The request of a registration, with the scopes that consents may request.

    `jwks_uri` is where the gateway's keys are; it is registered at servers at which the gateway must sign.
    """
    is_web = redirect_uri.startswith("https://")
    keys = jwks_uri if oauth.client_authentication == SIGNED else None
    metadata = client_metadata(redirect_uri, client_uri, _METHODS[oauth.client_authentication], keys)
    scope = {"scope": " ".join(scopes)} if scopes else {}
    return msgspec.json.encode({**metadata, **scope, "application_type": "web" if is_web else "native"})


def read_registration(oauth: OAuthEndpoints, status: int, body: bytes) -> Registration:
    """The registered app; raises UpstreamError with the server's reason if it is refused."""
    if status not in (200, 201):
        raise UpstreamError(f"the authorization server refuses to register the gateway: {_reason(status, body)}")
    try:
        found = payloads.typed(body, _Registered)
    except msgspec.MsgspecError as error:
        raise UpstreamInvalidResponse(
            "the authorization server's response to a registration has no client_id"
        ) from error
    # A server that was not given the gateway's keys cannot verify what they sign.
    named = {wire: ours for ours, wire in _METHODS.items() if ours in ("basic", "body", "none")}
    authentication = named.get(found.token_endpoint_auth_method or "", oauth.client_authentication)
    if not _is_text(found.client_id, _MAX_ID) or (
        found.client_secret and not _is_text(found.client_secret, _MAX_SECRET)
    ):
        raise UpstreamInvalidResponse(
            "the authorization server registered the gateway with a client_id that cannot be sent"
        )
    if authentication in ("basic", "body") and not found.client_secret:
        authentication = "none"
    return Registration(
        client_id=found.client_id,
        client_secret=found.client_secret if authentication in ("basic", "body") else "",
        authentication=authentication,
        expires_at=_time(found.client_secret_expires_at),
    )


def _reason(status: int, body: bytes) -> str:
    try:
        refusal = payloads.typed(body, _RegistrationRefusal)
    except msgspec.MsgspecError:
        return f"status {status}"
    said = ": ".join(filter(None, (printable(refusal.error), printable(refusal.error_description))))
    return said or f"status {status}"


def _is_text(value: str, longest: int) -> bool:
    return 0 < len(value) <= longest and value.isascii() and value.isprintable()


def _time(seconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (OverflowError, OSError, ValueError):
        return None
