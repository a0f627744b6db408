"""Budgets through the API: what is counted on each surface, and that nothing is sent when one is spent."""

import asyncio

import aiohttp
import pytest

from tests.agents.mcp.conftest import Raw
from tests.harness.caller import Api, ConnectorApi
from tests.harness.in_process import FrontEnd
from tests.web.test_policies import run_jobs

BUDGETS = "/api/v1/budgets"
UPDATE = {"ticket_id": 1, "ticket": {"status": "solved"}}
REFUND = {"charge": "ch_1", "amount": 600}
SEARCH = {"query": {}, "limit": 2}
OPEN = {"per": "month", "calls": 1000}


async def put(api: Api, name: str = "main", **members):
    return await api.call("PUT", f"{BUDGETS}/{name}", json=members)


async def spent(api: Api, name: str = "main") -> dict:
    return (await api.get(f"{BUDGETS}/{name}")).document()["spent"]


async def test_a_budget_is_stored_changed_listed_and_deleted(api: Api, support_desk: ConnectorApi):
    workspace = support_desk.record["workspace_name"]
    first = (await put(api, per="day", calls=5, workspace_name=workspace)).document()
    await support_desk.execute("tickets", "list", {"per_page": 3})
    second = (await put(api, per="day", calls=7, records=100)).document()

    assert first["workspace_name"] == workspace
    assert (first["calls"], first["writes"], first["sum"], first["spent"]["calls"]) == (5, None, None, 0)
    assert second["spent"] == {"calls": 1, "writes": 0, "records": 3, "sum": 0}
    assert second["workspace_name"] is None
    assert (await api.get(BUDGETS)).document()["data"] == [second]
    assert (await api.get(f"{BUDGETS}/main")).document() == second
    assert (await api.call("DELETE", f"{BUDGETS}/main")).status == 204
    assert (await api.call("DELETE", f"{BUDGETS}/main")).status == 404
    assert (await api.get(f"{BUDGETS}/main")).status == 404


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ({"per": "day"}, ["calls"]),
        ({"per": "week", "calls": 1}, ["per"]),
        ({"per": "day", "calls": -1}, ["calls"]),
        ({"per": "day", "calls": 1, "workspace_name": "nowhere"}, ["workspace_name"]),
        ({"per": "day", "calls": 1, "client_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}, ["client_id"]),
        ({"per": "day", "calls": 1, "person_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11"}, ["person_id"]),
        (
            {
                "per": "day",
                "calls": 1,
                "workspace_name": "a",
                "client_id": "0b8f6a52-3c1e-4f4b-9d0e-6f2f7a1c5d11",
                "sum": {"operation": "stripe.refund.create", "param": "amount", "at_most": 1},
            },
            ["workspace_name", "sum.operation"],
        ),
        (
            {"per": "day", "sum": {"operation": "stripe.refunds.create", "param": "amonut", "at_most": 1}},
            ["sum.param"],
        ),
        *(
            ({"per": "day", "sum": {"operation": operation, "param": param, "at_most": 1}}, ["sum.param"])
            for operation, param in [
                ("support-desk.tickets.create", "ticket"),
                ("support-desk.tickets.create", "ticket.amount_of_nothing"),
                ("amazon-seller-partner.listings_items.update", "patches"),
                ("amazon-seller-partner.listings_items.update", "patches.value"),
            ]
        ),
    ],
)
async def test_a_faulty_budget_is_refused_with_all_faults(api: Api, members, fields):
    refused = (await put(api, **members)).document(422)

    assert [each["field"] for each in refused["errors"]] == fields
    assert (await api.get(BUDGETS)).document()["data"] == []


async def test_only_administrators_of_the_whole_organization_have_budgets(front: FrontEnd):
    async with front.api(await front.organization(), ["read", "write"]) as other:
        answers = [await other.get(BUDGETS), await put(other, **OPEN), await other.call("DELETE", f"{BUDGETS}/main")]

    assert [each.document(403)["code"] for each in answers] == ["insufficient_scope"] * 3


async def test_a_spent_budget_says_which_and_when_it_is_whole_again(api: Api, support_desk: ConnectorApi):
    await put(api, "two-calls", per="hour", calls=2)
    for _ in range(2):
        await support_desk.execute("tickets", "list", {"per_page": 1})

    answer = await support_desk.send("tickets", "list", {"per_page": 1})

    refused, budget = answer.document(429), (await api.get(f"{BUDGETS}/two-calls")).document()
    assert (refused["code"], refused["budget"], refused["resets_at"]) == (
        "budget_spent",
        "two-calls",
        budget["resets_at"],
    )
    assert 0 < int(answer.headers["Retry-After"]) <= 3600
    assert budget["spent"]["calls"] == 2


async def test_writes_and_sums_of_params_have_limits_of_their_own(api: Api, support_desk: ConnectorApi):
    stripe = await api.connector("stripe", {"api_key": "sk_test"})
    await put(api, "writes", per="day", writes=1, workspace_name=support_desk.record["workspace_name"])
    await put(api, "refunds", per="day", sum={"operation": "stripe.refunds.create", "param": "amount", "at_most": 1000})

    assert (await support_desk.send("tickets", "update", UPDATE)).status == 200
    assert (await support_desk.send("tickets", "update", UPDATE)).document(429)["budget"] == "writes"
    assert (await support_desk.send("tickets", "list", {"per_page": 1})).status == 200
    assert (await stripe.send("refunds", "create", REFUND)).status != 429
    assert (await stripe.send("refunds", "create", REFUND)).document(429)["budget"] == "refunds"
    assert (await stripe.send("refunds", "create", {"charge": "ch_1", "amount": 400})).status != 429
    assert (await spent(api, "refunds"))["sum"] == 1000


async def test_a_budget_of_a_client_leaves_others_alone(front: FrontEnd, api: Api):
    organization_id = await front.organization()
    agent_id, secret = await front.client(organization_id)
    async with front.api(organization_id) as admin, Api.of(front.base_url, agent_id, secret) as agent:
        desk = await admin.connector()
        await put(admin, per="day", calls=1, client_id=agent_id)

        answers = [await desk.through(agent).send("tickets", "list", {"per_page": 1}) for _ in range(2)]

        assert [each.status for each in answers] == [200, 429]
        assert (await desk.send("tickets", "list", {"per_page": 1})).status == 200


@pytest.fixture
async def counted(api: Api, support_desk: ConnectorApi) -> ConnectorApi:
    await put(api, **OPEN)
    return support_desk


async def test_dry_runs_refused_calls_and_repetitions_cost_nothing(api: Api, counted: ConnectorApi):
    key = {"Idempotency-Key": "k-1"}
    await counted.send("tickets", "update", UPDATE, headers=key)
    once = await spent(api)

    await counted.send("tickets", "update", UPDATE, headers=key)
    await counted.send("tickets", "list", {"per_page": 1}, dry_run=True)
    await counted.send("tickets", "list", {"per_pgae": 1})
    await counted.send("tickets", "list", {"per_page": 1}, headers={"Cache-Control": "only-if-cached"})

    assert once["calls"] == 1
    assert await spent(api) == once


async def test_calls_jobs_lines_searches_files_and_tools_count(front: FrontEnd, api: Api, counted: ConnectorApi):
    async def cost(doing) -> tuple[int, int, int]:
        before = await spent(api)
        await doing
        await run_jobs(front)
        after = await spent(api)
        return tuple(after[name] - before[name] for name in ("calls", "writes", "records"))

    lines = [
        {"entity": "tickets", "action": "get", "params": {"ticket_id": 1}},
        {"entity": "tickets", "action": "update", "params": UPDATE},
    ]
    arguments = {"operation": "support-desk.tickets.list", "params": {"per_page": 2}}
    file = f"{counted.path}/download/attachments?attachment_id=2"
    async with aiohttp.ClientSession(headers=api.headers) as session:
        tool = Raw(session, f"{front.base_url}/mcp")("tools/call", {"name": "read", "arguments": arguments})

        assert await cost(counted.send("tickets", "list", {"per_page": 4})) == (1, 0, 4)
        assert await cost(counted.send("tickets", "get", {"ticket_id": 1})) == (1, 0, 1)
        assert await cost(counted.submit("tickets", "list", {"per_page": 4})) == (1, 0, 4)
        assert await cost(api.post(f"{counted.path}/batch", {"operations": lines})) == (2, 1, 1)
        assert await cost(counted.send("tickets", "context_store_search", SEARCH)) == (1, 0, 0)
        assert await cost(api.get(file)) == (1, 0, 0)
        assert await cost(tool) == (1, 0, 2)


async def test_an_export_counts_once_and_its_records_page_by_page(front: FrontEnd, api: Api, counted: ConnectorApi):
    answer = await counted.send("tickets", "list", {"per_page": 100}, output={"file": "ndjson"})
    job = answer.document(202)["job"]
    await run_jobs(front)

    total = (await api.get(f"/api/v1/jobs/{job['id']}")).document()
    assert total["status"] == "succeeded", total
    assert (await spent(api))["calls"] == 1
    assert (await spent(api))["records"] == total["progress"]


async def test_a_retry_counts_as_any_call(front: FrontEnd, api: Api, counted: ConnectorApi):
    job = await counted.submit("tickets", "update", {"ticket_id": 10**12, "ticket": {"status": "solved"}})
    await run_jobs(front)
    before = await spent(api)

    again = (await api.post(f"/api/v1/jobs/{job['id']}/retry")).document(202)["job"]
    await run_jobs(front)
    first = await spent(api)
    await put(api, "main", per="month", calls=first["calls"])
    last = (await api.post(f"/api/v1/jobs/{again['id']}/retry")).document(202)["job"]
    await run_jobs(front)

    assert (first["calls"], first["writes"]) == (before["calls"] + 1, before["writes"] + 1)
    ended = (await api.get(f"/api/v1/jobs/{last['id']}")).document()
    assert (ended["status"], ended["error"]["code"]) == ("failed", "budget_spent")


@pytest.mark.parametrize("output", [None, {"file": "ndjson"}], ids=["a call", "an export"])
async def test_a_run_of_a_schedule_counts_once(front: FrontEnd, api: Api, counted: ConnectorApi, output):
    body = {"name": "s", "connector_id": counted.record["id"], "entity": "tickets", "action": "list", "cron": "@daily"}
    members = {"params": {"per_page": 2}} if output is None else {"output": output}
    schedule = (await api.post("/api/v1/schedules", {**body, **members})).document(201)

    await api.post(f"/api/v1/schedules/{schedule['id']}/run")
    await run_jobs(front)

    assert (await spent(api))["calls"] == 1


async def test_a_line_for_which_too_little_is_left_fails_and_sends_nothing(front: FrontEnd, api: Api):
    desk = await api.connector()
    await put(api, per="day", writes=1)
    lines = [{"entity": "tickets", "action": "update", "params": UPDATE}] * 3

    job = (await api.post(f"{desk.path}/batch", {"operations": lines, "concurrency": 1})).document(202)["job"]
    await run_jobs(front)

    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]
    statuses = [each["status"] for each in result["results"]]
    assert statuses.count("succeeded") == 1
    assert {each["error"]["code"] for each in result["results"] if each["status"] == "failed"} == {"budget_spent"}
    assert (await spent(api))["writes"] == 1


async def test_concurrent_calls_spend_a_budget_exactly(front: FrontEnd, api: Api):
    desk = await api.connector()
    await put(api, per="day", calls=7)

    answers = await asyncio.gather(*(desk.send("tickets", "get", {"ticket_id": 1}) for _ in range(20)))

    assert sorted(each.status for each in answers) == [200] * 7 + [429] * 13
    assert (await spent(api))["calls"] == 7


async def test_another_organization_does_not_see_a_budget(front: FrontEnd, api: Api):
    await put(api, **OPEN)
    async with front.api() as stranger:
        assert (await stranger.get(f"{BUDGETS}/main")).status == 404
        assert (await stranger.get(BUDGETS)).document()["data"] == []
