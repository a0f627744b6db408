"""Batches as callers see them over HTTP."""

import json
from collections.abc import AsyncIterator, Sequence
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest

from tests.harness.caller import Answer, ConnectorApi
from tests.harness.console import signed_in
from tests.harness.sandbox import faults

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
async def fault(running) -> AsyncIterator[Any]:
    """`await fault(latency_ms=…)` for the calls below a path; gone after the test."""
    async with faults(running.sandbox_url, kind="support-desk") as arm:
        yield arm


def get(ticket_id: object, **members: Any) -> dict[str, Any]:
    return {"entity": "tickets", "action": "get", "params": {"ticket_id": ticket_id}, **members}


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

    assert (await sent_lines(support_desk, lines, "?stop_on_error=true")).status == 202


async def test_a_caller_who_waits_gets_the_result(support_desk):
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
    await fault(path_prefix="/api/v2/tickets/2.json", latency_ms=1500)
    operations = [*(get(1) for _ in range(5)), *(get(2) for _ in range(50))]
    job = (await sent(support_desk, operations, concurrency=1)).document(202)["job"]
    await api.job_once(job, lambda seen: seen["progress"] >= 5)

    await api.post(f"/api/v1/jobs/{job['id']}/cancel")
    ended = await api.ended_job(job)
    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).document(409)["result"]

    done = result["succeeded"]
    assert ended["status"] == "canceled"
    assert ended["message"] == f"{done} of 55 operations done, {55 - done} skipped before it was canceled"
    assert [each["status"] for each in result["results"]] == ["succeeded"] * done + ["skipped"] * (55 - done)


async def test_a_limited_batch_goes_on_later_and_sends_nothing_twice(support_desk, fault, upstream_requests):
    subjects = [f"limited-{uuid4().hex}" for _ in range(6)]
    await fault(path_prefix="/api/v2/tickets.json", method="POST", status=429, headers={"Retry-After": "1"}, times=4)

    result = await result_of(
        support_desk, await sent(support_desk, [create(subject) for subject in subjects], concurrency=2)
    )

    assert result["succeeded"] == 6
    assert [each["result"]["subject"] for each in result["results"]] == subjects


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

    assert "send those of its operations again" in refusal["detail"]
