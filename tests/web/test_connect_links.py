"""Connect links: a program creates a link, and a person uses it once, on pages that need no scripts."""

import asyncio
import re
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.tokens import hashed
from gateway.client import Gateway
from gateway.connectors.links.store import ConnectSessionStore
from tests.harness.caller import CREDENTIALS, Answer, Api
from tests.harness.databases import waits_for_lock
from tests.harness.in_process import FrontEnd
from tests.harness.waiting import eventually
from tests.web.test_routes import organization_of

SESSIONS = "/api/v1/connect/sessions"
FLOW = """
    SELECT flows.status, flows.error FROM oauth_flows AS flows
    JOIN connect_sessions ON flow_id = flows.id WHERE connect_sessions.id = $1
"""
BEGIN_FLOW = """
    INSERT INTO oauth_flows (id, organization_id, client_id, workspace_id, kind, redirect_url, environment, state_hash,
                             app_client_id, key_id, wrapped_key, sealed, reauthorizes, expires_at)
    SELECT $1, sessions.organization_id, client_id, workspaces.id, 'support-desk', '/connect/return', '{}',
           uuid_send($1), 'app', 'k', 'w', 's', reauthorizes, now() + interval '1 minute'
    FROM connect_sessions AS sessions
    JOIN workspaces ON workspaces.name = workspace_name AND workspaces.organization_id = sessions.organization_id
    WHERE sessions.id = $2
    RETURNING id
"""
FORM = {"kind": "support-desk", "method": "api_token", **CREDENTIALS}


async def made(api: Api, **members: object) -> tuple[str, str]:
    """Id and path of a new link for a support desk."""
    body = {"workspace_name": f"w-{uuid4().hex[:8]}", "connector_types": ["Support-Desk"], **members}
    answer = await api.post(SESSIONS, body)
    assert answer.status == 201, answer.body
    document = answer.json()
    return document["id"], "/connect/" + document["url"].rpartition("/")[2]


async def sent(api: Api, path: str, **fields: str) -> Answer:
    """The form as a browser sends it: without a token."""
    async with api.session.post(path, data=fields) as response:
        return Answer(response.status, response.headers, await response.read())


async def opened(api: Api, path: str) -> Answer:
    async with api.session.get(path, allow_redirects=False) as response:
        return Answer(response.status, response.headers, await response.read())


async def test_a_connector_without_a_name_is_called_after_its_application(api: Api):
    members = {"workspace_name": f"w-{uuid4().hex[:8]}"}
    created = await api.post(
        "/api/v1/integrations/connectors",
        {**members, "connector_type": "crm-records", "credentials": {"private_app_token": "t"}},
    )
    session_id, path = await made(api, **members)
    await sent(api, path, **FORM)
    linked = (await api.get(f"{SESSIONS}/{session_id}")).json()["connector_id"]

    names = [
        (await api.get(f"/api/v1/integrations/connectors/{each}")).json()["name"]
        for each in (created.json()["id"], linked)
    ]

    assert names == ["HubSpot", "Zendesk"]


async def test_a_person_connects_with_a_key_and_the_program_reads_the_outcome(api: Api):
    session_id, path = await made(api)
    before = (await api.get(f"{SESSIONS}/{session_id}")).json()

    page, done = await opened(api, path), await sent(api, path, **FORM)

    after = (await api.get(f"{SESSIONS}/{session_id}")).json()
    assert before["status"] == "pending"
    assert page.status == 200
    assert b"Continue to Zendesk" in page.body or b'name="api_token"' in page.body
    assert done.status == 200
    assert after["status"] == "completed"
    connector = (await api.get(f"/api/v1/integrations/connectors/{after['connector_id']}")).json()
    assert (connector["kind"], connector["status"]) == ("support-desk", "active")


async def test_a_link_works_once(api: Api):
    _, path = await made(api)
    await sent(api, path, **FORM)

    again, looked = await sent(api, path, **FORM), await opened(api, path)

    assert (again.status, looked.status) == (410, 410)
    assert b"valid once" in again.body


async def test_errors_are_shown_at_their_fields_and_secrets_are_not_shown_again(api: Api):
    session_id, path = await made(api)

    refused = await sent(api, path, **{**FORM, "subdomain": "not a host!", "api_token": "CANARY-SECRET"})

    assert refused.status == 422
    assert re.search(rb'name="subdomain"[^>]*aria-invalid="true"', refused.body)
    assert b'value="not a host!"' in refused.body
    assert b"CANARY-SECRET" not in refused.body
    assert (await api.get(f"{SESSIONS}/{session_id}")).json()["status"] == "pending"


async def test_a_link_for_several_kinds_lets_the_person_choose(api: Api):
    _, path = await made(api, connector_types=["support-desk", "team-chat"])

    choices = await opened(api, path)
    form = await opened(api, f"{path}?kind=team-chat")

    assert f'href="{path}?kind=team-chat"'.encode() in choices.body
    assert b"Choose another application" in form.body


async def test_a_link_for_one_kind_connects_no_other(api: Api):
    _, path = await made(api)

    refused = await sent(api, path, kind="incident-management", method="api_key", api_key="k")

    assert refused.status == 404
    assert refused.headers["Content-Type"].startswith("text/html")


async def test_a_connector_is_renewed_in_place(api: Api):
    connector = await api.connector()
    members = {"workspace_name": connector.record["workspace_name"], "connector_id": connector.record["id"]}
    session_id, path = await made(api, **members)

    done = await sent(api, path, **{**FORM, "api_token": "another"})

    assert done.status == 200
    assert (await api.get(f"{SESSIONS}/{session_id}")).json()["connector_id"] == connector.record["id"]


async def test_of_concurrent_renewals_one_succeeds_and_its_key_is_stored(api: Api, front: FrontEnd):
    connector = await api.connector()
    members = {"workspace_name": connector.record["workspace_name"], "connector_id": connector.record["id"]}
    _, path = await made(api, **members)
    keys = [f"key-{number}" for number in range(10)]

    answers = await asyncio.gather(*(sent(api, path, **{**FORM, "api_token": key}) for key in keys))

    connected = [key for key, answer in zip(keys, answers, strict=True) if answer.status == 200]
    organization_id = await organization_of(front, api)
    secret = await front.services.connectors.store.secret(organization_id, UUID(connector.record["id"]))
    assert connected == [secret.values["api_token"]]


async def test_a_connector_stays_disabled_that_is_disabled_while_the_application_checks_its_new_key(
    api: Api, front: FrontEnd
):
    connector, database = await api.connector(), front.services.database
    members = {"workspace_name": connector.record["workspace_name"], "connector_id": connector.record["id"]}
    session_id, path = await made(api, **members)
    address = f"/api/v1/integrations/connectors/{connector.record['id']}"
    async with database.system() as connection, connection.transaction():
        await connection.execute("SELECT FROM connect_sessions WHERE id = $1 FOR UPDATE", UUID(session_id))
        renewing = asyncio.create_task(sent(api, path, **FORM))
        await eventually(lambda: waits_for_lock(database))
        disabled = await api.call("PATCH", address, json={"status": "disabled"})
    renewed = await renewing

    assert (disabled.status, renewed.status) == (200, 200)
    assert (await api.get(address)).json()["status"] == "disabled"


async def test_a_link_accepts_either_a_key_or_a_consent(api: Api, front: FrontEnd):
    connector = await api.connector()
    members = {"workspace_name": connector.record["workspace_name"], "connector_id": connector.record["id"]}
    session_id, path = await made(api, **members)
    await consent_begun(front, UUID(session_id))

    done = await sent(api, path, **{**FORM, "api_token": "by key"})

    async with front.services.database.system() as connection:
        flow = await connection.fetchrow(FLOW, UUID(session_id))
    assert done.status == 200
    assert (flow["status"], flow["error"]) == ("failed", "superseded")


async def consent_begun(front: FrontEnd, session_id: UUID) -> None:
    """A consent in progress of the link, which a browser can finish."""
    async with front.services.database.system() as connection:
        flow_id = await connection.fetchval(BEGIN_FLOW, uuid4(), session_id)
        await connection.execute("UPDATE connect_sessions SET flow_id = $2 WHERE id = $1", session_id, flow_id)


async def test_of_two_consents_of_a_link_at_the_same_moment_the_later_one_replaces_the_earlier_one(
    api: Api, front: FrontEnd
):
    """It learns of the earlier one, which it ends: only the last consent of a link can create a connector."""
    connector = await api.connector()
    session_id, path = await made(api, workspace_name=connector.record["workspace_name"])
    database = front.services.database
    store, earlier, later = ConnectSessionStore(database), uuid4(), uuid4()
    session = await store.by_token(hashed(path.rpartition("/")[2]))
    assert session is not None
    async with database.system() as connection:
        for flow_id in (earlier, later):
            await connection.execute(BEGIN_FLOW, flow_id, UUID(session_id))
    async with database.system() as connection, connection.transaction():
        await connection.execute("UPDATE connect_sessions SET flow_id = $2 WHERE id = $1", session.id, earlier)
        replacing = asyncio.create_task(store.set_flow(session, later))
        await eventually(lambda: waits_for_lock(database))

    assert await replacing == earlier


async def test_an_unknown_link_shows_an_error_page(api: Api):
    answer = await opened(api, "/connect/" + "x" * 43)

    assert answer.status == 404
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_a_link_belongs_to_its_organization(api: Api, front: FrontEnd):
    session_id, _ = await made(api)

    async with front.api() as other:
        answer = await other.get(f"{SESSIONS}/{session_id}")

    assert answer.status == 404


async def test_input_is_escaped(api: Api):
    _, path = await made(api, workspace_name="<script>alert(1)</script>", connector_types=["support-desk", "team-chat"])

    page = await opened(api, path)

    assert b"<script>alert" not in page.body
    assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in page.body


async def test_pages_have_no_inline_scripts_and_only_the_redirect_urls_origin_may_frame_them(api: Api):
    _, path = await made(api)

    page = await opened(api, path)

    policy = page.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["Cache-Control"] == "no-store"
    assert not re.search(rb"<script(?![^>]*src=)|\son\w+=|\sstyle=", page.body)


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"redirect_url": "https://elsewhere.example/"}, "redirect_url"),
        ({"expires_in": 1801}, "expires_in"),
        ({"expires_in": 0}, "expires_in"),
        ({"connector_types": []}, "connector_types"),
    ],
)
async def test_an_invalid_link_is_refused_with_the_field(api: Api, members: dict[str, object], field: str):
    answer = await api.post(SESSIONS, {"workspace_name": "w", **members})

    assert answer.status == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == [field]


async def test_the_audit_log_names_the_client_that_created_the_link(api: Api):
    _, path = await made(api)
    await sent(api, path, **FORM)

    async def told() -> list[str]:
        return [entry["what"] for entry in (await api.get("/api/v1/audit")).json()["data"]]

    while "connector.create" not in (found := await told()):
        pass
    assert "connect_session.create" in found


async def test_static_files_with_their_hash_in_the_url_are_immutable(api: Api):
    _, path = await made(api)
    address = re.search(rb'href="(/static/pages\.css\?v=\w+)"', (await opened(api, path)).body)
    assert address is not None

    file, script = await opened(api, address[1].decode()), await opened(api, "/connect.js")

    assert "immutable" in file.headers["Cache-Control"]
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert len(script.body) <= 3 << 10


async def test_the_python_client_creates_a_link_and_reads_its_state(front: FrontEnd):
    client_id, secret = await front.client()
    async with Gateway(front.base_url, client_id, secret, "acme") as gateway:
        link = await gateway.connectors.create_link(["support-desk"], expires_in=60)
        before = await gateway.connectors.link_state(link.id)
        async with front.api() as browser:
            await sent(browser, f"/connect/{link.url.rpartition('/')[2]}", **FORM)
        after = await gateway.connectors.link_state(link.id)
        [connector] = await gateway.connectors.list("support-desk")

    assert (before.status, before.connector_id) == ("pending", None)
    assert (after.status, after.connector_id) == ("completed", connector.id)
