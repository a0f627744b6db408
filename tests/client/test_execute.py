import asyncio

import pytest
from aiohttp.test_utils import unused_port

from gateway import errors
from gateway.client import Gateway, RetryPolicy
from gateway.client.session import ApiResponse
from gateway.contract.answers import Answer
from tests.client.stub import CONNECTOR_ID, JOB_ID, TICKETS, problem
from tests.client.stub_kind import PAGE


async def test_an_operation_is_called_with_the_kind_of_its_connector(gateway):
    answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 2})

    assert answer.result == TICKETS[:2]
    assert answer.meta["count"] == 5


def test_a_relayed_answer_of_any_json_is_understood():
    body = (
        rb'{"status": "success", "result": {"name": "cut \ud83d", "size": 1e400}, "connector_metadata": null, '
        rb'"execution_metadata": {"connector_instance_id": null, "execution_time_ms": 1, "request_id": "r"}}'
    )

    assert ApiResponse(200, {}, body).into(Answer).result == {"name": "cut \ufffd", "size": None}


@pytest.mark.parametrize("name", ["support-desk", "Support_Desk", "Help", CONNECTOR_ID])
async def test_a_connector_is_resolved_by_kind_name_and_id(gateway, name):
    connector = await gateway.connectors.resolve(name)

    assert connector.id == CONNECTOR_ID


async def test_the_error_for_an_unknown_connector_lists_the_existing_ones(gateway):
    with pytest.raises(errors.NotFound, match=r"it has Help \(\w+, support-desk\), Chat \(\w+, team-chat\)"):
        await gateway.execute("crm-query", "accounts", "list")


async def test_concurrent_callers_request_one_token(gateway, stub):
    await asyncio.gather(*(gateway.execute("support-desk", "tickets", "list") for _ in range(10)))

    assert stub.tokens == 1


async def test_a_refused_token_is_renewed_once(gateway, stub):
    await gateway.execute("support-desk", "tickets", "list")
    stub.refused_tokens.add("t1")

    answer = await gateway.execute("support-desk", "tickets", "list")

    assert answer.result == TICKETS[:2]
    assert stub.tokens == 2


async def test_a_token_that_is_refused_again_is_an_error(gateway, stub):
    stub.refused_tokens |= {"t1", "t2"}

    with pytest.raises(errors.Unauthorized):
        await gateway.execute("support-desk", "tickets", "list")


async def test_the_error_for_a_wrong_secret_names_the_settings(server):
    async with Gateway(str(server.make_url("")), "id", "wrong") as gateway:
        with pytest.raises(errors.Unauthorized, match="check GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET"):
            await gateway.connectors.list()


async def test_a_write_whose_response_was_lost_is_repeated_with_its_key(gateway, stub):
    await gateway.connectors.resolve("support-desk")
    stub.faults += ["lose", "lose"]

    answer = await gateway.execute("support-desk", "tickets", "create", {"ticket": {"subject": "Fire"}})

    assert answer.result["id"] == 100
    assert len(stub.created) == 1
    assert len(stub.bodies) == 3


async def test_reads_have_no_idempotency_key(gateway, stub):
    await gateway.execute("support-desk", "tickets", "list")

    assert "Idempotency-Key" not in stub.headers[-1]


async def test_a_creation_of_a_connector_whose_response_was_lost_is_not_repeated(gateway, stub):
    await gateway.connectors.list()
    stub.faults.append("lose")

    with pytest.raises(errors.Unavailable, match="connection to the gateway was lost"):
        await gateway.connectors.create("support-desk", {"api_token": "x"})

    assert len(stub.bodies) == 1


async def test_a_call_is_repeated_after_a_rate_limit(gateway, stub):
    await gateway.connectors.resolve("support-desk")
    stub.faults += [problem(429, "rate_limited", "slow down", retry_after=0), problem(503, "unavailable", "soon")]

    answer = await gateway.execute("support-desk", "tickets", "list")

    assert answer.result == TICKETS[:2]


async def test_a_retry_after_beyond_the_limit_is_an_error_at_once(gateway, stub):
    await gateway.connectors.resolve("support-desk")
    stub.faults.append(problem(429, "upstream_rate_limited", "the application says wait", retry_after=3600))

    with pytest.raises(errors.UpstreamRateLimited) as raised:
        await gateway.execute("support-desk", "tickets", "list")

    assert raised.value.retry_after == 3600


async def test_an_error_has_the_members_of_the_gateways_error(gateway):
    with pytest.raises(errors.UnknownEntity) as raised:
        await gateway.execute("support-desk", "tikets", "list")

    assert raised.value.detail == "support-desk has no entity 'tikets'; did you mean tickets?"
    assert raised.value.faults[0].pointer == "/entity"
    assert raised.value.extra["http_status"] == 422
    assert raised.value.extra["request_id"] == "r-1"


async def test_the_error_for_an_unreachable_gateway_names_its_url():
    url = f"http://127.0.0.1:{unused_port()}"

    async with Gateway(url, "id", "s3cret", retry_policy=RetryPolicy(retries=0)) as gateway:
        with pytest.raises(errors.Unavailable, match=f"cannot reach the gateway at {url}.*gateway up"):
            await gateway.connectors.list()


async def test_a_202_response_is_followed_until_the_job_ends(gateway, stub):
    stub.job_states += [{"status": "queued"}, {"status": "running"}, {"status": "succeeded", "done": True}]
    stub.job_records = [{"id": 1, "success": True}]

    answer = await gateway.execute("support-desk", "ticket_bulk_updates", "create", {"ids": [1]})

    assert answer.result == {"total": 1, "failed": 0, "results": [{"id": 1, "success": True}]}


async def test_a_dry_run_is_requested(gateway, stub):
    answer = await gateway.execute("support-desk", "tickets", "list", dry_run=True)

    assert answer.result[0]["method"] == "GET"
    assert stub.bodies[-1]["dry_run"] is True


async def test_every_page_of_a_list_is_fetched(gateway):
    pages = [page.result async for page in gateway.pages("support-desk", "tickets", "list", {"per_page": 2})]

    assert pages == [TICKETS[:2], TICKETS[2:4], TICKETS[4:]]


async def test_records_end_at_their_limit(gateway, stub):
    found = [record async for record in gateway.records("support-desk", "tickets", limit=3)]

    assert found == TICKETS[:3]
    assert sum(path.endswith("/execute") for _, path in stub.requests) == 2


async def collected(records, found):
    async for record in records:
        found.append(record)


async def test_an_incomplete_list_is_an_error(gateway, stub):
    stub.list_members = {"next": None, "incomplete": "tickets.list: the application lists no more"}
    found = []

    with pytest.raises(errors.UpstreamRejected, match="the application lists no more"):
        await collected(gateway.records("support-desk", "tickets", "list", {"per_page": 2}), found)

    assert found == TICKETS[:2]


async def test_a_list_is_read_on_after_a_page_of_which_a_part_is_missing(gateway, stub):
    stub.list_members = {"incomplete": "tickets.list: one is null"}
    found = []

    with pytest.raises(errors.UpstreamRejected, match="one is null"):
        await collected(gateway.records("support-desk", "tickets", "list", {"per_page": 2}), found)

    assert found == TICKETS


async def test_only_requests_for_pages_and_one_for_the_description_of_the_kind_are_sent(gateway, stub):
    await gateway.connectors.resolve("support-desk")
    stub.requests.clear()

    pages = [page async for page in gateway.pages("support-desk", "tickets", "list", {"per_page": 2})]

    assert sum(path.endswith("/execute") for _, path in stub.requests) == len(pages) == 3
    assert len(stub.requests) == 4


async def test_pages_of_a_list_whose_records_may_move_overlap(gateway, stub):
    stub.kind["entities"]["tickets"]["actions"]["list"]["paging"] = {**PAGE, "order": "unknown"}

    found = [ticket async for ticket in gateway.records("support-desk", "tickets", "list", {"per_page": 3})]

    assert found == TICKETS
    sizes = [(body["params"].get("page", 1), body["params"]["per_page"]) for body in stub.bodies]
    assert sizes == [(1, 3), (2, 2), (2, 3), (1, 3)]


async def test_equal_parts_of_different_records_are_all_read(gateway, stub):
    stub.kind["entities"]["tickets"]["actions"]["list"]["paging"] = {**PAGE, "order": "unknown"}

    found = [ticket async for ticket in gateway.records("support-desk", "tickets", select=["priority"])]

    assert found == [{"priority": ticket["priority"]} for ticket in TICKETS]


async def test_a_search_fetches_all_pages(gateway, stub):
    found = [ticket async for ticket in gateway.search("support-desk", "tickets", {"eq": {"status": "open"}}, limit=4)]

    assert found == TICKETS[:4]
    assert stub.bodies[-1]["params"]["query"] == {"filter": {"eq": {"status": "open"}}}


async def test_a_submitted_job_is_accepted_once_for_its_key(gateway, stub):
    await gateway.connectors.resolve("support-desk")
    stub.faults.append("lose")

    job = await gateway.submit("support-desk", "reports", "get", {"id": "1"})

    assert job.id == JOB_ID
    assert len(stub.created) == 1


async def test_every_call_names_the_organization(server, stub):
    async with Gateway(str(server.make_url("")), "id", "s3cret", organization_id="org") as gateway:
        await gateway.connectors.list()

    assert {headers["X-Organization-Id"] for headers in stub.headers} == {"org"}
