"""Execute with all of its options."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.harness.caller import ASYNC, CREDENTIALS
from tests.harness.sandbox import fault
from tests.harness.waiting import eventually


async def test_a_list_answers_records_and_meta(support_desk):
    document = await support_desk.execute("tickets", "list", {"per_page": 2})

    assert document["status"] == "success"
    assert [ticket["id"] for ticket in document["result"]] == [1, 2]
    assert set(document["connector_metadata"]) == {"next_page", "previous_page", "count"}
    assert document["execution_metadata"]["connector_instance_id"] == support_desk.record["id"]


async def test_meta_leads_to_the_next_page(support_desk):
    first = await support_desk.execute("tickets", "list", {"per_page": 2})
    second = await support_desk.execute("tickets", "list", {"per_page": 2, "page": 2})

    assert "page=2" in first["connector_metadata"]["next_page"]
    assert [ticket["id"] for ticket in second["result"]] == [3, 4]


async def test_what_is_written_can_be_read(support_desk):
    ticket = {"subject": "printer on fire", "comment": {"body": "please hurry"}, "priority": "urgent"}

    created = await support_desk.execute("tickets", "create", {"ticket": ticket})
    ticket_id = created["result"]["id"]
    await support_desk.execute("tickets", "update", {"ticket_id": ticket_id, "ticket": {"status": "solved"}})
    read = await support_desk.execute("tickets", "get", {"ticket_id": ticket_id})

    assert read["result"]["subject"] == "printer on fire"
    assert read["result"]["status"] == "solved"


async def test_limit_is_understood_by_every_list(support_desk):
    paged = await support_desk.execute("tickets", "list", {"limit": 3})

    assert len(paged["result"]) == 3


async def test_only_the_selected_fields_come_back(support_desk):
    selected = await support_desk.execute("tickets", "get", {"ticket_id": 1}, select_fields=["id", "via.channel"])
    excluded = await support_desk.execute("tickets", "get", {"ticket_id": 1}, exclude_fields=["subject"])

    assert set(selected["result"]) <= {"id", "via"}
    assert "subject" not in excluded["result"]
    assert "status" in excluded["result"]


async def test_long_texts_are_cut_only_when_asked(support_desk):
    long = "x" * 5000
    created = await support_desk.execute("tickets", "create", {"ticket": {"subject": "s", "description": long}})
    params = {"ticket_id": created["result"]["id"]}

    whole = await support_desk.execute("tickets", "get", params)
    cut = await support_desk.execute("tickets", "get", params, skip_truncation=False)

    assert whole["result"]["description"] == long
    assert len(cut["result"]["description"]) < 1100


async def test_a_dry_run_shows_the_request_and_sends_nothing(support_desk, upstream_requests):
    before = len(await upstream_requests())

    document = await support_desk.execute("tickets", "create", {"ticket": {"subject": "canary"}}, dry_run=True)

    assert len(await upstream_requests()) == before
    [request] = document["result"]
    assert (request["method"], request["body"]) == ("POST", {"ticket": {"subject": "canary"}})
    assert request["url"].endswith("/api/v2/tickets.json")
    assert request["headers"]["Authorization"] == "***"


async def test_a_dry_run_of_a_bulk_update_shows_each_batch(support_desk):
    ids = ",".join(map(str, range(1, 251)))

    document = await support_desk.execute(
        "ticket_bulk_updates", "create", {"ids": ids, "ticket": {"status": "open"}}, dry_run=True
    )

    assert len(document["result"]) == 3


@pytest.mark.parametrize(
    ("entity", "action", "params", "status", "code", "said"),
    [
        ("ticket", "list", None, 422, "unknown_entity", "did you mean tickets?"),
        ("tickets", "lst", None, 422, "unknown_action", "did you mean list?"),
        ("tickets", "get", None, 422, "invalid_params", "ticket_id is missing"),
        ("tickets", "get", {"ticket_id": "x"}, 422, "invalid_params", "ticket_id is 'x'; expected integer"),
        ("tickets", "list", {"per_page": 101}, 422, "invalid_params", "at most 100"),
        ("tickets", "list", {"sort_ordr": "asc"}, 422, "invalid_params", "did you mean sort_order?"),
        ("tickets", "create", {"ticket": {"subject": "s", "status": "closed"}}, 422, "invalid_params", "allowed: new"),
        ("tickets", "get", {"ticket_id": 10**12}, 404, "upstream_not_found", "404"),
    ],
)
async def test_what_is_wrong_is_said_so_that_it_can_be_mended(support_desk, entity, action, params, status, code, said):
    answer = await support_desk.send(entity, action, params)

    assert (answer.status, answer.json()["code"]) == (status, code)
    assert said in answer.json()["message"]
    assert answer.headers["Content-Type"].startswith("application/problem+json")


async def test_all_faults_are_reported_at_once(support_desk):
    answer = await support_desk.send("tickets", "list", {"page": 0, "sort_by": "up", "colour": "red"})

    assert {fault["field"] for fault in answer.json()["errors"]} == {"page", "sort_by", "colour"}
    assert all(fault["message"].startswith("tickets.list: ") for fault in answer.json()["errors"])


async def test_one_key_is_one_write_and_its_answer_is_replayed(support_desk):
    params = {"ticket": {"subject": "once"}}

    first = await support_desk.send("tickets", "create", params, headers={"Idempotency-Key": "key-1"})
    second = await support_desk.send("tickets", "create", params, headers={"Idempotency-Key": "key-1"})
    other = await support_desk.send(
        "tickets", "create", {"ticket": {"subject": "other"}}, headers={"Idempotency-Key": "key-1"}
    )

    assert first.json()["result"]["id"] == second.json()["result"]["id"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert (other.status, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_a_bulk_update_runs_on_a_worker_to_a_result_for_each_ticket(support_desk):
    params = {"ids": ",".join(map(str, range(1, 121))), "ticket": {"status": "pending"}}

    accepted = await support_desk.send("ticket_bulk_updates", "create", params)
    job = accepted.json()["job"]
    result = await support_desk.api.get(f"/api/v1/jobs/{job['id']}/result?wait=30")
    ended = await support_desk.api.get(f"/api/v1/jobs/{job['id']}")

    assert accepted.status == 202
    assert accepted.headers["Location"] == f"/api/v1/jobs/{job['id']}"
    assert result.json()["result"]["succeeded"] == 120
    assert len(result.json()["result"]["results"]) == 120
    assert (ended.json()["status"], ended.json()["progress"]) == ("succeeded", 120)


async def test_kinds_and_their_docs_can_be_discovered(api):
    kinds = (await api.get("/api/v1/integrations/connector-types")).json()["data"]
    desk = (await api.get("/api/v1/integrations/connector-types/Support_Desk")).json()
    docs = (await api.get("/api/v1/skills/docs?id=support-desk&section=tickets")).json()

    assert "support-desk" in {kind["kind"] for kind in kinds}
    assert desk["entities"]["tickets"]["actions"]["create"]["params"]["required"] == ["ticket"]
    assert docs["section_id"] == "tickets"
    assert json.dumps(docs["content"]).count('"heading"') >= 4


async def test_what_was_done_is_in_the_audit_log_without_its_params(support_desk):
    await support_desk.send("tickets", "create", {"ticket": {"subject": "canary-8c2"}}, intent="to see the log")
    path = f"/api/v1/audit?connector_id={support_desk.record['id']}"

    entries = []
    async with asyncio.timeout(10):
        while not any(entry["what"] == "tickets.create" for entry in entries):
            answer = await support_desk.api.get(path)
            entries = answer.json()["data"]

    assert b"canary-8c2" not in answer.body
    assert [entry["intent"] for entry in entries if entry["what"] == "tickets.create"] == ["to see the log"]


async def test_requests_under_a_key_have_an_entry_each_and_one_says_what_was_made(support_desk):
    key, body = {"Idempotency-Key": uuid4().hex}, {"ticket": {"subject": "s", "comment": {"body": "b"}}}
    first = await support_desk.send("tickets", "create", body, headers=key, intent="to see the log")
    repeated = await support_desk.send("tickets", "create", body, headers=key)
    other = await support_desk.send("tickets", "create", {"ticket": {**body["ticket"], "subject": "t"}}, headers=key)

    async def three() -> list[Any]:
        path = f"/api/v1/audit?connector_id={support_desk.record['id']}&operation=tickets.create"
        entries: list[Any] = (await support_desk.api.get(path)).document()["data"]
        return entries if len(entries) == 3 else []

    entries, made = await eventually(three), str(first.document()["result"]["id"])
    assert (repeated.document()["result"]["id"], other.status) == (first.document()["result"]["id"], 422)
    assert [(each["outcome"], each["target"]) for each in reversed(entries)] == [
        ("succeeded", made),
        ("succeeded", made),
        ("idempotency_mismatch", None),
    ]
    assert (entries[2]["changed"], entries[2]["intent"]) == (["ticket.comment", "ticket.subject"], "to see the log")
    assert entries[2]["took_ms"] is not None


WAYS = {
    "execute": lambda desk: desk.send("brands", "list"),
    "job": lambda desk: desk.send("brands", "list", headers={"Prefer": "wait=20"}),
    "download": lambda desk: desk.send("attachments", "download", {"attachment_id": 7}),
    "check": lambda desk: desk.api.post(f"{desk.path}/check"),
    "synchronization": lambda desk: desk.api.post(f"{desk.path}/context-store/sync", {"entities": ["groups"]}),
}


@pytest.mark.parametrize("way", WAYS)
async def test_whoever_is_refused_the_connector_says_that_it_needs_new_credentials(api, running, way):
    secret = "canary-c0ffee-51"
    desk = await api.connector(credentials={**CREDENTIALS, "api_token": secret})
    body = {"error": "no", "description": f"{secret} is refused"}
    async with fault(running.sandbox_url, path_prefix="/api/v2/", status=401, body=body):
        answer = await WAYS[way](desk)

        async def inactive():
            record = (await api.get(desk.path)).json()
            return None if record["status"] == "active" else record

        record = await eventually(inactive)
    jobs = await api.get(f"/api/v1/jobs?connector_id={desk.record['id']}")

    assert record["status"] == "needs_reauth"
    assert "401" in record["status_reason"]
    assert secret not in f"{record}{answer.body!r}{jobs.body!r}"


async def test_refused_credentials_make_the_connector_ask_for_new_ones(support_desk, running):
    async with fault(running.sandbox_url, path_prefix="/api/v2/brands", status=401):
        refused = await support_desk.send("brands", "list")
    after = await support_desk.api.get(support_desk.path)
    blocked = await support_desk.send("tickets", "list")
    await support_desk.api.call("PATCH", support_desk.path, json={"credentials": CREDENTIALS})
    mended = await support_desk.send("tickets", "list")

    assert (refused.status, refused.json()["code"]) == (424, "reauthorization_required")
    assert after.json()["status"] == "needs_reauth"
    assert (blocked.status, blocked.json()["connector_status"]) == (409, "needs_reauth")
    assert mended.status == 200


async def test_following_next_reads_the_whole_list_and_ends(support_desk):
    params, pages = {"per_page": 2}, []
    while params is not None and len(pages) < 4:
        document = await support_desk.execute("tickets", "list", params)
        pages.append([record["id"] for record in document["result"]])
        params = document["next"]
    job = await support_desk.submit("tickets", "list", {"per_page": 2})
    result = await support_desk.api.get(f"/api/v1/jobs/{job['id']}/result?wait=20")
    found = await support_desk.execute("tickets", "context_store_search", {"query": {}, "limit": 1})
    single = await support_desk.execute("tickets", "get", {"ticket_id": pages[0][0]})

    assert len({id_ for page in pages for id_ in page}) == 8
    assert result.json()["next"] == {"per_page": 2, "page": 2}
    assert "next" in found
    assert "next" not in single


async def test_numbers_as_text_and_ids_as_an_array_are_understood(support_desk):
    listed = await support_desk.execute("tickets", "list", {"limit": "3"})
    ids = [record["id"] for record in listed["result"]]
    bulk = {"ids": [str(id_) for id_ in ids], "ticket": {"priority": "low"}}
    updated = await support_desk.send("ticket_bulk_updates", "create", bulk, headers={"Prefer": "wait=30"})

    assert len(ids) == 3
    assert updated.json()["result"]["succeeded"] == 3


async def test_a_refusal_names_unknown_fields_and_carries_an_example(support_desk):
    fields = await support_desk.send("tickets", "list", {}, select_fields=["subjet"])
    searched = await support_desk.send("tickets", "context_store_search", {"query": {}}, exclude_fields=["subjet"])
    params = await support_desk.send("tickets", "get", {"ticket_id": "x"})

    assert [answer.status for answer in (fields, searched, params)] == [422, 422, 422]
    assert "did you mean subject?" in fields.json()["detail"]
    assert "did you mean subject?" in searched.json()["errors"][0]["message"]
    assert params.json()["example"]["entity"] == "tickets"
    assert params.json()["detail"] == params.json()["message"] == params.json()["errors"][0]["message"]


async def test_a_caller_may_accept_a_remembered_answer_until_something_is_written(support_desk):
    fresh = {"Cache-Control": "max-age=60"}
    params = {"per_page": 1}

    absent = await support_desk.send("tickets", "list", params, {"Cache-Control": "only-if-cached"})
    plain = await support_desk.send("tickets", "list", params)
    first = await support_desk.send("tickets", "list", params, fresh)
    again = await support_desk.send("tickets", "list", params, fresh)
    selected = await support_desk.send("tickets", "list", params, fresh, select_fields=["id"])
    await support_desk.send("tickets", "update", {"ticket_id": 1, "ticket": {"priority": "high"}})
    after = await support_desk.send("tickets", "list", params, fresh)

    assert (absent.status, absent.json()["code"]) == (504, "not_cached")
    assert "Cache-Status" not in plain.headers
    assert [answer.headers["Cache-Status"] for answer in (first, again, selected, after)] == [
        *("gateway; fwd=miss", "gateway; hit", "gateway; hit", "gateway; fwd=miss"),
    ]
    assert int(again.headers["Age"]) < 60
    assert again.json()["result"] == first.json()["result"]
    assert selected.json()["result"] == [{"id": first.json()["result"][0]["id"]}]


async def test_a_caller_that_waits_may_accept_a_remembered_answer(support_desk):
    fresh = {"Cache-Control": "max-age=60"}
    waiting = {**fresh, "Prefer": "wait=20"}
    params = {"per_page": 4}

    asked = await support_desk.send("tickets", "list", params, waiting)
    await support_desk.send("tickets", "list", params, fresh)
    remembered = await support_desk.send("tickets", "list", params, waiting)
    accepted = await support_desk.send("tickets", "list", params, {**fresh, **ASYNC})

    assert [answer.headers["Cache-Status"] for answer in (asked, remembered)] == ["gateway; fwd=miss", "gateway; hit"]
    assert remembered.headers["Preference-Applied"] == "wait=20"
    assert accepted.status == 202


async def test_only_if_cached_with_no_cache_does_not_ask_the_application(support_desk):
    await support_desk.send("tickets", "list", {}, {"Cache-Control": "max-age=60"})

    absent = await support_desk.send("tickets", "list", {}, {"Cache-Control": "only-if-cached, no-cache"})

    assert (absent.status, absent.json()["code"]) == (504, "not_cached")


@pytest.mark.parametrize(
    "headers", [{"Prefer": "respond-async"}, {"Prefer": "wait=20"}, {"Idempotency-Key": "only-if-cached"}]
)
async def test_only_if_cached_asks_the_application_by_no_way(support_desk, headers):
    params = {"per_page": 3}
    only_cached = {"Cache-Control": "only-if-cached", **headers}

    absent = await support_desk.send("tickets", "list", params, only_cached)
    await support_desk.send("tickets", "list", params, {"Cache-Control": "max-age=60"})
    cached = await support_desk.send("tickets", "list", params, only_cached)

    assert (absent.status, absent.json()["code"]) == (504, "not_cached")
    assert (cached.status, cached.headers["Cache-Status"]) == (200, "gateway; hit")
