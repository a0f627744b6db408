"""Sessions through the API: what a client does for a person, by everybody who may and may not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import pytest
from yarl import URL

from gateway.access.identity.patterns import matches
from gateway.client import Gateway
from gateway.errors import InsufficientScope, Unauthorized
from gateway.jobs.pruning import prune_jobs
from gateway.web.api.sessions import OpenSession
from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Answer, Api
from tests.harness.catalog import shipped_catalog
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually
from tests.web.test_personal_connectors import CONNECTORS, CREDENTIALS, connected, person_of
from tests.web.test_policies import READ, put, run_jobs, tool

SESSIONS, LINKS = "/api/v1/sessions", "/api/v1/connect/sessions"
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}
UPDATE = {"entity": "tickets", "action": "update", "params": {"ticket_id": 1, "ticket": {"status": "solved"}}}
SEARCH = {"entity": "tickets", "action": "context_store_search", "params": {"query": {}}}
ASYNC = {"Prefer": "respond-async"}


@dataclass(frozen=True)
class Bench:
    """A program that acts for people, an administrator, and a shared connector."""

    front: FrontEnd
    organization_id: UUID
    admin: Api
    program: Api
    program_id: str
    shared: dict

    async def opened(self, api: Api | None = None, **members: object) -> dict:
        """A new session for a user of the program's product."""
        return (await self.open(api, **members)).document(201)

    async def open(self, api: Api | None = None, **members: object) -> Answer:
        return await (api or self.program).post(SESSIONS, {"person": {"subject": "user-7"}, **members})

    def of(self, session: dict) -> Api:
        """The caller with the session's token."""
        return Api(self.admin.session, {"Authorization": f"Bearer {session['token']}"})

    async def own(self, session: dict, name: str = "Own") -> dict:
        """A personal connector of the session's person, which an administrator makes."""
        return (await connected(self.admin, session["person"]["id"], name=name)).document(201)

    async def group(self, name: str = "leads", **rights: object) -> None:
        rights = {"workspaces": None, "scopes": [], **rights}
        (await self.admin.call("PUT", f"/api/v1/groups/{name}", json=rights)).document()

    async def let(self, groups: list[str]) -> Answer:
        return await self.admin.call("PATCH", f"/api/v1/clients/{self.program_id}", json={"delegate_for": groups})


@pytest.fixture
async def bench(front: FrontEnd) -> AsyncIterator[Bench]:
    organization_id = await front.organization()
    program_id, secret = await front.client(organization_id, ["read", "write", "delegate"])
    async with (
        front.api(organization_id, ["read", "write", "admin", "approve"]) as admin,
        Api.of(front.base_url, program_id, secret) as program,
    ):
        shared = (await connected(admin, None, name="Shared")).document(201)
        yield Bench(front, organization_id, admin, program, program_id, shared)


async def run(api: Api, connector: dict, call: dict, **options) -> Answer:
    return await api.post(f"{CONNECTORS}/{connector['id']}/execute", call, **options)


def fields(answer: Answer) -> list[str]:
    return [each["field"] for each in answer.document(422)["errors"]]


async def test_a_session_acts_as_the_user_whom_its_client_brought(bench: Bench):
    session = await bench.opened(person={"subject": "user-7", "email": "ada@example.com", "name": "Ada"})
    again = await bench.opened()
    own = await bench.own(session)
    api = bench.of(session)

    listed = (await api.get(CONNECTORS)).document()["data"]

    assert session["mcp_url"] == f"{bench.front.services.settings.base_url}/mcp"
    assert again["person"] == session["person"]
    assert session["person"] == {**session["person"], "email": "ada@example.com", "name": "Ada", "subject": "user-7"}
    assert {each["id"] for each in listed} == {own["id"], bench.shared["id"]}
    assert (await run(api, own, LIST)).status == 200
    assert (await run(bench.program, own, LIST)).status == 404
    assert (await run(bench.admin, own, LIST)).document(403)["code"] == "personal_connector"


async def test_users_of_two_products_with_one_subject_are_two_people(bench: Bench):
    first = await bench.opened()
    async with bench.front.api(bench.organization_id, ["read", "write", "delegate"]) as other:
        second = await bench.opened(other)
        own = await bench.own(first)

        answer = await run(bench.of(second), own, LIST)

    assert first["person"]["id"] != second["person"]["id"]
    assert answer.status == 404


async def test_a_client_without_the_scope_delegate_opens_no_session(bench: Bench):
    answer = await bench.open(bench.admin)

    assert answer.document(403)["code"] == "insufficient_scope"
    assert (await bench.admin.get("/api/v1/people")).document()["data"] == []


async def test_an_employee_is_acted_for_by_clients_that_may_act_for_one_of_the_groups(bench: Bench):
    await bench.group()
    person_id, _ = await person_of(bench.front, bench.admin, ["read"], groups=["leads"])
    other_id, _ = await person_of(bench.front, bench.admin, ["read"])

    before = await bench.open(person={"id": person_id})
    await bench.let(["leads"])
    after = await bench.open(person={"id": person_id})
    other = await bench.open(person={"id": other_id})
    nobody = await bench.open(person={"id": str(uuid4())})

    assert after.status == 201
    assert {before.status, other.status, nobody.status} == {403}
    assert before.json()["detail"] == other.json()["detail"] == nobody.json()["detail"]
    assert fields(await bench.let(["leads", "unknown"])) == ["delegate_for"]


async def test_a_person_opens_no_session(bench: Bench):
    _, person = await person_of(bench.front, bench.admin, ["read", "delegate"])

    assert (await bench.open(person)).document(403)["code"] == "insufficient_scope"


async def test_a_session_has_what_both_the_person_and_the_client_have_without_admin_and_approve(bench: Bench):
    await bench.group(scopes=["read", "admin", "approve"])
    person_id, _ = await person_of(bench.front, bench.admin, [], groups=["leads"])
    await bench.let(["leads"])
    session = await bench.opened(person={"id": person_id})
    api = bench.of(session)

    assert (await api.get(SESSIONS)).status == 200
    assert (await run(api, bench.shared, LIST)).status == 200
    assert (await run(api, bench.shared, UPDATE)).document(403)["code"] == "insufficient_scope"
    assert (await api.get("/api/v1/audit")).status == 403
    assert (await api.get("/api/v1/approvals")).status == 403
    assert session["connect_url"] is None


REFUSED = [
    ("POST", "/api/v1/schedules", {"name": "s", "entity": "tickets", "action": "list", "cron": "@daily"}),
    ("POST", "/api/v1/webhooks", {"url": "https://r.example/in", "types": ["job.*"]}),
    ("GET", "/api/v1/events", None),
    ("GET", "/api/v1/requests", None),
    ("GET", "/api/v1/workspaces", None),
    ("GET", "/api/v1/people", None),
    ("POST", CONNECTORS, {"workspace_name": "acme", "connector_type": "Support-Desk", "credentials": CREDENTIALS}),
    ("DELETE", f"{CONNECTORS}/{{shared}}", None),
    ("PATCH", f"{CONNECTORS}/{{shared}}", {"name": "x"}),
    ("POST", f"{CONNECTORS}/{{shared}}/context-store/sync", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
async def test_a_session_runs_operations_and_nothing_else(bench: Bench, method: str, path: str, body):
    api = bench.of(await bench.opened())

    answer = await api.call(method, path.format(shared=bench.shared["id"]), json=body)

    assert answer.document(403)["code"] == "insufficient_scope"
    assert "session" in answer.json()["detail"]


async def test_a_session_with_connectors_reaches_these_alone(bench: Bench):
    first = await bench.opened()
    own, hidden = await bench.own(first), await bench.own(first, "Hidden")
    session = await bench.opened(connectors=[own["id"]])
    api = bench.of(session)

    assert [each["id"] for each in (await api.get(CONNECTORS)).document()["data"]] == [own["id"]]
    assert (await run(api, own, LIST)).status == 200
    for other in (hidden, bench.shared):
        assert (await run(api, other, LIST)).status == 404
        assert (await run(api, other, SEARCH)).status == 404
        assert (await api.get(f"{CONNECTORS}/{other['id']}")).status == 404
        assert (await api.post(f"{CONNECTORS}/{other['id']}/batch", {"operations": [LIST]})).status == 404
        assert (await api.get(f"{CONNECTORS}/{other['id']}/download/attachments?attachment_id=2")).status == 404
    found = (await api.get("/api/v1/operations?query=tickets")).document()["data"]
    assert {each["id"] for operation in found for each in operation["connectors"]} == {own["id"]}
    assert session["connect_url"] is None


async def test_a_session_with_a_workspace_sees_this_one_alone(bench: Bench):
    other = (await connected(bench.admin, None, workspace_name="other")).document(201)
    api = bench.of(await bench.opened(workspace_name="other"))

    assert [each["id"] for each in (await api.get(CONNECTORS)).document()["data"]] == [other["id"]]
    assert (await run(api, bench.shared, LIST)).status == 404


@pytest.mark.parametrize(
    ("limits", "list_", "update", "search"),
    [
        ({"tools": {"allow": ["support-desk.tickets.list"]}}, 200, 403, 403),
        ({"tools": {"allow": ["zendesk.tickets.*"]}}, 200, 200, 200),
        ({"tools": {"allow": ["*.list", "*.update"]}}, 200, 200, 403),
        ({"tools": {"deny": ["*.update"]}}, 200, 403, 200),
        ({"tools": {"allow": ["*"], "deny": ["Zendesk.tickets.*"]}}, 403, 403, 403),
        ({"effects": ["read"]}, 200, 403, 200),
        ({"effects": ["write", "idempotent"]}, 403, 200, 403),
    ],
)
async def test_a_session_runs_the_operations_of_its_patterns_and_effects(
    bench: Bench, limits: dict, list_: int, update: int, search: int
):
    api = bench.of(await bench.opened(**limits))

    async def statuses(**options) -> list[int]:
        answers = [await run(api, bench.shared, call, **options) for call in (LIST, UPDATE, SEARCH)]
        assert {each.json()["code"] for each in answers if each.status == 403} <= {"insufficient_scope"}
        return [each.status for each in answers]

    assert await statuses() == [list_, update, search]


def test_the_sample_of_a_session_without_deletions_denies_every_operation_that_deletes():
    sample = next(iter(OpenSession.EXAMPLES.values()))["tools"]["deny"]
    operations = [f"{kind.name}.{entity}.{action}" for kind in shipped_catalog() for entity, action in kind.operations]
    deleting = [each for each in operations if each.rpartition(".")[2].startswith("delete")]

    assert "support-desk.tickets.delete_many" in deleting
    assert [each for each in deleting if not any(matches(pattern, each) for pattern in sample)] == []


async def test_what_a_session_does_not_allow_is_refused_by_every_way_in(bench: Bench):
    session = await bench.opened(tools={"deny": ["*.tickets.*", "*.attachments.download"]})
    api, path = bench.of(session), f"{CONNECTORS}/{bench.shared['id']}"

    answers = [
        await run(api, bench.shared, LIST),
        await run(api, bench.shared, {**LIST, "dry_run": True}),
        await run(api, bench.shared, LIST, headers=ASYNC),
        await run(api, bench.shared, {**LIST, "output": {"file": "csv"}}),
        await run(api, bench.shared, {**SEARCH, "output": {"file": "csv"}}),
        await run(api, bench.shared, {"entity": "attachments", "action": "download", "params": {"attachment_id": "2"}}),
        await api.get(f"{path}/download/attachments?attachment_id=2"),
    ]
    batch = await api.post(f"{path}/batch", {"operations": [LIST]})

    assert [each.status for each in answers] == [403] * len(answers)
    assert batch.status in (403, 422)
    result = await tool(bench.front, api, "read", operation="support-desk.tickets.list", params={"per_page": 1})
    assert result["isError"]


async def test_agents_reach_the_persons_own_connector_first(bench: Bench):
    session = await bench.opened()
    own = await bench.own(session)
    params = {"per_page": 1}
    result = await tool(bench.front, bench.of(session), "read", operation="support-desk.tickets.list", params=params)

    async def called() -> list[dict]:
        return (await bench.admin.get("/api/v1/audit?operation=tickets.list")).document()["data"]

    await eventually(called)
    assert not result.get("isError"), result
    assert [each["connector_id"] for each in await called()] == [own["id"]]


async def test_a_nested_session_narrows(bench: Bench):
    outer = await bench.opened(tools={"allow": ["support-desk.*"], "deny": ["*.update"]}, expires_in=600)
    inner = await bench.opened(
        bench.of(outer), person=None, tools={"allow": ["support-desk.tickets.*"], "deny": ["*.list"]}, effects=["read"]
    )
    api = bench.of(inner)

    assert inner["person"] == outer["person"]
    assert inner["expires_at"] <= outer["expires_at"]
    assert [(await run(api, bench.shared, call)).status for call in (LIST, UPDATE, SEARCH)] == [403, 403, 200]


WIDER = [
    ({"tools": {"allow": ["support-desk.*"]}}, ["tools.allow"]),
    ({"tools": {"allow": ["*"]}}, ["tools.allow"]),
    ({"tools": {"allow": ["support-desk.tickets.list", "support-desk.users.list"]}}, ["tools.allow"]),
    ({"effects": ["read", "write"]}, ["effects"]),
    ({"expires_in": 700}, ["expires_in"]),
    ({"workspace_name": "other"}, ["workspace_name"]),
    ({"connectors": ["{other}"]}, ["connectors"]),
    ({"budget": {"per": "day", "calls": 11}}, ["budget.calls"]),
    ({"budget": {"per": "hour", "calls": 11}}, ["budget.calls"]),
    ({"person": {"id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}}, ["person"]),
    ({"person": {"subject": "user-8"}}, ["person"]),
    ({"tools": {"allow": ["*"]}, "effects": ["write"], "expires_in": 700}, ["tools.allow", "effects", "expires_in"]),
]


@pytest.mark.parametrize(("asked", "named"), WIDER)
async def test_a_nested_session_that_asks_for_more_is_refused_by_the_name_of_the_member(
    bench: Bench, asked: dict, named: list[str]
):
    other = (await connected(bench.admin, None, workspace_name="other")).document(201)
    outer = await bench.opened(
        workspace_name="acme",
        connectors=[bench.shared["id"]],
        tools={"allow": ["support-desk.tickets.*"]},
        effects=["read"],
        budget={"per": "day", "calls": 10},
        expires_in=600,
    )
    if "connectors" in asked:
        asked = {"connectors": [other["id"]]}

    answer = await bench.open(bench.of(outer), **{"person": None, **asked})

    assert fields(answer) == named


FAULTY = [
    ({"person": {}}, ["person"]),
    ({"person": {"id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11", "subject": "user-7"}}, ["person"]),
    ({"person": {"subject": "new", "name": "", "email": "nowhere"}}, ["person.name", "person.email"]),
    ({"tools": {"allow": ["support-desk.tikets.*"]}}, ["tools.allow"]),
    ({"tools": {"deny": ["suport-desk.*"], "allow": ["zendesk.tickets.list"]}}, ["tools.deny"]),
    ({"tools": {"allow": ["a b"]}}, ["tools.allow.0"]),
    ({"connectors": ["0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"]}, ["connectors"]),
    ({"effects": ["delete"]}, ["effects.0"]),
    ({"expires_in": 86401}, ["expires_in"]),
    ({"budget": {"per": "day"}}, ["budget.calls"]),
    ({"budget": {"per": "day", "sum": {"operation": "a.b.c", "param": "d", "at_most": 1}}}, ["budget.sum.operation"]),
]


@pytest.mark.parametrize(("asked", "named"), FAULTY)
async def test_a_faulty_session_is_refused_with_all_faults(bench: Bench, asked: dict, named: list[str]):
    assert fields(await bench.open(**asked)) == named


async def test_a_session_that_ended_answers_as_unknown_with_those_that_were_opened_in_it(bench: Bench, tmp_path: Path):
    outer = await bench.opened()
    inner = await bench.opened(bench.of(outer), person=None)
    settings = bench.front.services.settings
    async with front_end(tmp_path, str(settings.database_url), str(settings.redis_url)) as other:

        async def statuses(base_url: str) -> set[int]:
            found = set()
            for session in (outer, inner):
                headers = {"Authorization": f"Bearer {session['token']}"}
                async with aiohttp.request("GET", base_url + CONNECTORS, headers=headers) as response:
                    found.add(response.status)
            return found

        assert await statuses(bench.front.base_url) == await statuses(other.base_url) == {200}
        ended = await bench.program.call("DELETE", f"{SESSIONS}/{outer['id']}")

        assert ended.status == 204
        assert await statuses(bench.front.base_url) == {401}

        async def is_refused() -> bool:
            return await statuses(other.base_url) == {401}

        async with asyncio.timeout(1):
            await eventually(is_refused)


async def test_an_expired_session_answers_as_unknown(bench: Bench):
    session = await bench.opened(expires_in=1)
    api = bench.of(session)

    async def is_refused() -> bool:
        return (await api.get(CONNECTORS)).status == 401

    await eventually(is_refused)
    assert (await bench.program.get(SESSIONS)).document()["data"] == []


async def _suspend(bench: Bench, session: dict) -> None:
    path = f"/api/v1/people/{session['person']['id']}"
    (await bench.admin.call("PATCH", path, json={"status": "suspended"})).document()
    (await bench.admin.call("PATCH", path, json={"status": "active"})).document()


async def _disable_client(bench: Bench, session: dict) -> None:
    await bench.front.services.identity.disable_client(UUID(bench.program_id))


async def _leave_group(bench: Bench, session: dict) -> None:
    path = f"/api/v1/people/{session['person']['id']}"
    (await bench.admin.call("PATCH", path, json={"groups": []})).document()


async def _forbid_group(bench: Bench, session: dict) -> None:
    (await bench.let([])).document()


@pytest.mark.parametrize("end", [_suspend, _disable_client, _leave_group, _forbid_group])
async def test_a_session_ends_with_what_it_comes_from(bench: Bench, end):
    await bench.group()
    person_id, _ = await person_of(bench.front, bench.admin, ["read", "write"], groups=["leads"])
    await bench.let(["leads"])
    session = await bench.opened(person={"id": person_id})
    assert (await bench.of(session).get(CONNECTORS)).status == 200

    await end(bench, session)

    async def is_refused() -> bool:
        return (await bench.of(session).get(CONNECTORS)).status == 401

    await eventually(is_refused)


async def test_a_suspended_user_gets_no_session(bench: Bench):
    session = await bench.opened()
    path = f"/api/v1/people/{session['person']['id']}"
    (await bench.admin.call("PATCH", path, json={"status": "suspended"})).document()

    assert (await bench.open()).document(409)["code"] == "conflict"


async def test_sessions_are_listed_and_ended_by_those_whom_they_concern(bench: Bench):
    await bench.group()
    person_id, person = await person_of(bench.front, bench.admin, ["read", "write"], groups=["leads"])
    _, stranger = await person_of(bench.front, bench.admin, ["read", "write"])
    await bench.let(["leads"])
    outer = await bench.opened(
        person={"id": person_id}, tools={"allow": ["zendesk.*"]}, budget={"per": "day", "calls": 9}
    )
    inner = await bench.opened(bench.of(outer), person=None)
    async with bench.front.api(bench.organization_id, ["read", "write", "delegate"]) as other:

        async def ids(api: Api) -> list[str]:
            return [each["id"] for each in (await api.get(SESSIONS)).document()["data"]]

        assert await ids(bench.program) == await ids(bench.admin) == await ids(person) == [inner["id"], outer["id"]]
        assert await ids(bench.of(outer)) == [inner["id"]]
        assert await ids(bench.of(inner)) == await ids(other) == await ids(stranger) == []
        for api in (other, stranger, bench.of(inner)):
            assert (await api.call("DELETE", f"{SESSIONS}/{outer['id']}")).status == 404
    shown = (await bench.program.get(SESSIONS)).document()["data"]
    page = (await bench.program.get(f"{SESSIONS}?limit=1")).document()
    rest = (await bench.program.get(f"{SESSIONS}?limit=1&cursor={page['next_cursor']}")).document()
    assert [*page["data"], *rest["data"]] == shown
    assert shown[1]["tools"] == {"allow": ["support-desk.*"], "deny": []}
    assert shown[1]["budget"]["calls"] == 9
    assert shown[0]["budget"] is None
    assert (shown[0]["parent_id"], shown[0]["client"]["id"]) == (outer["id"], bench.program_id)
    assert (await person.call("DELETE", f"{SESSIONS}/{outer['id']}")).status == 204
    assert (await bench.program.get(SESSIONS)).document()["data"] == []
    assert "token" not in shown[0]


async def test_the_sessions_of_another_organization_do_not_exist(bench: Bench):
    session = await bench.opened()
    async with bench.front.api() as stranger:
        ended = await stranger.call("DELETE", f"{SESSIONS}/{session['id']}")
        listed = (await stranger.get(SESSIONS)).document()["data"]
        named = await bench.open(stranger, person={"id": session["person"]["id"]})

    assert (ended.status, listed, named.status) == (404, [], 403)
    assert (await bench.of(session).get(CONNECTORS)).status == 200


async def test_a_session_sees_its_own_jobs_alone_and_the_person_all(bench: Bench):
    await bench.group()
    person_id, person = await person_of(bench.front, bench.admin, ["read", "write"], groups=["leads"])
    await bench.let(["leads"])
    first, second = [await bench.opened(person={"id": person_id}) for _ in range(2)]
    own = await bench.own(first)
    job = (await run(bench.of(first), own, LIST, headers=ASYNC)).document(202)["job"]

    async def statuses(api: Api) -> list[int]:
        paths = (f"/api/v1/jobs/{job['id']}", f"/api/v1/jobs/{job['id']}/events", f"/api/v1/jobs/{job['id']}/result")
        return [(await api.get(each)).status for each in (paths[0], paths[2])]

    async def listed(api: Api) -> list[str]:
        return [each["id"] for each in (await api.get("/api/v1/jobs")).document()["data"]]

    assert await statuses(bench.of(first)) == await statuses(person) == [200, 202]
    assert await statuses(bench.of(second)) == await statuses(bench.program) == [404, 404]
    assert await listed(bench.of(first)) == await listed(person) == [job["id"]]
    assert await listed(bench.of(second)) == await listed(bench.program) == []
    assert job["session_id"] == first["id"]


async def test_the_unfinished_jobs_of_a_session_end_with_it(bench: Bench):
    session = await bench.opened()
    own = await bench.own(session)
    job = (await run(bench.of(session), own, LIST, headers=ASYNC)).document(202)["job"]

    await bench.program.call("DELETE", f"{SESSIONS}/{session['id']}")
    await run_jobs(bench.front)

    again = bench.of(await bench.opened())
    assert (await again.get(f"/api/v1/jobs/{job['id']}")).status == 404
    stored = await bench.front.services.jobs.store.get(bench.organization_id, UUID(job["id"]))
    assert (stored.status, str(stored.session.id)) == ("canceled", session["id"])


async def test_clients_that_act_for_one_person_have_idempotency_keys_of_their_own(bench: Bench):
    await bench.group()
    person_id, person = await person_of(bench.front, bench.admin, ["read", "write"], groups=["leads"])
    await bench.let(["leads"])
    other_id, secret = await bench.front.client(bench.organization_id, ["read", "write", "delegate"])
    await bench.admin.call("PATCH", f"/api/v1/clients/{other_id}", json={"delegate_for": ["leads"]})
    async with Api.of(bench.front.base_url, other_id, secret) as other:
        first, again = [await bench.opened(person={"id": person_id}) for _ in range(2)]
        theirs = await bench.opened(other, person={"id": person_id})
    create = {"entity": "tickets", "action": "create", "params": {"ticket": {"subject": "s", "comment": {"body": "b"}}}}

    async def created(api: Api, call: dict = create) -> Answer:
        return await run(api, bench.shared, call, headers={"Idempotency-Key": "1"})

    answers = [await created(each) for each in (bench.of(first), bench.of(again), bench.of(theirs), person)]
    changed = {**create, "params": {"ticket": {"subject": "other", "comment": {"body": "b"}}}}

    ids = [each.document()["result"]["id"] for each in answers]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert [each.headers.get("Idempotency-Replayed") for each in answers] == [None, "true", None, None]
    assert (await created(bench.of(again), changed)).document(422)["code"] == "idempotency_mismatch"


async def test_a_worker_decides_again_by_the_limits_of_the_session(bench: Bench):
    api = bench.of(await bench.opened(tools={"allow": ["support-desk.tickets.*"]}))
    steps = {
        "steps": True,
        "operations": [
            {"id": "a", **LIST},
            {"id": "b", "entity": "tickets", "action": "get", "params": {"ticket_id": {"$from": "a.0.id"}}},
        ],
    }
    job = (await api.post(f"{CONNECTORS}/{bench.shared['id']}/batch", steps)).document(202)["job"]
    await run_jobs(bench.front)
    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).document()

    assert result["result"]["succeeded"] == 2, result


async def test_every_record_names_the_client_the_person_and_the_session(bench: Bench):
    session = await bench.opened(person={"subject": "user-7", "name": "Ada"})
    own = await bench.own(session)
    api = bench.of(session)
    await run(api, own, LIST)
    await run(api, own, UPDATE)
    job = (await run(api, own, UPDATE, headers=ASYNC)).document(202)["job"]
    await api.post(f"{CONNECTORS}/{own['id']}/batch", {"operations": [UPDATE]})
    await run(api, bench.shared, {**LIST, "action": "lst"})
    await run_jobs(bench.front)
    await api.call("DELETE", f"{SESSIONS}/{uuid4()}")

    actor = {
        "id": session["person"]["id"],
        "name": "Ada",
        "person": {"id": session["person"]["id"], "name": "Ada"},
        "client": {"id": bench.program_id, "name": "test"},
        "session": {"id": session["id"]},
    }

    async def entries() -> list[dict]:
        found = (await bench.admin.get("/api/v1/audit?limit=1000")).document()["data"]
        return [each for each in found if each["actor"]["id"] == session["person"]["id"]]

    async def is_complete() -> bool:
        names = {(each["what"], each["outcome"]) for each in await entries()}
        return {("tickets.list", "succeeded"), ("session.end", "not_found"), ("batch", "succeeded")} <= names

    await eventually(is_complete)
    assert [each["actor"] for each in await entries()] == [actor] * len(await entries())
    assert len([each for each in await entries() if each["what"] == "tickets.update"]) >= 4
    assert job["id"]
    export = await bench.admin.get("/api/v1/audit/export")
    assert f'"session":{{"id":"{session["id"]}"}}'.encode() in export.body


async def test_a_budget_of_a_session_covers_those_that_are_opened_in_it(bench: Bench):
    outer = await bench.opened(budget={"per": "day", "calls": 3})
    inner = await bench.opened(bench.of(outer), person=None, budget={"per": "day", "calls": 2})
    other = await bench.opened()

    statuses = [(await run(bench.of(inner), bench.shared, LIST)).status for _ in range(3)]
    rest = [(await run(bench.of(outer), bench.shared, LIST)).status for _ in range(2)]
    refused = (await run(bench.of(outer), bench.shared, LIST)).document(429)

    assert statuses == [200, 200, 429]
    assert rest == [200, 429]
    assert refused["budget"] == f"session {outer['id']}"
    assert (await run(bench.of(other), bench.shared, LIST)).status == 200
    assert (await bench.admin.get("/api/v1/budgets")).document()["data"] == []
    assert (await bench.admin.get(f"/api/v1/budgets/session%20{outer['id']}")).status == 404


async def test_a_budget_of_a_longer_period_asks_for_no_more(bench: Bench):
    outer = await bench.opened(budget={"per": "day", "calls": 1})
    inner = await bench.opened(bench.of(outer), person=None, budget={"per": "month", "calls": 20})

    assert [(await run(bench.of(inner), bench.shared, LIST)).status for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("owner", ["client_id", "person_id"])
async def test_budgets_of_the_client_and_of_the_person_count_the_calls_of_a_session(bench: Bench, owner: str):
    session = await bench.opened()
    id_ = bench.program_id if owner == "client_id" else session["person"]["id"]
    await bench.admin.call("PUT", "/api/v1/budgets/main", json={"per": "day", "calls": 1, owner: id_})

    statuses = [(await run(bench.of(session), bench.shared, LIST)).status for _ in range(2)]

    assert statuses == [200, 429]


async def test_policies_about_a_client_hold_for_what_it_does_for_people(bench: Bench):
    session = await bench.opened()
    forbid = f'forbid(principal in Client::"{bench.program_id}", action, resource);'
    exact = f'forbid(principal == Client::"{bench.program_id}", action, resource);'
    allowed = f"permit(principal, action, resource); {exact}"

    assert (await put(bench.admin, allowed)).status == 200
    assert (await run(bench.of(session), bench.shared, LIST)).status == 200
    assert (await put(bench.admin, f"permit(principal, action, resource); {forbid}")).status == 200
    assert (await run(bench.of(session), bench.shared, LIST)).document(403)["code"] == "denied_by_policy"


async def test_policies_about_a_group_hold_for_its_members_from_now_on(bench: Bench):
    await bench.admin.call("PUT", "/api/v1/groups/interns", json={"scopes": ["read"], "workspaces": None})
    session = await bench.opened()
    person = session["person"]["id"]
    forbid = 'permit(principal, action, resource); forbid(principal in Group::"interns", action, resource);'
    assert (await put(bench.admin, forbid)).status == 200
    case = {"operation": "support-desk.tickets.list", "person": person}

    before = (await run(bench.of(session), bench.shared, LIST)).status
    await bench.admin.call("PATCH", f"/api/v1/people/{person}", json={"groups": ["interns"]})
    refused = await run(bench.of(session), bench.shared, LIST)
    checked = (await bench.admin.post("/api/v1/policies/check", {"cases": [case]})).document()["data"]
    unknown = await bench.admin.post("/api/v1/policies/check", {"cases": [{**case, "person": str(uuid4())}]})

    assert before == 200
    assert refused.document(403)["code"] == "denied_by_policy"
    assert checked[0]["decision"] == "deny"
    assert unknown.status == 422


async def test_neither_the_client_nor_the_person_approves_what_a_session_asks_for(bench: Bench):
    program_id, secret = await bench.front.client(bench.organization_id, ["read", "write", "delegate", "approve"])
    writes = 'permit(principal, action in [Action::"write", Action::"idempotent"], resource);'
    ask = f'{READ} @id("ask") @approval("Ask.") {writes}'
    assert (await put(bench.admin, ask)).status == 200
    async with Api.of(bench.front.base_url, program_id, secret) as program:
        session = await bench.opened(program)
        job = (await run(bench.of(session), bench.shared, UPDATE)).document(202)["job"]
        await run_jobs(bench.front)
        approval_id = (await bench.of(session).get(f"/api/v1/jobs/{job['id']}")).document()["approval"]["id"]
        path = f"/api/v1/approvals/{approval_id}"
        approval = (await program.get(path)).document()
        word = {"digest": approval["digest"]}

        refused = await program.post(f"{path}/approve", word)
        approved = await bench.admin.post(f"{path}/approve", word)

    assert refused.document(403)["code"] == "approver_is_requester"
    assert approved.status == 200
    asked = approval["requested_by"]
    assert (asked["client"]["id"], asked["person"]["id"]) == (program_id, session["person"]["id"])
    assert asked["session"] == {"id": session["id"]}


async def test_the_connect_page_makes_a_connector_of_the_persons_own(bench: Bench):
    session = await bench.opened(workspace_name="acme")
    token = session["connect_url"].rpartition("/")[2]
    links = bench.front.services.connectors.links

    record = await links.connect(await links.open(token), "support-desk", CREDENTIALS)

    assert str(record.owner_id) == session["person"]["id"]
    assert record.workspace_name == "acme"


async def test_the_connect_page_ends_with_the_session(bench: Bench):
    session = await bench.opened(workspace_name="acme")
    await bench.program.call("DELETE", f"{SESSIONS}/{session['id']}")

    async with bench.program.session.get(f"/connect/{session['connect_url'].rpartition('/')[2]}") as response:
        assert response.status == 410


async def test_a_link_that_was_created_in_a_session_ends_with_it_and_is_that_sessions_alone(bench: Bench):
    first, second = [await bench.opened() for _ in range(2)]
    link = (await bench.of(first).post(LINKS, {"workspace_name": "acme"})).document(201)
    statuses = [(await bench.of(each).get(f"{LINKS}/{link['id']}")).status for each in (first, second)]
    await bench.program.call("DELETE", f"{SESSIONS}/{first['id']}")

    async with bench.program.session.get(f"/connect/{link['url'].rpartition('/')[2]}") as response:
        assert response.status == 410
    assert statuses == [200, 404]


async def test_a_session_for_certain_connectors_connects_no_other_ones(bench: Bench):
    own = await bench.own(await bench.opened())
    api = bench.of(await bench.opened(connectors=[own["id"]]))

    assert (await api.post(LINKS, {"workspace_name": "acme"})).document(403)["code"] == "insufficient_scope"
    assert (await api.post(LINKS, {"workspace_name": "acme", "connector_id": own["id"]})).status == 201


async def test_a_session_connects_for_its_person_only(bench: Bench):
    api = bench.of(await bench.opened())
    link = (await api.post("/api/v1/connect/sessions", {"workspace_name": "acme"})).document(201)
    stored = await bench.front.services.connectors.links.open(link["url"].rpartition("/")[2])
    again = {"workspace_name": "acme", "connector_id": bench.shared["id"]}

    another = {"workspace_name": "acme", "owner": str(uuid4())}

    assert stored.owner_id is not None
    for body in (again, another):
        assert (await api.post("/api/v1/connect/sessions", body)).document(403)["code"] == "insufficient_scope"


async def test_expired_sessions_are_pruned_with_their_budgets(bench: Bench):
    session = await bench.opened(budget={"per": "day", "calls": 3})
    database = bench.front.services.database
    async with database.system() as connection:
        await connection.execute("UPDATE person_sessions SET expires_at = now() - interval '8 days'")
    await prune_jobs(database)

    async with database.system() as connection:
        left = await connection.fetchval("SELECT count(*) FROM person_sessions WHERE id = $1", UUID(session["id"]))
        budgets = await connection.fetchval("SELECT count(*) FROM budgets WHERE session_id = $1", UUID(session["id"]))
    assert (left, budgets) == (0, 0)


async def test_concurrent_first_sessions_of_a_user_add_one_person(bench: Bench):
    opened = await asyncio.gather(*(bench.open(person={"subject": "new"}) for _ in range(5)))

    assert len({each.document(201)["person"]["id"] for each in opened}) == 1


async def test_the_events_of_an_organization_are_not_those_of_a_session(bench: Bench):
    session = await bench.opened()
    async with aiohttp.ClientSession(headers=bench.of(session).headers) as http:
        raw = Raw(http, f"{bench.front.base_url}/mcp")
        reply = await raw("events/poll", {"name": "job.succeeded", "cursor": None})

    assert "session" in reply.document["error"]["data"]["reason"]


async def test_the_python_client_opens_uses_and_ends_sessions(bench: Bench):
    program_id, secret = await bench.front.client(bench.organization_id, ["read", "write", "delegate"])
    async with Gateway(bench.front.base_url, program_id, secret) as program:
        opened = await program.sessions.open(
            subject="user-9", allow=["zendesk.*"], deny=["*.update"], budget={"per": "day", "calls": 5}, expires_in=600
        )
        own = (await connected(bench.admin, opened.person.id, name="Own")).document(201)
        async with Gateway(bench.front.base_url, token=opened.token, workspace_name="acme") as agent:
            assert (await agent.execute("support-desk", "tickets", "list", {"per_page": 1})).records
            with pytest.raises(InsufficientScope):
                await agent.execute(own["id"], "tickets", "update", UPDATE["params"])
            (listed,) = await program.sessions.list()
            await program.sessions.end(opened.id)
            with pytest.raises(Unauthorized, match="open a new session"):
                await agent.execute("support-desk", "tickets", "list", {"per_page": 1})

    assert (listed.id, listed.budget.calls) == (opened.id, 5)
    found = (await bench.admin.get("/api/v1/audit?operation=tickets.list")).document()["data"]
    assert {each["connector_id"] for each in found} == {own["id"]}


async def test_usage_counts_the_calls_of_a_session_for_its_client_and_its_person(bench: Bench):
    session = await bench.opened()
    await run(bench.of(session), bench.shared, LIST)

    async def shares(by: str) -> dict[str, int]:
        found = (await bench.admin.get(f"/api/v1/usage?by={by}")).document()["by"]
        return {each["id"]: each["calls"] for each in found}

    async def is_counted() -> bool:
        return session["person"]["id"] in await shares("person")

    await eventually(is_counted)
    by_client, by_person = await shares("client"), await shares("person")
    assert by_client[bench.program_id] >= by_person[session["person"]["id"]]
    assert session["person"]["id"] not in by_client


async def test_the_redirects_to_a_result_end_with_the_right_to_act(bench: Bench):
    """A caller that only follows redirects may send a token that has expired, and no other one."""
    await bench.group(scopes=["read"])
    person_id, _ = await person_of(bench.front, bench.admin, [], groups=["leads"])
    await bench.let(["leads"])
    api = bench.of(await bench.opened(person={"id": person_id}))
    sdk = {"X-ADP-Agent-SDK": "1", **ASYNC}
    accepted = await run(api, bench.shared, LIST, headers=sdk, allow_redirects=False)
    await run_jobs(bench.front)
    path = accepted.headers["Location"]

    before = await api.call("GET", path, headers=sdk)
    await bench.let([])

    async def is_refused() -> bool:
        return (await api.get(CONNECTORS)).status == 401

    await eventually(is_refused, within=5)
    assert (accepted.status, before.status) == (303, 200)
    assert (await api.call("GET", path, headers=sdk)).status == 401


async def test_the_redirects_to_a_result_are_those_of_the_token_that_has_expired(bench: Bench, sql: Callable[..., Any]):
    session = await bench.opened()
    api = bench.of(session)
    sdk = {"X-ADP-Agent-SDK": "1", **ASYNC}
    accepted = await run(api, bench.shared, LIST, headers=sdk, allow_redirects=False)
    await run_jobs(bench.front)
    forbid = f'forbid(principal in Client::"{bench.program_id}", action, resource);'
    await sql("UPDATE tokens SET expires_at = now() WHERE session_id = $1", UUID(session["id"]))
    bench.front.access.tokens.invalidate_all()

    read = await api.call("GET", accepted.headers["Location"], headers=sdk)
    await put(bench.admin, "permit(principal, action, resource);" + forbid)
    denied = await api.call("GET", accepted.headers["Location"], headers=sdk)

    assert (await api.get(CONNECTORS)).status == 401
    assert read.status == 200
    assert denied.document(403)["code"] == "denied_by_policy"


async def _withdrawn(bench: Bench, _person_id: str) -> None:
    await bench.let([])


async def _left(bench: Bench, person_id: str) -> None:
    (await bench.admin.call("PATCH", f"/api/v1/people/{person_id}", json={"groups": []})).document()


async def _deleted(bench: Bench, _person_id: str) -> None:
    (group,) = (await bench.admin.get("/scim/v2/Groups")).document()["Resources"]
    assert (await bench.admin.call("DELETE", f"/scim/v2/Groups/{group['id']}")).status == 204


async def _removed(bench: Bench, person_id: str) -> None:
    (group,) = (await bench.admin.get("/scim/v2/Groups")).document()["Resources"]
    operation = {"op": "remove", "path": f'members[value eq "{person_id}"]'}
    body = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": [operation]}
    (await bench.admin.call("PATCH", f"/scim/v2/Groups/{group['id']}", json=body)).document()


@pytest.mark.parametrize("end", [_withdrawn, _left, _deleted, _removed])
async def test_what_a_session_began_ends_when_its_client_may_no_longer_act_for_the_person(bench: Bench, end):
    await bench.group()
    person_id, _ = await person_of(bench.front, bench.admin, ["read", "write"], groups=["leads"])
    await bench.let(["leads"])
    session, user = await bench.opened(person={"id": person_id}), await bench.opened()
    job = (await run(bench.of(session), bench.shared, LIST, headers=ASYNC)).document(202)["job"]["id"]

    await end(bench, person_id)
    await run_jobs(bench.front)

    async with bench.admin.session.get(URL(session["connect_url"]).path) as page:
        assert page.status == 410
    assert (await bench.admin.get(f"/api/v1/jobs/{job}")).document()["status"] == "canceled"
    assert [each["id"] for each in (await bench.admin.get(SESSIONS)).document()["data"]] == [user["id"]]
