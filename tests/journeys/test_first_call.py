"""From nothing to an answer: a token, a connector, a call."""

import pytest
from aiohttp import encode_basic_auth


async def test_a_client_gets_a_token_for_its_secret(running, api):
    secret = {"client_id": running.client_id, "client_secret": running.client_secret}

    answer = await api.post("/api/v1/account/applications/token", secret)

    assert answer.status == 200
    assert answer.json()["token_type"] == "bearer"
    assert answer.json()["expires_in"] == 900
    assert answer.json()["organization_id"] == running.organization_id
    assert answer.headers["Cache-Control"] == "no-store"


async def test_the_client_credentials_grant_takes_the_secret_by_basic(running, api):
    async with api.session.post(
        "/oauth/token",
        data={"grant_type": "client_credentials"},
        headers={"Authorization": encode_basic_auth(running.client_id, running.client_secret)},
    ) as response:
        document = await response.json()

    assert response.status == 200
    assert document["scope"] == "admin read write"


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({}, 400, "invalid_request"),
        ({"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}, 401, "invalid_client"),
    ],
)
async def test_the_grant_refuses_in_the_shape_of_its_rfc(api, form, status, error):
    async with api.session.post("/oauth/token", data=form) as response:
        document = await response.json()

    assert (response.status, document["error"]) == (status, error)


async def test_unknown_client_and_wrong_secret_answer_alike(running, api):
    path = "/api/v1/account/applications/token"

    unknown = await api.post(path, {"client_id": running.organization_id, "client_secret": "x"})
    wrong = await api.post(path, {"client_id": running.client_id, "client_secret": "x"})

    assert unknown.status == wrong.status == 401
    assert unknown.headers["WWW-Authenticate"] == "Bearer"
    assert {**unknown.json(), "request_id": ""} == {**wrong.json(), "request_id": ""}


async def test_a_connector_is_created_listed_changed_checked_and_deleted(api):
    connector = await api.connector(name="desk")

    listed = await api.get(f"/api/v1/integrations/connectors?workspace_name={connector.record['workspace_name']}")
    changed = await api.call("PATCH", connector.path, json={"name": "renamed"})
    checked = await api.post(f"{connector.path}/check")
    inspected = await api.get(f"{connector.path}/inspect")
    deleted = await api.call("DELETE", connector.path)
    gone = await api.get(connector.path)
    job = await api.get(f"/api/v1/jobs/{deleted.json()['job_id']}/result?wait=20")

    assert [each["id"] for each in listed.json()["data"]] == [connector.record["id"]]
    assert changed.json()["name"] == "renamed"
    assert checked.json() == {"status": "healthy"}
    assert inspected.json()["docs_skill_id"] == "support-desk"
    assert deleted.status == 202
    assert gone.status == 404
    assert job.status == 200


async def test_credentials_never_come_back(api):
    connector = await api.connector(credentials={"email": "a@b.c", "api_token": "canary-5d1f", "subdomain": "acme"})

    answers = [await api.get(connector.path), await api.get(f"{connector.path}/inspect")]

    assert all(b"canary-5d1f" not in answer.body for answer in answers)


async def test_a_connector_whose_method_ends_says_so_and_so_does_every_answer(api):
    connector = await api.connector(credentials={"email": "a@b.c", "api_token": "token", "subdomain": "acme"})

    shown = await api.get(connector.path)
    answer = await connector.send("tickets", "list", {"per_page": 1})

    assert shown.json()["status_reason"] == "API token ends on 2027-04-30; use OAuth (oauth) instead"
    for said in (shown, answer):
        assert said.headers["Deprecation"] == "@1793059200"
        assert said.headers["Sunset"] == "Fri, 30 Apr 2027 00:00:00 GMT"


async def test_a_refusal_of_credentials_whose_method_ends_says_so(api):
    credentials = {"email": "a@b.c", "api_token": "bad-token", "subdomain": "acme"}
    connector = await api.connector(credentials=credentials, validate=False)

    checked = await api.post(f"{connector.path}/check")
    called = await (await api.connector(credentials=credentials, validate=False)).send("tickets", "list", {})

    assert "ends on 2027-04-30; use OAuth (oauth) instead" in checked.json()["message"]
    assert (called.status, called.json()["code"]) == (424, "reauthorization_required")
    assert "ends on 2027-04-30; use OAuth (oauth) instead" in called.json()["detail"]


async def test_a_server_connects_by_client_credentials(api):
    body = {"client_id": "desk", "client_secret": "secret", "subdomain": "acme"}
    connector = await api.connector(credentials=body)

    answer = await connector.send("tickets", "list", {"per_page": 1})

    assert (connector.record["auth_method"], connector.record["status_reason"]) == ("client_credentials", None)
    assert answer.status == 200
    assert "Deprecation" not in answer.headers


async def test_refused_credentials_are_not_stored(api):
    body = {
        "workspace_name": "refused",
        "connector_type": "support-desk",
        "name": "x",
        "credentials": {"email": "a@b.c", "api_token": "bad-token", "subdomain": "acme"},
    }

    answer = await api.post("/api/v1/integrations/connectors", body)

    assert (answer.status, answer.json()["code"]) == (422, "invalid_credentials")
    assert answer.json()["errors"][0]["field"] == "api_token"
    assert (await api.get("/api/v1/integrations/connectors?workspace_name=refused")).json()["data"] == []


async def test_every_fault_of_the_credentials_is_named(api):
    body = {
        "workspace_name": "w",
        "connector_type": "Support Desk",
        "name": "x",
        "credentials": {"emial": "a@b.c", "api_token": "t"},
        "environment": {"subdomain": "a/b"},
    }

    answer = await api.post("/api/v1/integrations/connectors", body)

    assert answer.status == 422
    assert {fault["field"] for fault in answer.json()["errors"]} == {"email", "emial", "subdomain"}


async def test_a_disabled_connector_says_what_to_do(api):
    connector = await api.connector()
    await api.call("PATCH", connector.path, json={"status": "disabled"})

    answer = await connector.send("tickets", "list")

    assert (answer.status, answer.json()["code"]) == (409, "connector_not_ready")
    assert answer.json()["connector_status"] == "disabled"
    assert answer.json()["next_step"] == 'enable it: PATCH {"status": "active"}'


async def test_workspaces_come_into_being_with_their_first_connector(api):
    connector = await api.connector(workspace_name="fresh-workspace")

    listed = await api.get("/api/v1/workspaces?name_contains=RESH-work")

    assert connector.record["workspace_name"] == "fresh-workspace"
    assert [(each["name"], each["connectors"]) for each in listed.json()["data"]] == [("fresh-workspace", 1)]


async def test_readiness_names_each_part(api):
    answer = await api.get("/readyz")

    assert answer.json()["checks"] == {"postgres": True, "redis": True, "worker": True, "draining": False}
