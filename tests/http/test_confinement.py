"""A client that is limited to workspaces cannot access others, on any surface."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from gateway.identity.tokens import hashed, new_secret
from tests.harness.caller import Api
from tests.harness.in_process import EVERY_SCOPE, FrontEnd
from tests.harness.waiting import eventually

CONNECTORS = "/api/v1/integrations/connectors"
REDIRECT_URL = "https://app.example/landed"
OAUTH_APP = {"connector_type": "team-chat", "configuration": {"client_id": "app", "client_secret": "secret"}}
MCP = {"MCP-Protocol-Version": "2025-11-25", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Setting:
    """A client of the workspace `own`, and the resources of the workspace `other`."""

    confined: Api
    whole: Api
    own_connector: str
    other_connector: str
    other_job: str
    other_schedule: str
    other_workspace: str
    other_link: str
    other_flow: str


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
        own, other = await whole.connector(workspace_name="own"), await whole.connector(workspace_name="other")
        job = await other.send("tickets", "list", {"per_page": 1}, headers={"Prefer": "respond-async"})
        schedule = await whole.post(
            "/api/v1/schedules",
            {
                "name": "s",
                "connector_id": other.record["id"],
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
        yield Setting(
            confined,
            whole,
            own.record["id"],
            other.record["id"],
            job.json()["job"]["id"],
            schedule.json()["id"],
            next(each["id"] for each in workspaces if each["name"] == "other"),
            link.json()["id"],
            flow.json()["flow_id"],
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
