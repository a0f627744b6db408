"""Invalid input to the console gets an error page and never causes a 500."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from tests.harness.caller import ConnectorApi
from tests.harness.clients import EVERY_SCOPE
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.web.test_routes import noted


@pytest.fixture
async def organization_id(front: FrontEnd) -> UUID:
    return await front.organization()


@pytest.fixture
async def browser(front: FrontEnd, organization_id: UUID) -> AsyncIterator[ConsoleBrowser]:
    async with signed_in(front, *await front.client(organization_id, EVERY_SCOPE)) as opened:
        yield opened


@pytest.fixture
async def desk(front: FrontEnd, organization_id: UUID) -> AsyncIterator[ConnectorApi]:
    async with front.api(organization_id) as api:
        yield await api.connector()


async def test_a_token_that_is_not_ascii_is_refused_like_any_other(browser: ConsoleBrowser):
    answer = await browser.send("/console/settings/clients", csrf="\N{SNOWMAN}", name="x", read="on")

    assert answer.status == 403


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/console/settings/clients", {"name": "a\x00b", "read": "on"}),
        ("/console/settings/clients", {"name": "x" * 100_000, "read": "on"}),
        ("/console/settings/clients", {"name": "a\nb", "read": "on"}),
        ("/console/connectors/connect", {"workspace_name": "a\x00b"}),
        ("/console/connectors/connect", {"workspace_name": "x" * 100_000}),
        ("/console/settings/apps", {"kind": "support-desk", "client_id": "x" * 100_000, "client_secret": "s"}),
    ],
)
async def test_an_invalid_name_is_refused(browser: ConsoleBrowser, path: str, fields: dict[str, str]):
    answer = await browser.send(path, csrf=await browser.csrf(), **fields)

    assert answer.status in (400, 422)
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("[" * 2000, 200),
        ("[" * 300 + "]" * 300, 200),
        ("NaN", 200),
        ("-Infinity", 200),
        ("9" * 5000, 200),
        ("a\x00b", 400),
    ],
)
async def test_any_search_phrase_gets_a_page(browser: ConsoleBrowser, desk: ConnectorApi, value: str, status: int):
    query = {"entity": "tickets", "field": "subject", "operator": "eq", "value": value}

    answer = await browser.get("/console/search", params=query)

    assert answer.status == status
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 300 + "]" * 300, "NaN", "Infinity"])
async def test_invalid_json_is_an_error_at_its_field(browser: ConsoleBrowser, desk: ConnectorApi, text: str):
    fields = {"operation": "support-desk.tickets.create", "connector": desk.record["id"], "p.ticket": text}

    answer = await browser.send("/console/playground", csrf=await browser.csrf(), **fields)

    assert answer.status == 422
    assert "write it as JSON" in answer.body.decode()


async def test_a_failed_sign_in_is_recorded(front: FrontEnd, organization_id: UUID):
    client_id, secret = await front.client(organization_id, EVERY_SCOPE)
    async with signed_in(front, client_id, secret) as browser:
        await browser.send("/console/sign-in", client_id=client_id, client_secret="wrong")

    async with front.api(organization_id) as api:

        async def outcomes() -> list[str]:
            entries = (await api.get("/api/v1/audit")).json()["data"]
            return [entry["outcome"] for entry in entries if entry["what"] == "console.sign_in"]

        await noted(api, "console.sign_in")
        while len(await outcomes()) < 2:
            pass
        assert sorted(await outcomes()) == ["succeeded", "unauthorized"]
