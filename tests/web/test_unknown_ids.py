"""A name in place of an id is a 404 with the nearest names that the caller may list."""

import pytest

from tests.harness.console import signed_in

CONNECTORS = "/api/v1/integrations/connectors"


async def detail_of(api, method: str, path: str, body=None) -> str:
    """The detail of a 404."""
    answer = await api.call(method, path, json=body)
    problem = answer.document(404)
    assert (problem["code"], problem["message"]) == ("not_found", problem["detail"])
    return problem["detail"]


@pytest.mark.parametrize("name", ["suport-desk", "Zendesc", "Help dsk"])
async def test_a_misspelt_kind_application_or_name_finds_the_connector(api, name):
    desk = await api.connector(name="Help desk")

    said = await detail_of(api, "GET", f"{CONNECTORS}/{name}")

    assert said == (
        f"there is no connector {name!r}; ids are UUIDs; did you mean Help desk ({desk.record['id']})? "
        f"GET {CONNECTORS} lists connectors with their ids"
    )


async def test_the_error_of_a_call_with_a_connectors_name_has_its_id(api):
    desk = await api.connector(name="Help desk")
    body = {"entity": "tickets", "action": "list"}

    said = await detail_of(api, "POST", f"{CONNECTORS}/Help desk/execute", body)

    assert f"did you mean Help desk ({desk.record['id']})?" in said


@pytest.mark.parametrize(
    ("method", "path", "word", "listed"),
    [
        ("GET", f"{CONNECTORS}/qqqqqq", "connector", CONNECTORS),
        ("GET", "/api/v1/jobs/nope", "job", "/api/v1/jobs"),
        ("POST", "/api/v1/jobs/nope/cancel", "job", "/api/v1/jobs"),
        ("DELETE", "/api/v1/workspaces/qqqqqq", "workspace", "/api/v1/workspaces"),
        ("GET", "/api/v1/webhooks/x", "webhook", "/api/v1/webhooks"),
        ("GET", "/api/v1/schedules/x", "schedule", "/api/v1/schedules"),
        ("DELETE", "/api/v1/grants/x", "grant", "/api/v1/grants"),
    ],
)
async def test_without_a_near_name_the_error_says_how_to_list(api, method, path, word, listed):
    await api.connector()

    said = await detail_of(api, method, path)

    assert said.endswith(f"ids are UUIDs; GET {listed} lists {word}s with their ids")
    assert "did you mean" not in said


async def test_names_of_workspaces_schedules_webhooks_clients_and_jobs_are_suggested_too(api):
    desk = await api.connector(workspace_name="acme")
    definition = {"name": "Mornings", "connector_id": desk.record["id"], "entity": "tickets", "action": "list"}
    schedule = (await api.post("/api/v1/schedules", {**definition, "cron": "@daily"})).document(201)
    receiver = {"url": "https://receiver.example/in", "types": ["job.*"], "description": "Ticket feed"}
    webhook = (await api.post("/api/v1/webhooks", receiver)).document(201)
    client = (await api.get("/api/v1/clients")).document()["data"][0]
    job = await desk.submit("tickets", "list")
    workspace = (await api.get("/api/v1/workspaces")).document()["data"][0]

    assert f"acme ({workspace['id']})?" in await detail_of(api, "DELETE", "/api/v1/workspaces/amce")
    assert f"Mornings ({schedule['id']})?" in await detail_of(api, "GET", "/api/v1/schedules/morning")
    assert f"Ticket feed ({webhook['id']})?" in await detail_of(api, "GET", "/api/v1/webhooks/receiver.example")
    assert f"({client['id']})?" in await detail_of(api, "PATCH", f"/api/v1/clients/{client['name']}", {})
    assert f"({job['id']})?" in await detail_of(api, "GET", f"/api/v1/jobs/{job['id'][:8].upper()}")


async def test_names_of_another_organization_are_not_suggested(front, api):
    await api.connector(name="Help desk")
    async with front.api() as stranger:
        said = await detail_of(stranger, "GET", f"{CONNECTORS}/Help desk")

    assert said == (
        f"there is no connector 'Help desk'; ids are UUIDs; GET {CONNECTORS} lists connectors with their ids"
    )


async def test_a_client_that_may_not_list_gets_no_names(front):
    organization_id = await front.organization()
    async with front.api(organization_id) as whole, front.api(organization_id, ["write"]) as writer:
        await whole.connector(name="Help desk")
        said = await detail_of(writer, "POST", f"{CONNECTORS}/Help desk/execute", {"entity": "a", "action": "list"})

    assert said == "there is no connector 'Help desk'; ids are UUIDs"


async def test_a_page_of_the_console_suggests_the_nearest_without_api_paths(front):
    organization_id = await front.organization()
    async with (
        front.api(organization_id) as api,
        signed_in(front, *await front.client(organization_id)) as browser,
    ):
        desk = await api.connector(name="Help desk")
        page = await browser.get("/console/connectors/help-desk")

    text = page.body.decode()
    assert page.status == 404
    assert f"did you mean Help desk ({desk.record['id']})?" in text
    assert "GET /" not in text
