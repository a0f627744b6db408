"""Grants to agents' hosts and redirect URLs of clients, through the API and in the console."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import aiohttp
import pytest

from gateway.contract.oauth import GrantedTokenView, NewGrant
from gateway.errors import OAuthError
from tests.harness.caller import Api
from tests.harness.clients import caller_of
from tests.harness.console import ConsoleBrowser, new_browser
from tests.harness.in_process import EVERY_SCOPE, FrontEnd, front_end


@pytest.fixture
async def organization_id(front: FrontEnd) -> UUID:
    return await front.organization()


@pytest.fixture
async def api(front: FrontEnd, organization_id: UUID) -> AsyncIterator[Api]:
    async with front.api(organization_id) as opened:
        yield opened


@pytest.fixture
async def browser(front: FrontEnd, organization_id: UUID) -> AsyncIterator[ConsoleBrowser]:
    client_id, secret = await front.client(organization_id, EVERY_SCOPE)
    async with new_browser(front) as opened:
        await opened.send("/console/sign-in", client_id=client_id, client_secret=secret)
        yield opened


@pytest.fixture
async def held(front: FrontEnd, organization_id: UUID) -> GrantedTokenView:
    """The tokens of a host that a person gave access."""
    return await tokens_of(front, organization_id)


async def tokens_of(front: FrontEnd, organization_id: UUID) -> GrantedTokenView:
    client_id, _ = await front.client(organization_id, ["read"])
    return await front.granted(caller_of(organization_id, client_id), NewGrant(("read",), ("acme",)))


def refresh_form(held: GrantedTokenView) -> dict[str, str]:
    return {"grant_type": "refresh_token", "client_id": "host", "refresh_token": held.refresh_token}


async def status_with(front: FrontEnd, held: GrantedTokenView) -> int:
    """The gateway's status for a host with its token."""
    headers = {"Authorization": f"Bearer {held.access_token}"}
    async with aiohttp.request("POST", f"{front.base_url}/mcp", headers=headers, json={}) as response:
        return response.status


async def audited(api: Api) -> dict[str, str | None]:
    """The targets of the audit entries, by action."""
    return {entry["what"]: entry["target"] for entry in (await api.get("/api/v1/audit")).json()["data"]}


async def test_a_grant_is_listed_with_client_host_scopes_and_workspaces(api: Api, held: GrantedTokenView):
    grants = (await api.get("/api/v1/grants")).json()["data"]

    assert [(each["host_name"], each["scopes"], each["workspaces"]) for each in grants] == [
        ("A <host>", ["read"], ["acme"])
    ]
    assert grants[0]["expires_at"] > grants[0]["created_at"]
    assert held.access_token not in str(grants)


async def test_grants_are_listed_in_pages(api: Api, front: FrontEnd, organization_id: UUID):
    for _ in range(3):
        await tokens_of(front, organization_id)

    first = (await api.get("/api/v1/grants?limit=2")).json()
    second = (await api.get(f"/api/v1/grants?limit=2&cursor={first['next_cursor']}")).json()

    assert len({each["id"] for each in first["data"] + second["data"]}) == 3
    assert second["next_cursor"] is None


async def test_a_revoked_grant_ends_in_every_process_at_once(
    api: Api, front: FrontEnd, held: GrantedTokenView, tmp_path: Path, database_url: str, redis_url: str
):
    async with front_end(tmp_path, database_url, redis_url) as elsewhere:
        before = [await status_with(each, held) for each in (front, elsewhere)]
        grant = (await api.get("/api/v1/grants")).json()["data"][0]

        answer = await api.call("DELETE", f"/api/v1/grants/{grant['id']}")

        assert await status_with(front, held) == 401
        async with asyncio.timeout(10):  # what is cached there would last longer
            while await status_with(elsewhere, held) != 401:
                pass
        with pytest.raises(OAuthError):
            await elsewhere.access.authorization.exchange(refresh_form(held))
    assert before == [400, 400]  # authenticated, and the body is not a message
    assert answer.status == 204
    assert (await api.get("/api/v1/grants")).json()["data"] == []


async def test_a_revocation_is_recorded(api: Api, held: GrantedTokenView):
    grant = (await api.get("/api/v1/grants")).json()["data"][0]
    await api.call("DELETE", f"/api/v1/grants/{grant['id']}")

    async with asyncio.timeout(10):  # entries are written in batches: others may be there first
        while "agent.revoke" not in (targets := await audited(api)):
            pass

    assert targets["agent.revoke"] == grant["id"]


async def test_grants_are_for_administrators(front: FrontEnd, organization_id: UUID, held: GrantedTokenView):
    async with front.api(organization_id, ["read", "write"]) as other:
        listed = await other.get("/api/v1/grants")
        revoked = await other.call("DELETE", f"/api/v1/grants/{uuid4()}")

    assert (listed.status, revoked.status) == (403, 403)


async def test_a_grant_is_seen_and_revoked_in_the_console(
    browser: ConsoleBrowser, front: FrontEnd, api: Api, held: GrantedTokenView
):
    grant = (await api.get("/api/v1/grants")).json()["data"][0]
    page = await browser.get("/console/grants")

    answer = await browser.send(f"/console/grants/{grant['id']}/revoke", csrf=await browser.csrf())

    assert b"A &lt;host&gt;" in page.body
    assert answer.headers["Location"] == "/console/grants"
    assert b"No host has access yet." in (await browser.get("/console/grants")).body
    assert await status_with(front, held) == 401


async def test_the_console_does_not_show_grants_of_another_organization(browser: ConsoleBrowser, front: FrontEnd):
    other = await front.organization()
    held = await tokens_of(front, other)
    grant = (await front.access.authorization.store.grants(other, None, 1))[0]

    answer = await browser.send(f"/console/grants/{grant.id}/revoke", csrf=await browser.csrf())

    assert answer.status == 404
    assert await status_with(front, held) == 400


async def test_redirect_urls_of_a_client_are_changed_by_the_api(api: Api, front: FrontEnd, organization_id: UUID):
    client_id, _ = await front.client(organization_id)

    body = {"redirect_urls": ["https://app.example/cb"]}
    changed = await api.call("PATCH", f"/api/v1/clients/{client_id}", json=body)

    assert changed.json()["redirect_urls"] == body["redirect_urls"]
    listed = (await api.get("/api/v1/clients")).json()["data"]
    assert {each["id"]: each["redirect_urls"] for each in listed}[client_id] == body["redirect_urls"]


@pytest.mark.parametrize("url", ["http://app.example/cb", "javascript:alert(1)", "https://a@b/", "https://a/#f", "x"])
async def test_an_unsafe_redirect_url_is_refused_by_name(api: Api, front: FrontEnd, organization_id: UUID, url: str):
    client_id, _ = await front.client(organization_id)

    body = {"redirect_urls": ["https://good.example/", url]}
    answer = await api.call("PATCH", f"/api/v1/clients/{client_id}", json=body)

    assert answer.status == 422
    assert answer.json()["errors"][0]["pointer"] == "/redirect_urls/1"


async def test_a_client_of_several_organizations_cannot_be_changed(api: Api, front: FrontEnd, organization_id: UUID):
    shared = await front.services.identity.create_client(
        "shared", [organization_id, await front.organization()], uuid4().bytes, ["read"]
    )

    answer = await api.call("PATCH", f"/api/v1/clients/{shared}", json={"redirect_urls": []})

    assert answer.status == 404


async def test_redirect_urls_are_changed_in_the_console(
    browser: ConsoleBrowser, front: FrontEnd, organization_id: UUID
):
    client_id, _ = await front.client(organization_id)
    path, csrf = f"/console/settings/clients/{client_id}", await browser.csrf()

    refused = await browser.send(path, csrf=csrf, redirect_urls="http://app.example/cb")
    await browser.send(path, csrf=csrf, redirect_urls="https://one.example/cb\r\nhttps://two.example/cb\r\n")

    stored = await front.services.identity.client(UUID(client_id))
    assert stored is not None
    assert stored.client.redirect_urls == ("https://one.example/cb", "https://two.example/cb")
    assert refused.status == 422
    assert b"must be https" in refused.body
