"""Known secrets are searched in answers, logs and files after requests: none may be in clear text."""

import base64
import os

import pytest

from tests.harness.caller import Api
from tests.harness.folders import short_path
from tests.harness.up import brought_up

CANARY = "canary-7b1e4f9a52"
#: as it would stand in a file, in a Basic header, in a URL
FORMS = (
    CANARY.encode(),
    base64.b64encode(CANARY.encode()).rstrip(b"="),
    base64.b64encode(b"a@b.c/token:" + CANARY.encode()).rstrip(b"="),
    CANARY.encode("utf-16-le"),
)


@pytest.fixture(scope="module")
async def aftermath():
    """The answers, logs and data folder of a gateway that was given secrets in every possible way."""
    with short_path() as folder:
        logs = folder / "logs"
        environment = {**os.environ, "GATEWAY_LOG_LEVEL": "debug"}
        async with (
            brought_up(folder, environment, "--sandbox", log=logs) as ready,
            Api.of(ready["base_url"], ready["client_id"], ready["client_secret"]) as api,
        ):
            answers = await _hand_over_secrets(api)
        yield answers, logs, folder / "up", ready["client_secret"]


async def _hand_over_secrets(api):
    basic = {"email": "a@b.c", "api_token": CANARY, "subdomain": "acme"}
    connector = await api.connector(credentials=basic)
    refused = {"workspace_name": "w", "connector_type": "support-desk", "name": "x"}
    answers = [
        await api.get(connector.path),
        await api.get(f"{connector.path}/inspect"),
        await api.post(f"{connector.path}/check"),
        await connector.send("tickets", "list", {"per_page": 1}),
        await connector.send("tickets", "get", {"ticket_id": 10**12}),
        await connector.send("tickets", "list", {"per_page": 1}, dry_run=True),
        await connector.send("tickets", "list", headers={"Prefer": "wait=20"}),
        await connector.send("ticket_bulk_updates", "create", {"ids": "1,2", "ticket": {"status": "open"}}),
        await api.post(
            "/api/v1/integrations/connectors", {**refused, "credentials": {**basic, "api_token": f"bad{CANARY}"}}
        ),
        await api.post("/api/v1/integrations/connectors", {**refused, "credentials": {"api_tokn": CANARY}}),
        await api.call("PATCH", connector.path, json={"credentials": basic}),
        await api.call(
            "PUT",
            "/api/v1/oauth/credentials",
            json={"connector_type": "team-chat", "configuration": {"client_id": "app", "client_secret": CANARY}},
        ),
        await api.get("/api/v1/oauth/credentials"),
        await api.post("/api/v1/account/applications/token", {"client_id": "x", "client_secret": CANARY}),
        await api.get("/api/v1/jobs", headers={"Authorization": f"Bearer {CANARY}"}),
        await api.get("/api/v1/audit"),
    ]
    oauth = {"refresh_token": CANARY, "client_id": "app", "client_secret": CANARY}
    chat = await api.connector("work-management", oauth)
    answers.append(await chat.send("workspaces", "list"))
    return answers


def test_no_answer_holds_a_secret(aftermath):
    answers, *_ = aftermath

    assert [answer.body for answer in answers if any(form in answer.body for form in FORMS)] == []


def test_no_log_line_holds_a_secret(aftermath):
    _, logs, _, client_secret = aftermath

    written = logs.read_bytes()
    assert written
    assert [form for form in FORMS if form in written] == []
    # shown once on standard output, for the person who started it
    assert written.count(client_secret.encode()) <= 2


def test_no_file_of_the_data_folder_holds_a_secret(aftermath):
    *_, data, _ = aftermath

    files = [path for path in data.rglob("*") if path.is_file()]
    holding = {str(path.relative_to(data)) for path in files if _holds_a_secret(path)}
    assert len(files) > 100
    assert holding == set()


def _holds_a_secret(path):
    content = path.read_bytes()
    return any(form in content for form in FORMS)


def test_the_files_that_must_hold_secrets_are_closed_to_others(aftermath):
    *_, data, client_secret = aftermath

    open_to_others = {path.name for path in data.iterdir() if path.is_file() and path.stat().st_mode & 0o077}
    holding = {path.name for path in data.iterdir() if path.is_file() and client_secret.encode() in path.read_bytes()}
    assert holding == {"first-client.json"}
    assert open_to_others.isdisjoint({"first-client.json", "encryption.keys"})
