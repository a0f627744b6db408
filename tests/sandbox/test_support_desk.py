"""The support desk of the sandbox, called by the gateway's engine."""

import aiohttp
import pytest
from yarl import URL

from gateway.errors import UpstreamNotFound, UpstreamRejected
from gateway.sandbox.kinds.support_desk.application import SupportDesk


@pytest.fixture
def desk(connect):
    return connect("support-desk")


async def test_a_list_continues_on_its_second_page(desk):
    pages = desk.pages("tickets", "list", {"per_page": 2})

    first, second = [await anext(pages) for _ in range(2)]

    assert [ticket["id"] for ticket in first.decoded() + second.decoded()] == [1, 2, 3, 4]
    assert first.meta["count"] == 500
    assert first.meta["previous_page"] is None
    assert URL(second.meta["previous_page"]).query["page"] == "1"


async def test_two_sandboxes_with_one_seed_have_the_same_records(catalog, desk):
    known = await desk.execute("tickets", "get", {"ticket_id": 7})

    assert SupportDesk(catalog.kind("support-desk"), seed=7).store.table("tickets").get(7).record == known.decoded()


async def test_a_created_record_is_listed_and_can_be_changed(desk):
    created = await desk.execute(
        "tickets", "create", {"ticket": {"subject": "New", "external_id": "x-1", "comment": {"body": "Hello"}}}
    )
    ticket_id = created.decoded()["id"]
    await desk.execute("tickets", "update", {"ticket_id": ticket_id, "ticket": {"status": "open", "tags": ["a"]}})
    await desk.execute("ticket_comments", "create", {"ticket_id": ticket_id, "ticket": {"comment": {"body": "Again"}}})

    found = (await desk.execute("tickets", "list", {"external_id": "x-1"})).decoded()
    comments = (await desk.execute("ticket_comments", "list", {"ticket_id": ticket_id})).decoded()
    audits = (await desk.execute("ticket_audits", "list", {"ticket_id": ticket_id})).decoded()

    assert [(ticket["id"], ticket["status"], ticket["tags"]) for ticket in found] == [(ticket_id, "open", ["a"])]
    assert [comment["body"] for comment in comments] == ["Hello", "Again"]
    assert len(audits) == 2


async def test_lists_are_filtered_and_sorted_as_requested(desk):
    agents = (await desk.execute("users", "list", {"role": "agent", "per_page": 100})).decoded()
    latest = (await desk.execute("tickets", "list", {"sort_by": "updated_at", "sort_order": "desc"})).decoded()

    assert {user["role"] for user in agents} == {"agent"}
    assert latest == sorted(latest, key=lambda ticket: ticket["updated_at"], reverse=True)


async def test_a_bulk_update_changes_every_ticket_and_names_those_that_are_missing(desk):
    ids = ",".join(str(number) for number in [*range(1, 121), 99_999])

    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": ids, "ticket": {"status": "hold"}})

    report = answer.decoded()
    assert (report["total"], report["succeeded"] + report["failed"]) == (121, 121)
    refused = {result["id"] for result in report["results"] if not result["success"]}
    ticket = (await desk.execute("tickets", "get", {"ticket_id": 120})).decoded()
    assert refused == {99_999}
    assert ticket["status"] == "hold"


async def test_many_tickets_are_created_changed_one_by_one_and_deleted(desk):
    made = await desk.execute(
        "tickets", "create_many", {"tickets": [{"subject": "One"}, {"subject": "x", "group_id": 1}, {"subject": "Two"}]}
    )
    first, refused, second = made.decoded()["results"]
    changes = [{"id": first["id"], "priority": "high"}, {"id": second["id"], "status": "solved"}, {"id": 99_999}]
    changed = await desk.execute("tickets", "update_many", {"tickets": changes})
    tickets = [(await desk.execute("tickets", "get", {"ticket_id": each["id"]})).decoded() for each in (first, second)]
    deleted = await desk.execute("tickets", "delete_many", {"ids": f"{first['id']},{second['id']}"})

    assert (refused["id"], refused["success"]) == (None, False)
    assert [each["success"] for each in changed.decoded()["results"]] == [True, True, False]
    assert [(each["subject"], each["priority"], each["status"]) for each in tickets] == [
        ("One", "high", "new"),
        ("Two", None, "solved"),
    ]
    assert deleted.decoded()["message"] == "2 of 2 tickets deleted"
    with pytest.raises(UpstreamNotFound):
        await desk.execute("tickets", "get", {"ticket_id": first["id"]})


async def test_changes_of_tickets_are_listed_until_the_stream_ends(desk):
    pages = [page.decoded() async for page in desk.pages("tickets", "list_changes", {"start_time": 0, "per_page": 200})]

    assert [len(page) for page in pages] == [200, 200, 100]


async def test_a_running_job_reports_its_progress(slow_http):
    ids = ",".join(str(number) for number in range(1, 101))
    headers = {"Authorization": "Bearer token"}
    async with slow_http.put(
        f"/api/v2/tickets/update_many.json?ids={ids}", json={"ticket": {"priority": "low"}}, headers=headers
    ) as answer:
        started = (await answer.json())["job_status"]

    seen = [started]
    while seen[-1]["status"] != "completed":
        async with slow_http.get(f"/api/v2/job_statuses/{started['id']}.json", headers=headers) as answer:
            seen.append((await answer.json())["job_status"])

    assert started["status"] == "queued"
    assert any(0 < job["progress"] < 100 for job in seen)
    assert len(seen[-1]["results"]) == 100


@pytest.mark.parametrize(
    ("entity", "action", "params", "error", "code"),
    [
        ("tickets", "get", {"ticket_id": 99_999}, UpstreamNotFound, "RecordNotFound"),
        ("ticket_comments", "list", {"ticket_id": 99_999}, UpstreamNotFound, "RecordNotFound"),
        ("tickets", "list", {"page": 101, "per_page": 100}, UpstreamRejected, "BadRequest"),
        ("tickets", "create", {"ticket": {"subject": "x", "group_id": 1}}, UpstreamRejected, "RecordInvalid"),
    ],
)
async def test_errors_have_the_applications_own_code(desk, entity, action, params, error, code):
    with pytest.raises(error) as refused:
        await desk.execute(entity, action, params)

    assert refused.value.upstream.code == code


async def test_the_user_name_of_basic_credentials_ends_with_token(http):
    statuses = []
    for user in ("ann@example.com/token", "ann@example.com"):
        headers = {"Authorization": aiohttp.encode_basic_auth(user, "secret")}
        async with http.get("/api/v2/users/me.json", headers=headers) as answer:
            statuses.append(answer.status)

    assert statuses == [200, 401]


@pytest.mark.parametrize("ids", [",".join(["1"] * 101), ""])
async def test_an_invalid_batch_is_refused(http, ids):
    async with http.put(
        f"/api/v2/tickets/update_many.json?ids={ids}",
        json={"ticket": {"status": "open"}},
        headers={"Authorization": "Bearer token"},
    ) as answer:
        document = await answer.json()

    assert (answer.status, document["error"]) == (400, "BadRequest")


async def test_jobs_beyond_thirty_are_refused(slow_http):
    body, headers = {"ticket": {"status": "open"}}, {"Authorization": "Bearer token"}

    statuses = []
    for _ in range(31):
        async with slow_http.put("/api/v2/tickets/update_many.json?ids=1", json=body, headers=headers) as answer:
            statuses.append(answer.status)

    assert statuses == [200] * 30 + [429]


async def test_an_invalid_body_is_refused_with_the_applications_code(http):
    body, headers = {"ticket": {"subject": "Hi", "status": "closed"}}, {"Authorization": "Bearer token"}

    async with http.post("/api/v2/tickets.json", json=body, headers=headers) as answer:
        said = await answer.json()

    assert (answer.status, said["error"]) == (422, "RecordInvalid")
    assert "closed" in said["description"]


async def test_a_file_of_an_article_can_have_any_size(desk):
    answer = await desk.execute("article_attachments", "get", {"article_id": 360001, "attachment_id": 64})

    assert answer.decoded()["size"] == 64 << 20
