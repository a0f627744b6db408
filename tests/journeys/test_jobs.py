"""A job's life as callers see it over HTTP."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from tests.harness.caller import ASYNC
from tests.harness.sandbox import faults
from tests.harness.waiting import eventually

SDK = {"X-ADP-Agent-SDK": "1"}


@pytest.fixture
async def fault(running) -> AsyncIterator[Any]:
    """`await fault(latency_ms=…)` for the calls below a path; gone after the test."""
    async with faults(running.sandbox_url, kind="support-desk") as arm:
        yield arm


async def test_any_operation_runs_as_a_job_when_asked(api, support_desk):
    answer = await support_desk.send("tickets", "list", {"per_page": 2}, headers=ASYNC, labels={"team": "x"})
    document = answer.json()
    job = await api.ended_job(document["job"])

    assert answer.status == 202
    assert answer.headers["Preference-Applied"] == "respond-async"
    assert answer.headers["Location"] == f"/api/v1/jobs/{job['id']}"
    assert int(answer.headers["Retry-After"]) >= 1
    assert document["result"] == document["job"]
    assert (job["status"], job["labels"], job["attempt"]) == ("succeeded", {"team": "x"}, 1)
    assert job["result_url"] == f"{job['url']}/result"


async def test_a_jobs_result_is_what_the_inline_call_would_have_answered(api, support_desk):
    inline = await support_desk.execute("tickets", "list", {"per_page": 3})
    job = await api.ended_job(await support_desk.submit("tickets", "list", {"per_page": 3}))

    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).json()

    assert set(result) == set(inline)
    assert (result["result"], result["connector_metadata"]) == (inline["result"], inline["connector_metadata"])


async def test_a_result_as_lines_has_a_record_on_each(api, support_desk):
    job = await api.ended_job(await support_desk.submit("tickets", "list", {"per_page": 3}))

    answer = await api.get(
        f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson", "Prefer": "wait=20"}
    )
    records = [json.loads(line) for line in answer.body.splitlines()]

    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert [record["id"] for record in records] == [1, 2, 3]


async def test_a_caller_that_waits_gets_the_answer_itself(support_desk):
    answer = await support_desk.send("tickets", "list", {"per_page": 1}, headers={"Prefer": "wait=20"})

    assert answer.status == 200
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert len(answer.json()["result"]) == 1


async def test_a_wait_that_ends_too_soon_answers_with_the_job(support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/7.json", latency_ms=3000)

    answer = await support_desk.send("tickets", "get", {"ticket_id": 7}, headers={"Prefer": "wait=1"})

    assert answer.status == 202
    assert answer.json()["job"]["status"] in ("queued", "running")


async def test_a_slow_read_becomes_a_job_without_being_sent_again(api, support_desk, fault, upstream_requests):
    await fault(path_prefix="/api/v2/tickets/8.json", latency_ms=6500)

    answer = await support_desk.send("tickets", "get", {"ticket_id": 8}, select_fields=["id"])
    job = await api.ended_job(answer.json()["job"])
    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).json()
    sent = [each for each in await upstream_requests() if each["path"] == "/api/v2/tickets/8.json"]

    assert answer.status == 202
    assert result["result"] == {"id": 8}
    assert len(sent) == 1


async def test_an_unfinished_result_is_202_and_a_failed_jobs_result_is_its_error(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/9.json", latency_ms=1500, times=1)
    job = await support_desk.submit("tickets", "get", {"ticket_id": 9})
    missing = await support_desk.submit("tickets", "get", {"ticket_id": 999_999})

    early = await api.get(f"/api/v1/jobs/{job['id']}/result")
    late = await api.get(f"/api/v1/jobs/{job['id']}/result?wait=20")
    failed = await api.get(f"/api/v1/jobs/{missing['id']}/result?wait=20")

    assert (early.status, early.json()["job"]["id"]) == (202, job["id"])
    assert late.status == 200
    assert (failed.status, failed.json()["code"]) == (404, "upstream_not_found")


async def test_a_preference_is_understood_in_any_case(support_desk):
    answer = await support_desk.send("tickets", "list", {"per_page": 2}, headers={"Prefer": "Respond-Async"})

    assert (answer.status, answer.headers["Preference-Applied"]) == (202, "respond-async")


@pytest.mark.parametrize("condition", ["{etag}", "W/{etag}", '"other", {etag}', "*"])
async def test_looking_again_costs_nothing_while_nothing_changed(api, support_desk, condition: str):
    job = await api.ended_job(await support_desk.submit("tickets", "list", {}))

    first = await api.get(f"/api/v1/jobs/{job['id']}")
    header = {"If-None-Match": condition.format(etag=first.headers["ETag"])}
    again = await api.get(f"/api/v1/jobs/{job['id']}", headers=header)

    assert again.status == 304
    assert again.headers["ETag"] == first.headers["ETag"]
    assert "Retry-After" not in first.headers


async def test_the_result_of_a_job_without_a_connector_names_none(api):
    await api.connector(workspace_name="ends soon")
    [workspace] = (await api.get("/api/v1/workspaces?name_contains=ends soon")).json()["data"]

    deleted = await api.call("DELETE", f"/api/v1/workspaces/{workspace['id']}")
    result = await api.get(f"/api/v1/jobs/{deleted.json()['job_id']}/result?wait=20")

    assert result.status == 200
    assert result.json()["execution_metadata"]["connector_instance_id"] is None


async def test_a_look_with_an_older_tag_returns_at_once(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/10.json", latency_ms=20_000)
    job = await support_desk.submit("tickets", "get", {"ticket_id": 10})
    started = time.monotonic()

    while job["status"] == "queued":
        job = (await api.get(f"/api/v1/jobs/{job['id']}?wait=20", headers={"If-None-Match": '"1"'})).json()

    assert job["status"] == "running"
    assert time.monotonic() - started < 15
    await api.post(f"/api/v1/jobs/{job['id']}/cancel")


async def test_events_tell_everything_once_and_in_order(api, support_desk):
    job = await api.ended_job(await support_desk.submit("ticket_bulk_updates", "create", bulk(3)))

    whole = await events(api, job["id"])
    resumed = await events(api, job["id"], after=whole[1]["id"])
    over = await api.get(f"/api/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": str(whole[-1]["id"])})

    assert [event["id"] for event in whole] == list(range(1, len(whole) + 1))
    assert [event["data"]["status"] for event in whole if event["event"] == "status"] == [
        "queued", "running", "succeeded",
    ]  # fmt: skip
    assert whole[-1]["event"] == "done"
    assert whole[-1]["data"]["done"] is True
    assert resumed == whole[2:]
    assert over.status == 204


async def test_events_are_reported_as_they_happen(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/11.json", latency_ms=1000)
    job = await support_desk.submit("tickets", "get", {"ticket_id": 11})

    told = await events(api, job["id"])

    assert [(event["event"], event["data"]["status"]) for event in told] == [
        ("status", "queued"), ("status", "running"), ("status", "succeeded"), ("done", "succeeded"),
    ]  # fmt: skip


def bulk(tickets: int) -> dict[str, Any]:
    return {"ids": ",".join(str(number) for number in range(1, tickets + 1)), "ticket": {"status": "open"}}


async def events(api, job_id: str, after: int = 0) -> list[dict[str, Any]]:
    """Every event of the stream, which ends with the job."""
    answer = await api.get(f"/api/v1/jobs/{job_id}/events", headers={"Last-Event-ID": str(after)})
    assert answer.headers["Content-Type"] == "text/event-stream"
    blocks = [block for block in answer.body.decode().split("\n\n") if block.startswith("id: ")]
    lines = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [{"id": int(each["id"]), "event": each["event"], "data": json.loads(each["data"])} for each in lines]


async def test_a_read_in_progress_is_stopped(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/12.json", latency_ms=20_000)
    job = await support_desk.submit("tickets", "get", {"ticket_id": 12})
    await api.running_job(job)
    started = time.monotonic()

    canceled = await api.post(f"/api/v1/jobs/{job['id']}/cancel")
    job = await api.ended_job(canceled.json())
    result = await api.get(f"/api/v1/jobs/{job['id']}/result")

    assert canceled.status == 202
    assert job["status"] == "canceled"
    assert time.monotonic() - started < 15
    assert (result.status, result.json()["code"]) == (409, "job_canceled")


async def test_a_write_already_sent_runs_to_its_true_end(api, support_desk, fault, upstream_requests):
    subject = f"sent {uuid4().hex}"
    await fault(path_prefix="/api/v2/tickets.json", method="POST", latency_ms=1500)
    job = await support_desk.submit("tickets", "create", {"ticket": {"subject": subject, "comment": {"body": "b"}}})

    async def is_sent() -> bool:
        return any(subject in each["body"] for each in await upstream_requests())

    await eventually(is_sent)

    canceled = (await api.post(f"/api/v1/jobs/{job['id']}/cancel")).json()
    job = await api.ended_job(canceled)

    assert canceled["cancel_requested"] is True
    assert job["status"] == "succeeded"


async def test_what_has_ended_cannot_be_canceled(api, support_desk):
    job = await api.ended_job(await support_desk.submit("tickets", "list", {}))

    answer = await api.post(f"/api/v1/jobs/{job['id']}/cancel")

    assert (answer.status, answer.json()["code"]) == (409, "job_not_cancelable")


async def test_a_failed_job_is_retried_as_a_new_one(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/13.json", status=422, body={"error": "RecordInvalid"}, times=1)
    job = await api.ended_job(await support_desk.submit("tickets", "get", {"ticket_id": 13}))

    answer = await api.post(f"/api/v1/jobs/{job['id']}/retry")
    again = await api.ended_job(answer.json()["job"])
    final = await api.post(f"/api/v1/jobs/{again['id']}/retry")

    assert job["status"] == "failed"
    assert (answer.status, again["status"]) == (202, "succeeded")
    assert again["id"] != job["id"]
    assert final.status == 409


async def test_an_unknown_write_is_retried_only_when_confirmed(api, support_desk, fault):
    ticket = {"ticket": {"subject": "s", "comment": {"body": "b"}, "external_id": uuid4().hex}}
    await fault(path_prefix="/api/v2/tickets.json", method="POST", reset=True, times=1)
    job = await api.ended_job(await support_desk.submit("tickets", "create", ticket))

    unasked = await api.post(f"/api/v1/jobs/{job['id']}/retry")
    confirmed = await api.post(f"/api/v1/jobs/{job['id']}/retry", {"confirm": True})
    again = await api.ended_job(confirmed.json()["job"])

    assert job["status"] == "unknown"
    assert (unasked.status, unasked.json()["code"]) == (409, "outcome_unknown")
    assert unasked.json()["known"]["find_by"].startswith("tickets.list")
    assert again["status"] == "succeeded"


async def test_a_bulk_update_ends_with_the_documented_job_record(api, support_desk):
    job = await api.ended_job(await support_desk.submit("ticket_bulk_updates", "create", bulk(3)))

    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).json()["result"]
    results = result.pop("results")

    assert result == {
        "id": job["id"],
        "url": job["url"],
        "status": "completed",
        "total": 3,
        "progress": 3,
        "message": "3 of 3 tickets updated",
        "succeeded": 3,
        "failed": 0,
    }
    assert results == [{"id": number, "success": True} for number in (1, 2, 3)]


async def test_a_bulk_update_whose_response_is_lost_once_is_sent_again(api, support_desk, fault):
    await fault(method="PUT", reset=True, times=1)
    job = await api.ended_job(await support_desk.submit("ticket_bulk_updates", "create", bulk(30)))

    assert (job["status"], job["message"]) == ("succeeded", "30 of 30 tickets updated")


async def test_a_bulk_update_whose_responses_are_lost_does_not_call_its_tickets_not_sent(api, support_desk, fault):
    await fault(method="PUT", reset=True)
    job = await api.ended_job(await support_desk.submit("ticket_bulk_updates", "create", bulk(30)))
    result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).json()["result"]

    assert (job["status"], job["safe_to_retry"]) == ("unknown", True)
    assert "0 of 30 tickets updated, 30 unknown" in job["message"]
    assert (job["known"]["items_done"], job["known"]["items_unknown"]) == (0, 30)
    assert (result["succeeded"], result["failed"], result["unknown"]) == (0, 0, 30)
    assert [each["success"] for each in result["results"]] == [None] * 30
    assert not any("not sent" in each["error"] for each in result["results"])


async def test_a_bulk_update_that_cannot_be_followed_any_more_says_what_was_done(api, support_desk, fault):
    await fault(path_prefix="/api/v2/job_statuses/", status=404, body={"error": "RecordNotFound"}, times=1)
    job = await api.ended_job(await support_desk.submit("ticket_bulk_updates", "create", bulk(250)))

    result = await api.get(f"/api/v1/jobs/{job['id']}/result")
    done = result.json()["result"]

    assert (job["status"], job["safe_to_retry"]) == ("unknown", True)
    assert job["known"]["batches_finished"] == 2
    assert job["known"]["items_done"] == done["succeeded"] == 250 - done["unknown"]
    assert [each["success"] for each in done["results"]].count(None) == done["unknown"] == job["known"]["items_unknown"]
    assert len(done["results"]) == 250
    assert f"{done['succeeded']} of 250 tickets updated" in job["message"]
    assert (result.status, result.json()["code"], result.json()["outcome"]) == (409, "outcome_unknown", "unknown")
    assert done["status"] == "unknown"
    assert job["result_url"] == f"{job['url']}/result"


async def test_an_update_whose_answer_was_lost_is_sent_once_under_its_key(support_desk, fault, upstream_requests):
    params, key = {"ticket_id": 15, "ticket": {"status": "open"}}, {"Idempotency-Key": uuid4().hex}
    await fault(path_prefix="/api/v2/tickets/15.json", method="PUT", reset=True, times=1)

    first = await support_desk.send("tickets", "update", params, headers=key)
    second = await support_desk.send("tickets", "update", params, headers=key)
    sent = [each for each in await upstream_requests() if each["path"] == "/api/v2/tickets/15.json"]

    assert (first.status, first.json()["outcome"], first.json()["safe_to_retry"]) == (502, "unknown", True)
    assert first.json()["retryable"] is False
    assert (second.status, second.json()["code"], second.json()["safe_to_retry"]) == (409, "outcome_unknown", True)
    assert len(sent) == 1


async def test_a_limited_job_waits_for_its_time_and_then_continues(api, support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/14.json", status=429, headers={"Retry-After": "12"}, body={}, times=1)
    job = await support_desk.submit("tickets", "get", {"ticket_id": 14})

    waiting = await api.job_once(job, lambda seen: seen["status"] == "waiting")
    job = await api.ended_job(job)

    assert waiting["status"] == "waiting"
    assert waiting["next_attempt_at"] is not None
    assert (job["status"], job["attempt"]) == ("succeeded", 2)


async def test_jobs_are_listed_the_newest_first_and_by_filter(api, support_desk):
    jobs = [await api.ended_job(await support_desk.submit("tickets", "list", {})) for _ in range(3)]
    await api.ended_job(await support_desk.submit("users", "list", {}))
    mine = f"connector_id={support_desk.record['id']}&entity=tickets"

    page = (await api.get(f"/api/v1/jobs?{mine}&limit=2")).json()
    rest = (await api.get(f"/api/v1/jobs?{mine}&limit=2&cursor={page['next_cursor']}")).json()
    by_status = (await api.get(f"/api/v1/jobs?{mine}&status=failed,unknown")).json()
    since = jobs[1]["created_at"]
    later = (await api.get(f"/api/v1/jobs?{mine}&created_after={since}")).json()

    assert [job["id"] for job in page["data"] + rest["data"]] == [job["id"] for job in reversed(jobs)]
    assert rest["next_cursor"] is None
    assert by_status["data"] == []
    assert [job["id"] for job in later["data"]] == [job["id"] for job in reversed(jobs[1:])]


@pytest.mark.parametrize(
    "query", ["created_after=2026-01-01T00:00:00", "workspace_name=%00", "status=done", "limit=0", "cursor=x"]
)
async def test_a_filter_that_cannot_be_is_refused(api, query):
    answer = await api.get(f"/api/v1/jobs?{query}")

    assert answer.status == 422, answer.body


async def test_another_organizations_job_does_not_exist(support_desk, stranger):
    job = await support_desk.submit("tickets", "list", {})
    path = f"/api/v1/jobs/{job['id']}"

    answers = [
        await stranger.get(path),
        await stranger.get(f"{path}/result"),
        await stranger.get(f"{path}/events"),
        await stranger.post(f"{path}/cancel"),
        await stranger.post(f"{path}/retry"),
    ]

    assert {answer.status for answer in answers} == {404}


async def test_one_key_makes_one_write_and_replays_its_answer(support_desk, upstream_requests):
    subject = f"once {uuid4().hex}"
    call = ("tickets", "create", {"ticket": {"subject": subject, "comment": {"body": "b"}}})
    key = {"Idempotency-Key": uuid4().hex}

    first = await support_desk.send(*call, headers=key)
    second = await support_desk.send(*call, headers=key)
    other = await support_desk.send("tickets", "list", {}, headers=key)
    sent = [each for each in await upstream_requests() if subject in each["body"]]

    assert (first.status, second.status) == (200, 200)
    assert first.json()["result"] == second.json()["result"]
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(sent) == 1
    assert (other.status, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_a_key_of_a_job_brings_the_same_job(support_desk):
    key = {"Idempotency-Key": uuid4().hex}

    first = await support_desk.submit("tickets", "list", {}, key)
    second = await support_desk.submit("tickets", "list", {}, key)

    assert second["id"] == first["id"]


async def test_an_answer_of_the_application_is_replayed_and_a_passing_failure_is_not(support_desk, fault):
    refused, passing = ({"Idempotency-Key": uuid4().hex} for _ in range(2))
    await fault(path_prefix="/api/v2/tickets/15.json", status=404, body={"error": "RecordNotFound"}, times=1)
    await fault(path_prefix="/api/v2/tickets/16.json", status=503, body={}, times=3)

    statuses = [
        (await support_desk.send("tickets", "get", {"ticket_id": number}, headers=key)).status
        for number, key in ((15, refused), (15, refused), (16, passing), (16, passing))
    ]

    assert statuses == [404, 404, 502, 200]


async def test_a_caller_that_cannot_follow_jobs_is_redirected_to_the_answer(api, support_desk):
    first = await support_desk.api.call(
        "POST",
        f"{support_desk.path}/execute",
        json={"entity": "ticket_bulk_updates", "action": "create", "params": bulk(2)},
        headers=SDK,
        allow_redirects=False,
    )
    answer = await support_desk.send("ticket_bulk_updates", "create", bulk(2), headers=SDK)

    assert first.status == 303
    assert first.headers["Location"].startswith("/api/v1/jobs/")
    assert answer.status == 200
    assert answer.json()["result"]["succeeded"] == 2


async def test_a_caller_that_cannot_follow_jobs_gets_the_jobs_error(support_desk, fault):
    await fault(path_prefix="/api/v2/tickets/update_many.json", status=403, body={"error": "Forbidden"})

    answer = await support_desk.send("ticket_bulk_updates", "create", bulk(2), headers=SDK)

    assert answer.status == 422
    assert answer.json()["code"] == "upstream_rejected"


async def test_a_job_has_an_audit_entry_at_its_acceptance_and_one_at_its_end(api, support_desk, fault):
    ticket = {"ticket": {"subject": "s", "comment": {"body": "b"}}}
    done = await api.ended_job(await support_desk.submit("tickets", "create", ticket))
    made = (await api.get(f"/api/v1/jobs/{done['id']}/result")).document()["result"]["id"]
    await fault(method="POST", status=422, body={"error": "RecordInvalid"}, times=1)
    refused = await api.ended_job(await support_desk.submit("tickets", "create", ticket))
    await fault(method="POST", reset=True, times=1)
    lost = await api.ended_job(await support_desk.submit("tickets", "create", ticket))
    changed = await api.ended_job(
        await support_desk.submit("tickets", "update", {"ticket_id": 15, "ticket": {"status": "open"}})
    )

    async def all_entries() -> list[Any]:
        path = f"/api/v1/audit?connector_id={support_desk.record['id']}"
        entries = [each for each in (await api.get(path)).document()["data"] if each["what"].startswith("tickets.")]
        return entries if len(entries) == 8 else []

    entries = await eventually(all_entries)
    ends = [each for each in reversed(entries) if each["outcome"] != "accepted"]
    assert [job["status"] for job in (done, refused, lost, changed)] == ["succeeded", "failed", "unknown", "succeeded"]
    assert [each["outcome"] for each in ends] == ["succeeded", "failed", "unknown", "succeeded"]
    assert [each["target"] for each in ends] == [str(made), None, None, "15"]
    assert len({each["request_id"] for each in ends}) == 4
    assert all(each["actor"]["id"] for each in ends)
