"""Values that policies redact, planted in one record, appear on no surface on which they appeared before."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import aiohttp
import pytest

from gateway.client import Gateway
from gateway.errors import GatewayError
from gateway.upstream.withheld import LEFT_OUT
from tests.agents.mcp.conftest import Raw
from tests.events.receiver import Receiver
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.console import ConsoleBrowser, signed_in
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.sandbox import fault
from tests.harness.waiting import eventually
from tests.web.test_policies import EVERYTHING, put, run_jobs, tool

#: no value of another member has this word
PLANTED = "planted"
USER = {
    "name": "Vera Visby",
    "email": f"{PLANTED}@example.com",
    "user_fields": {"phone": f"+49 {PLANTED}", "card": f"4111 {PLANTED}", "city": "Visby"},
}
#: a value that stays
VISIBLE = "Visby"
REDACT = '@redact("email, *.phone, *.card") permit(principal == Client::"{agent}", action, resource);'
ASK = """
    @id("ask") @approval("Look first.")
    forbid(principal == Client::"{agent}", action in Action::"idempotent", resource);
"""


@dataclass(frozen=True)
class Walk:
    """An agent, an administrator who sees everything, and a user of the support desk with the planted values."""

    front: FrontEnd
    organization_id: UUID
    admin: Api
    agent: Api
    agent_id: str
    agent_secret: str
    admins: ConnectorApi
    desk: ConnectorApi
    browser: ConsoleBrowser
    receiver: Receiver
    user_id: int
    permits_admin: str

    async def redact(self, more: str = "") -> None:
        cedar = f"{self.permits_admin}\n{REDACT}\n{more}".replace("{agent}", self.agent_id)
        assert (await put(self.admin, cedar)).status == 200

    async def call(self, action: str = "get", params: Mapping[str, Any] | None = None, **members: Any) -> Answer:
        headers = members.pop("headers", None)
        return await self.desk.send("users", action, params or {"user_id": self.user_id}, headers, **members)

    async def result(self, answer: Answer, **headers: str) -> str:
        """The result of the job that was accepted."""
        job = answer.document(202)["job"]
        await run_jobs(self.front)
        return (await self.agent.get(f"/api/v1/jobs/{job['id']}/result", headers=headers)).body.decode()

    async def batch(self, *operations: Mapping[str, Any], **members: Any) -> str:
        body = {"operations": operations, **members}
        return await self.result(await self.agent.post(f"{self.desk.path}/batch", body))

    async def synchronize(self) -> None:
        await self.admin.post(f"{self.admins.path}/context-store/sync", {"entities": ["users"], "full": True})
        await run_jobs(self.front)


@pytest.fixture(scope="module")
async def front(tmp_path_factory, database_url: str, redis_url: str, receiver: Receiver) -> AsyncIterator[FrontEnd]:
    folder = tmp_path_factory.mktemp("front-end")
    async with front_end(folder, database_url, redis_url, webhook_origins=(receiver.url,)) as opened:
        yield opened


@pytest.fixture
async def walk(front: FrontEnd, receiver: Receiver) -> AsyncIterator[Walk]:
    organization_id = await front.organization()
    admin_id, admin_secret = await front.client(organization_id)
    agent_id, agent_secret = await front.client(organization_id, ["read", "write", "approve"])
    async with (
        Api.of(front.base_url, admin_id, admin_secret) as admin,
        Api.of(front.base_url, agent_id, agent_secret) as agent,
        signed_in(front, agent_id, agent_secret) as browser,
    ):
        admins = await admin.connector()
        [user] = (await admins.execute("users", "list", {"per_page": 1}))["result"]
        await admins.execute("users", "update", {"user_id": user["id"], "user": USER})
        permits_admin = f'permit(principal == Client::"{admin_id}", action, resource);'
        yield Walk(
            front,
            organization_id,
            admin,
            agent,
            agent_id,
            agent_secret,
            admins,
            admins.through(agent),
            browser,
            receiver,
            user["id"],
            permits_admin,
        )


LIST = {"per_page": 5}
UPDATE = {"user": {"notes": "Seen"}}


async def text(answer: Awaitable[Answer]) -> str:
    return (await answer).body.decode()


async def steps(walk: Walk) -> str:
    get = {"entity": "users", "action": "get", "params": {"user_id": walk.user_id}}
    update = {"user_id": walk.user_id, "user": {"notes": {"$from": "a.name"}}}
    return await walk.batch({"id": "a", **get}, {"entity": "users", "action": "update", "params": update}, steps=True)


async def export_link(walk: Walk) -> str:
    """What the signed link of an export shows, which a browser opens without a token."""
    answer = await walk.call("list", LIST, output={"file": "csv"})
    await walk.result(answer)
    services, job_id = walk.front.services, UUID(answer.document(202)["job"]["id"])
    caller = await services.identity.caller(UUID(walk.agent_id), walk.organization_id)
    link = services.jobs.file_links.link(caller, await services.jobs.access.get(caller, job_id))
    return await text(walk.browser.get(link.path))


async def search(walk: Walk) -> str:
    await walk.synchronize()
    return await text(walk.call("context_store_search", {"query": {}, "limit": 1000}))


async def export_of_search(walk: Walk) -> str:
    await walk.synchronize()
    return await walk.result(await walk.call("context_store_search", {"query": {}}, output={"file": "ndjson"}))


async def read_tool(walk: Walk) -> str:
    answer = await tool(
        walk.front, walk.agent, "read", operation="support-desk.users.get", params={"user_id": walk.user_id}
    )
    return json.dumps(answer)


async def stored_result_tool(walk: Walk) -> str:
    job = (await walk.call("list", LIST, headers={"Prefer": "respond-async"})).document(202)["job"]
    await run_jobs(walk.front)
    return json.dumps(await tool(walk.front, walk.agent, "read", operation=f"gateway://results/{job['id']}"))


async def delivery(walk: Walk) -> str:
    """What a webhook of the agent gets when the record changes."""
    path = f"/{walk.agent_id}"
    walk.receiver.received[path].clear()
    body = {"url": f"{walk.receiver.url}{path}", "types": ["record.*"], "include_record": True}
    (await walk.agent.post("/api/v1/webhooks", body)).document(201)
    await walk.synchronize()
    await walk.admins.execute("users", "update", {"user_id": walk.user_id, **UPDATE})
    await walk.synchronize()
    await eventually(lambda: VISIBLE in json.dumps(walk.receiver.received[path]))
    return json.dumps(walk.receiver.received[path])


async def tool_of_kind(walk: Walk) -> str:
    """What the tool of one operation answers, of a server with a tool for each operation of the kind."""
    arguments = {"user_id": walk.user_id}
    return json.dumps(
        await _mcp(walk, "tools/call", "/support-desk", name="support-desk__users__get", arguments=arguments)
    )


async def resource(walk: Walk) -> str:
    """A stored result as an agent's host reads it."""
    job = (await walk.call("list", LIST, headers={"Prefer": "respond-async"})).document(202)["job"]
    await run_jobs(walk.front)
    return json.dumps(await _mcp(walk, "resources/read", uri=f"gateway://results/{job['id']}"))


async def _mcp(walk: Walk, method: str, kind: str = "", **params: Any) -> Any:
    async with aiohttp.ClientSession(headers=walk.agent.headers) as session:
        return (await Raw(session, f"{walk.front.base_url}/mcp{kind}")(method, params)).document


async def playground(walk: Walk) -> str:
    fields = {
        "connector": walk.desk.record["id"],
        "operation": "support-desk.users.get",
        "p.user_id": str(walk.user_id),
        "do": "run",
    }
    return await text(walk.browser.send("/console/playground", csrf=await walk.browser.csrf(), **fields))


async def page_of_job(walk: Walk) -> str:
    """The page of a job and its preview of the result."""
    job = (await walk.call("list", LIST, headers={"Prefer": "respond-async"})).document(202)["job"]
    await run_jobs(walk.front)
    return await text(walk.browser.get(f"/console/jobs/{job['id']}"))


async def python_client(walk: Walk) -> str:
    """What the Python client reads: an answer, an iteration over records, and the result of a job."""
    async with Gateway(walk.front.base_url, walk.agent_id, walk.agent_secret) as gateway:
        connector_id = walk.desk.record["id"]
        try:
            answer = await gateway.execute(connector_id, "users", "get", {"user_id": walk.user_id})
            records = [each async for each in gateway.records(connector_id, "users", "list", {"per_page": 100})]
        except GatewayError as error:
            return f"{error} {error.upstream}"
    return json.dumps([answer.result, records])


SURFACES: Mapping[str, Callable[[Walk], Awaitable[str]]] = {
    "a call": lambda walk: text(walk.call()),
    "a list": lambda walk: text(walk.call("list", LIST)),
    "selected fields": lambda walk: text(walk.call("list", LIST, select_fields=["name", "user_fields"])),
    "excluded fields": lambda walk: text(walk.call("list", LIST, exclude_fields=["name"])),
    "the answer to a write": lambda walk: text(walk.call("update", {"user_id": walk.user_id, **UPDATE})),
    "a cached answer": lambda walk: text(walk.call(headers={"Cache-Control": "max-age=60"})),
    "a replayed answer": lambda walk: text(walk.call(headers={"Idempotency-Key": "k"})),
    "a job": lambda walk: _job(walk),
    "a job as lines": lambda walk: _job(walk, Accept="application/x-ndjson"),
    "a batch": lambda walk: walk.batch({"entity": "users", "action": "list", "params": LIST}),
    "steps": steps,
    "an export to NDJSON": lambda walk: _export(walk, "ndjson"),
    "an export to CSV": lambda walk: _export(walk, "csv"),
    "a signed link": export_link,
    "a search of the copy": search,
    "an export of a search": export_of_search,
    "the tool read": read_tool,
    "a stored result through a tool": stored_result_tool,
    "a delivery of a webhook": delivery,
    "the tool of an operation": tool_of_kind,
    "a resource": resource,
    "the playground": playground,
    "the page of a job": page_of_job,
    "the Python client": python_client,
}


async def _job(walk: Walk, **headers: str) -> str:
    return await walk.result(await walk.call("list", LIST, headers={"Prefer": "respond-async"}), **headers)


async def _export(walk: Walk, file: str) -> str:
    return await walk.result(await walk.call("list", LIST, output={"file": file}))


@pytest.mark.parametrize("surface", SURFACES)
async def test_no_surface_shows_what_policies_redact(walk: Walk, deliveries, caplog, surface: str):
    show = SURFACES[surface]
    before = await show(walk)
    await walk.redact()
    with caplog.at_level(logging.DEBUG):
        caplog.clear()
        after = await show(walk)

    assert PLANTED in before
    assert PLANTED not in after
    assert VISIBLE in after
    assert PLANTED not in "".join(str(record.__dict__) for record in caplog.records)


#: surfaces without an error of the caller's call: those of the copy, and the file that a failed export does not have
WITHOUT_ERROR = {"a search of the copy", "an export of a search", "a delivery of a webhook", "a signed link"}
#: an error with values of members that policies redact, at every place that the gateway reads
ECHO = {
    "error": "RecordInvalid",
    "description": f"{PLANTED}@example.com is the email of another user",
    "details": {"email": [{"description": f"Phone: +49 {PLANTED} is taken", "error": "DuplicateValue"}]},
}


FAILING = [(each, 422) for each in SURFACES if each not in WITHOUT_ERROR] + [
    ("a call", 404),
    ("the answer to a write", 500),
]


@pytest.mark.parametrize(("surface", "status"), FAILING)
async def test_no_surface_shows_values_that_an_application_repeats_in_errors(walk: Walk, caplog, surface: str, status):
    show = SURFACES[surface]
    async with echoing(walk, status):
        before = await show(walk)
        await walk.redact()
        with caplog.at_level(logging.DEBUG):
            caplog.clear()
            after = await show(walk)

    assert PLANTED in before
    assert PLANTED not in after
    assert LEFT_OUT in after
    assert PLANTED not in "".join(str(record.__dict__) for record in caplog.records)


def echoing(walk: Walk, status: int) -> AbstractAsyncContextManager[None]:
    """Within the block the application answers calls about users with an error that has the planted values."""
    return fault(walk.front.sandbox_url, path_prefix="/api/v2/users", status=status, body=ECHO)


async def test_the_error_of_a_job_is_shown_as_policies_redact_now(walk: Walk):
    async with echoing(walk, 422):
        await walk.call("list", LIST, headers={"Prefer": "respond-async"})
        await run_jobs(walk.front)
    [job] = (await walk.agent.get("/api/v1/jobs?limit=1")).document()["data"]
    before = await text(walk.agent.get(f"/api/v1/jobs/{job['id']}/result"))

    await walk.redact()

    after = await text(walk.agent.get(f"/api/v1/jobs/{job['id']}/result"))
    whole = await text(walk.admin.get(f"/api/v1/jobs/{job['id']}/result"))
    assert PLANTED in before
    assert PLANTED not in after
    assert LEFT_OUT in after
    assert whole.count(PLANTED) == before.count(PLANTED)


async def test_an_item_of_a_bulk_update_has_neither_a_redacted_member_nor_the_text_of_an_error(walk: Walk):
    crm = await walk.admin.connector("crm-records", {"private_app_token": "token"})
    agents = crm.through(walk.agent)
    inputs = [{"properties": {"email": f"{PLANTED}{number}@example.com", "city": VISIBLE}} for number in range(2)]
    members = {"objectType": "contacts", "inputs": [*inputs, inputs[0]]}

    async def created() -> tuple[str, str]:
        answer = await agents.send("objects", "batch_create", members)
        made = await walk.result(answer)
        job_id = answer.document(202)["job"]["id"]
        return made, job_id

    before, job_id = await created()
    redacting = f'@redact("properties.email") permit(principal == Client::"{walk.agent_id}", action, resource);'
    assert (await put(walk.admin, f"{walk.permits_admin} {redacting}")).status == 200
    again = await text(walk.agent.get(f"/api/v1/jobs/{job_id}/result"))
    after, _ = await created()

    assert PLANTED in before
    for each in (again, after):
        assert PLANTED not in each
        assert VISIBLE in each
        assert json.loads(each)["redacted"] == ["properties.email"]


async def test_no_record_of_calls_shows_what_policies_redact(walk: Walk):
    """Lists of jobs, events, audit entries and requests to applications, also for an administrator."""
    await walk.redact()
    for surface in ("a call", "a job", "a batch", "an export to CSV", "a search of the copy"):
        assert VISIBLE in await SURFACES[surface](walk)
    async with echoing(walk, 422):
        for surface in ("a call", "a job", "a batch", "an export to CSV", "the answer to a write"):
            assert LEFT_OUT in await SURFACES[surface](walk)
    refused = await walk.call("get", {"user_id": 10**12})

    lists = [
        await text(api.get(f"/api/v1/{name}"))
        for api, name in [
            (walk.agent, "jobs"),
            (walk.agent, "events"),
            *((walk.admin, name) for name in ("jobs", "events", "audit", "audit/export", "requests")),
        ]
    ]

    assert refused.status == 404
    assert PLANTED not in "".join((*lists, refused.body.decode()))
    assert all("support-desk" in each or walk.desk.record["id"] in each for each in lists)


async def test_neither_a_dry_run_nor_an_approval_shows_what_policies_redact(walk: Walk):
    await walk.redact(ASK)
    change = {"user_id": walk.user_id, "user": {"email": "new@example.com", "notes": "Other notes"}}

    dry = await walk.call("update", change, dry_run=True)
    job = (await walk.call("update", change)).document(202)["job"]
    await run_jobs(walk.front)
    waiting = (await walk.agent.get(f"/api/v1/jobs/{job['id']}")).document()
    path = f"/api/v1/approvals/{waiting['approval']['id']}"
    shown = [await text(walk.agent.get(each)) for each in (path, "/api/v1/approvals", "/api/v1/events")]
    page = await text(walk.browser.get(f"/console/approvals/{waiting['approval']['id']}"))
    whole = await text(walk.admin.get(path))

    assert PLANTED in whole
    assert "Other notes" in shown[0]
    assert PLANTED not in "".join((dry.body.decode(), json.dumps(waiting), page, *shown))


@pytest.mark.parametrize(
    ("action", "params", "members"),
    [
        ("list", {}, {"select_fields": ["email"]}),
        ("list", {}, {"select_fields": ["user_fields.phone"]}),
        ("list", {}, {"select_fields": ["user_fields.card"], "output": {"file": "csv"}}),
        ("context_store_search", {"query": {"filter": {"like": {"email": f"%{PLANTED}%"}}}}, {}),
        ("context_store_search", {"query": {"filter": {"like": {"user_fields.phone": f"%{PLANTED}%"}}}}, {}),
        ("context_store_search", {"query": {"sort": [{"email": "asc"}]}}, {}),
    ],
)
async def test_no_question_about_what_policies_redact_is_answered(walk: Walk, action, params, members):
    await walk.redact()

    refused = await walk.call(action, params or LIST, **members)

    assert refused.document(403)["code"] == "denied_by_policy"
    assert VISIBLE not in refused.body.decode()


ANSWERED: Mapping[str, Mapping[str, Any]] = {
    "a part of a string": {"filter": {"like": {"name": "%Visby%"}}},
    "the words of a string": {"filter": {"keyword": {"name": "Visby"}}},
    "the beginnings of words of a string": {"filter": {"fuzzy": {"name": "Visb"}}},
    "a string that is not null": {"filter": {"and": [{"neq": {"name": None}}, {"eq": {"name": "Vera Visby"}}]}},
    "a number": {"filter": {"gte": {"id": 0}}, "sort": [{"id": "desc"}]},
    "a boolean": {"filter": {"in": {"verified": [True, False]}}},
    "an order": {"filter": {"eq": {"name": "Vera Visby"}}, "sort": [{"name": "asc"}, {"created_at": "desc"}]},
    "a visible member of an object": {"filter": {"eq": {"user_fields.city": VISIBLE}}},
}
REFUSED: Mapping[str, Mapping[str, Any]] = {
    "a part of a redacted string": {"filter": {"like": {"email": f"{PLANTED}%"}}},
    "the words of an object": {"filter": {"keyword": {"user_fields": PLANTED}}},
    "the beginnings of words of an object": {"filter": {"fuzzy": {"user_fields": PLANTED[:4]}}},
    "an equal object": {"filter": {"eq": {"user_fields": USER["user_fields"]}}},
    "an array": {"filter": {"array_contains": {"tags": {"phone": PLANTED}}}},
    "a redacted member of an object": {"filter": {"startswith": {"user_fields.phone": "+49"}}},
    "a member below a redacted one": {"filter": {"eq": {"user_fields.phone.mobile": None}}},
    "a redacted member that may not be": {"filter": {"not": {"or": [{"eq": {"user_fields.card": None}}]}}},
    "one field of several": {"filter": {"and": [{"like": {"name": "%"}}, {"keyword": {"photo": PLANTED}}]}},
    "a redacted order": {"sort": [{"name": "asc"}, {"email": "asc"}]},
}


@pytest.mark.parametrize("used", ANSWERED)
async def test_a_search_may_use_fields_that_have_no_redacted_member(walk: Walk, used: str):
    await walk.redact()
    await walk.synchronize()

    answer = await walk.call("context_store_search", {"query": ANSWERED[used], "limit": 1000})

    assert "Vera Visby" in [record["name"] for record in answer.document()["result"]["data"]]
    assert PLANTED not in answer.body.decode()


@pytest.mark.parametrize("used", REFUSED)
async def test_no_search_uses_fields_that_are_redacted_or_may_have_a_redacted_member(walk: Walk, used: str):
    await walk.redact()

    refused = await walk.call("context_store_search", {"query": REFUSED[used]})

    assert refused.document(403)["code"] == "denied_by_policy"


async def test_without_policies_everything_is_shown(walk: Walk):
    await put(walk.admin, EVERYTHING)

    assert PLANTED in await text(walk.call())
