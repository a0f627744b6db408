"""Batches as callers see them over HTTP."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from io import BytesIO
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.harness.caller import Answer, ConnectorApi
from tests.harness.console import signed_in
from tests.harness.sandbox import faults
from tests.harness.waiting import eventually

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
async def fault(running) -> AsyncIterator[Any]:
    """`await fault(latency_ms=…)` for the calls below a path; gone after the test."""
    async with faults(running.sandbox_url, kind="support-desk") as arm:
        yield arm


@pytest.fixture
async def asked(running, upstream_requests) -> Callable[[], Awaitable[list[str]]]:
    """`await asked()`: methods and paths of what the sandbox was asked for since the test began."""
    async with aiohttp.ClientSession(running.sandbox_url) as session:
        await session.delete("/_sandbox/requests")

    async def lines() -> list[str]:
        return [f"{each['method']} {each['path'].removeprefix('/api/v2')}" for each in await upstream_requests()]

    return lines


def get(ticket_id: object, **members: Any) -> dict[str, Any]:
    return {"entity": "tickets", "action": "get", "params": {"ticket_id": ticket_id}, **members}


def comments(ticket_id: int) -> dict[str, Any]:
    return {"entity": "ticket_comments", "action": "list", "params": {"ticket_id": ticket_id}}


def create(subject: str, **members: Any) -> dict[str, Any]:
    return {"entity": "tickets", "action": "create", "params": {"ticket": {"subject": subject}}, **members}


async def sent(connector: ConnectorApi, operations: Sequence[Any], headers: Any = None, **options: Any) -> Answer:
    document = {"operations": operations, **options}
    return await connector.api.post(f"{connector.path}/batch", document, headers=headers or {})


async def sent_lines(connector: ConnectorApi, lines: Sequence[Any], query: str = "", **headers: str) -> Answer:
    body = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    data = BytesIO(body.encode())
    return await connector.api.call("POST", f"{connector.path}/batch{query}", data=data, headers={**NDJSON, **headers})


async def result_of(connector: ConnectorApi, answer: Answer) -> dict[str, Any]:
    job = await connector.api.ended_job(answer.document(202)["job"])
    assert job["status"] == "succeeded", job
    return (await connector.api.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]


async def test_every_operation_has_its_result_in_the_order_asked(support_desk):
    answer = await sent(support_desk, [get(1, id="first"), get(999_999_999), get(3), create("a batch")])
    job = answer.document(202)["job"]
    result = await result_of(support_desk, answer)

    assert answer.headers["Location"] == f"/api/v1/jobs/{job['id']}"
    assert (job["entity"], job["action"]) == (None, "batch")
    assert {name: result[name] for name in result if name != "results"} == {
        "total": 4, "succeeded": 3, "failed": 1, "unknown": 0, "skipped": 0,
    }  # fmt: skip
    first, missing, third, created = result["results"]
    assert (first["index"], first["id"], first["status"], first["result"]["id"]) == (0, "first", "succeeded", 1)
    assert (missing["status"], missing["error"]["code"]) == ("failed", "upstream_not_found")
    assert "result" not in missing
    assert (third["index"], third["result"]["id"]) == (2, 3)
    assert created["result"]["subject"] == "a batch"


async def test_lines_are_taken_and_given(api, support_desk):
    lines = [get(number % 40 + 1, id=f"n{number}") for number in range(2100)]
    answer = await sent_lines(support_desk, [*lines[:5], "", *lines[5:]], "?concurrency=50")
    job = await api.ended_job(answer.document(202)["job"])

    stored = await api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson"})
    results = [json.loads(line) for line in stored.body.splitlines()]

    assert job["message"] == "2,100 of 2,100 operations done"
    assert (job["progress"], job["total"]) == (2100, 2100)
    assert [each["index"] for each in results] == list(range(2100))
    assert [each["id"] for each in results] == [line["id"] for line in lines]
    assert [each["result"]["id"] for each in results] == [line["params"]["ticket_id"] for line in lines]


async def test_every_faulty_line_is_named_and_nothing_is_sent(support_desk, upstream_requests):
    subject = f"never-{uuid4().hex}"
    faulty = [
        create(subject),
        {**get(1), "parms": {}},
        get("abc"),
        "{no json",
        {"entity": "tickts", "action": "get"},
        {"entity": "attachments", "action": "download", "params": {"attachment_id": 1}},
        {"entity": "tickets", "action": "context_store_search"},
        7,
    ]
    answer = await sent_lines(support_desk, faulty)
    refusals = answer.document(422)["errors"]

    assert [fault["message"].split(":")[0] for fault in refusals] == [f"line {number}" for number in range(2, 9)]
    assert [fault["pointer"].split("/")[2] for fault in refusals] == [str(number) for number in range(1, 8)]
    assert "parms" in refusals[0]["message"]
    assert refusals[1]["pointer"] == "/operations/2/params/ticket_id"
    assert "did you mean tickets" in refusals[3]["message"]
    assert not any(subject in request["body"] for request in await upstream_requests())


@pytest.mark.parametrize(
    ("operations", "options", "text"),
    [
        ([], {}, "at least 1"),
        ([get(1)] * 10_001, {}, "10000"),
        ([get(1)], {"concurrency": 0}, "concurrency"),
        ([get(1)] * 21, {"steps": True}, "more than 20 steps"),
        ([get({"$from": "a.id"})], {}, "operations[0]"),
    ],
)
async def test_a_batch_beyond_its_limits_is_refused(support_desk, operations, options, text):
    assert text in (await sent(support_desk, operations, **options)).document(422)["detail"]


async def test_an_empty_body_of_lines_is_refused(support_desk):
    assert "no operations" in (await sent_lines(support_desk, ["", " "])).document(422)["detail"]


async def test_more_than_a_megabyte_is_taken(support_desk):
    lines = [get(1, id="x" * 190) for _ in range(5000)]

    job = (await sent_lines(support_desk, lines, "?stop_on_error=true")).document(202)["job"]

    # Its other reads would be among those that the next tests count.
    await support_desk.api.post(f"/api/v1/jobs/{job['id']}/cancel")
    await support_desk.api.ended_job(job)


async def test_a_caller_that_waits_gets_the_result(support_desk):
    answer = await sent(support_desk, [get(1)], {"Prefer": "wait=20"})

    assert answer.headers["Preference-Applied"] == "wait=20"
    assert answer.document()["result"]["succeeded"] == 1


async def test_a_batch_under_a_key_is_run_once(support_desk):
    key = {"Idempotency-Key": uuid4().hex}
    first = (await sent(support_desk, [create("once")], key)).document(202)["job"]
    await support_desk.api.ended_job(first)

    again = await sent(support_desk, [create("once")], key)
    other = await sent(support_desk, [create("another")], key)

    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.document()["result"]["results"][0]["result"]["subject"] == "once"
    assert other.document(422)["code"] == "idempotency_mismatch"


async def test_the_first_failure_keeps_the_others_back_where_that_is_asked(support_desk):
    operations = [get(999_999_999), *(create("not sent") for _ in range(3))]

    result = await result_of(support_desk, await sent(support_desk, operations, stop_on_error=True, concurrency=1))

    assert [each["status"] for each in result["results"]] == ["failed", "skipped", "skipped", "skipped"]
    assert (result["failed"], result["skipped"]) == (1, 3)


async def test_a_step_takes_values_of_earlier_ones(support_desk):
    operations = [
        create("steps", id="made"),
        get({"$from": "made.id"}, id="read"),
        {
            "entity": "tickets",
            "action": "update",
            "params": {"ticket_id": {"$from": "read.result.id"}, "ticket": {"subject": {"$from": "read.status"}}},
        },
        get(999_999_999, id="missing"),
        get({"$from": "missing.id"}),
        get({"$from": "made.nothing"}),
    ]

    result = await result_of(support_desk, await sent(support_desk, operations, steps=True))

    made, read, updated, _, skipped, wrong = result["results"]
    assert read["result"]["id"] == updated["result"]["id"] == made["result"]["id"]
    assert updated["result"]["subject"] == read["result"]["status"]
    assert (skipped["status"], wrong["status"]) == ("skipped", "failed")
    assert "'missing'" in skipped["error"]["detail"]
    assert wrong["error"]["detail"] == "made.nothing: the result of made has no 'nothing'"


async def test_references_are_checked_before_anything_is_sent(support_desk):
    operations = [
        create("a", id="a"),
        create("b", id="a"),
        get({"$from": "later.id"}, id="b"),
        {**get({"$from": "a.id"}), "params": {"ticket_id": {"$from": "a.id"}, "nonsense": 1}},
        create("c", id="later"),
    ]

    refusals = (await sent(support_desk, operations, steps=True)).document(422)["errors"]

    assert [fault["pointer"] for fault in refusals] == [
        "/operations/1/id", "/operations/2/params/ticket_id", "/operations/3/params/nonsense",
    ]  # fmt: skip


async def test_a_canceled_batch_says_what_was_done(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/2/", latency_ms=1500)
    operations = [*(comments(1) for _ in range(5)), *(comments(2) for _ in range(50))]
    job = (await sent(support_desk, operations, concurrency=1)).document(202)["job"]
    await api.job_once(job, lambda seen: seen["progress"] >= 5)

    await api.post(f"/api/v1/jobs/{job['id']}/cancel")
    ended = await api.ended_job(job)
    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).document(409)["result"]

    done = result["succeeded"]
    assert ended["status"] == "canceled"
    assert ended["message"] == f"{done} of 55 operations done, {55 - done} skipped before it was canceled"
    assert [each["status"] for each in result["results"]] == ["succeeded"] * done + ["skipped"] * (55 - done)


async def test_a_limited_batch_continues_later_and_sends_nothing_twice(support_desk, fault, upstream_requests):
    subjects = [f"limited-{uuid4().hex}" for _ in range(6)]
    await fault(path_prefix="/api/v2/tickets.json", method="POST", status=429, headers={"Retry-After": "1"}, times=4)

    result = await result_of(
        support_desk, await sent(support_desk, [create(subject) for subject in subjects], concurrency=2)
    )

    assert result["succeeded"] == 6
    assert [each["result"]["subject"] for each in result["results"]] == subjects


async def test_many_reads_are_few_requests_and_a_missing_record_has_its_own_error(support_desk, asked):
    wanted = [*range(1, 131), 999_999_999, *range(131, 250)]

    results = (await result_of(support_desk, await sent(support_desk, [get(number) for number in wanted])))["results"]

    assert sorted(await asked()) == ["GET /tickets/999999999.json", *["GET /tickets/show_many.json"] * 3]
    alone = [await support_desk.execute("tickets", "get", {"ticket_id": number}) for number in (1, 130, 249)]
    refusal = (await support_desk.send("tickets", "get", {"ticket_id": 999_999_999})).document(404)
    assert [each["index"] for each in results] == list(range(250))
    missing = results.pop(130)
    assert (missing["status"], missing["error"]["detail"]) == ("failed", refusal["detail"])
    assert [each["result"]["id"] for each in results] == list(range(1, 250))
    assert [results[number - 1]["result"] for number in (1, 130, 249)] == [each["result"] for each in alone]


async def test_reads_are_sent_together_up_to_the_next_write(support_desk, asked):
    update = {"entity": "tickets", "action": "update", "params": {"ticket_id": 6, "ticket": {"priority": "urgent"}}}
    user = {"entity": "users", "action": "list"}
    operations = [get(6), user, get(7), update, get(6), get(8)]
    results = (await result_of(support_desk, await sent(support_desk, operations, concurrency=1)))["results"]

    show_many = "GET /tickets/show_many.json"
    assert await asked() == [show_many, "GET /users.json", "PUT /tickets/6.json", show_many]
    assert [each["status"] for each in results] == ["succeeded"] * 6
    assert [results[place]["result"]["id"] for place in (0, 2, 4, 5)] == [6, 7, 6, 8]
    assert results[4]["result"]["priority"] == "urgent"


async def test_a_batch_that_stops_at_the_first_failure_sends_each_operation_by_itself(support_desk, asked):
    operations = [get(1), get(999_999_999), get(2)]
    result = await result_of(support_desk, await sent(support_desk, operations, stop_on_error=True, concurrency=1))

    assert await asked() == ["GET /tickets/1.json", "GET /tickets/999999999.json"]
    assert [each["status"] for each in result["results"]] == ["succeeded", "failed", "skipped"]


async def test_a_refused_bulk_request_is_followed_by_a_request_for_each(support_desk, fault, asked):
    await fault(path_prefix="/api/v2/tickets/show_many.json", status=400)

    results = (await result_of(support_desk, await sent(support_desk, [get(1), get(2), get(3)])))["results"]

    bulk, *single = await asked()
    assert bulk == "GET /tickets/show_many.json"
    assert sorted(single) == [f"GET /tickets/{number}.json" for number in (1, 2, 3)]
    assert [each["result"]["id"] for each in results] == [1, 2, 3]


async def test_a_limited_bulk_request_continues_later(support_desk, fault, asked):
    await fault(path_prefix="/api/v2/tickets/show_many.json", status=429, headers={"Retry-After": "1"}, times=4)

    result = await result_of(support_desk, await sent(support_desk, [get(1), get(2), get(3)]))

    assert [each["result"]["id"] for each in result["results"]] == [1, 2, 3]
    assert await asked() == ["GET /tickets/show_many.json"] * 5


async def test_each_read_of_a_bulk_request_has_an_audit_entry(api, support_desk):
    await result_of(support_desk, await sent(support_desk, [get(41), get(42)]))

    async def is_audited() -> bool:
        entries = (await api.get(f"/api/v1/audit?connector_id={support_desk.record['id']}")).document()["data"]
        return sorted(each["target"] for each in entries if each["what"] == "tickets.get") == ["41", "42"]

    await eventually(is_audited)


async def test_a_batch_of_another_organization_does_not_exist(support_desk, stranger):
    assert (await sent(support_desk.through(stranger), [get(1)])).status == 404


async def test_a_bulk_update_adds_a_comment_to_each_ticket(api, support_desk):
    change = {"status": "pending", "comment": {"body": "closing soon", "public": False}}
    job = await support_desk.submit("ticket_bulk_updates", "create", {"ids": "21,22", "ticket": change})
    ended = await api.ended_job(job)
    comments = [await support_desk.execute("ticket_comments", "list", {"ticket_id": number}) for number in (21, 22)]

    assert ended["message"] == "2 of 2 tickets updated"
    assert [each["result"][-1]["body"] for each in comments] == ["closing soon"] * 2


async def test_the_page_of_a_batch_shows_the_operations_that_did_not_succeed(api, running, support_desk):
    answer = await sent(support_desk, [get(1), get(999_999_999, id="missing")])
    job = await api.ended_job(answer.document(202)["job"])

    async with signed_in(running, running.client_id, running.client_secret) as browser:
        page = (await browser.get(f"/console/jobs/{job['id']}")).body.decode()

    assert "Operations that did not succeed" in page
    assert "missing" in page
    assert page.count("<td>failed</td>") == 1
    assert "<td>succeeded</td>" not in page


async def test_a_batch_is_not_retried_as_a_whole(api, support_desk):
    job = (await sent(support_desk, [create("kept back") for _ in range(3000)], concurrency=1)).document(202)["job"]
    await api.post(f"/api/v1/jobs/{job['id']}/cancel")
    await api.ended_job(job)

    refusal = (await api.post(f"/api/v1/jobs/{job['id']}/retry")).document(409)

    assert "send the operations again that did not succeed" in refusal["detail"]
