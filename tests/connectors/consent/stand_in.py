"""A small authorization server with each application's manners, and one resource behind it."""

import asyncio
import base64
import hashlib
import json
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from aiohttp import web

#: paths of token endpoints end so
_TOKEN_PATHS = ("token", "tokens", "oauth.v2.access", "_oauth_token")


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    members: dict[str, str]
    authorization: str
    content_type: str


@dataclass
class StandIn:
    """Issues codes and tokens; `say` makes it answer the next token request otherwise."""

    client_id: str = "app-1"
    client_secret: str = "app-secret-1"
    #: whether a refresh token is good once
    rotates: bool = True
    lifetime: int | None = 3600
    #: what a token answer carries besides, and whether its tokens lie within `authed_user`
    extra: dict[str, object] = field(default_factory=dict)
    nests: bool = False
    seen: list[Seen] = field(default_factory=list)
    #: access tokens that the resource takes, and refresh tokens that are good
    good: set[str] = field(default_factory=set)
    refreshable: set[str] = field(default_factory=set)
    #: set to let token requests through
    open: asyncio.Event = field(default_factory=asyncio.Event)
    #: set when a token request has arrived
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _limits: list[int] = field(default_factory=list)
    _said: list[tuple[int, str, dict[str, str]]] = field(default_factory=list)
    _acting: list[asyncio.Future[web.Response]] = field(default_factory=list)
    _count: int = 0

    def __post_init__(self) -> None:
        self.open.set()

    def say(self, status: int, body: object, **headers: str) -> None:
        """Answer the next token request so; text is sent as it is."""
        self._said.append((status, body if isinstance(body, str) else json.dumps(body), headers))

    def limit(self, retry_after: int) -> None:
        """Answer the next token request with 429."""
        self._limits.append(retry_after)

    def consent(self, consent_url: str) -> dict[str, str]:
        """The user says yes: the query that the browser comes back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(consent_url).query).items()}
        self._count += 1
        code = f"code-{self._count}"
        self._codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def pair(self) -> dict[str, str]:
        """New tokens that are good."""
        self._count += 1
        access, refresh = f"access-{self._count}", f"refresh-{self._count}"
        self.good.add(access)
        self.refreshable.add(refresh)
        return {"access_token": access, "refresh_token": refresh}

    @property
    def token_requests(self) -> list[Seen]:
        return [each for each in self.seen if each.path.endswith(_TOKEN_PATHS)]

    async def answer(self, request: web.Request) -> web.Response:
        """Every path of the application."""
        seen = await _seen(request)
        self.seen.append(seen)
        if request.method == "POST" and request.path.endswith(_TOKEN_PATHS):
            # An application acts on what it was asked, also when nobody waits for the answer.
            acting = asyncio.ensure_future(self._token(seen))
            self._acting.append(acting)
            return await asyncio.shield(acting)
        if "revoke" in request.path or request.method == "DELETE":
            return web.json_response({"ok": True})
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.good:
            return web.json_response({"error": "invalid_token", "ok": False}, status=401)
        return web.json_response({"ok": True, "results": [], "tickets": [], "members": [], "data": []})

    async def _token(self, seen: Seen) -> web.Response:
        self.arrived.set()
        await self.open.wait()
        if self._limits:
            headers = {"Retry-After": str(self._limits.pop())}
            return web.json_response({"error": "slow_down"}, status=429, headers=headers)
        if self._said:
            status, text, headers = self._said.pop(0)
            return web.Response(status=status, text=text, content_type="application/json", headers=headers)
        if self._app(seen) != (self.client_id, self.client_secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        refused = self._refused(seen.members)
        if refused:
            return web.json_response({"error": "invalid_grant", "error_description": refused}, status=400)
        return web.json_response(self._tokens(seen.members))

    def _app(self, seen: Seen) -> tuple[str, str]:
        if seen.authorization.startswith("Basic "):
            client_id, _, secret = base64.b64decode(seen.authorization.removeprefix("Basic ")).decode().partition(":")
            return client_id, secret
        return seen.members.get("client_id", ""), seen.members.get("client_secret", "")

    def _refused(self, members: dict[str, str]) -> str | None:
        if members["grant_type"] == "refresh_token":
            token = members["refresh_token"]
            if token not in self.refreshable:
                return "the refresh token is not good"
            if self.rotates:
                self.refreshable.discard(token)
            return None
        asked = self._codes.pop(members.get("code", ""), None)
        if asked is None:
            return "the code is not good"
        if asked["redirect_uri"] != members.get("redirect_uri"):
            return "another redirect_uri"
        digest = hashlib.sha256(members.get("code_verifier", "").encode()).digest()
        if (
            "code_challenge" in asked
            and base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]
        ):
            return "the verifier does not fit"
        return None

    def _tokens(self, members: dict[str, str]) -> dict[str, object]:
        pair = self.pair()
        if not self.rotates and members["grant_type"] == "refresh_token":
            self.refreshable.discard(pair.pop("refresh_token"))
        answer = {**pair, "token_type": "bearer", **({"expires_in": self.lifetime} if self.lifetime else {})}
        whole = {"ok": True, "authed_user": answer} if self.nests else {"ok": True, **answer}
        return {**whole, **self.extra}


async def _seen(request: web.Request) -> Seen:
    text = await request.text()
    if request.content_type == "application/json" and text:
        members = json.loads(text)
    else:
        members = {name: values[0] for name, values in parse_qs(text).items()}
    authorization = request.headers.get("Authorization", "")
    return Seen(request.method, request.path, members, authorization, request.content_type)
