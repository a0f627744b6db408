"""An MCP server that people sign in to, and its authorization server, on one loopback port."""

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from aiohttp.test_utils import TestServer
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import KeySet
from multidict import CIMultiDict

from tests.harness.mcp_server import McpServer

RESOURCE, ISSUER = "https://mcp.tracker.io/mcp", "https://auth.tracker.io/tenant"
RESOURCE_PATH, SERVER_PATH, PROVIDER_PATH = (
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server/tenant",
    "/tenant/.well-known/openid-configuration",
)
#: RFC 7523 §2.2
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
#: answers a request in place of the document
Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class SignInServer(McpServer):
    """Issues codes and tokens for its tools; tests change its manners at any time."""

    #: the headers of a 401, one in each line
    challenge: str | None = f'Bearer resource_metadata="https://mcp.tracker.io{RESOURCE_PATH}", scope="issues:read"'
    #: members that replace those of its metadata, the authorization server's and a registration's; None removes one
    resource: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    registration: dict[str, Any] = field(default_factory=dict)
    #: path → what is answered there in place of the document
    instead: dict[str, Answering] = field(default_factory=dict)
    #: members that replace those of the authorization response; None removes one
    answer_to_consent: dict[str, str | None] = field(default_factory=dict)
    #: tool → the scopes that a call needs
    needed: dict[str, str] = field(default_factory=dict)
    #: a client that is registered already: id → secret
    clients: dict[str, str] = field(default_factory=dict)
    #: the published keys of a client that signs (RFC 7523 §2.2); None: nobody has to
    client_keys: dict[str, Any] | None = None
    #: whether a revocation needs the member `client_secret`, as at servers of the official SDK
    needs_secret_in_form: bool = False
    #: access token → the scopes that a person has given
    good: dict[str, str] = field(default_factory=dict)
    refreshable: dict[str, str] = field(default_factory=dict)
    #: paths of documents, registrations, authorization requests, token requests, and revoked tokens
    fetched: list[str] = field(default_factory=list)
    registered: list[dict[str, Any]] = field(default_factory=list)
    consents: list[dict[str, str]] = field(default_factory=list)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    revocations: list[dict[str, str]] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    assertions: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _count: int = 0

    def issued(self, scopes: str = "") -> dict[str, Any]:
        """New tokens; the refresh token is good once."""
        self._count += 1
        access, refresh = f"canary-access-{self._count}", f"canary-refresh-{self._count}"
        self.good[access], self.refreshable[refresh] = scopes, scopes
        return {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if given not in self.good:
            headers = CIMultiDict(("WWW-Authenticate", each) for each in (self.challenge or "").splitlines())
            return web.json_response({"error": "invalid_token"}, status=401, headers=headers)
        message = await request.json()
        needed = self.needed.get(str(message.get("params", {}).get("name")), "")
        if not set(needed.split()) <= set(self.good[given].split()):
            challenge = f'Bearer error="insufficient_scope", scope="{needed}", error_description="more, please"'
            return web.json_response({}, status=403, headers={"WWW-Authenticate": challenge})
        return await super().handle(request)

    async def other(self, request: web.Request) -> web.StreamResponse:
        """Every other path: documents, and the endpoints of the authorization server."""
        self.fetched.append(request.path)
        if request.path in self.instead:
            return await self.instead[request.path](request)
        match request.path:
            case "/.well-known/oauth-protected-resource/mcp":
                return web.json_response(self._resource())
            case "/.well-known/oauth-authorization-server/tenant":
                return web.json_response(self.document())
            case "/tenant/register":
                return await self._registered(request)
            case "/tenant/authorize":
                return self._consented(request)
            case "/tenant/token":
                return await self._token(request)
            case "/tenant/revoke":
                return await self._revoked(request)
        return web.Response(status=404)

    def _resource(self) -> dict[str, Any]:
        document = {"resource": RESOURCE, "authorization_servers": [ISSUER], "scopes_supported": ["issues:all"]}
        return _without_none({**document, **self.resource})

    def document(self) -> dict[str, Any]:
        """The metadata of the authorization server."""
        document = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "registration_endpoint": f"{ISSUER}/register",
            "revocation_endpoint": f"{ISSUER}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
            "authorization_response_iss_parameter_supported": True,
        }
        return _without_none({**document, **self.metadata})

    async def _registered(self, request: web.Request) -> web.Response:
        metadata = await request.json()
        self.registered.append(metadata)
        client_id = f"registered-{len(self.registered)}"
        self.clients[client_id] = f"canary-secret-{len(self.registered)}"
        answer = {**metadata, "client_id": client_id, "client_secret": self.clients[client_id], **self.registration}
        self.clients[client_id] = answer["client_secret"] or ""
        return web.json_response(_without_none(answer), status=201)

    def _consented(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.consents.append(query)
        self._count += 1
        code = f"canary-code-{self._count}"
        self._codes[code] = query
        answer = _without_none({"code": code, "state": query["state"], "iss": ISSUER, **self.answer_to_consent})
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{urlencode(answer)}"})

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl(await request.text()))
        self.token_requests.append(form)
        if not self._is_client(request, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        if form["grant_type"] == "refresh_token":
            scopes = self.refreshable.pop(form["refresh_token"], None)
        else:
            scopes = self._redeemed(form)
        if scopes is None or form.get("resource") != self._resource()["resource"]:
            words = f"not good: {' '.join(form.values())}"
            return web.json_response({"error": "invalid_grant", "error_description": words}, status=400)
        return web.json_response(self.issued(scopes))

    async def _revoked(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl(await request.text(), keep_blank_values=True))
        self.revocations.append(form)
        if not self._is_client(request, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        if self.needs_secret_in_form and "client_secret" not in form:
            return web.json_response({"error": "invalid_request"}, status=400)
        self.revoked.append(form["token"])
        return web.Response()

    def _is_client(self, request: web.Request, form: Mapping[str, str]) -> bool:
        """Whether the client has proved itself as it must."""
        if self.client_keys is not None:
            return self._has_signed(form)
        client_id, secret = _client(request, form)
        return client_id.startswith("https://") or self.clients.get(client_id) == secret

    def _has_signed(self, form: Mapping[str, str]) -> bool:
        signed = jwt.decode(form.get("client_assertion", ""), KeySet.import_key_set(self.client_keys))
        client = {"essential": True, "value": form["client_id"]}
        jwt.JWTClaimsRegistry(
            iss=client, sub=client, aud={"essential": True, "value": ISSUER}, exp={"essential": True}
        ).validate(signed.claims)
        is_new = signed.claims["jti"] not in self.assertions
        self.assertions.append(signed.claims["jti"])
        return is_new and form["client_assertion_type"] == JWT_BEARER

    def _redeemed(self, form: Mapping[str, str]) -> str | None:
        asked = self._codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return None
        is_proved = create_s256_code_challenge(form["code_verifier"]) == asked["code_challenge"]
        return asked.get("scope", "") if is_proved and asked["code_challenge_method"] == "S256" else None


def _client(request: web.Request, form: Mapping[str, str]) -> tuple[str, str]:
    given = request.headers.get("Authorization", "")
    if given.startswith("Basic "):
        client_id, _, secret = base64.b64decode(given.removeprefix("Basic ")).decode().partition(":")
        return client_id, secret
    return form.get("client_id", ""), form.get("client_secret", "")


def _without_none(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def answering(body: object, status: int = 200, **headers: str) -> Answering:
    """Answers with a document, or with text."""

    async def answer(_: web.Request) -> web.Response:
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type="application/json", headers=headers)

    return answer


@asynccontextmanager
async def sign_in_server(server: SignInServer) -> AsyncIterator[SignInServer]:
    """Serve it within the block."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/mcp", server.handle)
    app.router.add_route("*", "/{path:.*}", server.other)
    async with TestServer(app, handler_cancellation=True, shutdown_timeout=0) as listening:
        server.origin = listening.make_url("/").origin()
        yield server
