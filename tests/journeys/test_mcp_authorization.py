"""A host that has only the URL finds the authorization server, and a person gives it access."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from redis.asyncio import Redis

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api
from tests.harness.databases import created_database, url_of
from tests.harness.up import brought_up

REDIRECT = "http://127.0.0.1:33333/callback"


@pytest.fixture(scope="module")
async def open_gateway(
    postgres_url: str, redis_url: str, migrated_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, Any]]:
    """A gateway where hosts may register themselves."""
    folder = Path(tmp_path_factory.mktemp("open"))
    async with created_database(postgres_url, migrated_database) as name:
        environment = {
            **os.environ,
            "GATEWAY_DATABASE_URL": url_of(postgres_url, name),
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_SYNCHRONIZE": "false",
            "GATEWAY_LOG_LEVEL": "warning",
            "GATEWAY_MCP_REGISTRATION": "true",
        }
        async with brought_up(folder, environment, "--sandbox") as ready:
            yield ready


@pytest.fixture(autouse=True)
async def no_registrations_before(redis_url: str) -> None:
    """Other tests of the process register hosts at gateways with the same Redis, which counts them by address."""
    async with Redis.from_url(redis_url) as redis:
        keys = [key async for key in redis.scan_iter("gateway:attempts:*")]
        if keys:
            await redis.delete(*keys)


class Person:
    """A browser without scripts: opens the page, signs in, and says yes or no."""

    def __init__(self, ready: dict[str, Any], **consent: Any) -> None:
        self._ready = ready
        self._consent = {"scope": ["read", "write"], "all_workspaces": "yes", "decision": "allow", **consent}
        self.landed = ""
        self.pages: list[str] = []

    async def open(self, url: str) -> None:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self._ready["base_url"], cookie_jar=jar) as browser:
            async with browser.get(url) as response:
                page = await response.text()
                assert response.status == 200, page
            self.pages.append(page)
            secret = {name: self._ready[name] for name in ("client_id", "client_secret")}
            page = await self._post(browser, page, secret)
            self.landed = await self._post(browser, page, self._consent)

    async def _post(self, browser: aiohttp.ClientSession, page: str, fields: dict[str, Any]) -> str:
        action = re.search(r'action="([^"]+)"', page)[1]
        sealed = re.search(r'name="request" value="([^"]+)"', page)[1]
        pairs = [("request", sealed)]
        for name, value in fields.items():
            pairs += [(name, each) for each in (value if isinstance(value, list) else [value])]
        async with browser.post(action, data=pairs, allow_redirects=False) as response:
            text = await response.text()
            self.pages.append(text)
            return response.headers["Location"] if response.status == 303 else text

    async def callback(self) -> tuple[str, str | None]:
        query = dict(parse_qsl(urlsplit(self.landed).query))
        return query["code"], query.get("state")


class Storage:
    """What a host keeps between its runs."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def provider(ready: dict[str, Any], person: Person, storage: Storage, path: str = "/mcp") -> OAuthClientProvider:
    async def callback():
        query = dict(parse_qsl(urlsplit(person.landed).query))
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    metadata = OAuthClientMetadata(redirect_uris=[REDIRECT], client_name="A <host>", scope="read write")
    return OAuthClientProvider(
        ready["base_url"] + path, metadata, storage, redirect_handler=person.open, callback_handler=callback
    )


async def tools_of(ready: dict[str, Any], person: Person, storage: Storage) -> list[str]:
    """The tools that the official client sees once the person has let it in."""
    async with (
        httpx2.AsyncClient(auth=provider(ready, person, storage), timeout=60) as http,
        Client(streamable_http_client(ready["base_url"] + "/mcp", http_client=http)) as client,
    ):
        return [tool.name for tool in (await client.list_tools()).tools]


async def test_the_official_client_lets_itself_in_and_calls(open_gateway):
    person, storage = Person(open_gateway), Storage()
    tools = await tools_of(open_gateway, person, storage)

    assert tools[0] == "find_operations"
    assert storage.tokens.refresh_token
    assert "A &lt;host&gt;" in person.pages[0]
    assert "127.0.0.1" in person.pages[1]


async def let_in(ready: dict[str, Any], **consent: Any) -> tuple[str, Storage]:
    """A token that a person gave."""
    person, storage = Person(ready, **consent), Storage()
    await tools_of(ready, person, storage)
    return storage.tokens.access_token, storage


async def test_a_token_is_valid_for_its_resource_only(open_gateway):
    token, _ = await let_in(open_gateway)

    url, headers = f"{open_gateway['base_url']}/api/v1/jobs", {"Authorization": f"Bearer {token}"}
    async with aiohttp.request("GET", url, headers=headers) as elsewhere:
        assert elsewhere.status == 401


async def test_what_was_not_given_is_not_there(open_gateway):
    async with Api.of(*(open_gateway[name] for name in ("base_url", "client_id", "client_secret"))) as api:
        mine, other = await api.connector(), await api.connector()
    token, _ = await let_in(
        open_gateway, scope=["read"], all_workspaces="no", workspace=[mine.record["workspace_name"]]
    )

    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
        raw = Raw(session, f"{open_gateway['base_url']}/mcp")
        seen = (await raw("tools/call", {"name": "connect", "arguments": {}})).result["structuredContent"]["connectors"]
        ticket = {"ticket": {"subject": "no", "comment": {"body": "no"}}}
        write = {"operation": "support-desk.tickets.create", "params": ticket, "connector": mine.record["id"]}
        refused = (await raw("tools/call", {"name": "write", "arguments": write})).result
    assert [each["id"] for each in seen] == [mine.record["id"]]
    assert other.record["id"] != mine.record["id"]
    assert refused["structuredContent"]["error"] == "insufficient_scope"


async def test_a_person_may_say_no(open_gateway):
    person = Person(open_gateway, decision="deny")
    with pytest.raises(KeyError):
        async with httpx2.AsyncClient(auth=provider(open_gateway, person, Storage()), timeout=60) as http:
            await http.post(open_gateway["base_url"] + "/mcp", json={})

    landed = dict(parse_qsl(urlsplit(person.landed).query))
    assert person.landed.startswith(REDIRECT)
    assert (landed["error"], landed["iss"]) == ("access_denied", open_gateway["base_url"])


async def test_the_challenge_leads_to_the_metadata(open_gateway):
    base = open_gateway["base_url"]
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{base}/mcp", json={}) as response:
            challenge = response.headers["WWW-Authenticate"]
        async with session.get(re.search(r'resource_metadata="([^"]+)"', challenge)[1]) as response:
            resource = await response.json()
        async with session.get(f"{base}/.well-known/oauth-protected-resource/mcp/team-chat") as response:
            kind = await response.json()
        async with session.get(f"{base}/.well-known/oauth-authorization-server") as response:
            server = await response.json()

    assert 'scope="read write"' in challenge
    assert resource["resource"] == f"{base}/mcp"
    assert kind["resource"] == f"{base}/mcp/team-chat"
    assert resource["authorization_servers"] == [server["issuer"]] == [base]
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"]
    assert server["client_id_metadata_document_supported"]


async def registered(session: aiohttp.ClientSession, base: str) -> str:
    body = {"client_name": "host", "redirect_uris": [REDIRECT]}
    async with session.post(f"{base}/oauth/register", json=body) as response:
        assert response.status == 201
        return (await response.json())["client_id"]


GOOD = {
    "response_type": "code",
    "redirect_uri": REDIRECT,
    "code_challenge": "c" * 43,
    "code_challenge_method": "S256",
    "state": "s",
}


@pytest.mark.parametrize(
    ("change", "has_link"),
    [
        ({"redirect_uri": "https://evil.example/"}, False),
        ({"client_id": "https://127.0.0.1/client.json"}, False),
        ({"client_id": "nobody"}, False),
        ({"code_challenge_method": "plain"}, True),
        ({"scope": "admin"}, True),
    ],
)
async def test_nobody_is_sent_anywhere_unasked(open_gateway, change, has_link):
    base = open_gateway["base_url"]
    async with aiohttp.ClientSession() as session:
        query = {**GOOD, "client_id": await registered(session, base), **change}
        async with session.get(f"{base}/oauth/authorize", params=query, allow_redirects=False) as response:
            page = await response.text()

    assert response.status == 400
    assert ("<a href=" in page) is has_link
    assert "evil.example" not in page


async def test_pages_run_nothing_and_stand_in_no_frame(open_gateway):
    base = open_gateway["base_url"]
    async with aiohttp.ClientSession() as session:
        query = {**GOOD, "client_id": await registered(session, base)}
        async with session.get(f"{base}/oauth/authorize", params=query) as response:
            policy, cookie = response.headers["Content-Security-Policy"], response.headers["Set-Cookie"]

    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize("attack", ["another browser", "another site"])
async def test_a_form_that_another_browser_or_site_sends_is_refused(open_gateway, attack):
    base = open_gateway["base_url"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        query = {**GOOD, "client_id": await registered(session, base)}
        async with session.get(f"{base}/oauth/authorize", params=query) as response:
            sealed = re.search(r'name="request" value="([^"]+)"', await response.text())[1]
        headers = {"Origin": "https://evil.example"} if attack == "another site" else {}
        if attack == "another browser":
            session.cookie_jar.clear()
        form = {"request": sealed, **{name: open_gateway[name] for name in ("client_id", "client_secret")}}
        async with session.post(f"{base}/oauth/authorize/sign-in", data=form, headers=headers) as response:
            assert response.status == 400


async def test_a_wrong_secret_shows_the_page_again(open_gateway):
    person = Person({**open_gateway, "client_secret": "wrong"})
    base = open_gateway["base_url"]
    async with aiohttp.ClientSession() as session:
        client_id = await registered(session, base)
    await person.open(f"{base}/oauth/authorize?{httpx2.QueryParams({**GOOD, 'client_id': client_id})}")

    assert "client_id or client_secret is wrong" in person.pages[1]
    assert "/oauth/authorize/consent" not in "".join(person.pages)
