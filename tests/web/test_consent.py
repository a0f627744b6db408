"""The URL at which a browser begins a consent, for a gateway that is reached by https."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import aiohttp
import pytest
from pydantic import SecretStr

from gateway.access.identity.attempts import MAX_BY_ADDRESS
from gateway.access.identity.model import Client
from gateway.contract.oauth import ConsentRequest
from gateway.web.console.host_configurations import host_configurations
from tests.harness.in_process import FrontEnd, front_end

REDIRECT = "https://app.example/redirected"
CONSENT = "/api/v1/integrations/connectors/oauth/consent"


@pytest.fixture
async def public(tmp_path: Path, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    """A front end whose public URL is https."""
    async with front_end(tmp_path, database_url, redis_url, public_url="https://gateway.example") as running:
        yield running


async def test_the_cookie_of_a_public_gateway_is_bound_to_its_host_and_to_https(public: FrontEnd) -> None:
    organization_id = await public.organization()
    client_id, _ = await public.client(organization_id)
    caller = Client(
        id=UUID(client_id),
        name="c",
        organization_ids=frozenset({organization_id}),
        scopes=frozenset({"write"}),
        redirect_urls=(REDIRECT,),
    ).caller(None)
    await public.services.connectors.oauth.apps.put(caller, "work-management", "app", SecretStr("secret"))
    started = await public.services.connectors.oauth.flows.initiate(
        caller, ConsentRequest(workspace_name="w", connector_type="work-management", redirect_url=REDIRECT)
    )

    async with public.api(organization_id) as api:
        answer = await api.call("GET", f"{CONSENT}?{urlsplit(started.consent_url).query}", allow_redirects=False)

    name, _, attributes = answer.headers["Set-Cookie"].partition("=")
    assert started.consent_url.startswith(f"https://gateway.example{CONSENT}?state=")
    assert name == "__Host-gateway-consent"
    assert set(attributes.split("; ")[1:]) == {"HttpOnly", "Max-Age=600", "Path=/", "SameSite=Lax", "Secure"}


async def test_the_cookie_of_a_hosts_request_is_bound_to_its_host_and_to_https(public: FrontEnd) -> None:
    query = await public.authorization_query(REDIRECT)

    async with aiohttp.ClientSession(public.base_url) as session, session.get("/oauth/authorize", params=query) as page:
        name, _, attributes = page.headers["Set-Cookie"].partition("=")

    assert name == "__Host-gateway-authorize"
    assert set(attributes.split("; ")[1:]) == {"HttpOnly", "Max-Age=600", "Path=/", "SameSite=Strict", "Secure"}


async def test_a_host_that_may_not_register_is_told_which_setting_allows_it(public: FrontEnd) -> None:
    metadata = {"client_name": "A host", "redirect_uris": [REDIRECT]}
    async with aiohttp.ClientSession(public.base_url) as session:
        async with session.get("/.well-known/oauth-authorization-server") as answer:
            named = await answer.json()
        async with session.post(urlsplit(named["registration_endpoint"]).path, json=metadata) as answer:
            refused = await answer.json()

    assert (answer.status, refused["error"]) == (403, "access_denied")
    assert "GATEWAY_MCP_REGISTRATION=true" in refused["error_description"]
    assert named["service_documentation"] == "https://gateway.example/docs/how-to/agents"


async def test_hosts_of_this_machine_register_at_a_loopback_address(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    metadata = {"client_name": "A host", "redirect_uris": [REDIRECT]}
    async with (
        front_end(tmp_path, database_url, redis_url) as front,
        aiohttp.ClientSession(front.base_url) as session,
        session.post("/oauth/register", json=metadata) as answer,
    ):
        assert answer.status == 201


@pytest.mark.parametrize(
    ("base_url", "registers", "needs"),
    [
        ("https://gw.example", True, {"Cursor": "Registers itself, which this gateway allows"}),
        ("https://gw.example", False, {"Cursor": "which this gateway refuses: set GATEWAY_MCP_REGISTRATION=true"}),
        ("https://gw.example", False, {"Codex": "for which this gateway needs GATEWAY_MCP_REGISTRATION=true"}),
        ("http://localhost:8080", True, {"Claude and Claude Desktop": "this gateway's is not"}),
        ("http://gw.example", True, {"Claude and Claude Desktop": "this gateway's is not"}),
        ("https://gw.example", True, {"Claude and Claude Desktop": "reachable from the internet by https."}),
    ],
)
def test_the_configuration_of_a_host_says_what_it_needs(base_url: str, registers: bool, needs: dict[str, str]) -> None:
    shown = {each.name: each.needs for each in host_configurations(base_url, registers=registers)}

    assert [name for name, text in needs.items() if text not in shown[name]] == []
    assert all(shown.values())


async def test_the_number_of_hosts_that_an_address_can_register_is_limited(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    metadata, statuses = {"client_name": "A host", "redirect_uris": [REDIRECT]}, []
    async with (
        front_end(tmp_path, database_url, redis_url, mcp_registration=True) as front,
        aiohttp.ClientSession(front.base_url) as session,
    ):
        for _ in range(MAX_BY_ADDRESS + 1):
            async with session.post("/oauth/register", json=metadata) as answer:
                statuses.append(answer.status)

    assert statuses == [201] * MAX_BY_ADDRESS + [429]
