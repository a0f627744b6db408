"""Connectors created from a caller's own OAuth credentials: tokens are requested, renewed and refused correctly."""

import aiohttp
import pytest

from tests.harness.signing_keys import ACCOUNT, key_file, public_pem

OWN_APP = {"client_id": "own-app", "client_secret": "own-secret"}
KINDS = {"Work-Management": "workspaces", "Crm-Records": "contacts", "Crm-Query": "sobjects"}


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_bare_refresh_token_becomes_a_connector_that_works(api, kind, validate):
    credentials = {"refresh_token": "brought-along", **OWN_APP}

    connector = await api.connector(kind, credentials, validate=validate)

    assert (await connector.execute(KINDS[kind], "list"))["status"] == "success"


async def test_a_refresh_token_that_is_refused_makes_no_connector(api):
    body = {
        "workspace_name": "w",
        "connector_type": "Work-Management",
        "credentials": {"refresh_token": "bad-canary", **OWN_APP},
    }

    answer = await api.post("/api/v1/integrations/connectors", body)

    assert (answer.status, answer.json()["code"]) == (422, "invalid_credentials")
    assert b"canary" not in answer.body


async def test_a_dead_grant_says_that_it_needs_a_new_consent(api):
    credentials = {"refresh_token": "bad-canary", **OWN_APP}
    connector = await api.connector("Work-Management", credentials, validate=False)

    first = await connector.send("workspaces", "list")
    record = (await api.get(connector.path)).json()

    assert (first.status, first.json()["code"]) == (424, "reauthorization_required")
    assert record["status"] == "needs_reauth"
    assert "start an OAuth flow with this connector_id" in record["status_reason"]
    assert b"canary" not in first.body


async def test_patched_credentials_bring_a_connector_back(api):
    connector = await api.connector("Work-Management", {"refresh_token": "bad", **OWN_APP}, validate=False)
    await connector.send("workspaces", "list")

    patched = await api.call("PATCH", connector.path, json={"credentials": {"refresh_token": "good", **OWN_APP}})

    assert (patched.status, patched.json()["status"]) == (200, "active")
    assert (await connector.execute("workspaces", "list"))["status"] == "success"


async def test_the_key_of_a_service_account_is_used_until_it_is_revoked_and_then_replaced(
    api, running, upstream_requests
):
    kind, call = "google-analytics-data-api", ("metadata", "get", {"property_id": "0"})
    async with aiohttp.ClientSession(running.sandbox_url) as sandbox:

        async def register(number):
            key = {"public_key": public_pem(number)}
            await (await sandbox.put(f"/_sandbox/keys/{kind}/{ACCOUNT}", json=key)).release()

        await register(1)
        connector = await api.connector("Google-Analytics-Data-Api", {"credentials_json": key_file(1)})
        used = await connector.send(*call)
        await register(2)
        sent = [each for each in await upstream_requests() if each["kind"] == kind and each["method"] == "GET"]
        token = {"token": sent[-1]["headers"]["Authorization"].removeprefix("Bearer ")}
        await (await sandbox.post(f"/_kinds/{kind}/revoke", data=token)).release()
        revoked = await connector.send(*call)
        record = (await api.get(connector.path)).json()
        wrong = await api.call("PATCH", connector.path, json={"credentials": {"credentials_json": key_file(1)}})
        new = await api.call("PATCH", connector.path, json={"credentials": {"credentials_json": key_file(2)}})
        again = await connector.send(*call)

    assert used.status == 200, used.body
    assert (revoked.status, revoked.json()["code"]) == (424, "reauthorization_required")
    assert (record["auth_method"], record["status"]) == ("service_account", "needs_reauth")
    assert "Invalid JWT Signature" in record["status_reason"]
    assert (wrong.status, wrong.json()["errors"][0]["field"]) == (422, "credentials_json")
    assert (new.status, new.json()["status"]) == (200, "active")
    assert again.status == 200
