"""Members that policies redact: absent from every answer, and no question about them is answered."""

import csv
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from tests.harness.caller import Api, ConnectorApi
from tests.harness.command_line import invoked
from tests.harness.in_process import FrontEnd
from tests.harness.processes import bare_environment
from tests.web.test_policies import put, run_jobs, tool

DRIVE = {"access_token": "token", "refresh_token": "refresh"}
REDACT = '@redact("subject, via.source.*") permit(principal == Client::"{agent}", action, resource);'
PATHS = ["subject", "via.source.*"]
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 2}}


@dataclass(frozen=True)
class Desk:
    """A support desk of which the agent does not see the subjects of tickets, and the administrator sees all."""

    front: FrontEnd
    organization_id: UUID
    admin: Api
    agent: Api
    agent_id: str
    admins: ConnectorApi
    agents: ConnectorApi
    cedar: str

    async def redact(self) -> None:
        assert (await put(self.admin, self.cedar)).status == 200

    async def result(self, job: dict[str, Any], api: Api | None = None, **headers: str) -> Any:
        return await (api or self.agent).get(f"/api/v1/jobs/{job['id']}/result", headers=headers)


@pytest.fixture
async def desk(front: FrontEnd) -> AsyncIterator[Desk]:
    organization_id = await front.organization()
    admin_id, admin_secret = await front.client(organization_id)
    agent_id, agent_secret = await front.client(organization_id)
    async with (
        Api.of(front.base_url, admin_id, admin_secret) as admin,
        Api.of(front.base_url, agent_id, agent_secret) as agent,
    ):
        admins = await admin.connector()
        yield Desk(
            front=front,
            organization_id=organization_id,
            admin=admin,
            agent=agent,
            agent_id=agent_id,
            admins=admins,
            agents=admins.through(agent),
            cedar=f'permit(principal == Client::"{admin_id}", action, resource);\n{REDACT.format(agent=agent_id)}',
        )


def compact(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value)).replace(" ", "")


def is_redacted(record: dict[str, Any]) -> bool:
    return "subject" not in record and record["via"].get("source") == {} and "id" in record


async def test_redacted_members_are_absent_and_named(desk: Desk):
    await desk.redact()

    listed = await desk.agents.execute("tickets", "list", {"per_page": 2})
    got = await desk.agents.execute("tickets", "get", {"ticket_id": 1})
    updated = await desk.agents.execute("tickets", "update", {"ticket_id": 1, "ticket": {"subject": "changed"}})
    seen = await desk.admins.execute("tickets", "get", {"ticket_id": 1})

    assert all(is_redacted(each) for each in (*listed["result"], got["result"], updated["result"]))
    assert listed["redacted"] == got["redacted"] == updated["redacted"] == PATHS
    assert seen["result"]["subject"] == "changed"
    assert "redacted" not in seen


@pytest.mark.parametrize("headers", [{"Cache-Control": "max-age=60"}, {"Idempotency-Key": "k"}])
async def test_a_remembered_answer_is_redacted_for_whoever_asks(desk: Desk, headers: dict[str, str]):
    before = (await desk.admins.send("tickets", "list", {"per_page": 2}, headers)).document()
    first = await desk.agents.send("tickets", "list", {"per_page": 2}, headers)
    await desk.redact()

    again = (await desk.agents.send("tickets", "list", {"per_page": 2}, headers)).document()

    assert before["result"][0]["subject"] == first.document()["result"][0]["subject"]
    assert all(is_redacted(each) for each in again["result"])
    assert again["redacted"] == PATHS


async def test_a_selection_goes_on_what_is_left(desk: Desk):
    await desk.redact()

    answer = (await desk.agents.send("tickets", "list", {"per_page": 1}, select_fields=["id", "via"])).document()

    assert answer["result"] == [{"id": 1, "via": {"channel": "web", "source": {}}}]


@pytest.mark.parametrize(
    ("entity", "action", "params", "members", "named"),
    [
        ("tickets", "list", {}, {"select_fields": ["subject"]}, "subject"),
        ("tickets", "list", {}, {"select_fields": ["via.source.from"]}, "via.source.from"),
        ("tickets", "list", {"sort_by": "subject"}, {}, "sort_by"),
        ("tickets", "list", {}, {"select_fields": ["subject"], "output": {"file": "csv"}}, "subject"),
        ("tickets", "context_store_search", {"query": {"filter": {"like": {"subject": "a%"}}}}, {}, "subject"),
        ("tickets", "context_store_search", {"query": {"filter": {"not": {"keyword": {"via": "a"}}}}}, {}, "via"),
        ("tickets", "context_store_search", {"query": {"sort": [{"subject": "asc"}]}}, {}, "subject"),
        (
            "tickets",
            "context_store_search",
            {"query": {"filter": {"like": {"via.0.source.1.from": "a%"}}}},
            {},
            "via.0",
        ),
        ("tickets", "context_store_search", {"query": {}, "fields": [["subject"]]}, {}, "subject"),
        ("tickets", "context_store_search", {"query": {}}, {"select_fields": ["subject"]}, "subject"),
    ],
)
@pytest.mark.parametrize("is_dry_run", [False, True])
async def test_no_filter_sort_or_field_asks_about_a_redacted_member(
    desk: Desk, entity: str, action: str, params: dict[str, Any], members: dict[str, Any], named: str, is_dry_run: bool
):
    assert (await desk.agents.send(entity, action, params, dry_run=True)).status == 200
    await desk.redact()
    members = members if "output" in members else {**members, "dry_run": is_dry_run}

    refused = (await desk.agents.send(entity, action, params, **members)).document(403)

    assert refused["code"] == "denied_by_policy"
    assert named in refused["detail"]


async def test_the_job_of_a_call_stores_no_redacted_member(desk: Desk):
    await desk.redact()
    job = await desk.agents.submit("tickets", "list", {"per_page": 2})
    await run_jobs(desk.front)

    agents, admins = (await desk.result(job)).document(), (await desk.result(job, desk.admin)).document()

    assert all(is_redacted(each) for each in (*agents["result"], *admins["result"]))
    assert agents["redacted"] == admins["redacted"] == PATHS


@pytest.mark.parametrize(("action", "params"), [("list", {"per_page": 2}), ("get", {"ticket_id": 1})])
async def test_a_stored_result_is_redacted_for_who_reads_it_now(desk: Desk, action: str, params: dict[str, Any]):
    job = await desk.agents.submit("tickets", action, params)
    await run_jobs(desk.front)
    before = (await desk.result(job)).document()
    await desk.redact()

    document, lines = (await desk.result(job)).document(), await desk.result(job, Accept="application/x-ndjson")
    through_tool = await tool(desk.front, desk.agent, "read", operation=f"gateway://results/{job['id']}")
    admins = (await desk.result(job, desk.admin)).document()

    records = document["result"] if action == "list" else [document["result"]]
    assert all(is_redacted(each) for each in records)
    assert document["redacted"] == PATHS
    assert all(is_redacted(json.loads(line)) for line in lines.body.splitlines())
    assert '"subject"' not in json.dumps(through_tool["structuredContent"]["result"])
    assert admins == {**before, "execution_metadata": admins["execution_metadata"]}


async def test_a_retry_is_decided_for_who_retries(desk: Desk):
    await desk.redact()
    job = await desk.agents.submit("tickets", "get", {"ticket_id": 1})
    await desk.agent.post(f"/api/v1/jobs/{job['id']}/cancel")

    again = (await desk.admin.post(f"/api/v1/jobs/{job['id']}/retry")).document(202)["job"]
    await run_jobs(desk.front)

    assert "subject" in (await desk.result(again, desk.admin)).document()["result"]
    assert is_redacted((await desk.result(again)).document()["result"])


@pytest.mark.parametrize("is_before", [True, False], ids=["accepted before", "ended before"])
async def test_each_result_of_a_batch_is_redacted(desk: Desk, is_before: bool):
    operations = [LIST, {"entity": "users", "action": "list", "params": {"per_page": 1}}]
    job = (await desk.agent.post(f"{desk.agents.path}/batch", {"operations": operations})).document(202)["job"]
    if is_before:
        await desk.redact()
    await run_jobs(desk.front)
    if not is_before:
        await desk.redact()

    result = (await desk.result(job)).document()["result"]

    tickets, users = result["results"]
    assert all(is_redacted(each) for each in tickets["result"])
    assert tickets["redacted"] == users["redacted"] == PATHS
    assert users["result"][0]["name"]


async def test_a_step_cannot_pass_on_a_redacted_member(desk: Desk):
    await desk.redact()
    steps = [
        {"id": "a", "entity": "tickets", "action": "get", "params": {"ticket_id": 1}},
        {
            "entity": "tickets",
            "action": "update",
            "params": {"ticket_id": 2, "ticket": {"priority": {"$from": "a.subject"}}},
        },
    ]
    body = {"operations": steps, "steps": True}
    job = (await desk.agent.post(f"{desk.agents.path}/batch", body)).document(202)["job"]
    await run_jobs(desk.front)

    first, second = (await desk.result(job)).document()["result"]["results"]

    assert is_redacted(first["result"])
    assert second["status"] == "failed"
    assert "subject" in second["error"]["detail"]


@pytest.mark.parametrize("file", ["ndjson", "csv"])
async def test_an_export_has_no_redacted_member(desk: Desk, file: str):
    job = (await desk.agents.send("tickets", "list", {"per_page": 100}, output={"file": file})).document(202)["job"]
    await run_jobs(desk.front)
    await desk.redact()
    own = (await desk.agents.send("tickets", "list", {"per_page": 100}, output={"file": file})).document(202)["job"]
    await run_jobs(desk.front)

    text, refused = (await desk.result(own)).body.decode(), await desk.result(job)
    admins = (await desk.result(own, desk.admin)).body.decode()

    records = csv.DictReader(text.splitlines()) if file == "csv" else map(json.loads, text.splitlines())
    assert text == admins
    assert text.count("\n") > 100
    assert all("subject" not in record and '"source":{}' in compact(record["via"]) for record in records)
    assert "run the export again" in refused.document(403)["detail"]


async def test_an_export_of_a_schedule_is_read_by_those_for_whom_it_leaves_out_members(desk: Desk):
    await desk.redact()
    body = {"name": "s", "connector_id": desk.agents.record["id"], "entity": "tickets", "action": "list"}
    members = {"output": {"file": "ndjson"}, "cron": "@daily"}
    schedule = (await desk.agent.post("/api/v1/schedules", {**body, **members})).document(201)
    job = (await desk.agent.post(f"/api/v1/schedules/{schedule['id']}/run")).document(202)["job"]
    await run_jobs(desk.front)

    read = await desk.result(job)
    await put(desk.admin, f'@redact("id") {desk.cedar.partition("@redact")[2].partition(") ")[2]}', "more")
    refused = await desk.result(job)

    assert read.status == 200
    assert '"subject"' not in read.body.decode()
    assert "run the export again" in refused.document(403)["detail"]


async def test_tools_leave_out_redacted_members(desk: Desk):
    await desk.redact()

    read = await tool(desk.front, desk.agent, "read", operation="support-desk.tickets.list", params={"per_page": 2})
    selected = await tool(
        desk.front,
        desk.agent,
        "read",
        operation="support-desk.tickets.list",
        params={"per_page": 2},
        fields=["subject"],
    )

    assert all(is_redacted(each) for each in read["structuredContent"]["result"])
    assert read["structuredContent"]["redacted"] == PATHS
    assert selected["isError"]


async def test_the_answer_to_an_upload_is_redacted(desk: Desk):
    drive = await desk.admin.connector("google-drive", DRIVE)
    cedar = f'@redact("name") permit(principal == Client::"{desk.agent_id}", action, resource);'
    await put(desk.admin, cedar)
    path, params = f"{drive.path}/upload/files_upload", {"filename": "film.bin", "file_mime_type": "video/mp4"}

    whole = await desk.agent.call("POST", path, params=params, data=b"abc")
    headers = {"Upload-Complete": "?0", "Upload-Length": "3"}
    begun = await desk.agent.call("POST", path, params=params, headers=headers)
    headers = {"Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?1"}
    resumed = await desk.agent.call("PATCH", begun.headers["Location"], data=b"abc", headers=headers)

    for each in (whole, resumed):
        assert "name" not in each.document()["result"]
        assert each.document()["result"]["id"]


async def test_a_search_of_the_copy_and_events_leave_out_redacted_members(desk: Desk):
    await desk.admin.post(f"{desk.admins.path}/context-store/sync", {"entities": ["tickets"]})
    await run_jobs(desk.front)
    before = await desk.agents.execute("tickets", "context_store_search", {"query": {}, "limit": 2})
    await desk.redact()

    found = await desk.agents.execute("tickets", "context_store_search", {"query": {}, "limit": 2})
    export = await desk.agents.send("tickets", "context_store_search", {"query": {}}, output={"file": "ndjson"})
    await run_jobs(desk.front)
    lines = (await desk.result(export.document(202)["job"])).body.splitlines()
    ids = (desk.organization_id, UUID(desk.agent_id), UUID(desk.admins.record["id"]), "tickets")
    arguments = {"operation": "support-desk.tickets.context_store_search", "params": {"query": {}}, "max_bytes": 1000}
    through_tool = (await tool(desk.front, desk.agent, "read", **arguments))["structuredContent"]
    in_events = await desk.front.services.operations.reading.records_redaction(*ids)

    assert len(before["result"]["data"]) == 2
    assert all(is_redacted(each) for each in (*found["result"]["data"], *map(json.loads, lines)))
    assert found["redacted"] == PATHS
    assert len(lines) > 100
    assert through_tool["redacted"] == PATHS
    assert not any("subject" in each for each in through_tool["preview"])
    assert list(in_events) == PATHS


async def test_the_command_says_what_policies_leave_out(desk: Desk, tmp_path):
    await desk.redact()
    client_id, secret = await desk.front.client(desk.organization_id)
    await put(desk.admin, desk.cedar.replace(desk.agent_id, client_id))
    environment = {"GATEWAY_URL": desk.front.base_url, "GATEWAY_CLIENT_ID": client_id, "GATEWAY_CLIENT_SECRET": secret}

    called = await invoked(
        *("call", desk.admins.record["id"], "tickets", "get", "ticket_id=1", "-o", "json"),
        environment={**bare_environment(), **environment},
        directory=tmp_path,
    )

    assert called.code == 0, called.err
    assert is_redacted(called.json())
    assert "policies leave out subject, via.source.*" in called.err
