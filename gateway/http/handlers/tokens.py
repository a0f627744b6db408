"""Both token endpoints: the JSON one of known SDKs and the RFC 6749 client-credentials grant."""

import base64
import binascii
from urllib.parse import unquote_plus

from aiohttp import web
from pydantic import Field

from gateway.errors import RateLimited, Unauthorized
from gateway.http.bodies import Body, read_body
from gateway.http.keys import SERVICES
from gateway.http.responses import json_response
from gateway.identity.model import Client

_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class TokenBody(Body):
    """A client's id and secret."""

    client_id: str = Field(max_length=200)
    client_secret: str = Field(max_length=500)


async def issue_token(request: web.Request) -> web.Response:
    """POST /api/v1/account/applications/token: a bearer token for a client's id and secret."""
    body = await read_body(request, TokenBody)
    issued = await request.app[SERVICES].tokens.issue(body.client_id, body.client_secret)
    return json_response(
        {
            "access_token": issued.access_token,
            "token_type": "bearer",
            "expires_in": issued.expires_in,
            "organization_id": _only_organization(issued.client),
        },
        headers=_NO_STORE,
    )


def _only_organization(client: Client) -> str | None:
    return str(next(iter(client.organization_ids))) if len(client.organization_ids) == 1 else None


async def grant_token(request: web.Request) -> web.Response:
    """POST /oauth/token: the client-credentials grant of RFC 6749 §4.4, errors in its own shape (§5.2)."""
    if request.content_type != "application/x-www-form-urlencoded":
        return _refused("invalid_request", "the body must be application/x-www-form-urlencoded")
    form = {name: str(value) for name, value in (await request.post()).items()}
    if form.get("grant_type") != "client_credentials":
        code = "unsupported_grant_type" if "grant_type" in form else "invalid_request"
        return _refused(code, "grant_type must be client_credentials")
    client_id, client_secret = _basic(request) or (form.get("client_id", ""), form.get("client_secret", ""))
    try:
        issued = await request.app[SERVICES].tokens.issue(client_id, client_secret)
    except Unauthorized as error:
        return _refused("invalid_client", error.detail, 401, {"WWW-Authenticate": 'Basic realm="gateway"'})
    except RateLimited as error:
        return _refused("invalid_client", error.detail, 429, {"Retry-After": str(error.retry_after or 1)})
    scope = " ".join(sorted(issued.client.scopes))
    members = {"access_token": issued.access_token, "token_type": "bearer", "expires_in": issued.expires_in}
    return json_response({**members, "scope": scope}, headers=_NO_STORE)


def _basic(request: web.Request) -> tuple[str, str] | None:
    """Client id and secret from the Authorization header, each form-encoded within (RFC 6749 §2.3.1)."""
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, _, client_secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return unquote_plus(client_id), unquote_plus(client_secret)


def _refused(code: str, description: str, status: int = 400, headers: dict[str, str] | None = None) -> web.Response:
    document = {"error": code, "error_description": description}
    return json_response(document, status, {**_NO_STORE, **(headers or {})})
