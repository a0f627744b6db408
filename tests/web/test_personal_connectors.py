"""Personal connectors: every endpoint by the owner, other people, programs and administrators."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.tokens import hashed, new_secret
from gateway.context_store.records import upsert
from gateway.context_store.sync.schedule import register_all
from gateway.contract.oauth import NewGrant
from gateway.operations.call import OperationCall
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, headers_of
from tests.harness.caller import Answer, Api
from tests.harness.databases import waits_for_lock
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually

CONNECTORS = "/api/v1/integrations/connectors"
REDIRECT_URL = "https://app.example/landed"
OAUTH_APP = {"connector_type": "team-chat", "configuration": {"client_id": "app", "client_secret": "secret"}}
CREDENTIALS = {"subdomain": "acme", "email": "agent@acme.com", "api_token": "token"}
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 1}}


@dataclass(frozen=True)
class Setting:
    """An owner with a personal connector and what belongs to it, and the others of the organization."""

    owner: Api
    owner_id: str
    other_person: Api
    other_person_id: str
    program: Api
    administrator: Api
    own: str
    shared: str
    ids: dict[str, str]


async def person_of(front: FrontEnd, administrator: Api, scopes: list[str], **members: object) -> tuple[str, Api]:
    """A person's id, and the person as a caller."""
    body = {"scopes": scopes, "workspaces": None, **members}
    person = (await administrator.post("/api/v1/people", body)).document(201)
    token = new_secret()
    await front.services.identity.save_token(hashed(token), UUID(person["id"]), 900)
    return person["id"], Api(administrator.session, {"Authorization": f"Bearer {token}"})


async def connected(api: Api, owner: str | None, **members: object) -> Answer:
    """The answer to a new connector for this owner."""
    body = {"workspace_name": "acme", "connector_type": "Support-Desk", "name": "Mail", "credentials": CREDENTIALS}
    return await api.post(CONNECTORS, {**body, "validate": False, **members, **({"owner": owner} if owner else {})})


@pytest.fixture
async def setting(front: FrontEnd) -> AsyncIterator[Setting]:
    organization_id, secret = await front.organization(), new_secret()
    program_id = await front.services.identity.create_client(
        "program", [organization_id], hashed(secret), ["read", "write"], redirect_urls=[REDIRECT_URL]
    )
    async with (
        front.api(organization_id) as administrator,
        Api.of(front.base_url, str(program_id), secret) as program,
    ):
        await administrator.call("PUT", "/api/v1/oauth/credentials", json=OAUTH_APP)
        owner_id, owner = await person_of(front, administrator, ["read", "write"])
        await front.services.identity.change_redirect_urls(UUID(owner_id), [REDIRECT_URL])
        other_id, other = await person_of(front, administrator, ["read", "write"])
        own = (await connected(owner, "me")).document(201)
        shared = (await connected(administrator, None)).document(201)
        execute = await owner.post(f"{CONNECTORS}/{own['id']}/execute", LIST, headers={"Prefer": "respond-async"})
        timing = {"name": "s", "connector_id": own["id"], "entity": "tickets", "action": "list", "cron": "@daily"}
        schedule = (await owner.post("/api/v1/schedules", timing)).document(201)
        subscription = {"url": "https://r.example/in", "types": ["job.*"]}
        webhook = (await owner.post("/api/v1/webhooks", subscription)).document(201)
        link = (await owner.post("/api/v1/connect/sessions", {"workspace_name": "acme", "owner": "me"})).document(201)
        consent = {"workspace_name": "acme", "connector_type": "Team-Chat", "redirect_url": REDIRECT_URL}
        flow = (await owner.post(f"{CONNECTORS}/oauth/initiate", {**consent, "owner": "me"})).document()
        ids = {
            "connector": own["id"],
            "job": execute.document(202)["job"]["id"],
            "schedule": schedule["id"],
            "webhook": webhook["id"],
            "link": link["id"],
            "flow": flow["flow_id"],
        }
        yield Setting(owner, owner_id, other, other_id, program, administrator, own["id"], shared["id"], ids)


#: on the connector itself: 404 for others, 403 for administrators
USES = [
    ("GET", f"{CONNECTORS}/{{connector}}", None),
    ("PATCH", f"{CONNECTORS}/{{connector}}", {"name": "mine"}),
    ("PATCH", f"{CONNECTORS}/{{connector}}", {"status": "active"}),
    ("PATCH", f"{CONNECTORS}/{{connector}}", {"status": "disabled", "name": "mine"}),
    ("PATCH", f"{CONNECTORS}/{{connector}}", {"credentials": CREDENTIALS}),
    ("POST", f"{CONNECTORS}/{{connector}}/check", None),
    ("GET", f"{CONNECTORS}/{{connector}}/inspect", None),
    ("POST", f"{CONNECTORS}/{{connector}}/execute", LIST),
    ("POST", f"{CONNECTORS}/{{connector}}/execute", {**LIST, "dry_run": True}),
    ("POST", f"{CONNECTORS}/{{connector}}/execute", {**LIST, "output": {"file": "csv"}}),
    ("POST", f"{CONNECTORS}/{{connector}}/execute", {"entity": "tickets", "action": "context_store_search",
                                                     "params": {"query": {}}}),
    ("POST", f"{CONNECTORS}/{{connector}}/execute", {"entity": "attachments", "action": "download",
                                                     "params": {"attachment_id": "2"}}),
    ("POST", f"{CONNECTORS}/{{connector}}/batch", {"operations": [LIST]}),
    ("GET", f"{CONNECTORS}/{{connector}}/download/attachments?attachment_id=2", None),
    ("GET", f"{CONNECTORS}/{{connector}}/context-store", None),
    ("POST", f"{CONNECTORS}/{{connector}}/context-store/sync", {}),
    ("GET", f"{CONNECTORS}/{{connector}}/hook", None),
    ("POST", f"{CONNECTORS}/{{connector}}/hook", {}),
    ("DELETE", f"{CONNECTORS}/{{connector}}/hook", None),
    ("GET", "/api/v1/operations?query=tickets&connector_id={connector}", None),
    ("POST", "/api/v1/schedules", {"name": "s", "connector_id": "{connector}", "entity": "tickets", "action": "list",
                                   "cron": "@daily"}),
    ("POST", "/api/v1/connect/sessions", {"workspace_name": "acme", "connector_id": "{connector}"}),
]  # fmt: skip
#: what the owner made with it: 404 for everybody else
BELONGINGS = [
    ("GET", "/api/v1/jobs/{job}", None),
    ("GET", "/api/v1/jobs/{job}?wait=1", None),
    ("GET", "/api/v1/jobs/{job}/events", None),
    ("GET", "/api/v1/jobs/{job}/result", None),
    ("POST", "/api/v1/jobs/{job}/cancel", None),
    ("POST", "/api/v1/jobs/{job}/retry", None),
    ("GET", "/api/v1/schedules/{schedule}", None),
    ("PATCH", "/api/v1/schedules/{schedule}", {"enabled": False}),
    ("POST", "/api/v1/schedules/{schedule}/run", None),
    ("DELETE", "/api/v1/schedules/{schedule}", None),
    ("GET", "/api/v1/webhooks/{webhook}", None),
    ("PATCH", "/api/v1/webhooks/{webhook}", {"url": "https://thief.example/in"}),
    ("POST", "/api/v1/webhooks/{webhook}/test", None),
    ("POST", "/api/v1/webhooks/{webhook}/rotate", None),
    ("GET", "/api/v1/webhooks/{webhook}/deliveries", None),
    ("POST", "/api/v1/webhooks/{webhook}/replay", {"after": 0}),
    ("DELETE", "/api/v1/webhooks/{webhook}", None),
    ("GET", "/api/v1/connect/sessions/{link}", None),
    ("GET", f"{CONNECTORS}/oauth/flows/{{flow}}", None),
]


def filled(value, ids: dict[str, str]):
    """The path or body with the ids."""
    if isinstance(value, str):
        return value.format(**ids) if "{" in value else value
    return value and {name: filled(each, ids) if isinstance(each, str) else each for name, each in value.items()}


@pytest.mark.parametrize(("method", "path", "body"), [*USES, *BELONGINGS])
async def test_a_personal_connector_answers_its_owner_only(setting: Setting, method: str, path: str, body):
    async def sent(api: Api, ids: dict[str, str]) -> Answer:
        return await api.call(method, filled(path, ids), json=filled(body, ids))

    unknown = dict.fromkeys(setting.ids, str(uuid4()))
    for stranger in (setting.other_person, setting.program):
        refused, missing = await sent(stranger, setting.ids), await sent(stranger, unknown)
        assert (refused.status, refused.json()["code"]) == (404, "not_found")
        assert refused.json()["detail"] == missing.json()["detail"]
    refused = await sent(setting.administrator, setting.ids)
    expected = (403, "personal_connector") if (method, path, body) in USES else (404, "not_found")
    assert (refused.status, refused.json()["code"]) == expected

    if not path.endswith(("/hook", "/events")):  # there is no hook yet, and the stream has no end
        assert (await sent(setting.owner, setting.ids)).status not in (401, 403, 404)


@pytest.fixture
async def copied(front: FrontEnd, setting: Setting) -> UUID:
    """The organization, in which the copy of the personal connector has a ticket."""
    connector_id, kind = UUID(setting.own), front.services.catalog.kind("support-desk")
    async with front.services.database.system() as connection:
        organization_id = await connection.fetchval(
            "SELECT organization_id FROM connectors WHERE id = $1", connector_id
        )
    async with front.services.database.all_copies(organization_id) as connection:
        (entity,) = await register_all(connection, connector_id, organization_id, kind, ["tickets"])
        await upsert(connection, entity, [("1", b'{"id": 1, "subject": "mine"}')])
    return organization_id


async def test_postgresql_shows_the_copy_of_a_personal_connector_to_its_owner_only(
    front: FrontEnd, setting: Setting, copied: UUID
):
    """The pages of an export's job are read without the check of the owner that its acceptance has made."""
    call = OperationCall(
        connector_id=UUID(setting.own), entity="tickets", action="context_store_search", params={"query": {}}
    )

    async def found(person_id: str) -> int:
        acting = await front.services.identity.caller(UUID(person_id), copied)
        assert acting is not None
        return len((await front.services.operations.copy_search.page(acting, call)).data)

    assert await found(setting.owner_id) == 1
    assert await found(setting.other_person_id) == 0


async def test_the_owner_searches_the_copy_of_the_personal_connector(setting: Setting, copied: UUID):
    search = {"entity": "tickets", "action": "context_store_search", "params": {"query": {}}}

    found = (await setting.owner.post(f"{CONNECTORS}/{setting.own}/execute", search)).document()
    state = (await setting.owner.get(f"{CONNECTORS}/{setting.own}/context-store")).document()

    assert [record["subject"] for record in found["result"]["data"]] == ["mine"]
    assert state["entities"]["tickets"]["status"] == "pending"


async def test_lists_have_personal_connectors_for_the_owner_and_for_administrators(setting: Setting):
    async def seen(api: Api, query: str = "") -> dict[str, str | None]:
        return {each["id"]: each["owner"] for each in (await api.get(f"{CONNECTORS}{query}")).document()["data"]}

    both = {setting.own: setting.owner_id, setting.shared: None}
    assert await seen(setting.owner) == both
    assert await seen(setting.administrator) == both
    assert await seen(setting.administrator, "?usable=true") == {setting.shared: None}
    assert await seen(setting.other_person) == await seen(setting.program) == {setting.shared: None}


async def test_counts_of_workspaces_and_choices_have_no_connectors_of_others(setting: Setting):
    async def counted(api: Api) -> int:
        return (await api.get("/api/v1/workspaces")).document()["data"][0]["connectors"]

    async def chosen(api: Api) -> set[str]:
        found = (await api.get("/api/v1/operations?query=list tickets&kind=support-desk")).document()["data"]
        return {each["id"] for operation in found for each in operation["connectors"]}

    for api, own in (
        (setting.owner, {setting.own}),
        (setting.other_person, set()),
        (setting.program, set()),
        (setting.administrator, set()),
    ):
        assert await counted(api) == len(own) + 1
        assert await chosen(api) == {setting.shared, *own}
        details = (await api.get(f"{CONNECTORS}/Mail")).document(404)["detail"]
        assert (setting.own in details) == bool(own)


async def test_lists_of_jobs_schedules_webhooks_events_and_requests_are_the_owners(setting: Setting):
    await setting.owner.post(f"{CONNECTORS}/{setting.own}/execute", LIST)

    async def found(api: Api, path: str) -> list[dict]:
        return (await api.get(path)).document()["data"]

    paths = ("/api/v1/jobs", "/api/v1/schedules", "/api/v1/webhooks", "/api/v1/requests")
    for path in paths:
        await eventually(lambda path=path: found(setting.owner, path))
    own = (f"/api/v1/events?connector_id={setting.own}", *paths)
    for api in (setting.other_person, setting.program, setting.administrator):
        assert [await found(api, path) for path in own] == [[], [], [], [], []]
    assert [each["type"] for each in await found(setting.owner, own[0])] == ["connector.created"]
    assert setting.own not in str(await found(setting.administrator, "/api/v1/events"))


@pytest.mark.usefixtures("deliveries")
async def test_a_webhook_of_others_gets_no_event_of_a_personal_connector(setting: Setting, sql):
    subscription = {"url": "https://r.example/in", "types": ["connector.*", "job.*"]}
    for api in (setting.administrator, setting.other_person, setting.owner):
        await api.post("/api/v1/webhooks", subscription)
    own = (await connected(setting.owner, "me", name="Second")).document(201)
    shared = (await connected(setting.administrator, None, name="Second")).document(201)

    async def delivered() -> set[tuple[str, str]]:
        rows = await sql(DELIVERED, [UUID(own["id"]), UUID(shared["id"])])
        return {(str(row["connector_id"]), str(row["owner_id"])) for row in rows}

    async def to_all() -> bool:  # the own connector's event is before the shared one's
        return {(shared["id"], each) for each in everybody} <= await delivered()

    everybody = {"None", setting.other_person_id, setting.owner_id}
    await eventually(to_all)
    assert {owner for connector_id, owner in await delivered() if connector_id == own["id"]} == {setting.owner_id}


DELIVERED = """
    SELECT events.connector_id, webhooks.owner_id FROM webhook_deliveries
    JOIN webhooks ON webhooks.id = webhook_id
    JOIN events ON events.organization_id = webhooks.organization_id AND last_id = event_id
    WHERE events.connector_id = ANY ($1)
"""


async def test_an_administrator_disables_and_deletes_a_personal_connector_and_follows_the_job(setting: Setting):
    disabled = await setting.administrator.call("PATCH", f"{CONNECTORS}/{setting.own}", json={"status": "disabled"})
    refused = await setting.owner.post(f"{CONNECTORS}/{setting.own}/execute", LIST)
    deleted = await setting.administrator.call("DELETE", f"{CONNECTORS}/{setting.own}")
    job = await setting.administrator.get(f"/api/v1/jobs/{deleted.document(202)['job_id']}")

    assert (disabled.status, refused.status, job.status) == (200, 409, 200)
    assert (await setting.owner.get(f"{CONNECTORS}/{setting.own}")).status == 404


@pytest.mark.parametrize("body", [{"status": "disabled"}, None])
async def test_nobody_else_disables_or_deletes_it(setting: Setting, body: dict | None):
    for api in (setting.other_person, setting.program):
        answer = await api.call("PATCH" if body else "DELETE", f"{CONNECTORS}/{setting.own}", json=body)
        assert (answer.status, answer.json()["code"]) == (404, "not_found")
    assert (await setting.owner.get(f"{CONNECTORS}/{setting.own}")).document()["status"] == "active"


async def test_a_workspace_with_personal_connectors_of_others_is_deleted_by_administrators_only(setting: Setting):
    workspace = (await setting.owner.get("/api/v1/workspaces")).document()["data"][0]
    url = f"/api/v1/workspaces/{workspace['id']}"

    refused = [await api.call("DELETE", url) for api in (setting.other_person, setting.program)]

    assert [(each.status, each.json()["code"]) for each in refused] == [(403, "insufficient_scope")] * 2
    assert (await setting.owner.get(f"{CONNECTORS}/{setting.own}")).status == 200
    assert (await setting.administrator.call("DELETE", url)).status == 202


async def test_whose_connector_may_be_created_by_whom(front: FrontEnd, setting: Setting):
    me, theirs = "me", setting.other_person_id
    suspended, _ = await person_of(front, setting.administrator, ["read"])
    await setting.administrator.call("PATCH", f"/api/v1/people/{suspended}", json={"status": "suspended"})
    async with front.api() as stranger:
        foreign, _ = await person_of(front, stranger, ["read"])
    cases = [
        (setting.owner, me, 201),
        (setting.owner, setting.owner_id, 201),
        (setting.owner, theirs, 403),
        (setting.program, me, 422),
        (setting.program, theirs, 403),
        (setting.administrator, me, 422),
        (setting.administrator, theirs, 201),
        (setting.administrator, suspended, 422),
        (setting.administrator, foreign, 422),
        (setting.administrator, str(uuid4()), 422),
        (setting.administrator, "somebody", 422),
    ]

    for api, owner, status in cases:
        created = await connected(api, owner, name="Another")
        link = await api.post("/api/v1/connect/sessions", {"workspace_name": "acme", "owner": owner})
        assert (created.status, link.status) == (status, status), owner
        if status == 201:
            assert created.json()["owner"] == (setting.owner_id if owner == me else owner)


async def test_a_client_connects_for_the_people_of_its_own_namespace(front: FrontEnd, setting: Setting):
    clients = (await setting.administrator.get("/api/v1/clients")).document()["data"]
    program_id = next(each["id"] for each in clients if each["name"] == "program")
    user_id, user = await person_of(
        front, setting.administrator, ["read", "write"], client_id=program_id, subject="user-7"
    )

    link = await setting.program.post("/api/v1/connect/sessions", {"workspace_name": "acme", "owner": user_id})
    created = (await connected(setting.program, user_id)).document(201)

    assert created["owner"] == user_id
    assert (await setting.program.get(f"/api/v1/connect/sessions/{link.document(201)['id']}")).status == 200
    assert (await setting.program.get(f"{CONNECTORS}/{created['id']}")).status == 404
    assert (await user.get(f"{CONNECTORS}/{created['id']}")).status == 200


async def test_a_link_and_a_consent_for_a_person_make_the_persons_own_connector(front: FrontEnd, setting: Setting, sql):
    body = {"workspace_name": "acme", "owner": setting.owner_id, "connector_types": ["support-desk"]}
    link = (await setting.administrator.post("/api/v1/connect/sessions", body)).document(201)
    form = {"kind": "support-desk", "method": "api_token", **CREDENTIALS}

    page = await setting.administrator.call("POST", "/connect/" + link["url"].rpartition("/")[2], data=form)
    state = (await setting.administrator.get(f"/api/v1/connect/sessions/{link['id']}")).document()
    flow = await sql("SELECT owner_id FROM oauth_flows WHERE id = $1", UUID(setting.ids["flow"]))

    assert (page.status, state["status"]) == (200, "completed")
    assert (await setting.owner.get(f"{CONNECTORS}/{state['connector_id']}")).document()["owner"] == setting.owner_id
    assert (await setting.other_person.get(f"{CONNECTORS}/{state['connector_id']}")).status == 404
    assert str(flow[0]["owner_id"]) == setting.owner_id


async def test_names_are_taken_by_each_owner_alone(setting: Setting):
    for api, owner in ((setting.owner, "me"), (setting.administrator, None)):
        taken = await connected(api, owner, if_exists="fail")
        assert taken.document(409)["connector_id"] == (setting.own if owner else setting.shared)
    assert (await connected(setting.other_person, "me", if_exists="fail")).status == 201
    updated = await connected(setting.owner, "me", if_exists="update")
    assert updated.status in (200, 422)
    assert setting.shared not in str(updated.json())


async def tool(api: Api, name: str, arguments: dict) -> dict:
    """The structured result of a tool of the MCP endpoint."""
    params = {"name": name, "arguments": arguments, "_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}}
    document = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await api.post("/mcp", document, headers=headers_of("tools/call", params))
    return answer.document()["result"]


async def test_an_agent_uses_the_persons_own_connector_first_and_never_anothers(setting: Setting, front: FrontEnd):
    call = {"operation": "support-desk.tickets.list", "params": {"per_page": 1}}

    for api in (setting.owner, setting.other_person, setting.program, setting.administrator):
        assert (await tool(api, "read", call)).get("isError") is not True

    def of(connector_id: str):
        async def rows() -> list[dict]:
            return (await setting.administrator.get(f"/api/v1/audit?connector_id={connector_id}")).document()["data"]

        return rows

    async def callers(connector_id: str) -> list[str]:
        return [each["actor"]["id"] for each in await of(connector_id)() if each["what"] == "tickets.list"]

    await eventually(lambda: _has(callers, setting.shared, 3))
    assert setting.owner_id not in await callers(setting.shared)
    assert set(await callers(setting.own)) == {setting.owner_id}
    named = await tool(setting.administrator, "read", {**call, "connector": setting.own})
    assert named["isError"] is True


async def _has(callers, connector_id: str, count: int) -> bool:
    return len(await callers(connector_id)) == count


async def test_an_agent_connects_an_application_for_the_person(setting: Setting, sql):
    await tool(setting.owner, "connect", {"kind": "team-chat"})
    await tool(setting.program, "connect", {"kind": "team-chat"})

    rows = await sql(
        "SELECT owner_id FROM connect_sessions WHERE kinds = '{team-chat}' ORDER BY created_at DESC LIMIT 2"
    )
    assert [row["owner_id"] and str(row["owner_id"]) for row in rows] == [None, setting.owner_id]


async def test_the_same_person_by_an_agents_host_uses_the_own_connector(front: FrontEnd, setting: Setting):
    client = await front.services.identity.enabled_client(UUID(setting.owner_id))
    assert client is not None
    grant = await front.granted(client.caller(None), NewGrant(("read",)))
    host = Api(setting.owner.session, {"Authorization": f"Bearer {grant.access_token}"})
    call = {"operation": "support-desk.tickets.list", "params": {"per_page": 1}, "connector": setting.own}

    assert (await tool(host, "read", call)).get("isError") is not True


async def test_the_owners_connectors_and_links_end_with_the_person(setting: Setting):
    body = {"workspace_name": "acme", "owner": setting.owner_id}
    link = (await setting.administrator.post("/api/v1/connect/sessions", body)).document(201)
    await setting.administrator.call("DELETE", f"/api/v1/people/{setting.owner_id}")

    found = (await setting.administrator.get(CONNECTORS)).document()["data"]
    state = (await setting.administrator.get(f"/api/v1/connect/sessions/{link['id']}")).document()
    assert [each["id"] for each in found] == [setting.shared]
    assert state["status"] == "expired"


async def test_nobody_connects_for_a_person_who_is_suspended_meanwhile(front: FrontEnd):
    organization_id, database = await front.organization(), front.services.database
    async with front.api(organization_id) as administrator:
        owner_id, owner = await person_of(front, administrator, ["read", "write"])
        (await connected(administrator, None)).document(201)
        async with database.tenant(organization_id) as connection, connection.transaction():
            await connection.execute("SELECT FROM workspaces WHERE organization_id = $1 FOR UPDATE", organization_id)
            connecting = asyncio.create_task(connected(owner, "me"))
            await eventually(lambda: waits_for_lock(database))
            await administrator.call("PATCH", f"/api/v1/people/{owner_id}", json={"status": "suspended"})
        refused = await connecting

        listed = (await administrator.get(CONNECTORS)).document()["data"]
    assert refused.status == 404
    assert [each for each in listed if each["owner"]] == []
