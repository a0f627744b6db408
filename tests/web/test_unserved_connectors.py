"""Connectors whose kind is gone, broken or renamed: they are listed as unserved, and nothing else is affected."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

from gateway.client import Gateway
from gateway.contract.events import EventType
from gateway.events.model import EventFilter
from gateway.run.monitoring.health_checks import CheckStatus, of_connectors
from gateway.settings import Settings
from gateway.web.console.routes import CONSOLE_ROUTES
from gateway.web.routes import ROUTES
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.hostile_kinds import change_file, write_kind
from tests.harness.in_process import FrontEnd, front_end
from workers.main import Worker

CONNECTORS = "/api/v1/integrations/connectors"
PAGES = [
    route.path
    for route in CONSOLE_ROUTES
    if route.method == "GET" and not route.is_open and "{" not in route.path and not route.path.endswith(".csv")
]
LISTS = [
    route.path
    for route in ROUTES
    if route.method == "GET" and route.path.startswith("/api/") and "{" not in route.path and not route.is_stream
]


def removed(root: Path) -> tuple[Path, ...]:
    return ()


def moved(root: Path) -> tuple[Path, ...]:
    return (root / "not-mounted",)


def broken(root: Path) -> tuple[Path, ...]:
    change_file(root / "fleet" / "connector.yaml", {"health_check": "nothing.list"})
    return (root,)


def renamed(root: Path) -> tuple[Path, ...]:
    # The name of the application is the kind's old name, so that a lenient look-up would find the new kind.
    change_file(root / "fleet" / "connector.yaml", {"kind": "vehicles", "application": "fleet"})
    return (root,)


@dataclass(frozen=True)
class World:
    """An organization with a connector of `fleet`, which is unserved, and one of the help desk."""

    front: FrontEnd
    api: Api
    unserved: ConnectorApi
    support_desk: ConnectorApi
    schedule_id: str
    organization_id: UUID
    #: a connector of a kind whose authentication method was renamed
    without_method: ConnectorApi
    #: the path of a connect link for `fleet` and two other kinds
    link: str


@pytest.fixture(scope="module", params=[removed, moved, broken, renamed])
async def world(request, tmp_path_factory, database_url: str, redis_url: str) -> AsyncIterator[World]:
    root, other = tmp_path_factory.mktemp("specs"), tmp_path_factory.mktemp("other-specs")
    write_kind(root, "fleet")
    parcels = write_kind(other, "parcels")
    break_it: Callable[[Path], tuple[Path, ...]] = request.param
    async with front_end(
        tmp_path_factory.mktemp("before"), database_url, redis_url, specs=(root, other), synchronize=True
    ) as front:
        organization_id = await front.organization()
        async with front.api(organization_id) as api:
            fleet = await api.connector("fleet", {"api_key": "k"}, name="Trucks", validate=False)
            of_parcels = await api.connector("parcels", {"api_key": "k"}, name="Parcels", validate=False)
            support_desk = await api.connector(name="Help desk")
            definition = {"name": "s", "connector_id": fleet.record["id"], "entity": "items", "action": "list"}
            schedule = (await api.post("/api/v1/schedules", {**definition, "cron": "@daily"})).document(201)
            await fleet.submit("items", "list")
            wanted = {"workspace_name": "w", "connector_types": ["fleet", "support-desk", "team-chat"]}
            link = URL((await api.post("/api/v1/connect/sessions", wanted)).document(201)["url"]).path
    methods = (parcels / "connector.yaml").read_text().replace("\n  api_key:\n    title", "\n  key:\n    title")
    (parcels / "connector.yaml").write_text(methods)
    specs = (*break_it(root), other)
    async with (
        front_end(tmp_path_factory.mktemp("after"), database_url, redis_url, specs=specs, synchronize=True) as front,
        front.api(organization_id) as api,
    ):
        assert "parcels" in front.services.catalog.kinds
        yield World(
            front, api, fleet.through(api), support_desk.through(api), schedule["id"], organization_id,
            of_parcels.through(api), link,
        )  # fmt: skip


@pytest.fixture
async def browser(world: World) -> AsyncIterator[ConsoleBrowser]:
    async with signed_in(world.front, *await world.front.client(world.organization_id)) as opened:
        yield opened


@pytest.fixture
async def mcp(world: World) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession(headers=world.api.headers) as session:
        yield Raw(session, f"{world.front.base_url}/mcp")


async def test_it_is_listed_with_its_status_and_the_reason(world: World):
    listed = {each["name"]: each for each in (await world.api.get(CONNECTORS)).document()["data"]}

    assert {name: each["status"] for name, each in listed.items()} == {
        "Trucks": "unserved", "Parcels": "active", "Help desk": "active",
    }  # fmt: skip
    assert listed["Trucks"]["status_reason"].startswith("the kind fleet is not served: ")
    assert listed["Trucks"]["kind"] == "fleet"
    assert (await world.api.get(world.unserved.path)).document() == listed["Trucks"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("status=unserved", {"Trucks"}),
        ("status=active", {"Parcels", "Help desk"}),
        ("connector_type=support-desk", {"Help desk"}),
    ],
)
async def test_lists_are_filtered_by_the_status_that_they_show(world: World, query, names):
    found = (await world.api.get(f"{CONNECTORS}?{query}")).document()["data"]

    assert {each["name"] for each in found} == names


async def test_every_list_answers_as_for_an_organization_without_connectors(world: World):
    async with world.front.api() as other:
        expected = {path: (await other.get(path)).status for path in LISTS}

    statuses = {path: (await world.api.get(path)).status for path in LISTS}

    assert statuses == expected
    assert max(statuses.values()) < 500


async def test_every_page_of_the_console_answers(browser: ConsoleBrowser):
    statuses = {path: (await browser.get(path)).status for path in PAGES}

    assert statuses == dict.fromkeys(PAGES, 200)


async def test_the_console_shows_it_with_the_reason(world: World, browser: ConsoleBrowser):
    connector_id = world.unserved.record["id"]

    page = await browser.get(f"/console/connectors/{connector_id}")

    assert page.status == 200
    assert b"the kind fleet is not served" in page.body
    for path in ("search", "jobs", "audit"):
        answer = await browser.get(f"/console/{path}?connector={connector_id}")
        assert (answer.status, b"Trucks" in answer.body) == (200, True), path
    assert (await browser.get(f"/console/playground?connector={connector_id}")).status == 200
    health = await browser.get("/console/health")
    assert b"1 unserved" in health.body


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("POST", "/execute", {"entity": "items", "action": "list"}),
        ("POST", "/check", None),
        ("GET", "/inspect", None),
        ("GET", "/context-store", None),
        ("POST", "/context-store/sync", {}),
        ("POST", "/hook", {}),
        ("PATCH", "", {"status": "active"}),
        ("PATCH", "", {"credentials": {"api_key": "new"}}),
    ],
)
async def test_what_needs_the_kind_is_refused_with_the_reason(world: World, method, path, document):
    options = {} if document is None else {"json": document}

    answer = await world.api.call(method, world.unserved.path + path, **options)

    problem = answer.document(409)
    assert (problem["code"], problem["connector_status"]) == ("connector_not_ready", "unserved")
    assert "the kind fleet is not served" in problem["detail"]


async def test_a_connect_link_for_it_is_refused(world: World):
    session = {"workspace_name": world.unserved.record["workspace_name"], "connector_id": world.unserved.record["id"]}

    answer = await world.api.post("/api/v1/connect/sessions", session)

    assert answer.document(409)["code"] == "connector_not_ready"


async def test_a_connect_link_offers_the_kinds_that_are_served(world: World):
    page = await world.api.get(world.link)
    of_unserved = await world.api.get(f"{world.link}?kind=fleet")

    assert page.status == 200
    assert b"Zendesk" in page.body
    assert b"fleet" not in page.body
    assert of_unserved.status == 409


async def test_a_connector_whose_authentication_method_is_gone_says_so(world: World):
    problem = (await world.without_method.send("items", "list")).document(409)

    assert "parcels no longer has the authentication method api_key; PATCH credentials" in problem["detail"]
    assert (await world.without_method.api.get(world.without_method.path)).status == 200


async def test_it_is_renamed_disabled_and_shown_again(world: World):
    renamed_to = (await world.api.call("PATCH", world.unserved.path, json={"name": "Lorries"})).document()
    disabled = (await world.api.call("PATCH", world.unserved.path, json={"status": "disabled"})).document()
    async with world.front.services.database.system() as connection:
        await connection.execute(
            "UPDATE connectors SET status = 'active', name = 'Trucks' WHERE id = $1", UUID(world.unserved.record["id"])
        )

    assert (renamed_to["name"], renamed_to["status"]) == ("Lorries", "unserved")
    assert (disabled["status"], disabled["status_reason"]) == ("disabled", renamed_to["status_reason"])


async def test_calls_of_other_connectors_work(world: World):
    assert (await world.support_desk.execute("tickets", "list"))["result"]


async def test_agents_find_read_and_see_it(world: World, mcp: Raw):
    initialized = await mcp("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}})
    assert initialized.status < 500

    async def called(name, arguments):
        return (await mcp("tools/call", {"name": name, "arguments": arguments})).result

    found = await called("find_operations", {"task": "list help desk tickets"})
    shown = await called("connect", {})
    again = await called("connect", {"connector": "Trucks"})
    read = await called("read", {"operation": "support-desk.tickets.list"})

    assert found["structuredContent"]["data"][0]["connectors"] == ["Help desk"]
    status = {each["name"]: each["status"] for each in shown["structuredContent"]["connectors"]}
    assert status["Trucks"] == "unserved"
    assert again["isError"]
    assert "not served" in str(again)
    assert not read.get("isError")


async def test_the_playground_and_the_search_for_operations_answer(world: World, browser: ConsoleBrowser):
    found = await world.api.get("/api/v1/operations?query=list+tickets")
    page = await browser.get("/console/playground?query=list+tickets")

    assert found.document()["data"][0]["operation"] == "support-desk.tickets.list"
    assert page.status == 200


async def test_the_metrics_count_it(world: World):
    text = (await world.api.get("/metrics")).body.decode()

    samples = {
        (sample.labels["kind"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "gateway_connectors"
    }
    assert samples["fleet", "unserved"] >= 1
    assert ("fleet", "active") not in samples


async def test_the_checks_of_the_gateway_name_it(world: World, database_url: str):
    settings = Settings(database_url=database_url, specs=world.front.services.settings.specs)

    found = [each async for each in of_connectors(world.front.services.database, settings)]
    own = (await world.api.get("/api/v1/health/checks")).document()["data"]

    assert any(each.status is CheckStatus.FAILED and "the kind fleet is not served" in each.message for each in found)
    assert [each for each in own if each["what"] == "connectors"] == [
        {"status": "failed", "what": "connectors", "message": own[-3]["message"]}
    ]


async def test_its_background_work_ends_with_the_reason_and_that_of_others_goes_on(world: World):
    services, connector_id = world.front.services, UUID(world.unserved.record["id"])
    async with services.database.system() as connection:
        await connection.execute("UPDATE schedules SET next_run_at = now() WHERE id = $1", UUID(world.schedule_id))
        await connection.execute(
            "UPDATE context_entities SET next_sync_at = now() WHERE connector_id = $1", connector_id
        )
    jobs = (await world.api.get(f"/api/v1/jobs?connector_id={connector_id}")).document()["data"]
    stopping = asyncio.Event()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(Worker(services).until(stopping))
        ended = [await world.api.ended_job(job) for job in jobs]
        other = await world.api.ended_job(await world.support_desk.submit("tickets", "list"))
        page = await _missed(world)
        stopping.set()

    assert len(ended) == 2  # the list, and the first load of its copy
    for each in ended:
        assert (each["status"], each["error"]["code"]) == ("failed", "connector_not_ready")
        assert "the kind fleet is not served" in each["error"]["detail"]
    assert other["status"] == "succeeded"
    assert "the kind fleet is not served" in page["reason"]
    after = (await world.api.get(f"/api/v1/jobs?connector_id={connector_id}")).document()["data"]
    assert {each["id"] for each in after} == {each["id"] for each in jobs}  # no new synchronization was accepted


async def _missed(world: World) -> dict[str, Any]:
    wanted = EventFilter(types=[EventType.SCHEDULE_MISSED])
    while True:
        page = await world.front.services.events.feed.read(world.organization_id, wanted, None, 10)
        if page.events:
            return dict(page.events[0].data)
        await asyncio.sleep(0.05)


async def test_it_is_deleted_by_its_name(world: World):
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(Worker(world.front.services).until(stopping))
        client = await world.front.client(world.organization_id)
        async with Gateway(world.front.base_url, *client, world.unserved.record["workspace_name"]) as gateway:
            job = await gateway.connectors.delete("Trucks")
        deleted = (await world.api.call("DELETE", world.without_method.path)).document(202)["job_id"]
        ended = [await world.api.ended_job({"id": id_}) for id_ in (job.id, deleted)]
        stopping.set()

    assert [each["status"] for each in ended] == ["succeeded", "succeeded"]
    assert (await world.api.get(world.unserved.path)).status == 404
