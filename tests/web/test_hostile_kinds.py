"""Pages and documents of a gateway with kinds of one word, of 5,000 operations, and with markup and long texts."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from math import inf
from uuid import uuid4

import aiohttp
import pytest
from yarl import URL

from gateway.web.routes import ROUTES
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, VERSIONS, Raw, headers_of
from tests.harness.blocked_loop import LIMIT, LongestCallback, measured
from tests.harness.caller import Api, ConnectorApi
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.hostile_kinds import MANY, write_kind, write_large_kind, write_wordy_kind
from tests.harness.in_process import FrontEnd, front_end
from tests.web.test_unserved_connectors import LISTS, PAGES

#: answers that name every operation, or every one of the largest kind
CATALOGS = (
    "/api/v1/operations",
    "/api/v1/operations?query=list+things+of+shelf+700",
    "/api/v1/tools",
    "/api/v1/integrations/connector-types",
    "/api/v1/integrations/connector-types/warehouse",
    "/api/v1/skills/docs?id=warehouse",
    "/openapi.json",
    "/docs/kinds",
    "/docs/kinds/warehouse",
    "/docs/search?q=thing",
)
KINDS = ("fleet", "warehouse", "wordy")
#: connectors of the organization
MANY_CONNECTORS = 100
#: values of the variables of paths; those of others are ids of nothing
VARIABLES = {"connector_type": "warehouse", "kind": "warehouse", "page": "kinds", "entity": "things1"}
#: pages, documents and lists: a new route is among them
READS = [route for route in ROUTES if route.method == "GET" and not (route.is_stream or route.is_browser_step)]
#: methods of the Model Context Protocol with a long answer, and their params
LONG_ANSWERS: dict[str, dict[str, object]] = {
    "server/discover": {},
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "gateway://kinds/warehouse"},
    "skills/list": {},
    "skills/get": {"uri": "skill://warehouse/SKILL.md"},
}


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


@pytest.fixture(scope="module")
async def many(connectors: dict[str, ConnectorApi]) -> None:
    """Connectors of all kinds."""
    api = connectors["fleet"].api
    for number in range(MANY_CONNECTORS - len(KINDS)):
        await api.connector(KINDS[number % len(KINDS)], {"api_key": "k"}, name=f"c{number}", validate=False)


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
        f"/docs/kinds/{kind}/{entity}",
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


@pytest.mark.alone
@pytest.mark.parametrize("path", CATALOGS)
async def test_no_answer_as_long_as_the_catalog_holds_the_loop(api: Api, path: str):
    await api.get(path)  # what is kept for all callers is made once
    shortest = inf
    for _ in range(4):
        longest = LongestCallback()
        with measured(longest):
            answer = await api.get(path)
        assert answer.status == 200
        shortest = min(shortest, longest.seconds)

    assert shortest <= LIMIT


@pytest.mark.alone
async def test_no_page_document_or_list_of_many_connectors_holds_the_loop(
    api: Api, browser: ConsoleBrowser, connectors: dict[str, ConnectorApi], many: None
):
    """A new route is in the table by its path."""
    ids = VARIABLES | {"connector_id": connectors["warehouse"].record["id"]}
    slow = {}
    for route in READS:
        path = re.sub(r"\{(\w+)[^}]*\}", lambda found: str(ids.get(found[1], uuid4())), route.path)
        path += "?limit=1000" * route.has_pages
        session, headers = (browser.session, {}) if route.path.startswith("/console") else (api.session, api.headers)

        async def answered(session=session, path=path, headers=headers, route=route) -> None:
            async with session.get(path, headers=headers, allow_redirects=False) as response:
                await response.read()
                assert response.status < 500 or route.is_probe, path

        if (seconds := await shortest(answered)) > LIMIT:
            slow[route.path] = round(seconds, 3)

    assert slow == {}


@pytest.mark.alone
@pytest.mark.parametrize("at", ["", "/warehouse", "?tools=*"])
async def test_no_long_answer_to_an_agent_with_many_connectors_holds_the_loop(api: Api, many: None, at: str):
    slow = {}
    for method, params in LONG_ANSWERS.items():
        if (seconds := await shortest(partial(read_answer, api, f"/mcp{at}", method, params))) > LIMIT:
            slow[method] = round(seconds, 3)

    assert slow == {}


@pytest.mark.alone
@pytest.mark.parametrize(
    "name", ["warehouse.things5000.list", "warehouse.thing700.list", "warehouse.things7.lst", "s.a.b"]
)
async def test_no_unknown_name_holds_the_loop(api: Api, connectors: dict[str, ConnectorApi], name: str):
    kind, entity, action = name.split(".")
    described = {"name": "describe_operation", "arguments": {"operation": name}}
    call = {"entity": entity, "action": action, "params": {}}
    slow = {
        "describe": await shortest(partial(read_answer, api, "/mcp", "tools/call", described)),
        "tool": await shortest(partial(read_answer, api, "/mcp/warehouse", "tools/call", {"name": name}, 400)),
        "execute": await shortest(partial(api.post, f"{connectors['warehouse'].path}/execute", call)),
        "tools": await shortest(partial(api.get, f"/api/v1/tools?operations={name},{entity}.{action}")),
        "kind": await shortest(partial(api.get, f"/api/v1/tools?kind={kind}s")),
        "docs": await shortest(partial(api.get, f"/docs/kinds/warehouse/{entity}")),
    }

    assert {of: round(seconds, 3) for of, seconds in slow.items() if seconds > LIMIT} == {}


@pytest.mark.alone
@pytest.mark.parametrize(
    "phrase", ["e t a o i n s r h l d c u m", "things of the shelf", "a b c d e f g h i j k l m n"]
)
async def test_no_search_of_the_documents_holds_the_loop(api: Api, phrase: str):
    await api.get("/docs/search?q=x")  # the site is made for the first request
    assert await shortest(partial(api.get, "/docs/search", params={"q": phrase})) <= LIMIT


@pytest.mark.alone
async def test_the_tools_of_a_large_kind_are_made_without_holding_the_loop(api: Api):
    """Another selection of tools is another server, whose tools are made for its first list."""
    selections = iter(f"warehouse.*,other{number}.list" for number in range(4))

    async def answered() -> None:
        await read_answer(api, f"/mcp?tools={next(selections)}", "tools/list", {})

    assert await shortest(answered) <= LIMIT


async def read_answer(api: Api, path: str, method: str, params: dict[str, object], status: int = 200) -> None:
    """Read an answer without decoding it, which would hold the loop of the test."""
    params = {**params, "_meta": {VERSION: VERSIONS[0], CAPABILITIES: {}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    async with api.session.post(path, data=body, headers={**api.headers, **headers_of(method, params)}) as response:
        while await response.content.readany():
            pass
        assert response.status == status, method


async def shortest(answered: Callable[[], Awaitable[object]]) -> float:
    """The shortest of four times that the longest callback of an answer takes."""
    seconds = inf
    for _ in range(4):
        longest = LongestCallback()
        with measured(longest):
            await answered()
        seconds = min(seconds, longest.seconds)
        if seconds <= LIMIT:
            break
    return seconds
