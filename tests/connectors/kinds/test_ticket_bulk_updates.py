"""Bulk updates of any size: in batches followed to their end, a result per ticket, taken up where they stopped."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from gateway.connectors.long_running import batches_of_tickets, ticket_ids
from gateway.connectors.prepared import PreparedCall
from gateway.connectors.run_context import MemoryJournal
from gateway.errors import InvalidParams, UpstreamInvalidResponse, UpstreamRateLimited, UpstreamRejected
from gateway.kinds.catalog import load_kind, shipped_specs
from gateway.kinds.params import validated

OPERATION = load_kind(shipped_specs() / "support-desk").operation("ticket_bulk_updates", "create")
CHANGE = {"status": "solved"}


class Notebook(MemoryJournal):
    """A journal that can be opened at a state and read afterwards."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.state = state or {}
        self.states: list[Mapping[str, Any]] = []
        self.told: list[tuple[int, int | None, str]] = []

    async def save(self, state: Mapping[str, Any], records: Sequence[Any] = ()) -> None:
        await super().save(state, records)
        self.states.append(state)

    async def progress(self, done: int, total: int | None, message: str) -> None:
        self.told.append((done, total, message))


@pytest.fixture
def desk(connect):
    return connect("support-desk", {"access_token": "bearing"}, subdomain="acme")


def joined(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def asked(ids: Iterable[int]) -> dict[str, Any]:
    return validated(OPERATION, {"ids": joined(ids), "ticket": CHANGE})


def job(name: str, status: str, **members: Any) -> dict[str, Any]:
    return {"job_status": {"id": name, "status": status, "progress": None, "results": None, **members}}


def updated(ids: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": ticket, "success": True, "action": "update", "status": "Updated"} for ticket in ids]


async def test_250_tickets_go_out_in_three_batches_and_each_comes_back_with_its_result(upstream, desk):
    for name, ids in (("a", range(1, 101)), ("b", range(101, 201)), ("c", range(201, 251))):
        upstream.answers(job(name, "queued"))
        upstream.answers(job(name, "completed", results=updated(ids)))

    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": joined(range(1, 251)), "ticket": CHANGE})

    assert answer.decoded() == {
        "total": 250,
        "succeeded": 250,
        "failed": 0,
        "results": [{"id": ticket, "success": True} for ticket in range(1, 251)],
    }
    assert [(request.method, request.url.path) for request in upstream.received[:2]] == [
        ("PUT", "/api/v2/tickets/update_many.json"),
        ("GET", "/api/v2/job_statuses/a.json"),
    ]
    sent = [request for request in upstream.received if request.method == "PUT"]
    assert [request.url.query["ids"] for request in sent] == [
        joined(range(1, 101)),
        joined(range(101, 201)),
        joined(range(201, 251)),
    ]
    assert all(request.body == {"ticket": CHANGE} for request in sent)


async def test_progress_of_the_batches_adds_up(upstream, desk):
    journal = Notebook()
    upstream.answers(job("a", "queued"))
    upstream.answers(job("a", "working", progress=40))
    upstream.answers(job("a", "completed", progress=100, results=updated(range(1, 101))))
    upstream.answers(job("b", "queued"))
    upstream.answers(job("b", "completed", progress=1, results=[{"id": 101, "success": False, "error": "closed"}]))

    await desk.run(PreparedCall.of(OPERATION, asked(range(1, 102))), journal)

    assert journal.told == [
        (0, 101, "0 of 101 tickets updated"),
        (40, 101, "40 of 101 tickets updated"),
        (100, 101, "100 of 101 tickets updated"),
        (100, 101, "100 of 101 tickets updated"),
        (101, 101, "101 of 101 tickets updated"),
        (101, 101, "100 of 101 tickets updated, 1 failed"),
    ]


@pytest.mark.parametrize(
    ("ending", "results"),
    [
        (
            job("a", "completed", results=[*updated([1]), {"id": 2, "success": False, "error": "TicketClosed"}]),
            [{"id": 1, "success": True}, {"id": 2, "success": False, "error": "TicketClosed"}],
        ),
        (
            job("a", "completed", results=[{"id": 2, "error": "E", "details": "Ticket is closed"}]),
            [{"id": 1, "success": True}, {"id": 2, "success": False, "error": "Ticket is closed"}],
        ),
        (
            job("a", "completed", results=[{"index": 1, "error": "TicketNotFound"}, {"index": 9, "error": "?"}, "?"]),
            [{"id": 1, "success": True}, {"id": 2, "success": False, "error": "TicketNotFound"}],
        ),
        (
            job("a", "completed"),
            [{"id": 1, "success": True}, {"id": 2, "success": True}],
        ),
        (
            job("a", "failed", message="Not allowed"),
            [{"id": 1, "success": False, "error": "Not allowed"}, {"id": 2, "success": False, "error": "Not allowed"}],
        ),
        (
            job("a", "killed", results=updated([2])),
            [{"id": 1, "success": False, "error": "killed"}, {"id": 2, "success": True}],
        ),
    ],
)
async def test_every_ticket_gets_a_result_however_its_batch_ends(upstream, desk, ending, results):
    upstream.answers(job("a", "queued"))
    upstream.answers(ending)

    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": "1,2", "ticket": CHANGE})

    succeeded = sum(result["success"] for result in results)
    assert answer.decoded() == {"total": 2, "succeeded": succeeded, "failed": 2 - succeeded, "results": results}


async def test_what_was_started_is_noted_before_it_is_followed(upstream, desk):
    journal = Notebook()
    upstream.answers(job("a", "queued"))
    upstream.answers(job("a", "completed", results=updated([1])))

    await desk.run(PreparedCall.of(OPERATION, asked([1])), journal)

    assert journal.states == [
        {"finished": 0, "tally": {"succeeded": 0, "failed": 0}, "started": "a"},
        {"finished": 1, "tally": {"succeeded": 1, "failed": 0}},
    ]


async def test_a_batch_that_was_started_is_followed_and_not_sent_again(upstream, desk):
    journal = Notebook({"finished": 1, "tally": {"succeeded": 98, "failed": 2}, "started": "b"})
    upstream.answers(job("b", "working", progress=10))
    upstream.answers(job("b", "completed", results=updated(range(101, 151))))

    answer = await desk.run(PreparedCall.of(OPERATION, asked(range(1, 151))), journal)

    assert [request.url.path for request in upstream.received] == ["/api/v2/job_statuses/b.json"] * 2
    assert answer.decoded() == {"total": 150, "succeeded": 148, "failed": 2, "results": []}
    assert answer.collected == "results"
    assert [record["id"] for record in journal.records] == list(range(101, 151))


async def test_finished_batches_are_not_sent_again(upstream, desk):
    journal = Notebook({"finished": 1, "tally": {"succeeded": 100, "failed": 0}})
    upstream.answers(job("b", "queued"))
    upstream.answers(job("b", "completed", results=updated([101])))

    await desk.run(PreparedCall.of(OPERATION, asked(range(1, 102))), journal)

    assert [request.url.query.get("ids") for request in upstream.received] == ["101", None]


async def test_a_run_that_was_done_is_only_told(upstream, desk):
    journal = Notebook({"finished": 1, "tally": {"succeeded": 2, "failed": 0}})

    answer = await desk.run(PreparedCall.of(OPERATION, asked([1, 2])), journal)

    assert upstream.received == []
    assert answer.decoded()["succeeded"] == 2


async def test_an_application_that_is_away_for_a_moment_does_not_end_the_run(upstream, desk):
    upstream.answers(job("a", "queued"))
    for _ in range(3):
        upstream.answers({"error": "maintenance"}, 503)
    upstream.answers(job("a", "completed", results=updated([1])))

    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})

    assert answer.decoded()["succeeded"] == 1


async def test_a_status_that_nobody_knows_ends_the_run(upstream, desk):
    upstream.answers(job("a", "queued"))
    upstream.answers(job("a", "paused"))

    with pytest.raises(UpstreamInvalidResponse, match="unknown status 'paused'"):
        await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})


@pytest.mark.parametrize("body", [{}, {"job_status": None}, {"job_status": {"status": "queued"}}])
async def test_a_batch_without_a_job_to_follow_ends_the_run(upstream, desk, body):
    upstream.answers(body)

    with pytest.raises(UpstreamInvalidResponse, match="without naming its job"):
        await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})


async def test_a_full_job_queue_leaves_the_run_where_it_was(upstream, desk):
    journal = Notebook({"finished": 1, "tally": {"succeeded": 100, "failed": 0}})
    upstream.answers({"error": "TooManyJobs"}, 429, {"Retry-After": "60"})

    with pytest.raises(UpstreamRateLimited) as limited:
        await desk.run(PreparedCall.of(OPERATION, asked(range(1, 102))), journal)

    assert limited.value.retry_after == 60
    assert journal.states == []


async def test_a_refused_batch_ends_the_run_with_the_applications_words(upstream, desk):
    upstream.answers({"error": "Forbidden", "description": "Agents only"}, 403)

    with pytest.raises(UpstreamRejected, match="Agents only"):
        await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})


@pytest.mark.parametrize(
    ("text", "ids"), [("1", ["1"]), (" 1, 2 ,3", ["1", "2", "3"]), ("1,1,2,1", ["1", "2"]), ("2,1", ["2", "1"])]
)
def test_ids_are_taken_in_order_and_once(text, ids):
    assert ticket_ids(text) == ids


@pytest.mark.parametrize("text", ["", " , ", "1,a", "1;2", "-1", "1.5", "١"])
def test_what_is_no_id_is_refused(text):
    with pytest.raises(InvalidParams, match="digits separated by commas"):
        ticket_ids(text)


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_a_batch_holds_at_most_100_tickets(count, sizes):
    batches = batches_of_tickets({"ids": joined(range(count)), "ticket": CHANGE})

    assert [len(batch["ids"].split(",")) for batch in batches] == sizes
    assert all(batch["ticket"] == CHANGE for batch in batches)
