"""Pages and documents of a gateway with kinds of one word, of 5,000 operations, and with markup and long texts."""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from yarl import URL

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.hostile_kinds import MANY, write_kind, write_large_kind, write_wordy_kind
from tests.harness.in_process import FrontEnd, front_end
from tests.web.test_unserved_connectors import LISTS, PAGES

KINDS = ("fleet", "warehouse", "wordy")


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url: str, redis_url: str) -> AsyncIterator[FrontEnd]:
    root = tmp_path_factory.mktemp("specs")
    write_kind(root, "fleet")
    write_large_kind(root)
    write_wordy_kind(root)
    async with front_end(tmp_path_factory.mktemp("front"), database_url, redis_url, specs=(root,)) as opened:
        assert not opened.services.catalog.refused
        yield opened


@pytest.fixture(scope="module")
async def connectors(front: FrontEnd) -> AsyncIterator[dict[str, ConnectorApi]]:
    """A connector of each kind, by kind."""
    async with front.api(await front.organization()) as api:
        yield {kind: await api.connector(kind, {"api_key": "k"}, validate=False) for kind in KINDS}


@pytest.fixture
def api(connectors: dict[str, ConnectorApi]) -> Api:
    return connectors["fleet"].api


@pytest.fixture
async def browser(front: FrontEnd, connectors: dict[str, ConnectorApi]) -> AsyncIterator[ConsoleBrowser]:
    async with signed_in(front, *await front.client(await _organization(front, connectors))) as opened:
        yield opened


async def _organization(front: FrontEnd, connectors: dict[str, ConnectorApi]):
    async with front.services.database.system() as connection:
        return await connection.fetchval(
            "SELECT organization_id FROM connectors WHERE id = $1", connectors["fleet"].record["id"]
        )


def is_escaped(page: bytes) -> bool:
    return b"<script>alert" not in page and b'javascript:alert(1)"' not in page and b">49" not in page


async def test_every_list_answers(front: FrontEnd, api: Api):
    async with front.api() as other:
        expected = {path: (await other.get(path)).status for path in LISTS}

    statuses = {path: (await api.get(path)).status for path in LISTS}

    assert statuses == expected
    assert max(statuses.values()) < 500


async def test_every_page_of_the_console_answers_with_escaped_texts(browser: ConsoleBrowser):
    for path in PAGES:
        page = await browser.get(path)
        assert page.status == 200, path
        assert is_escaped(page.body), path


@pytest.mark.parametrize("kind", KINDS)
async def test_the_pages_of_a_kind_answer_with_escaped_texts(browser: ConsoleBrowser, connectors, kind):
    connector_id = connectors[kind].record["id"]
    entity = "things1" if kind == "warehouse" else "items"
    paths = [
        f"/console/connectors/{connector_id}",
        f"/console/playground?kind={kind}",
        f"/console/playground?query=list+items&connector={connector_id}",
        f"/console/playground?operation={kind}.{entity}.list&connector={connector_id}",
        f"/console/search?connector={connector_id}",
        "/docs/kinds",
        f"/docs/kinds/{kind}",
        "/docs/search?q=word",
    ]

    for path in paths:
        page = await browser.get(path)
        assert page.status == 200, path
        assert is_escaped(page.body), path


@pytest.mark.parametrize("kind", KINDS)
async def test_a_person_sees_the_form_of_a_connect_link(api: Api, kind):
    made = (await api.post("/api/v1/connect/sessions", {"workspace_name": "w", "connector_types": [kind]})).document(
        201
    )

    page = await api.get(URL(made["url"]).path)

    assert page.status == 200
    assert is_escaped(page.body)


@pytest.mark.parametrize("kind", KINDS)
async def test_programs_and_agents_read_a_kind(api: Api, connectors, kind):
    assert (await api.get(f"/api/v1/integrations/connector-types/{kind}")).status == 200
    assert (await api.get(f"/api/v1/skills/docs?id={kind}")).status == 200
    assert (await api.get(f"{connectors[kind].path}/inspect")).document()["ready"]


async def test_the_openapi_document_has_every_kind(api: Api):
    document = json.loads((await api.get("/openapi.json")).body)

    text = json.dumps(document)
    assert [kind for kind in KINDS if kind not in text] == []


async def test_agents_find_operations_of_every_kind_quickly(front: FrontEnd, api: Api):
    async with aiohttp.ClientSession(headers=api.headers) as session:
        mcp = Raw(session, f"{front.base_url}/mcp")
        listed = (await mcp("resources/list")).result["resources"]
        tools = (await Raw(session, f"{front.base_url}/mcp/warehouse")("tools/list")).result["tools"]
        arguments = {"task": "list things of shelf 700", "kind": "warehouse"}
        found = (await mcp("tools/call", {"name": "find_operations", "arguments": arguments})).result

    assert {f"gateway://kinds/{kind}" for kind in KINDS} <= {each["uri"] for each in listed}
    assert max(len(each["description"]) for each in listed) <= 500
    assert max(len(each["title"]) for each in listed) <= 500
    assert len(tools) > MANY
    assert found["structuredContent"]["data"]
