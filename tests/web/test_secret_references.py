"""Credentials by reference: calls have the secret's value, which is kept and shown nowhere."""

import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from aiohttp import web

from gateway.access.identity.store import IdentityStore
from gateway.connectors.model import REFERENCE
from tests.harness.browser import findings_in_light_and_dark, launched, needs_chromium
from tests.harness.browser import signed_in as browser_sign_in
from tests.harness.caller import Api
from tests.harness.clients import new_organization
from tests.harness.console import ConsoleBrowser, new_browser, signed_in
from tests.harness.databases import rows_as_text
from tests.harness.hostile_kinds import write_kind
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.key_services import VAULT_TOKEN, KeyServices
from tests.harness.serving import served

METHOD = {
    "title": "Key",
    "scheme": "bearer",
    "token": "api_key",
    "credentials": {"api_key": {"description": "the key", "required": True, "secret": True}},
}
APP = {
    "title": "App",
    "scheme": "bearer",
    "token": "access_token",
    "oauth": True,
    "grant_type": "client_credentials",
    "credentials": {
        "client_id": {"description": "its id", "required": True},
        "client_secret": {"description": "its secret", "required": True, "secret": True},
        "access_token": {"description": "its token", "secret": True},
    },
}
OAUTH = {"token_url": "https://api.vaulted.example.com/token"}
#: of the app
TOKEN = "token-7f6e5d4c3b2a"
VAULT = "secret/acme/vaulted"


@dataclass
class World:
    vault: KeyServices
    organization_id: UUID
    api: Api = field(init=False)
    front: FrontEnd = field(init=False)
    #: what each request to the application had as its proof
    proofs: list[str] = field(default_factory=list)
    #: what the application issues and accepts
    token: str = TOKEN
    #: whether the application refuses the tokens that it has issued
    refuses_tokens: bool = False

    @property
    def key(self) -> str:
        return self.vault.secrets[VAULT]["key"]

    @key.setter
    def key(self, value: str) -> None:
        self.vault.secrets[VAULT] = {"key": value}

    def credentials(self, path: str = "acme/vaulted#key") -> dict[str, Any]:
        return {"api_key": {"$secret": f"vault://{urlsplit(self.vault.url).netloc}/secret/{path}"}}

    async def answer(self, request: web.Request) -> web.Response:
        """Accept the current value only, and repeat in each answer what the request had."""
        proof = request.headers.get("Authorization", "")
        if request.path == "/token":
            return self.issued(await request.post())
        self.proofs.append(proof)
        if proof == f"Bearer {self.token}" and not self.refuses_tokens:
            return web.json_response({"items": []})
        if proof != f"Bearer {self.key}":
            return web.json_response({"error": {"code": "key", "message": f"{proof} is wrong"}}, status=401)
        if request.path.endswith("/echo"):
            return web.json_response({"error": {"code": "x", "message": f"{proof} is odd"}}, status=422)
        return web.json_response({"items": [], "id": "1"})

    def issued(self, form: Mapping[str, Any]) -> web.Response:
        """A token that has expired by its next use."""
        if (form["client_id"], form["client_secret"]) != ("app", self.key):
            return web.json_response(
                {"error": "invalid_client", "error_description": form["client_secret"]}, status=401
            )
        return web.json_response({"access_token": self.token, "token_type": "Bearer", "expires_in": 1})


@pytest.fixture(scope="module")
async def world(tmp_path_factory, database, database_url: str, redis_url: str) -> AsyncIterator[World]:
    root = tmp_path_factory.mktemp("specs")
    write_kind(root, "vaulted", authentication={"key": METHOD, "app": APP}, oauth=OAUTH)
    organization_id = await new_organization(IdentityStore(database))
    async with KeyServices().serving() as vault:
        world = World(vault, organization_id)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", world.answer)
        async with served(application) as url:
            prefix = f"vault://{urlsplit(vault.url).netloc}/secret/acme"
            variables = {"GATEWAY_UPSTREAM_VAULTED": url, "VAULT_TOKEN": VAULT_TOKEN}
            with patch.dict(os.environ, variables):
                async with front_end(
                    tmp_path_factory.mktemp("front"),
                    database_url,
                    redis_url,
                    specs=(root,),
                    secret_references={organization_id: (prefix,)},
                ) as world.front:
                    assert not world.front.services.catalog.refused
                    async with world.front.api(organization_id) as world.api:
                        yield world
        assert vault.faults == []


@pytest.fixture(autouse=True)
async def first_key(world: World) -> None:
    world.key, world.vault.is_away = "canary-first-4e3d2c1b0a", False
    world.token, world.refuses_tokens = TOKEN, False
    world.proofs.clear()


async def test_a_rotated_secret_is_used_by_the_next_call_and_kept_and_shown_nowhere(world: World, caplog):
    connector = await world.api.connector("vaulted", world.credentials())
    await connector.execute("items", "list")
    world.key = "canary-second-9f8e7d6c5b"
    world.proofs.clear()

    await connector.execute("items", "list")
    echoed = await connector.send("items", "get", {"item_id": "echo"})

    assert world.proofs == ["Bearer canary-first-4e3d2c1b0a", *["Bearer canary-second-9f8e7d6c5b"] * 2]
    assert echoed.status == 422
    assert b"*** is odd" in echoed.body
    shown = [echoed.body, (await world.api.get(connector.path)).body, caplog.text.encode()]
    assert [each for each in shown if b"canary" in each] == []
    assert await rows_with(world, "canary") == []
    assert await stored_credentials(world, UUID(connector.record["id"])) == {
        f"{REFERENCE}api_key": world.credentials()["api_key"]["$secret"]
    }


async def test_new_credentials_may_be_a_reference_or_end_one(world: World):
    connector = await world.api.connector("vaulted", {"api_key": world.key})
    world.proofs.clear()
    world.key = "canary-third-0a1b2c3d4e"

    changed = await world.api.call("PATCH", connector.path, json={"credentials": world.credentials()})
    await connector.execute("items", "list")
    world.vault.is_away = True
    ended = await world.api.call("PATCH", connector.path, json={"credentials": {"api_key": world.key}})
    await connector.execute("items", "list")

    assert (changed.status, ended.status) == (200, 200)
    assert set(world.proofs) == {"Bearer canary-third-0a1b2c3d4e"}


async def test_tokens_are_renewed_with_a_secret_that_is_not_stored_beside_them(world: World):
    given = {"client_id": "app", "client_secret": world.credentials()["api_key"]}
    connector = await world.api.connector("vaulted", given)

    await connector.execute("items", "list")
    await connector.execute("items", "list")

    assert await stored_credentials(world, UUID(connector.record["id"])) == {
        "client_id": "app",
        "access_token": TOKEN,
        f"{REFERENCE}client_secret": given["client_secret"]["$secret"],
    }
    assert await rows_with(world, world.key) == []


async def test_a_rotated_client_secret_is_read_again_when_the_token_request_is_refused(world: World):
    given = {"client_id": "app", "client_secret": world.credentials()["api_key"]}
    connector = await world.api.connector("vaulted", given)
    await connector.execute("items", "list")
    world.key, world.token = "canary-fourth-1b2c3d4e5f", "token-8a7b6c5d4e3f"

    await connector.execute("items", "list")

    assert world.proofs[-2:] == [f"Bearer {TOKEN}", "Bearer token-8a7b6c5d4e3f"]
    assert (await world.api.get(connector.path)).document()["status"] == "active"


async def test_a_connector_whose_new_tokens_are_refused_is_not_said_to_lack_what_renews_them(world: World):
    given = {"client_id": "app", "client_secret": world.credentials()["api_key"]}
    connector = await world.api.connector("vaulted", given)
    world.refuses_tokens = True

    await connector.send("items", "list", {})
    found = (await world.api.get(connector.path)).document()

    assert found["status"] == "needs_reauth"
    assert "refresh token" not in found["status_reason"]


async def test_a_token_that_the_gateway_renews_is_no_reference(world: World):
    given = {"client_id": "app", "client_secret": world.key, "access_token": world.credentials()["api_key"]}
    body = {"workspace_name": "w", "connector_type": "vaulted", "credentials": given}

    refused = (await world.api.post("/api/v1/integrations/connectors", body)).document(422)

    assert "access_token of App cannot be a reference" in refused["detail"]


@pytest.mark.parametrize(
    ("credentials", "said"),
    [
        ({"path": "other/vaulted#key"}, "GATEWAY_SECRET_REFERENCES"),
        ({"path": "acme/../other#key"}, "must be written vault://"),
        ({"path": "acme/nothing#key"}, "the secret service refuses vault://"),
        ({"path": "acme/vaulted#other"}, "the secret service refuses vault://"),
    ],
)
async def test_a_reference_that_is_not_allowed_or_gives_nothing_is_refused(
    world: World, credentials: dict[str, str], said: str
):
    body = {"workspace_name": "w", "connector_type": "vaulted", "credentials": world.credentials(**credentials)}

    refused = (await world.api.post("/api/v1/integrations/connectors", body)).document(422)

    assert refused["code"] == "invalid_credentials"
    assert refused["errors"][0]["pointer"] == "/credentials/api_key"
    assert said in refused["detail"]
    assert world.proofs == []


async def test_while_the_secret_service_is_away_nothing_is_sent(world: World):
    connector = await world.api.connector("vaulted", world.credentials())
    await connector.execute("items", "list")
    world.front.services.connectors.store.forget_values(
        world.organization_id, [world.credentials()["api_key"]["$secret"]]
    )
    world.proofs.clear()
    world.vault.is_away = True

    away = (await connector.send("items", "list", {})).document(503)
    resolved = await world.front.services.connectors.resolver.get(world.organization_id, UUID(connector.record["id"]))
    masked = (await resolved.connector.session.secrets()).masked(f"an answer to an earlier request: {world.key}")
    world.vault.is_away = False
    await connector.execute("items", "list")

    assert urlsplit(world.vault.url).netloc in away["detail"]
    assert len(world.proofs) == 1
    assert masked == "an answer to an earlier request: ***"


@pytest.fixture
async def own(world: World) -> AsyncIterator[tuple[ConsoleBrowser, str]]:
    """The browser of a person in the console, and the page to which its form of a new connector led."""
    async with signed_in(world.front, *await world.front.client(world.organization_id)) as browser:
        fields = {"workspace_name": "w", "kind": "vaulted", "csrf": await browser.csrf()}
        led = await browser.send("/console/connectors/connect", **fields)
        yield browser, urlsplit(led.headers["Location"]).path


def form_with(world: World, **fields: str) -> dict[str, str]:
    """The connect form with a reference in place of the key."""
    reference = world.credentials()["api_key"]["$secret"]
    return {"kind": "vaulted", "method": "key", "secret:api_key": reference, **fields}


async def test_a_person_in_the_console_connects_with_a_reference(world: World, own: tuple[ConsoleBrowser, str]):
    browser, page = own

    shown = (await browser.get(page)).body.decode()
    refused = await browser.send(page, **form_with(world, **{"secret:api_key": "vault://elsewhere/secret/a#b"}))
    doubled = await browser.send(page, **form_with(world, api_key="typed"))
    connected = await browser.send(page, **form_with(world))
    [found] = re.findall(r'data-connector-id="([^"]+)"', connected.body.decode())

    assert 'name="secret:api_key"' in shown
    assert 'name="secret:access_token"' in shown
    assert 'name="secret:client_id"' not in shown
    assert (refused.status, doubled.status, connected.status) == (422, 422, 200)
    assert 'value="vault://elsewhere/secret/a#b"' in refused.body.decode()
    assert "GATEWAY_SECRET_REFERENCES" in refused.body.decode()
    assert "give either its value or a reference" in doubled.body.decode()
    assert await stored_credentials(world, UUID(found)) == {f"{REFERENCE}api_key": form_with(world)["secret:api_key"]}


@needs_chromium
async def test_the_form_with_references_is_accessible_and_is_sent_with_one(world: World):
    client_id, secret = await world.front.client(world.organization_id)
    async with signed_in(world.front, client_id, secret) as browser, launched() as chromium:
        fields = {"workspace_name": "w", "kind": "vaulted", "csrf": await browser.csrf()}
        led = await browser.send("/console/connectors/connect", **fields)
        page = await (await chromium.new_context(base_url=world.front.base_url)).new_page()
        await browser_sign_in(page, client_id, secret)
        await page.goto(urlsplit(led.headers["Location"]).path)
        await page.click("text=Other credentials")
        closed = await findings_in_light_and_dark(page)
        key = page.locator("form", has=page.locator("[name='secret:api_key']"))
        await key.get_by_text("Or a secret in Vault").click()
        opened = await findings_in_light_and_dark(page)
        await key.get_by_label("Reference to API key").fill(world.credentials()["api_key"]["$secret"])
        async with page.expect_response("**/connect/**") as sent:
            await key.get_by_role("button").click()
        connected = await sent.value

    assert (closed, opened) == ([], [])
    assert connected.status == 200


@pytest.mark.parametrize("who", ["a stranger with the link", "another client", "an organization without references"])
async def test_nobody_else_is_offered_a_reference(world: World, own: tuple[ConsoleBrowser, str], who: str):
    front, (_, page) = world.front, own
    organizations = {"another client": world.organization_id, "an organization without references": None}
    opened = signed_in(front, *await front.client(organizations[who])) if who in organizations else new_browser(front)
    async with opened as browser:
        if who == "an organization without references":
            fields = {"workspace_name": "w", "kind": "vaulted", "csrf": await browser.csrf()}
            page = urlsplit((await browser.send("/console/connectors/connect", **fields)).headers["Location"]).path
        shown = await browser.get(page)
        sent = await browser.send(page, **form_with(world))

    assert shown.status == 200
    assert b"secret:" not in shown.body
    assert sent.status == 422
    assert world.proofs == []


async def stored_credentials(world: World, connector_id: UUID) -> dict[str, str]:
    """What is sealed in the row."""
    services, organization_id = world.front.services, world.organization_id
    async with services.database.tenant(organization_id) as connection, connection.transaction():
        return (await services.connectors.store.lock_secret(connection, organization_id, connector_id)).values


async def rows_with(world: World, text: str) -> list[str]:
    """The rows of any table that have the text."""
    return [row for _, row in await rows_as_text(world.front.services.database) if text in row]
