"""Operations found by plain words, and as tools, over HTTP."""

import pytest


async def test_a_task_finds_its_operation_with_the_connectors_that_could_run_it(api, support_desk):
    found = (await api.get("/api/v1/operations", params={"query": "close a zendesk ticket"})).json()

    best = found["data"][0]
    assert best["operation"] == "support-desk.tickets.update"
    assert (best["kind"], best["entity"], best["action"]) == ("support-desk", "tickets", "update")
    assert (best["effect"], best["title"]) == ("idempotent", "Update ticket")
    assert best["signature"].startswith("tickets.update(ticket_id*, ticket*{subject, ")
    assert best["signature"].endswith(") → ticket")
    assert best["connectors"][0].keys() == {"id", "name", "workspace_name", "status"}
    assert len(found["data"]) == 6
    assert [each["score"] for each in found["data"]] == sorted((each["score"] for each in found["data"]), reverse=True)
    assert isinstance(found["took_ms"], int)
    assert (found["closest"], found["message"], best["application"]) == ([], None, "Zendesk")


async def test_a_task_for_one_connector_finds_its_operation_with_that_connector_alone(api, support_desk):
    connector_id = support_desk.record["id"]
    params = {"query": "close a ticket", "connector_id": connector_id}

    best = (await api.get("/api/v1/operations", params=params)).json()["data"][0]

    assert best["operation"] == "support-desk.tickets.update"
    assert [(each["id"], each["status"]) for each in best["connectors"]] == [(connector_id, "active")]


@pytest.mark.parametrize("kind", ["incident-management", "incident.io", "Incident Management"])
async def test_the_message_for_a_task_without_an_operation_says_what_is_missing(api, kind):
    found = (await api.get("/api/v1/operations", params={"query": "create an incident", "kind": kind})).json()

    assert found["data"] == []
    assert found["closest"][0]["entity"] == "incidents"
    assert found["message"] == (
        "incident.io: incident-management has no operation that creates incidents; incidents: list, get"
    )


async def test_without_a_query_all_operations_come_in_one_order(api):
    first = (await api.get("/api/v1/operations")).json()["data"]
    second = (await api.get("/api/v1/operations")).json()["data"]

    assert [each["operation"] for each in first] == [each["operation"] for each in second]
    assert len(first) > 200
    assert {each["score"] for each in first} == {None}


async def test_a_connector_narrows_the_search_to_its_kind(api, support_desk):
    options = {"query": "users", "connector_id": support_desk.record["id"], "limit": "50", "effect": "read"}
    found = (await api.get("/api/v1/operations", params=options)).json()["data"]

    assert {(each["kind"], each["effect"]) for each in found} == {("support-desk", "read")}
    assert {connector["id"] for each in found for connector in each["connectors"]} == {support_desk.record["id"]}


async def test_another_organization_sees_no_connector_of_ours(support_desk, stranger):
    found = (await stranger.get("/api/v1/operations", params={"query": "close a ticket"})).json()["data"]
    refused = await stranger.get("/api/v1/operations", params={"connector_id": support_desk.record["id"]})

    assert {connector["id"] for each in found for connector in each["connectors"]} == set()
    assert (refused.status, refused.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "params", "code"),
    [
        ("operations", {"kind": "helpdesk"}, "unknown_connector_type"),
        ("operations", {"effect": "harmless"}, "invalid_params"),
        ("operations", {"limit": "0"}, "invalid_params"),
        ("operations", {"words": "tickets"}, "invalid_params"),
        ("tools", {"format": "yaml"}, "invalid_params"),
        ("tools", {"operations": "support-desk.ticket.list"}, "unknown_entity"),
        ("tools", {"operations": "support-desk.tickets.read"}, "unknown_action"),
        ("tools", {"operations": "tickets"}, "invalid_params"),
    ],
)
async def test_what_is_not_understood_is_refused(api, path, params, code):
    refused = await api.get(f"/api/v1/{path}", params=params)

    assert (refused.status, refused.json()["code"]) == (422, code)


@pytest.mark.parametrize(
    ("format_name", "members"),
    [
        ("mcp", {"name", "title", "description", "inputSchema", "annotations"}),
        ("openai", {"type", "function"}),
        ("anthropic", {"name", "description", "input_schema"}),
    ],
)
async def test_operations_come_as_tools_of_each_format(api, format_name, members):
    options = {"format": format_name, "kind": "Team Chat", "effect": "read"}
    found = (await api.get("/api/v1/tools", params=options)).json()

    assert {frozenset(tool) for tool in found["data"]} == {frozenset(members)}
    assert found["operations"]["team-chat__channels__list"] == "team-chat.channels.list"


async def test_tools_are_those_that_are_named_and_that_the_connector_has(api, support_desk):
    names = "support-desk.tickets.get,team-chat.channels.list, support-desk.tickets.get"
    named = (await api.get("/api/v1/tools", params={"operations": names})).json()
    ours = (
        await api.get("/api/v1/tools", params={"operations": names, "connector_id": support_desk.record["id"]})
    ).json()

    assert [tool["name"] for tool in named["data"]] == ["support-desk__tickets__get", "team-chat__channels__list"]
    assert [tool["name"] for tool in ours["data"]] == ["support-desk__tickets__get"]
