"""A client that is limited to workspaces cannot access others, on any surface."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import uuid4

import aiohttp
import pytest

from gateway.access.audit.log import EntryFilter
from gateway.access.identity.model import Caller, Scope
from gateway.access.identity.tokens import hashed, new_secret
from gateway.contract.oauth import AuthorizationRequest, NewGrant
from gateway.errors import NotFound
from tests.harness.caller import Api
from tests.harness.console import signed_in
from tests.harness.in_process import EVERY_SCOPE, FrontEnd
from tests.harness.waiting import PATIENCE, eventually

CONNECTORS = "/api/v1/integrations/connectors"
REDIRECT_URL = "https://app.example/landed"
OAUTH_APP = {"connector_type": "team-chat", "configuration": {"client_id": "app", "client_secret": "secret"}}
MCP = {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Setting:
    """A client of the workspace `own`, and the resources of the workspace `other`."""

    confined: Api
    caller: Caller
    secret: str
    whole: Api
    own_connector: str
    other_connector: str
    other_job: str
    other_schedule: str
    other_workspace: str
    other_link: str
    other_flow: str
    other_client: Caller


@pytest.fixture
async def setting(front: FrontEnd) -> AsyncIterator[Setting]:
    organization_id, identity = await front.organization(), front.services.identity
    secret, other_secret = new_secret(), new_secret()
    client_id = await identity.create_client(
        "confined", [organization_id], hashed(secret), EVERY_SCOPE, workspaces=["own"]
    )
    whole_id = await identity.create_client(
        "whole", [organization_id], hashed(other_secret), EVERY_SCOPE, redirect_urls=[REDIRECT_URL]
    )
    async with (
        Api.of(front.base_url, str(whole_id), other_secret) as whole,
        Api.of(front.base_url, str(client_id), secret) as confined,
    ):
        own, foreign = await whole.connector(workspace_name="own"), await whole.connector(workspace_name="other")
        job = await foreign.send("tickets", "list", {"per_page": 1}, headers={"Prefer": "respond-async"})
        schedule = await whole.post(
            "/api/v1/schedules",
            {
                "name": "s",
                "connector_id": foreign.record["id"],
                "entity": "tickets",
                "action": "list",
                "cron": "0 6 * * *",
            },
        )
        workspaces = (await whole.get("/api/v1/workspaces")).json()["data"]
        link = await whole.post("/api/v1/connect/sessions", {"workspace_name": "other"})
        await whole.call("PUT", "/api/v1/oauth/credentials", json=OAUTH_APP)
        flow = await whole.post(
            f"{CONNECTORS}/oauth/initiate",
            {"workspace_name": "other", "connector_type": "Team-Chat", "redirect_url": REDIRECT_URL},
        )
        caller, other = [await identity.caller(each, organization_id) for each in (client_id, whole_id)]
        assert caller is not None
        assert other is not None
        yield Setting(
            confined,
            caller,
            secret,
            whole,
            own.record["id"],
            foreign.record["id"],
            job.json()["job"]["id"],
            schedule.json()["id"],
            next(each["id"] for each in workspaces if each["name"] == "other"),
            link.json()["id"],
            flow.json()["flow_id"],
            other,
        )


BODY = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{CONNECTORS}/{{connector}}", None),
        ("PATCH", f"{CONNECTORS}/{{connector}}", {"name": "mine"}),
        ("DELETE", f"{CONNECTORS}/{{connector}}", None),
        ("POST", f"{CONNECTORS}/{{connector}}/check", None),
        ("GET", f"{CONNECTORS}/{{connector}}/inspect", None),
        ("POST", f"{CONNECTORS}/{{connector}}/execute", BODY),
        ("POST", f"{CONNECTORS}/{{connector}}/execute", {**BODY, "dry_run": True}),
        ("POST", f"{CONNECTORS}/{{connector}}/execute", {"entity": "tickets", "action": "context_store_search",
                                                         "params": {"query": {}}}),
        ("POST", f"{CONNECTORS}/{{connector}}/execute", {**BODY, "output": {"file": "csv"}}),
        ("POST", f"{CONNECTORS}/{{connector}}/batch", {"operations": [BODY]}),
        ("GET", f"{CONNECTORS}/{{connector}}/download/attachments?attachment_id=2", None),
        ("GET", f"{CONNECTORS}/{{connector}}/context-store", None),
        ("POST", f"{CONNECTORS}/{{connector}}/context-store/sync", {}),
        ("GET", "/api/v1/operations?query=tickets&connector_id={connector}", None),
        ("GET", "/api/v1/jobs/{job}", None),
        ("GET", "/api/v1/jobs/{job}/events", None),
        ("GET", "/api/v1/jobs/{job}/result", None),
        ("POST", "/api/v1/jobs/{job}/cancel", None),
        ("POST", "/api/v1/jobs/{job}/retry", None),
        ("GET", "/api/v1/schedules/{schedule}", None),
        ("DELETE", "/api/v1/workspaces/{workspace}", None),
        ("GET", "/api/v1/connect/sessions/{link}", None),
        ("POST", "/api/v1/connect/sessions", {"workspace_name": "own", "connector_id": "{connector}"}),
        ("GET", f"{CONNECTORS}/oauth/flows/{{flow}}", None),
        ("PATCH", "/api/v1/clients/{client}", {"redirect_urls": []}),
    ],
)  # fmt: skip
async def test_resources_of_another_workspace_are_not_found(setting: Setting, method: str, path: str, body):
    ids = {
        "connector": setting.other_connector,
        "job": setting.other_job,
        "schedule": setting.other_schedule,
        "workspace": setting.other_workspace,
        "link": setting.other_link,
        "flow": setting.other_flow,
        "client": setting.other_client.client_id,
    }
    if body is not None and "connector_id" in body:
        body = {**body, "connector_id": setting.other_connector}

    answer = await setting.confined.call(method, path.format(**ids), json=body)

    assert (answer.status, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CONNECTORS, {"workspace_name": "other", "connector_type": "Support-Desk", "name": "n", "credentials": {}}),
        (f"{CONNECTORS}/oauth/initiate", {"workspace_name": "other", "connector_type": "Team-Chat",
                                          "redirect_url": REDIRECT_URL}),
        ("/api/v1/connect/sessions", {"workspace_name": "other"}),
    ],
)  # fmt: skip
async def test_nothing_is_created_in_another_workspace(setting: Setting, path: str, body):
    answer = await setting.confined.post(path, body)

    assert answer.status == 403
    assert "limited to the workspaces own" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/api/v1/oauth/credentials"), ("DELETE", "/api/v1/oauth/credentials/connector_type/team-chat")],
)
async def test_what_all_workspaces_share_cannot_be_changed(setting: Setting, method: str, path: str):
    answer = await setting.confined.call(method, path, json=OAUTH_APP if method == "PUT" else None)

    assert (answer.status, answer.json()["code"]) == (403, "insufficient_scope")
    assert [app["connector_type"] for app in (await setting.whole.get("/api/v1/oauth/credentials")).json()["data"]] == [
        "team-chat"
    ]


async def test_lists_show_only_the_clients_workspaces(setting: Setting):
    connectors = (await setting.confined.get(CONNECTORS)).json()["data"]
    workspaces = (await setting.confined.get("/api/v1/workspaces")).json()["data"]
    jobs = (await setting.confined.get("/api/v1/jobs")).json()["data"]
    schedules = (await setting.confined.get("/api/v1/schedules")).json()["data"]

    assert [each["id"] for each in connectors] == [setting.own_connector]
    assert [each["name"] for each in workspaces] == ["own"]
    assert (jobs, schedules) == ([], [])


async def test_a_page_of_workspaces_is_filled_with_the_clients_own(setting: Setting):
    await setting.whole.connector(workspace_name="another")

    page = (await setting.confined.get("/api/v1/workspaces?limit=1")).json()

    assert [each["name"] for each in page["data"]] == ["own"]
    assert page["next_cursor"] is None


async def test_the_latest_connectors_of_a_kind_and_their_number_are_the_clients_own(front: FrontEnd, setting: Setting):
    latest = await front.services.connectors.change.latest_of_each_kind(setting.caller, 1)
    counts = await front.services.connectors.access.count(setting.caller)

    assert [each.id for each in latest] == [setting.own_connector]
    assert sum(counts.values()) == 1


@pytest.mark.parametrize("path", ["/api/v1/jobs/{job}?wait=300", "/api/v1/jobs/{job}/result?wait=300"])
async def test_a_job_of_another_workspace_is_not_waited_for(setting: Setting, path: str):
    async with asyncio.timeout(PATIENCE):
        answer = await setting.confined.get(path.format(job=setting.other_job))

    assert (answer.status, answer.json()["code"]) == (404, "not_found")


async def test_the_page_that_grants_a_host_access_names_only_the_clients_workspaces(front: FrontEnd, setting: Setting):
    query = await front.authorization_query("https://host.example/callback")

    async with aiohttp.ClientSession(front.base_url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get("/oauth/authorize", params=query) as page:
            sealed = re.search(r'name="request" value="([^"]+)"', await page.text())
        assert sealed is not None
        form = {"request": sealed[1], "client_id": str(setting.caller.client_id), "client_secret": setting.secret}
        async with browser.post("/oauth/authorize/sign-in", data=form) as page:
            offered = re.findall(r'name="workspace" value="([^"]+)"', await page.text())

    assert offered == ["own"]


async def test_an_administrator_of_a_workspace_sees_and_creates_only_clients_of_it(front: FrontEnd, setting: Setting):
    clients = front.access.clients

    created, _ = await clients.create(setting.caller, "created", [Scope.READ])

    listed = {each["id"]: each["name"] for each in (await setting.confined.get("/api/v1/clients")).json()["data"]}
    stored = await front.services.identity.client(created)
    assert stored is not None
    assert stored.client.workspaces == {"own"}
    assert sorted(listed.values()) == ["confined", "created"]
    for change in (clients.rotate_secret, clients.disable):
        with pytest.raises(NotFound):
            await change(setting.caller, setting.other_client.client_id)


async def test_an_administrator_of_a_workspace_sees_and_revokes_only_grants_within_it(
    front: FrontEnd, setting: Setting
):
    store = front.access.authorization.store
    asked = AuthorizationRequest(
        host_id="h",
        host_name="Host",
        redirect_uri="https://h.example/",
        scopes=("read",),
        challenge="c" * 43,
        resource="https://g.example/mcp",
    )
    for person, workspaces in ((setting.other_client, None), (setting.other_client, ("own",)), (setting.caller, None)):
        await store.grant(asked, person, NewGrant(("read",), workspaces), uuid4().bytes, 60)
    every = (await setting.whole.get("/api/v1/grants")).json()["data"]

    listed = [each["id"] for each in (await setting.confined.get("/api/v1/grants")).json()["data"]]
    revoked = {
        each["id"]: (await setting.confined.call("DELETE", f"/api/v1/grants/{each['id']}")).status for each in every
    }

    own, narrowed, foreign = [each["id"] for each in every]
    assert listed == [own, narrowed]
    assert revoked == {own: 204, narrowed: 204, foreign: 404}


async def test_a_name_of_another_workspace_is_not_suggested(setting: Setting):
    own, others = [await setting.confined.call("DELETE", f"/api/v1/workspaces/{name}") for name in ("owm", "othr")]

    assert "did you mean own" in own.json()["detail"]
    assert "did you mean" not in others.json()["detail"]


async def test_logs_show_only_the_clients_connectors(setting: Setting):
    for connector in (setting.own_connector, setting.other_connector):
        await setting.whole.post(f"{CONNECTORS}/{connector}/execute", BODY)

    async def connectors_in(path: str, api: Api) -> set[str | None]:
        return {each["connector_id"] for each in (await api.get(path)).json()["data"]}

    for path in ("/api/v1/audit?limit=100", "/api/v1/requests?limit=100"):

        async def is_written(path: str = path) -> bool:
            return {setting.own_connector, setting.other_connector} <= await connectors_in(path, setting.whole)

        assert await eventually(is_written)
        assert await connectors_in(path, setting.confined) == {setting.own_connector}


async def test_the_page_of_a_job_names_no_entry_of_another_workspace(front: FrontEnd, setting: Setting):
    request = {"X-Request-Id": uuid4().hex}
    deferred = {**request, "Prefer": "respond-async"}
    accepted = await setting.confined.post(f"{CONNECTORS}/{setting.own_connector}/execute", BODY, headers=deferred)
    await setting.whole.post(f"{CONNECTORS}/{setting.other_connector}/execute", BODY, headers=request)
    written = EntryFilter(request_id=request["X-Request-Id"], actor_name="whole")

    async def is_written() -> bool:
        return bool(await front.services.logs.audit.find(setting.caller.organization_id, written))

    assert await eventually(is_written)
    async with signed_in(front, str(setting.caller.client_id), setting.secret) as browser:
        page = (await browser.get(f"/console/jobs/{accepted.json()['job']['id']}")).body.decode()

    assert setting.own_connector in page
    assert "by whole" not in page


async def test_a_connector_of_the_clients_workspace_works(setting: Setting):
    answer = await setting.confined.post(f"{CONNECTORS}/{setting.own_connector}/execute", BODY)

    assert answer.status == 200


@pytest.mark.parametrize("query", ["", "?workspace=own"])
async def test_agents_can_use_only_connectors_of_the_workspace(setting: Setting, query: str):
    api = setting.whole if query else setting.confined

    async def read(connector: str) -> str:
        arguments = {"operation": "support-desk.tickets.list", "params": {"per_page": 1}, "connector": connector}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read", "arguments": arguments}}
        answer = await api.post(f"/mcp{query}", call, headers=MCP)
        return str(answer.json()["result"])

    assert "'isError': True" in await read(setting.other_connector)
    assert "'isError': True" not in await read(setting.own_connector)
