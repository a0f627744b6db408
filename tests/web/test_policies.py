"""Policies through the API: versions, faults, and that no surface acts without a decision."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from gateway.access.policy.store import PolicyStore
from gateway.contract.policies import NewPolicy, PolicyMode
from gateway.foundation.aio.clock import CLOCK
from gateway.jobs.claims import Claims
from gateway.run.work import work_of
from gateway.web.routes import ROUTES
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.command_line import Ended, invoked
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd
from tests.harness.processes import bare_environment
from tests.harness.waiting import eventually
from tests.jobs.conftest import SHARES

POLICIES = "/api/v1/policies"
READ = 'permit(principal, action in Action::"read", resource);'
EVERYTHING = "permit(principal, action, resource);"
UPDATE = {"ticket_id": 1, "ticket": {"status": "solved"}}
CREATE = {"ticket": {"subject": "Fire", "comment": {"body": "It burns"}}}
DRIVE = {"access_token": "token", "refresh_token": "refresh"}
UPLOAD = {"filename": "film.bin", "file_mime_type": "video/mp4"}
SEARCH = {"query": {}, "limit": 2}


async def put(api: Api, cedar: str, name: str = "main", mode: str = "enforce", **headers: str):
    return await api.call("PUT", f"{POLICIES}/{name}", json={"cedar": cedar, "mode": mode}, headers=headers)


async def test_a_policy_has_versions_and_tags(api: Api):
    first = await put(api, READ, "a-policy")
    second = await put(api, EVERYTHING, "a-policy", "shadow", **{"If-Match": '"1"'})
    refused = await put(api, READ, "a-policy", **{"If-Match": '"1"'})

    assert (first.status, first.headers["ETag"], second.headers["ETag"]) == (200, '"1"', '"2"')
    assert refused.document(412)["code"] == "precondition_failed"
    read = await api.get(f"{POLICIES}/a-policy")
    stored = {name: value for name, value in second.document().items() if name != "would_have"}
    assert (read.document(), read.headers["ETag"]) == (stored, '"2"')
    assert (read.document()["version"], read.document()["mode"], read.document()["cedar"]) == (2, "shadow", EVERYTHING)
    versions = (await api.get(f"{POLICIES}/a-policy/versions")).document()["data"]
    assert [each["version"] for each in versions] == [2, 1]
    assert (await api.get(POLICIES)).document()["data"] == [stored]


async def test_a_deleted_policy_keeps_its_versions_and_its_numbers(api: Api):
    await put(api, READ)

    stale = await api.call("DELETE", f"{POLICIES}/main", headers={"If-Match": '"7"'})
    deleted = await api.call("DELETE", f"{POLICIES}/main")

    assert (stale.status, deleted.status) == (412, 204)
    assert (await api.get(f"{POLICIES}/main")).status == 404
    assert (await api.call("DELETE", f"{POLICIES}/main")).status == 404
    assert len((await api.get(f"{POLICIES}/main/versions")).document()["data"]) == 1
    assert (await put(api, READ)).document()["version"] == 2


@pytest.mark.parametrize(
    ("cedar", "line", "words"),
    [
        ("permit(principal action, resource);", 1, "unexpected token"),
        ('permit(principal, action, resource)\nwhen { context.surfac == "mcp" };', 2, "did you mean surface?"),
        ('@advise("x")\npermit(principal, action, resource);', 1, "did you mean @advice?"),
        ('@type("Action")\npermit(principal, action, resource);', 1, "unknown annotation"),
        ('@id("a\\0")\npermit(principal, action, resource);', 1, "has a character that cannot be shown"),
        (f"\n// a\r{READ} permit(principal, action, resource) when {{ {'(' * 20_000} }};", 2, "more than 200 levels"),
        (";" * 65_536, 1, "more than 200 statements"),
    ],
)
async def test_a_faulty_policy_is_refused_with_its_place(api: Api, cedar: str, line: int, words: str):
    refused = (await put(api, cedar)).document(422)

    assert (refused["code"], refused["line"]) == ("invalid_policy", line)
    assert words in refused["detail"]
    assert (await api.get(POLICIES)).document()["data"] == []


async def test_an_approval_of_what_a_forbid_denies_is_stored_in_shadow_mode(api: Api, support_desk: ConnectorApi):
    stored = await put(api, '@approval("Ask.") forbid(principal, action, resource);', mode="shadow")

    assert stored.document()["mode"] == "shadow"
    assert (await support_desk.send("tickets", "list", {})).status == 200


async def test_an_organization_has_a_thousand_policies_at_most(api: Api, sql):
    assert (await put(api, READ, "first")).status == 200
    await sql(
        "INSERT INTO policies SELECT (jsonb_populate_record(policy, jsonb_build_object('name', 'n' || number))).* "
        "FROM policies AS policy, generate_series(1, 999) AS number "
        "WHERE organization_id = (SELECT organization_id FROM clients JOIN client_organizations AS member "
        "ON member.client_id = clients.id WHERE clients.id = policy.created_by) AND policy.name = 'first'"
    )

    refused = await put(api, READ, "one-more")

    assert refused.document(409)["detail"] == "the organization has 1000 policies; delete some"
    assert (await put(api, READ, "n7")).status == 200


async def test_the_policies_of_an_organization_are_bounded_together(api: Api):
    large = f"{READ}\n//" + "x" * (64 << 10)
    stored = [await put(api, large[: 64 << 10], f"large-{number}") for number in range(8)]

    refused = await put(api, READ, "one-more")
    replaced = await put(api, READ, "large-0")
    body = {
        "cases": [{"operation": "support-desk.tickets.list"}],
        "policies": [{"name": str(n), "mode": "enforce", "cedar": large[: 64 << 10]} for n in range(9)],
    }
    tried = await api.post(f"{POLICIES}/check", body)

    assert {each.status for each in stored} == {200}
    assert (refused.status, replaced.status) == (409, 200)
    assert "more than 524,288 characters" in refused.document(409)["detail"]
    assert tried.status == 422


async def test_two_policies_do_not_share_an_id(api: Api):
    await put(api, f'@id("all") {EVERYTHING}', "one")

    refused = await put(api, f'@id("all") {READ}', "two")

    assert "is that of a statement of the policy 'one'" in refused.document(422)["detail"]


@pytest.mark.parametrize("members", [{"cedar": f"// \x00\n{READ}"}, {"cedar": READ, "description": "\x00"}])
async def test_a_text_that_cannot_be_stored_is_refused(api: Api, members):
    refused = await api.call("PUT", f"{POLICIES}/main", json={"mode": "enforce", **members})

    assert refused.document(422)["code"] == "invalid_params"


async def test_a_name_that_is_no_name_is_refused(api: Api):
    assert (await put(api, READ, "Not%20a%20name")).document(422)["code"] == "invalid_params"


async def test_only_administrators_of_the_whole_organization_see_policies(front: FrontEnd):
    organization_id = await front.organization()
    async with front.api(organization_id, ["read", "write"]) as other:
        answers = [await other.get(POLICIES), await put(other, READ), await other.get(f"{POLICIES}/schema")]

    assert [each.document(403)["code"] for each in answers] == ["insufficient_scope"] * 3


async def test_the_schema_is_served_as_json_and_as_text(api: Api):
    document = (await api.get(f"{POLICIES}/schema")).document()
    text = await api.get(f"{POLICIES}/schema?format=cedar")

    assert "support-desk.tickets.update" in document[""]["actions"]
    assert "entity Connector in [Kind, Workspace]" in text.body.decode()


async def test_policies_of_one_organization_do_not_bind_another(front: FrontEnd, api: Api):
    await put(api, "forbid(principal, action, resource);")

    async with front.api() as other:
        answer = await (await other.connector()).send("tickets", "list", {"per_page": 1})

    assert answer.status == 200


async def test_without_policies_and_in_shadow_mode_scopes_alone_decide(api: Api, support_desk: ConnectorApi):
    before = await support_desk.send("tickets", "update", UPDATE)
    await put(api, "forbid(principal, action, resource);", mode="shadow")
    after = await support_desk.send("tickets", "update", UPDATE)

    assert (before.status, after.status) == (200, 200)


async def test_a_refusal_names_the_policy_and_its_advice_but_not_its_text(api: Api, support_desk: ConnectorApi):
    await put(api, EVERYTHING, "base")
    await put(
        api,
        '@id("no-solving") @advice("Ask a lead.") forbid(principal, action == Action::"support-desk.tickets.update", '
        'resource) when { context.params.ticket has status && context.params.ticket.status == "solved" };',
        "desk",
    )

    refused = await support_desk.send("tickets", "update", UPDATE)
    allowed = await support_desk.send("tickets", "update", {"ticket_id": 1, "ticket": {"status": "open"}})

    document = refused.document(403)
    assert (document["code"], document["policy"], document["advice"]) == (
        "denied_by_policy",
        "no-solving",
        "Ask a lead.",
    )
    assert "forbid" not in refused.body.decode()
    assert allowed.status == 200


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", "/execute", {"json": {"entity": "tickets", "action": "context_store_search", "params": SEARCH}}),
        ("GET", "/download/attachments?attachment_id=2", {}),
    ],
    ids=["search", "download"],
)
async def test_what_cannot_wait_for_an_approval_is_refused(
    api: Api, support_desk: ConnectorApi, method: str, path: str, options
):
    await put(api, f'@id("ask") @approval("A person must know.") {EVERYTHING}')

    refused = (await api.call(method, f"{support_desk.path}{path}", **options)).document(403)

    assert (refused["code"], refused["policy"]) == ("denied_by_policy", "ask")
    assert "A person must know." in refused["detail"]


async def test_the_surface_of_a_call_is_known_to_policies(front: FrontEnd, api: Api, support_desk: ConnectorApi):
    await put(api, 'permit(principal, action, resource) when { context.surface == "mcp" };')

    assert (await support_desk.send("tickets", "list", {"per_page": 1})).status == 403
    result = await tool(front, api, "read", operation="support-desk.tickets.list", params={"per_page": 1})
    assert "isError" not in result


# --- every surface ---


@dataclass(frozen=True)
class Office:
    """An agent, and an administrator of the same organization who alone is permitted anything."""

    front: FrontEnd
    organization_id: UUID
    admin_id: str
    admin_secret: str
    admin: Api
    agent_id: str
    agent: Api
    browser: ConsoleBrowser
    desk: ConnectorApi
    admins_desk: ConnectorApi

    async def forbid(self, cedar: str = "") -> None:
        """Permit the administrator everything, and the agent only what the text says."""
        stored = await put(self.admin, f'permit(principal == Client::"{self.admin_id}", action, resource);\n{cedar}')
        assert stored.status == 200, stored.body


@pytest.fixture
async def office(front: FrontEnd) -> AsyncIterator[Office]:
    organization_id = await front.organization()
    admin_id, admin_secret = await front.client(organization_id)
    agent_id, agent_secret = await front.client(organization_id)
    async with (
        Api.of(front.base_url, admin_id, admin_secret) as admin,
        Api.of(front.base_url, agent_id, agent_secret) as agent,
        signed_in(front, agent_id, agent_secret) as browser,
    ):
        desk = await admin.connector()
        yield Office(
            front=front,
            organization_id=organization_id,
            admin_id=admin_id,
            admin_secret=admin_secret,
            admin=admin,
            agent_id=agent_id,
            agent=agent,
            browser=browser,
            desk=desk.through(agent),
            admins_desk=desk,
        )


async def tool(front: FrontEnd, api: Api, name: str, **arguments):
    async with aiohttp.ClientSession(headers=api.headers) as session:
        raw = Raw(session, f"{front.base_url}/mcp")
        return (await raw("tools/call", {"name": name, "arguments": arguments})).result


CONNECTOR = "/api/v1/integrations/connectors/{connector_id}"
#: the routes of a connector that run operations for callers: the tests below try each of them without a permission
DECIDED = {
    *(f"{CONNECTOR}/{name}" for name in ("execute", "batch", "download/{entity}", "upload/{entity}")),
    f"{CONNECTOR}/uploads/{{upload_id}}",
}
#: those that show or change the connector, its copy and its hook, and answer no record of the application
WITHOUT_OPERATION = {
    CONNECTOR,
    *(f"{CONNECTOR}/{name}" for name in ("check", "inspect", "hook", "context-store", "context-store/sync")),
}
EFFECTS = [("tickets", "list", {"per_page": 1}), ("tickets", "update", UPDATE), ("tickets", "create", CREATE)]


def test_a_new_route_of_a_connector_is_tried_without_a_permission_or_runs_no_operation():
    found = {route.path for route in ROUTES if "{connector_id}" in route.path and route.path.startswith("/api/")}

    assert found == DECIDED | WITHOUT_OPERATION


@pytest.mark.parametrize(("entity", "action", "params"), EFFECTS, ids=["read", "idempotent", "write"])
@pytest.mark.parametrize(
    ("members", "headers"),
    [
        ({}, {}),
        ({"dry_run": True}, {}),
        ({}, {"Prefer": "respond-async"}),
        ({}, {"Prefer": "wait=1"}),
        ({}, {"Idempotency-Key": "k"}),
        ({}, {"Cache-Control": "max-age=60"}),
        ({}, {"X-ADP-Agent-SDK": "1"}),
    ],
    ids=["call", "dry run", "job", "wait", "key", "cache", "sdk"],
)
async def test_no_call_is_made_without_a_decision(office: Office, entity, action, params, members, headers):
    await office.forbid()

    refused = await office.desk.send(entity, action, params, headers=headers, **members)

    assert refused.document(403)["code"] == "denied_by_policy"
    assert await jobs_of(office) == []


@pytest.mark.parametrize(("entity", "action", "params"), EFFECTS, ids=["read", "idempotent", "write"])
async def test_no_line_of_a_batch_is_accepted_without_a_decision(office: Office, entity, action, params):
    await office.forbid()
    operations = [{"entity": entity, "action": action, "params": params}]

    refused = await office.agent.post(f"{office.desk.path}/batch", {"operations": operations})

    assert refused.document(403)["code"] == "denied_by_policy"


@pytest.mark.parametrize(("entity", "action", "params"), EFFECTS, ids=["read", "idempotent", "write"])
async def test_no_schedule_is_created_without_a_decision(office: Office, entity, action, params):
    await office.forbid()
    body = {"name": "s", "connector_id": office.desk.record["id"], "cron": "0 6 * * *"}

    refused = await office.agent.post(
        "/api/v1/schedules", {**body, "entity": entity, "action": action, "params": params}
    )

    assert refused.document(403)["code"] == "denied_by_policy"


@pytest.mark.parametrize(
    ("entity", "action", "params", "members"),
    [
        ("tickets", "context_store_search", SEARCH, {}),
        ("tickets", "context_store_search", SEARCH, {"dry_run": True}),
        ("tickets", "context_store_search", SEARCH, {"output": {"file": "csv"}}),
        ("tickets", "list", {}, {"output": {"file": "ndjson"}}),
        ("attachments", "download", {"attachment_id": 2}, {}),
    ],
)
async def test_no_search_export_or_download_is_made_without_a_decision(office: Office, entity, action, params, members):
    await office.forbid()

    refused = await office.desk.send(entity, action, params, **members)

    assert refused.document(403)["code"] == "denied_by_policy"


async def test_no_file_is_streamed_without_a_decision(office: Office):
    await office.forbid()

    refused = await office.agent.get(f"{office.desk.path}/download/attachments?attachment_id=2")

    assert refused.document(403)["code"] == "denied_by_policy"


@pytest.mark.parametrize("headers", [{}, {"Upload-Complete": "?0", "Upload-Length": "3"}], ids=["whole", "resumable"])
async def test_no_file_is_uploaded_without_a_decision(office: Office, headers):
    drive = await office.admin.connector("google-drive", DRIVE)
    await office.forbid()

    content = b"" if headers else b"abc"
    path = f"{drive.path}/upload/files_upload"
    refused = await office.agent.call("POST", path, params=UPLOAD, data=content, headers=headers)

    assert refused.document(403)["code"] == "denied_by_policy"


async def test_an_upload_that_has_begun_is_decided_again(office: Office):
    drive = await office.admin.connector("google-drive", DRIVE)
    headers = {"Upload-Complete": "?0", "Upload-Length": "3"}
    begun = await office.agent.call("POST", f"{drive.path}/upload/files_upload", params=UPLOAD, headers=headers)
    await office.forbid()

    headers = {"Content-Type": "application/partial-upload", "Upload-Offset": "0", "Upload-Complete": "?1"}
    refused = await office.agent.call("PATCH", begun.headers["Location"], data=b"abc", headers=headers)

    assert refused.document(403)["code"] == "denied_by_policy"
    assert (await office.agent.get(begun.headers["Location"])).status == 403


@pytest.mark.parametrize(("entity", "action", "params"), EFFECTS, ids=["read", "idempotent", "write"])
async def test_no_tool_runs_an_operation_without_a_decision(office: Office, entity, action, params):
    await office.forbid()
    name = "read" if action == "list" else "write"

    result = await tool(office.front, office.agent, name, operation=f"support-desk.{entity}.{action}", params=params)
    shown = await tool(office.front, office.agent, "find_operations", task="list tickets", kind="support-desk")

    assert result["isError"]
    assert "no policy of the organization permits this call" in str(result)
    assert shown["structuredContent"]["data"] == []


async def test_tools_that_are_never_allowed_are_not_offered(office: Office):
    await office.forbid(READ)

    async with aiohttp.ClientSession(headers=office.agent.headers) as session:
        listed = (await Raw(session, f"{office.front.base_url}/mcp/support-desk")("tools/list")).document["result"]
    async with aiohttp.ClientSession(headers=office.admin.headers) as session:
        every = (await Raw(session, f"{office.front.base_url}/mcp/support-desk")("tools/list")).document["result"]

    names = {each["name"] for each in listed["tools"]}
    assert any("tickets__list" in name for name in names)
    assert not any("tickets__update" in name for name in names)
    assert any("tickets__update" in each["name"] for each in every["tools"])


async def test_searches_and_lists_of_tools_leave_out_what_is_never_allowed(office: Office):
    await office.forbid(READ)
    search = "/api/v1/operations?query=update%20a%20ticket&kind=support-desk"

    found = [(await api.get(search)).document()["data"] for api in (office.agent, office.admin)]
    listed = (await office.agent.get("/api/v1/tools?format=mcp&kind=support-desk")).document()["operations"]
    page = (await office.browser.get("/console/playground?query=update+a+ticket")).body.decode()

    updating = [{each["operation"] for each in data} & {"support-desk.tickets.update"} for data in found]
    assert updating == [set(), {"support-desk.tickets.update"}]
    assert "support-desk.tickets.list" in listed.values()
    assert "support-desk.tickets.update" not in listed.values()
    assert "operation=support-desk.tickets.update" not in page


async def test_the_console_asks_too(office: Office):
    await office.forbid()
    fields = {"connector": office.desk.record["id"], "operation": "support-desk.tickets.list", "do": "run"}

    answer = await office.browser.send("/console/playground", csrf=await office.browser.csrf(), **fields)

    assert "no policy of the organization permits this call" in str(answer.body)


async def test_a_stored_result_is_decided_again_for_its_reader(office: Office):
    job = await office.admins_desk.submit("tickets", "list", {"per_page": 2})
    await run_jobs(office.front)
    before = await office.agent.get(f"/api/v1/jobs/{job['id']}/result")
    await office.forbid()

    after = await office.agent.get(f"/api/v1/jobs/{job['id']}/result")
    admins = await office.admin.get(f"/api/v1/jobs/{job['id']}/result")
    tools = await tool(office.front, office.agent, "read", operation=f"gateway://results/{job['id']}")

    assert (before.status, admins.status) == (200, 200)
    assert after.document(403)["code"] == "denied_by_policy"
    assert tools["isError"]


async def test_a_batch_is_read_only_by_those_who_may_run_all_its_operations(office: Office):
    operations = [{"entity": entity, "action": action, "params": params} for entity, action, params in EFFECTS[:2]]
    answer = await office.admin.post(f"{office.desk.path}/batch", {"operations": operations})
    job = answer.document(202)["job"]
    await run_jobs(office.front)
    await office.forbid(READ)

    refused = await office.agent.get(f"/api/v1/jobs/{job['id']}/result")
    read = await office.admin.get(f"/api/v1/jobs/{job['id']}/result")

    assert refused.document(403)["code"] == "denied_by_policy"
    assert read.document()["result"]["succeeded"] == 2


@pytest.mark.parametrize(("entity", "action", "params"), EFFECTS, ids=["read", "idempotent", "write"])
async def test_a_policy_that_changed_decides_when_a_job_starts(office: Office, entity, action, params):
    job = await office.desk.submit(entity, action, params)
    await office.forbid()

    await run_jobs(office.front)

    ended = (await office.agent.get(f"/api/v1/jobs/{job['id']}")).document()
    assert (ended["status"], ended["error"]["code"]) == ("failed", "denied_by_policy")


async def test_a_policy_that_changed_decides_each_line_and_step(office: Office):
    update, read = [{"entity": each[0], "action": each[1], "params": each[2]} for each in (EFFECTS[1], EFFECTS[0])]
    jobs = [
        (await office.agent.post(f"{office.desk.path}/batch", {"operations": [update, read], **options})).document(202)
        for options in ({}, {"steps": True})
    ]
    await office.forbid(READ)

    await run_jobs(office.front)

    for job in jobs:
        result = (await office.admin.get(f"/api/v1/jobs/{job['job']['id']}/result")).document()["result"]
        assert [each["status"] for each in result["results"]] == ["failed", "succeeded"]
        assert result["results"][0]["error"]["code"] == "denied_by_policy"


async def test_a_policy_that_changed_decides_when_an_export_starts(office: Office):
    answer = await office.desk.send("tickets", "list", output={"file": "ndjson"})
    await office.forbid()

    await run_jobs(office.front)

    ended = (await office.agent.get(f"/api/v1/jobs/{answer.document(202)['job']['id']}")).document()
    assert ended["error"]["code"] == "denied_by_policy"


async def test_a_signed_link_is_decided_when_it_is_opened(office: Office):
    job = await office.desk.submit("attachments", "download", {"attachment_id": 2})
    await run_jobs(office.front)
    services = office.front.services
    caller = await services.identity.caller(UUID(office.agent_id), office.organization_id)
    link = services.jobs.file_links.link(caller, await services.jobs.access.get(caller, UUID(job["id"])))
    before = await office.browser.get(link.path)
    await office.forbid()

    after = await office.browser.get(link.path)

    assert (before.status, after.status) == (200, 403)


async def test_events_have_records_only_for_clients_that_may_search_them(office: Office):
    reading = office.front.services.operations.reading
    ids = (office.organization_id, UUID(office.agent_id), UUID(office.desk.record["id"]))
    before = await reading.records_redaction(*ids, "tickets")
    await office.forbid()

    after = await reading.records_redaction(*ids, "tickets")

    assert (before, after) == ((), None)


async def test_a_retry_is_a_call_of_its_surface(office: Office):
    """What only schedules may do cannot be done by a retry of a schedule's job."""
    agent = f'principal == Client::"{office.agent_id}"'
    await office.forbid(f'permit({agent}, action, resource) when {{ context.surface == "schedule" }};')
    body = {"name": "s", "connector_id": office.desk.record["id"], "entity": "tickets", "cron": "@daily"}
    missing = {"ticket_id": 10**12, "ticket": {"status": "solved"}}
    schedule = await office.agent.post("/api/v1/schedules", {**body, "action": "update", "params": missing})
    job = (await office.agent.post(f"/api/v1/schedules/{schedule.document(201)['id']}/run")).document(202)["job"]
    await run_jobs(office.front)
    first = (await office.agent.get(f"/api/v1/jobs/{job['id']}")).document()

    again = (await office.agent.post(f"/api/v1/jobs/{job['id']}/retry")).document(202)["job"]
    await run_jobs(office.front)

    second = (await office.agent.get(f"/api/v1/jobs/{again['id']}")).document()
    assert (first["error"]["code"], second["error"]["code"]) == ("upstream_not_found", "denied_by_policy")


async def run_jobs(front: FrontEnd, *, is_background: bool = False) -> None:
    """Run the queued jobs as a worker does, those of callers or those in the background."""
    services = front.services
    work, claims = work_of(services), Claims(services.database, services.jobs.sealing)
    for job in await claims.claim(services.process.name, 100, SHARES, is_background=is_background):
        done = asyncio.Event()
        services.jobs.runner.start(job, work[job.task], done.set)
        await done.wait()


async def jobs_of(office: Office) -> list:
    return (await office.admin.get("/api/v1/jobs")).document()["data"]


async def test_every_process_obeys_a_change_at_once(office: Office):
    before = await office.desk.send("tickets", "list", {"per_page": 1})
    elsewhere = PolicyStore(office.front.services.database)
    nothing = NewPolicy(name="nothing", mode=PolicyMode.ENFORCE, cedar="forbid(principal, action, resource);")

    await elsewhere.put(office.organization_id, nothing, [], UUID(office.admin_id), None)

    assert before.status == 200
    await eventually(lambda: refuses(office))


async def refuses(office: Office) -> bool:
    return (await office.desk.send("tickets", "list", {"per_page": 1})).status == 403


# --- trials ---


async def test_cases_are_decided_by_given_policies_without_sending_anything(api: Api, support_desk: ConnectorApi):
    stated = [
        {"operation": "support-desk.tickets.list"},
        {"operation": "support-desk.tickets.update", "params": UPDATE},
        {"operation": "support-desk.tickets.create", "params": CREATE, "surface": "mcp"},
        {"operation": "support-desk.tickets.context_store_search", "connector_id": support_desk.record["id"]},
    ]
    cedar = f"""{READ} @id("asked") @approval("Writes") permit(principal, action in Action::"write", resource);
        @id("no") @advice("Ask.") forbid(principal, action in Action::"idempotent", resource);"""

    answer = await api.post(
        f"{POLICIES}/check", {"cases": stated, "policies": [{"name": "main", "cedar": cedar, "mode": "enforce"}]}
    )

    decided = [(each["decision"], each["policies"]) for each in answer.document()["data"]]
    assert decided == [("allow", ["main"]), ("deny", ["no"]), ("approve", ["asked"]), ("allow", ["main"])]
    assert answer.document()["data"][1]["advice"] == "Ask."
    assert (await api.get(POLICIES)).document()["data"] == []


async def test_cases_are_decided_by_the_stored_policies(office: Office):
    await office.forbid(READ)
    operation = {"operation": "support-desk.tickets.update", "params": UPDATE}

    answer = await office.admin.post(
        f"{POLICIES}/check", {"cases": [operation, {**operation, "client": office.agent_id}]}
    )

    assert [each["decision"] for each in answer.document()["data"]] == ["allow", "deny"]


async def test_a_case_is_explained_on_request(api: Api, support_desk: ConnectorApi):
    case = {"operation": "support-desk.tickets.get", "params": {"ticket_id": 1}, "explain": True}
    policy = {"name": "one", "cedar": 'permit(principal, action, resource) when { context.surface == "http" };'}

    answer = await api.post(f"{POLICIES}/check", {"cases": [case], "policies": [policy]})

    [explained] = answer.document()["data"]
    assert explained["request"]["action"] == {"type": "Action", "id": "support-desk.tickets.get"}
    assert explained["request"]["context"]["surface"] == "http"
    assert {each["uid"]["type"] for each in explained["entities"]} == {"Action", "Client", "Connector"}


@pytest.mark.parametrize(
    ("case", "pointer"),
    [
        ({"operation": "support-desk.tickets.lst"}, "/cases/1/operation"),
        ({"operation": "support-desk.tickets.get", "params": {}}, "/cases/1/params/ticket_id"),
        ({"operation": "support-desk.tickets.list", "explan": True}, "/cases/1"),
        ({"operation": "support-desk.tickets.list", "connector_id": "x"}, "/cases/1"),
    ],
)
async def test_a_faulty_case_is_named_by_its_index(api: Api, case, pointer):
    answer = await api.post(f"{POLICIES}/check", {"cases": [{"operation": "support-desk.tickets.list"}, case]})

    assert [each["pointer"] for each in answer.document(422)["errors"]] == [pointer]


async def test_the_answer_to_a_put_says_what_would_have_happened_to_the_calls_of_the_last_day(office: Office):
    for _ in range(2):
        await office.desk.execute("tickets", "update", UPDATE)
    await office.desk.execute("tickets", "list", {"per_page": 1})
    await office.admins_desk.execute("tickets", "update", UPDATE)
    await eventually(lambda: recorded(office, 4))

    answer = (await put(office.admin, READ, mode="shadow")).document()["would_have"]

    assert (answer["refused"], answer["asked"], answer["undecided"]) == (3, 0, 0)
    refused = {each["id"]: each["refused"] for each in answer["by_client"]}
    assert refused == {office.agent_id: 2, office.admin_id: 1}


async def test_a_decision_that_depends_on_params_stays_open(office: Office):
    await office.desk.execute("tickets", "update", UPDATE)
    await eventually(lambda: recorded(office, 1))
    cedar = f"""{EVERYTHING} forbid(principal, action == Action::"support-desk.tickets.update", resource)
        when {{ context.params.ticket_id == 7 }};"""

    answer = (await put(office.admin, cedar)).document()["would_have"]

    assert (answer["refused"], answer["undecided"]) == (0, 1)


async def replayed(office: Office, **body: Any) -> dict:
    body = {"since": (CLOCK.now() - timedelta(days=3)).isoformat(), **body}
    job = (await office.admin.post(f"{POLICIES}/replay", body)).document(202)["job"]
    await run_jobs(office.front)
    return (await office.admin.get(f"/api/v1/jobs/{job['id']}")).document()


@pytest.fixture
async def busy(office: Office) -> Office:
    await office.desk.execute("tickets", "update", UPDATE)
    await office.desk.execute("tickets", "list", {"per_page": 1})
    await office.admins_desk.execute("tickets", "update", UPDATE)
    await eventually(lambda: recorded(office, 3))
    return office


async def test_a_replay_counts_what_policies_would_have_decided(busy: Office):
    ask = f'{READ} @approval("Look first.") permit(principal == Client::"{busy.agent_id}", action, resource);'

    job = await replayed(busy, policies=[{"name": "ask", "cedar": ask}])
    answer = await busy.admin.get(f"/api/v1/jobs/{job['id']}/result")
    async with busy.front.api(busy.organization_id, ["read"]) as reader:
        refused = await reader.get(f"/api/v1/jobs/{job['id']}/result")

    assert (job["status"], job["progress"]) == ("succeeded", job["total"])
    result = answer.document()["result"]
    assert (result["refused"], result["asked"], result["undecided"]) == (1, 2, 0)
    asked = {each["id"]: (each["refused"], each["asked"]) for each in result["by_client"]}
    assert asked == {busy.agent_id: (0, 2), busy.admin_id: (1, 0)}
    assert refused.document(403)["code"] == "insufficient_scope"


async def test_a_replay_without_policies_takes_the_stored_ones_as_enforced(busy: Office):
    await put(busy.admin, READ, mode="shadow")
    before = await replayed(busy)
    later = await replayed(busy, since=(CLOCK.now() + timedelta(hours=1)).isoformat())

    counts = [
        (await busy.admin.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]["refused"]
        for job in (before, later)
    ]

    assert counts == [2, 0]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"policies": [{"name": "x", "cedar": "permit(principal action, resource);"}]}, "invalid_policy"),
        ({"since": "last week"}, "invalid_params"),
    ],
)
async def test_a_replay_of_a_faulty_policy_is_refused_at_once(office: Office, body, code):
    since = {"since": CLOCK.now().isoformat()}

    refused = (await office.admin.post(f"{POLICIES}/replay", {**since, **body})).document(422)

    assert refused["code"] == code


async def recorded(office: Office, number: int) -> bool:
    calls = await office.front.services.logs.audit.recent_calls(office.organization_id)
    return sum(each.calls for each in calls if each.what.startswith("tickets.")) == number


# --- commands ---


@pytest.fixture
def command(front: FrontEnd, tmp_path):
    """`await command(client, secret, "policy", …)` in the folder of the test."""

    async def run(client_id: str, secret: str, *words: str) -> Ended:
        variables = {
            "GATEWAY_URL": front.base_url,
            "GATEWAY_CLIENT_ID": client_id,
            "GATEWAY_CLIENT_SECRET": secret,
            "COLUMNS": "120",
        }
        return await invoked(*words, environment={**bare_environment(), **variables}, directory=tmp_path)

    return run


async def test_a_replay_prints_what_a_policy_would_have_refused(busy: Office, command, tmp_path):
    (tmp_path / "agents-read.cedar").write_text(READ)
    client = (busy.admin_id, busy.admin_secret)

    running = asyncio.create_task(command(*client, "policy", "replay", "agents-read.cedar", "--since", "12h"))
    while not running.done():
        await run_jobs(busy.front)
        await asyncio.wait([running], timeout=0.1)
    wrong = await command(*client, "policy", "replay", "--since", "yesterday")

    ended = running.result()
    assert ended.code == 0, ended.err
    assert "of the calls it would have refused 2" in ended.err
    assert ended.json()["refused"] == 2
    assert wrong.code == 2
    assert "90m, 12h or 7d" in wrong.err


async def test_a_policy_is_stored_from_a_file_listed_and_deleted(front: FrontEnd, command, tmp_path):
    administrator = await front.client()
    (tmp_path / "agents-read.cedar").write_text(READ)

    applied = await command(*administrator, "policy", "apply", "agents-read.cedar", "--mode", "shadow")
    listed = await command(*administrator, "policy", "list", "-o", "json")
    deleted = await command(*administrator, "policy", "delete", "agents-read")
    again = await command(*administrator, "policy", "delete", "agents-read")

    assert applied.code == 0
    assert "agents-read is stored as version 1, mode shadow" in applied.err
    assert [(each["name"], each["cedar"]) for each in listed.json()] == [("agents-read", READ)]
    assert (deleted.code, again.code) == (0, 4)


async def test_a_faulty_file_is_refused_with_its_place(front: FrontEnd, command, tmp_path):
    (tmp_path / "bad.cedar").write_text("permit(principal action, resource);")

    ended = await command(*await front.client(), "policy", "apply", "bad.cedar")

    assert ended.code == 1
    assert "line 1, column 18: unexpected token" in ended.err


@pytest.mark.parametrize(("expect", "code"), [("deny", 0), ("allow", 1)])
async def test_a_table_of_cases_is_compared_with_what_is_expected(front: FrontEnd, command, tmp_path, expect, code):
    (tmp_path / "agents-read.cedar").write_text(READ)
    (tmp_path / "cases.yaml").write_text(
        f"""
        policies: [agents-read.cedar]
        cases:
          - {{operation: support-desk.tickets.list}}
          - {{operation: support-desk.tickets.update, params: {json.dumps(UPDATE)}, expect: {expect}}}
        """
    )

    ended = await command(*await front.client(), "policy", "test", "cases.yaml", "-o", "json")

    assert ended.code == code
    assert [each["decision"] for each in ended.json()] == ["allow", "deny"]
    assert f"{2 - code} of 2 cases are decided as expected" in ended.err


@pytest.mark.parametrize(
    "text", ["cases: 1", "[]", "cases: [{}]", "a: [", "policies: [none.cedar]\ncases: []", "policies: 1\ncases: []"]
)
async def test_a_file_that_is_no_table_is_a_mistake(front: FrontEnd, command, tmp_path, text):
    (tmp_path / "cases.yaml").write_text(text)

    assert (await command(*await front.client(), "policy", "test", "cases.yaml")).code == 2
