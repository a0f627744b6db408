"""Two organizations: what belongs to one does not exist for the other."""

from uuid import UUID, uuid4

import pytest

from gateway.access.oauth_server.store import AuthorizationStore
from gateway.contract.oauth import AuthorizationRequest, NewGrant
from gateway.contract.scim import GROUP_SCHEMA, USER_SCHEMA
from gateway.foundation.db.pool import Database
from gateway.web.routes import ROUTES
from tests.harness.caller import Api
from tests.harness.clients import caller_of, new_client_in
from tests.harness.waiting import eventually

ID_BEARING = [route for route in ROUTES if "_id}" in route.path and not route.is_page and not route.is_open]
#: seconds: the promise is one, the rest is room for a busy machine; a token is trusted for five without a notification
LOCKED_OUT = 3.0
ASK = '@id("ask") @approval("A person looks first.") permit(principal, action, resource);'
BODIES = {
    "approve": {"digest": "sha-256=:x:"},
    "deny": {"digest": "sha-256=:x:"},
    "execute": {"entity": "tickets", "action": "list"},
    "batch": {"operations": [{"entity": "tickets", "action": "list"}]},
    "replay": {"after": 0},
    "PATCH": {"name": "stolen"},
    "{client_id}": {"redirect_urls": []},
    "{webhook_id}": {"description": "stolen"},
    # both for PUT and for PATCH
    "{user_id}": {
        "schemas": [USER_SCHEMA],
        "userName": "stolen",
        "Operations": [{"op": "replace", "value": {"active": False}}],
    },
    "{group_id}": {
        "schemas": [GROUP_SCHEMA],
        "displayName": "stolen",
        "Operations": [{"op": "remove", "path": "members"}],
    },
}


@pytest.fixture(scope="module")
async def governed(running):
    """One id of each sort that belongs to the whole of an organization, such as policies."""
    client = await new_client_in(running.database_url)
    async with Api.of(running.base_url, client.id, client.secret) as api:
        desk = await api.connector()
        await api.call("PUT", "/api/v1/policies/ask", json={"cedar": ASK, "mode": "enforce"})
        job = await desk.submit("tickets", "update", {"ticket_id": 1, "ticket": {"status": "open"}})
        issuer = await api.post("/api/v1/issuers", {"issuer": "https://login.example.com", "audience": "gateway"})
        session = await api.post("/api/v1/sessions", {"person": {"subject": "u"}, "expires_in": 600})
        token = await api.post("/api/v1/scim/tokens", {"name": "Okta"})
        group = await api.post("/scim/v2/Groups", {"schemas": [GROUP_SCHEMA], "displayName": "team"})
        return {
            "approval_id": (await api.job_once(job, lambda seen: seen.get("approval")))["approval"]["id"],
            "issuer_id": issuer.document(201)["id"],
            "person_session_id": session.document(201)["id"],
            "token_id": token.document(201)["id"],
            "group_id": group.document(201)["id"],
        }


@pytest.fixture
async def belongings(support_desk, running, governed):
    """One id of each sort, none of them the stranger's."""
    connector_id = support_desk.record["id"]
    job = await support_desk.submit("tickets", "list")
    workspaces = await support_desk.api.get(f"/api/v1/workspaces?name_contains={support_desk.record['workspace_name']}")
    link = await support_desk.api.post("/api/v1/connect/sessions", {"workspace_name": "w"})
    schedule = await support_desk.api.post(
        "/api/v1/schedules",
        {"name": "s", "connector_id": connector_id, "entity": "tickets", "action": "list", "cron": "0 6 * * *"},
    )
    webhook = await support_desk.api.post("/api/v1/webhooks", {"url": "https://hooks.example/", "types": ["job.*"]})
    person = await support_desk.api.post("/api/v1/people", {"email": f"{uuid4().hex}@example.com", "scopes": ["read"]})
    drive = await support_desk.api.connector("google-drive", {"access_token": "token", "refresh_token": "refresh"})
    headers = {"Upload-Complete": "?0", "Upload-Length": "9"}
    upload = await drive.api.call("POST", f"{drive.path}/upload/files_upload?filename=a.txt", headers=headers)
    return {
        "upload_id": upload.json()["id"],
        "schedule_id": schedule.json()["id"],
        "webhook_id": webhook.json()["id"],
        "session_id": link.json()["id"],
        "connector_id": connector_id,
        "job_id": job["id"],
        "workspace_id": workspaces.json()["data"][0]["id"],
        "flow_id": str(uuid4()),
        "client_id": running.client_id,
        "grant_id": str(await granted(running)),
        "entity": "attachments",
        "person_id": person.json()["id"],
        "user_id": person.json()["id"],
        **governed,
    }


async def granted(running) -> UUID:
    """What somebody of the first organization has let a host do."""
    async with Database.open(running.database_url, size=1) as database:
        store, organization_id = AuthorizationStore(database), UUID(running.organization_id)
        request = AuthorizationRequest(
            host_id="h",
            host_name="Host",
            redirect_uri="https://h.example/",
            scopes=("read",),
            challenge="c" * 43,
            resource="https://g.example/mcp",
        )
        await store.grant(
            request, caller_of(organization_id, running.client_id), NewGrant(("read",)), uuid4().bytes, 60
        )
        return UUID((await store.grants(organization_id, None, 1))[0].id)


@pytest.mark.parametrize("route", ID_BEARING, ids=lambda route: f"{route.method} {route.path}")
async def test_another_organizations_id_answers_like_one_that_is_not_there(stranger, belongings, route):
    nothing = {**belongings, **{name: str(uuid4()) for name in belongings if name.endswith("_id")}}
    body = BODIES.get(route.path.rsplit("/", 1)[-1]) or BODIES.get(route.method)
    options = {"params": {"filename": "a.txt"} if "/upload/" in route.path else {}, "json": body}
    if route.file_media == "application/partial-upload":
        headers = {"Content-Type": route.file_media, "Upload-Offset": "0", "Upload-Complete": "?1"}
        options = {"data": b"stolen", "headers": headers}

    foreign = await stranger.call(route.method, route.path.format_map(belongings), **options)
    absent = await stranger.call(route.method, route.path.format_map(nothing), **options)

    assert foreign.status == absent.status == 404
    assert route.method == "HEAD" or _without_id(foreign) == _without_id(absent)


def _without_id(answer):
    return {**answer.json(), "request_id": ""}


@pytest.mark.parametrize(
    "path",
    ["/api/v1/integrations/connectors", "/api/v1/jobs", "/api/v1/workspaces", "/api/v1/audit", "/api/v1/grants"],
)
async def test_lists_hold_only_ones_own(stranger, support_desk, path):
    answer = await stranger.get(path)

    assert answer.json()["data"] == []


async def test_a_client_of_several_organizations_names_one(running, api):
    first = await running.admin("organization", "create", f"o-{uuid4().hex[:8]}")
    second = await running.admin("organization", "create", f"o-{uuid4().hex[:8]}")
    client = await running.admin(
        *("client", "create", "both", "--organization", first["organization_id"]),
        *("--organization", second["organization_id"]),
    )
    token = await api.post(
        "/api/v1/account/applications/token",
        {"client_id": client["client_id"], "client_secret": client["client_secret"]},
    )
    bearer = {"Authorization": f"Bearer {token.json()['access_token']}"}

    unnamed = await api.get("/api/v1/jobs", headers=bearer)
    named = await api.get("/api/v1/jobs", headers={**bearer, "X-Organization-Id": first["organization_id"]})
    foreign = await api.get("/api/v1/jobs", headers={**bearer, "X-Organization-Id": running.organization_id})

    assert (unnamed.status, unnamed.json()["code"]) == (400, "organization_required")
    assert named.status == 200
    assert (foreign.status, foreign.json()["code"]) == (403, "organization_forbidden")


async def test_a_disabled_client_is_locked_out_within_a_second(running, api):
    organization = await running.admin("organization", "create", f"o-{uuid4().hex[:8]}")
    client = await running.admin("client", "create", "c", "--organization", organization["organization_id"])
    secret = {"client_id": client["client_id"], "client_secret": client["client_secret"]}
    token = (await api.post("/api/v1/account/applications/token", secret)).json()["access_token"]
    bearer = {"Authorization": f"Bearer {token}"}
    before = await api.get("/api/v1/jobs", headers=bearer)

    await running.admin("client", "disable", client["client_id"])
    await eventually(lambda: _is_refused(api, bearer), within=LOCKED_OUT)
    again = await api.post("/api/v1/account/applications/token", secret)

    assert (before.status, again.status) == (200, 401)


async def _is_refused(api, bearer) -> bool:
    return (await api.get("/api/v1/jobs", headers=bearer)).status == 401


async def test_a_client_without_the_write_scope_only_reads(running, api, support_desk):
    client = await running.admin(
        "client", "create", "reader", "--organization", running.organization_id, "--scope", "read"
    )
    token = await api.post(
        "/api/v1/account/applications/token",
        {"client_id": client["client_id"], "client_secret": client["client_secret"]},
    )
    bearer = {"Authorization": f"Bearer {token.json()['access_token']}"}

    read = await support_desk.send("tickets", "list", headers=bearer)
    written = await support_desk.send("tickets", "create", {"ticket": {"subject": "s"}}, headers=bearer)
    audit = await api.get("/api/v1/audit", headers=bearer)

    assert read.status == 200
    assert (written.status, written.json()["code"]) == (403, "insufficient_scope")
    assert audit.status == 403


async def test_a_secret_is_replaced_while_the_old_one_works(running, api):
    organization = await running.admin("organization", "create", f"o-{uuid4().hex[:8]}")
    client = await running.admin("client", "create", "c", "--organization", organization["organization_id"])
    rotated = await running.admin("client", "rotate", client["client_id"])
    secrets = [client["client_secret"], rotated["client_secret"]]

    during = [await _token_status(api, client, secret) for secret in secrets]
    finished = await running.admin("client", "rotate", client["client_id"], "--finish")
    after = [await _token_status(api, client, secret) for secret in secrets]

    assert (rotated["live_secrets"], finished["live_secrets"]) == (2, 1)
    assert during == [200, 200]
    assert after == [401, 200]


async def _token_status(api, client, secret):
    body = {"client_id": client["client_id"], "client_secret": secret}
    return (await api.post("/api/v1/account/applications/token", body)).status
