"""The token endpoints: the JSON endpoint of the public SDK, the grants of RFC 6749, and revocation by RFC 7009."""

import base64
from collections.abc import Awaitable, Mapping
from typing import ClassVar
from urllib.parse import unquote_plus

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Client
from gateway.contract.issuers import ACCESS_TOKEN_TYPE, ID_TOKEN_TYPE, JWT_BEARER, TOKEN_EXCHANGE, ExchangeRequest
from gateway.contract.members import ID
from gateway.contract.oauth import REVOKE, TOKEN, GrantedTokenView, TokenView
from gateway.contract.problems import OAuthErrorView
from gateway.errors import BodyTooLarge, MalformedRequest, OAuthError, RateLimited, RequestError, Unauthorized
from gateway.web.bodies import Body, Form, json_response, read_body, read_form
from gateway.web.keys import ACCESS
from gateway.web.route import NO_STORE, Route

#: maximum characters of a client's id
_MAX_ID = 200
#: maximum characters of a client's secret, and of a token of an issuer
_MAX_SECRET, _MAX_TOKEN = 500, 16_384
_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class TokenBody(Body):
    """A client's id and secret."""

    EXAMPLES: ClassVar = {"client": {"client_id": ID, "client_secret": "…"}}

    client_id: str = Field(max_length=_MAX_ID, description="the client's id")
    client_secret: str = Field(max_length=_MAX_SECRET, description="its secret")


class ClientCredentials(Form):
    """The client-credentials grant; id and secret may come in the Authorization header instead."""

    grant_type: str = Field(
        description=f"client_credentials, authorization_code, refresh_token, {TOKEN_EXCHANGE} or {JWT_BEARER}"
    )
    client_id: str = Field("", max_length=_MAX_ID, description="the client's id, or the host's")
    client_secret: str = Field("", max_length=_MAX_SECRET, description="the client's secret; a host has none")


class TokenRequest(ClientCredentials):
    """A grant: a client's credentials, an authorization code, or a refresh token (RFC 6749 §4.1.3, §4.4.2, §6)."""

    EXAMPLES: ClassVar = {"client": {"grant_type": "client_credentials", "client_id": ID, "client_secret": "…"}}

    code: str = Field("", max_length=_MAX_SECRET, description="of authorization_code: the code")
    redirect_uri: str | None = Field(
        None, max_length=2000, description="of authorization_code: the redirect_uri of the authorization request"
    )
    code_verifier: str = Field(
        "", max_length=200, description="of authorization_code: the code verifier of PKCE (RFC 7636)"
    )
    refresh_token: str = Field(
        "", max_length=_MAX_SECRET, description="of refresh_token: the token, which is valid once"
    )
    resource: str | None = Field(
        None,
        max_length=2000,
        description="the only URL that accepts the token (RFC 8707): the gateway's, or its `/api`, `/mcp` or "
        "`/mcp/{kind}`",
    )
    scope: str = Field(
        "",
        max_length=_MAX_SECRET,
        description="of client_credentials: a part of the client's scopes; of an exchange: of those that client and "
        "person both have; all of them if empty",
    )
    subject_token: str = Field("", max_length=_MAX_TOKEN, description="of token-exchange: the ID token of the person")
    subject_token_type: str = Field("", max_length=_MAX_ID, description=f"of token-exchange: {ID_TOKEN_TYPE}")
    requested_token_type: str = Field(
        "", max_length=_MAX_ID, description=f"of token-exchange: {ACCESS_TOKEN_TYPE}, or left out"
    )
    actor_token: str = Field(
        "", max_length=_MAX_TOKEN, description="of token-exchange: left out, because the client is the actor"
    )
    assertion: str = Field("", max_length=_MAX_TOKEN, description="of jwt-bearer: the ID-JAG for this client")


class RevokeToken(Form):
    """The token to revoke; id and secret of its client may come in the Authorization header instead."""

    EXAMPLES: ClassVar = {"token": {"token": "2YotnFZFEjr1zCsicMWpAA", "client_id": ID, "client_secret": "…"}}

    token: str = Field(min_length=1, max_length=_MAX_SECRET, description="the token to revoke")
    token_type_hint: str = Field("", max_length=_MAX_ID, description="ignored: there is one type")
    client_id: str = Field("", max_length=_MAX_ID, description="the client's id, or the host's")
    client_secret: str = Field("", max_length=_MAX_SECRET, description="the client's secret; a host has none")


class _UnsupportedGrantType(MalformedRequest):
    """The `grant_type` is not supported (RFC 6749 §5.2)."""


async def issue_token(request: web.Request) -> web.Response:
    """A bearer token for a client's id and secret, valid for 15 minutes. The error is the same for an unknown client
    and a wrong secret.
    """
    body = await read_body(request, TokenBody)
    issued = await request.app[ACCESS].tokens.issue(body.client_id, body.client_secret, address_of(request))
    view = TokenView(issued.access_token, "bearer", issued.expires_in, _only_organization(issued.client))
    return json_response(view, headers=_NO_STORE)


def _only_organization(client: Client) -> str | None:
    return str(next(iter(client.organization_ids))) if len(client.organization_ids) == 1 else None


async def grant_token(request: web.Request) -> web.Response:
    """The grants of RFC 6749: `client_credentials` for a client (id and secret in the form or by Basic),
    `authorization_code` and `refresh_token` for agents' hosts. Errors have the format of that RFC (§5.2).

    A client with the scope `delegate` exchanges a token of an issuer that the organization trusts for a token of the
    person whom it names: an ID token by the grant of RFC 8693, or an ID-JAG by that of RFC 7523. The token is that of
    a session, which `GET /api/v1/sessions` lists. It is valid for an hour at most, and there is no refresh token.
    """
    return await _with_oauth_errors(_grant(request))


async def revoke_token(request: web.Request) -> web.Response:
    """Revokes a token of a client or a host (RFC 7009). 200 for an unknown token too."""
    return await _with_oauth_errors(_revoke(request))


async def _grant(request: web.Request) -> web.Response:
    form = await read_form(request, TokenRequest)
    if form.grant_type in ("authorization_code", "refresh_token"):
        return await _exchange(request, form)
    if form.grant_type in (TOKEN_EXCHANGE, JWT_BEARER):
        return await _exchange_for_person(request, form)
    if form.grant_type != "client_credentials":
        raise _UnsupportedGrantType(
            "grant_type must be client_credentials, authorization_code, refresh_token, "
            f"{TOKEN_EXCHANGE} or {JWT_BEARER}"
        )
    client_id, secret = _client_of(request, form)
    scopes = frozenset(form.scope.split())
    resource = None if form.resource is None else request.app[ACCESS].authorization.resource_of_client(form.resource)
    issued = await request.app[ACCESS].tokens.issue(client_id, secret, address_of(request), scopes, resource)
    scope = " ".join(sorted(issued.client.scopes))
    view = GrantedTokenView(
        access_token=issued.access_token, token_type="bearer", expires_in=issued.expires_in, scope=scope
    )
    return json_response(view, headers=_NO_STORE)


async def _exchange(request: web.Request, form: TokenRequest) -> web.Response:
    """Tokens for an agent's host, a public client: it has an id and no secret."""
    view = await request.app[ACCESS].authorization.exchange(form.model_dump(exclude_none=True))
    return json_response(view, headers=_NO_STORE)


async def _exchange_for_person(request: web.Request, form: TokenRequest) -> web.Response:
    """A token in which a client acts for the person whom an issuer's token names."""
    is_assertion = form.grant_type == JWT_BEARER
    token = form.assertion if is_assertion else form.subject_token
    if not token:
        raise OAuthError("invalid_request", f"{'assertion' if is_assertion else 'subject_token'} is missing")
    if not is_assertion and form.subject_token_type != ID_TOKEN_TYPE:
        raise OAuthError("invalid_request", f"subject_token_type must be {ID_TOKEN_TYPE}")
    if not is_assertion and form.requested_token_type not in ("", ACCESS_TOKEN_TYPE):
        raise OAuthError("invalid_request", f"requested_token_type must be {ACCESS_TOKEN_TYPE}")
    if form.actor_token:
        raise OAuthError("invalid_request", "actor_token is not supported: the client is the actor")
    client_id, secret = _client_of(request, form)
    view = await request.app[ACCESS].exchange.exchange(
        ExchangeRequest(
            client_id=client_id,
            client_secret=secret,
            address=address_of(request),
            token=token,
            is_assertion=is_assertion,
            scopes=frozenset(form.scope.split()),
            resource=form.resource,
        )
    )
    return json_response(view, headers=_NO_STORE)


async def _revoke(request: web.Request) -> web.Response:
    form = await read_form(request, RevokeToken)
    client_id, secret = _client_of(request, form)
    if not secret and await request.app[ACCESS].authorization.hosts.is_host(client_id):
        await request.app[ACCESS].authorization.revoke_token(client_id, form.token)
    else:
        await request.app[ACCESS].tokens.revoke(client_id, secret, form.token, address_of(request))
    return web.Response(headers=_NO_STORE)


async def _with_oauth_errors(answering: Awaitable[web.Response]) -> web.Response:
    """The response, or the error in the format of RFC 6749 §5.2."""
    try:
        return await answering
    except Unauthorized as error:
        return _refused("invalid_client", error, 401, {"WWW-Authenticate": 'Basic realm="gateway"'})
    except RateLimited as error:
        return _refused("invalid_client", error, 429, {"Retry-After": str(error.retry_after or 1)})
    except _UnsupportedGrantType as error:
        return _refused("unsupported_grant_type", error)
    except OAuthError as error:
        return json_response(OAuthErrorView(error.code, error.description), 400, _NO_STORE)
    except RequestError as error:
        return _refused("invalid_request", error, 413 if isinstance(error, BodyTooLarge) else 400)


def address_of(request: web.Request) -> str:
    """The address of the connection, which may be a proxy's: forwarded addresses in headers are not verified."""
    return request.remote or ""


def _client_of(request: web.Request, form: ClientCredentials | RevokeToken) -> tuple[str, str]:
    """The client's id and secret, from the Authorization header or else from the form."""
    return _basic(request) or (form.client_id, form.client_secret)


def _basic(request: web.Request) -> tuple[str, str] | None:
    """The client's id and secret from the Authorization header, form-decoded (RFC 6749 §2.3.1)."""
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, _, client_secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:  # not base64, not ASCII, not UTF-8
        return "", ""
    return unquote_plus(client_id), unquote_plus(client_secret)


def _refused(
    code: str, error: RequestError, status: int = 400, headers: Mapping[str, str] | None = None
) -> web.Response:
    return json_response(OAuthErrorView(code, error.detail), status, {**_NO_STORE, **(headers or {})})


_NOT_STORED = dict.fromkeys((200, 400, 401, 413, 429), NO_STORE)

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/api/v1/account/applications/token",
        issue_token,
        "Get a bearer token for a client's id and secret",
        "Tokens",
        body=TokenBody,
        errors=(401,),
        response=TokenView,
        sends={200: NO_STORE},
        is_open=True,
        command="gateway token",
    ),
    Route(
        "POST",
        TOKEN,
        grant_token,
        "Get a bearer token by a grant of RFC 6749",
        "Tokens",
        form=TokenRequest,
        response=GrantedTokenView,
        sends=_NOT_STORED,
        is_open=True,
    ),
    Route(
        "POST",
        REVOKE,
        revoke_token,
        "Revoke a bearer token (RFC 7009)",
        "Tokens",
        form=RevokeToken,
        sends=_NOT_STORED,
        is_open=True,
    ),
)
