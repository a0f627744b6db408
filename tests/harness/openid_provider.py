"""An OpenID Connect provider for tests: discovery, codes, PKCE and signatures over HTTP."""

import base64
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import uuid4

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from joserfc.jws import JWSRegistry

from gateway.access.identity.people import People
from tests.harness.caller import Answer
from tests.harness.in_process import FrontEnd

CLIENT_ID, CLIENT_SECRET = "gateway", "s3cret-of-the-gateway"


@dataclass
class OpenIdProvider:
    """A provider whose responses tests may change at any time."""

    issuer: str = ""
    key: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "k1"}))
    algorithm: str = "RS256"
    #: claims that replace the valid ones; None removes one
    claims: dict[str, Any] = field(default_factory=dict)
    #: members that replace those of the discovery document
    metadata: dict[str, Any] = field(default_factory=dict)
    #: members that replace those of the authorization response
    answer: dict[str, Any] = field(default_factory=dict)
    #: creates the ID token instead of the provider
    forge: Callable[[dict[str, Any]], str] | None = None
    #: whether the token endpoint refuses with the secrets of the request in its words
    echoes: bool = False
    #: the authorization requests and the forms of the token endpoint
    asked: list[dict[str, str]] = field(default_factory=list)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    key_requests: int = 0
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a gateway that uses this provider."""
        return {
            "oidc_private": True,
            "oidc_issuer": self.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": CLIENT_SECRET,
        }

    def reset(self) -> None:
        """Respond correctly again."""
        self.claims, self.metadata, self.answer, self.forge, self.echoes = {}, {}, {}, None, False
        self.asked, self.token_requests = [], []

    def rotate(self, kid: str) -> None:
        """Replace the signing key."""
        self.key = ECKey.generate_key("P-256", {"kid": kid})
        self.algorithm = "ES256"

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_get("/keys", self._keys)
        return app

    async def _discovery(self, request: web.Request) -> web.Response:
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return web.json_response({**document, **self.metadata})

    async def _authorize(self, request: web.Request) -> web.Response:
        """The person is already signed in at the provider."""
        query = dict(request.query)
        self.asked.append(query)
        code = uuid4().hex
        self._codes[code] = query
        answer = {"code": code, "state": query["state"], "iss": self.issuer, **self.answer}
        members = {name: value for name, value in answer.items() if value is not None}
        return web.Response(status=302, headers={"Location": f"{query['redirect_uri']}?{urlencode(members)}"})

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(parse_qsl(await request.text()))
        self.token_requests.append(form)
        if self.echoes:
            words = f"{request.headers['Authorization']} {CLIENT_SECRET} {form['code']}"
            return web.json_response({"error": "invalid_grant", "error_description": words}, status=400)
        proof = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        asked = self._codes.pop(form.get("code", ""), None)
        if request.headers.get("Authorization") != f"Basic {proof}":
            return web.json_response({"error": "invalid_client"}, status=401)
        if (
            asked is None
            or form["redirect_uri"] != asked["redirect_uri"]
            or create_s256_code_challenge(form["code_verifier"]) != asked["code_challenge"]
        ):
            return web.json_response({"error": "invalid_grant", "error_description": "no such code"}, status=400)
        claims = {name: value for name, value in self._claims(asked).items() if value is not None}
        token = self.forge(claims) if self.forge else self.signed(claims)
        return web.json_response({"access_token": "at", "token_type": "Bearer", "id_token": token})

    def _claims(self, asked: dict[str, str]) -> dict[str, Any]:
        now = int(time.time())
        good = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "u-1",
            "nonce": asked["nonce"],
            "iat": now,
            "exp": now + 300,
            "email": "ada@example.com",
            "email_verified": True,
        }
        return {**good, **self.claims}

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        """A token signed by the provider, with its header or another one."""
        head = {"alg": self.algorithm, "kid": self.key.kid, **header}
        return jwt.encode(head, claims, self.key, registry=JWSRegistry(algorithms=[head["alg"]]))

    async def _keys(self, request: web.Request) -> web.Response:
        self.key_requests += 1
        return web.json_response(KeySet([self.key]).as_dict(private=False))


@asynccontextmanager
async def openid_provider() -> AsyncIterator[OpenIdProvider]:
    """A provider on the loopback."""
    provider = OpenIdProvider()
    async with TestServer(provider.app()) as server:
        provider.issuer = str(server.make_url("/")).rstrip("/")
        yield provider


async def added(provider: OpenIdProvider, front: FrontEnd) -> str:
    """The login of a person of the provider, whom an administrator has added."""
    login = f"ada-{uuid4().hex}@example.com"
    provider.claims = {"email": login, "sub": login}
    people = People(front.services.database, front.services.identity)
    await people.add(login, [await front.organization()], ["read", "write", "admin"])
    return login


class Visitor:
    """A browser without scripts: submits forms, follows redirects, and keeps cookies."""

    def __init__(self, front: FrontEnd, session: aiohttp.ClientSession) -> None:
        self.front = front
        self.session = session

    async def fetch(self, method: str, url: str, **options: Any) -> Answer:
        url = url if url.startswith("http") else self.front.base_url + url
        async with self.session.request(method, url, allow_redirects=False, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def leave(self, path: str = "/console/sign-in/provider", **fields: str) -> str:
        """The URL to which the provider redirects, which is not opened yet."""
        page = await self.fetch("POST", path, data=fields)
        found = re.search(rb'http-equiv="refresh" content="0;url=([^"]+)"', page.body)
        assert found is not None, page.body
        answer = await self.fetch("GET", found[1].decode().replace("&amp;", "&"))
        # The front end listens on another port than that in its settings.
        return answer.headers["Location"].replace(self.front.services.settings.base_url, self.front.base_url)

    async def sign_in(self, **fields: str) -> Answer:
        return await self.fetch("GET", await self.leave(**fields))
