"""Bulk updates of any size: batches side by side, followed to their end, a result per ticket, taken up where left."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.errors import (
    InvalidParams,
    JobCanceled,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.kinds.params import validated
from gateway.upstream.long_running.item_results import item_lines, masked
from gateway.upstream.long_running.portions import portions_of
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.redaction import Secrets
from gateway.upstream.run_context import Effects, InMemoryRunContext
from tests.harness.waiting import eventually

pytestmark = pytest.mark.usefixtures("skipped_pauses")

OPERATION = load_kind(shipped_specs() / "support-desk").operation("ticket_bulk_updates", "create")
CHANGE = {"status": "solved"}
SECRETS = Secrets(["bearing-1234"])

Answer = tuple[Any, int, Mapping[str, str]]


class Desk:
    """A support desk that takes batches; the name of a batch is the first of its tickets."""

    def __init__(self) -> None:
        self.received: list[web.Request] = []
        #: the ids of each batch that was started
        self.started: list[str] = []
        self.bodies: list[Any] = []
        #: jobs that may be queued or running
        self.room = 30
        self.running: set[str] = set()
        self.most_running = 0
        #: answers to the next looks at a batch; without any it has completed
        self.looks: dict[str, deque[Answer]] = {}
        #: answers to starts, by the batch, in place of taking it
        self.refusals: dict[str, Answer] = {}
        #: while it is not set, no batch ends
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.origin = URL()

    def tells(self, batch: int, body: Any, status: int = 200, **headers: str) -> None:
        """The answer to the next look at a batch."""
        self.looks.setdefault(str(batch), deque()).append((body, status, headers))

    def refuses(self, batch: int, body: Any, status: int, **headers: str) -> None:
        """What a batch is answered when it is started."""
        self.refusals[str(batch)] = (body, status, headers)

    async def handle(self, request: web.Request) -> web.Response:
        self.received.append(request)
        if request.method == "PUT":
            return _response(await self._start(request))
        return _response(self._look(request.path.rsplit("/", 1)[1].removesuffix(".json")))

    async def _start(self, request: web.Request) -> Answer:
        ids = request.query["ids"].split(",")
        if ids[0] in self.refusals:
            return self.refusals.pop(ids[0])
        if len(self.running) >= self.room:
            return {"error": "TooManyJobs"}, 429, {}
        self.started.append(request.query["ids"])
        self.bodies.append(await request.json())
        self.running.add(ids[0])
        self.most_running = max(self.most_running, len(self.running))
        return job(ids[0], "queued"), 200, {}

    def _look(self, name: str) -> Answer:
        if self.looks.get(name):
            answer = self.looks[name].popleft()
        elif self.may_end.is_set():
            ids = next(ids for ids in self.started if ids.startswith(name)).split(",")
            answer = (job(name, "completed", results=updated(map(int, ids))), 200, {})
        else:
            answer = (job(name, "working"), 200, {})
        if "completed" in str(answer[0]) or "failed" in str(answer[0]):
            self.running.discard(name)
        return answer


def _response(answer: Answer) -> web.Response:
    body, status, headers = answer
    return web.json_response(
        body, status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


class Notebook(InMemoryRunContext):
    """A run context that can be opened at a state and read afterwards."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.state = state or {}
        self.states: list[Mapping[str, Any]] = []
        self.told: list[tuple[int, int | None, str]] = []

    async def mark_in_flight(self) -> None:
        if self.is_canceled:
            raise JobCanceled("canceled; nothing was done")

    async def checkpoint(
        self, state: Mapping[str, Any], records: Sequence[Any] = (), part: int | None = None, *, answers: int = 0
    ) -> None:
        await super().checkpoint(state, records, part)
        self.states.append(state)

    async def progress(self, done: int, total: int | None, message: str) -> None:
        self.told.append((done, total, message))


@pytest.fixture
async def upstream() -> AsyncIterator[Desk]:
    desk = Desk()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", desk.handle)
    async with TestServer(application) as server:
        desk.origin = server.make_url("/").origin()
        yield desk


@pytest.fixture
def desk(connect):
    return connect("support-desk", {"access_token": "bearing"}, subdomain="acme")


def joined(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def asked(ids: Iterable[int]) -> dict[str, Any]:
    return validated(OPERATION, {"ids": joined(ids), "ticket": CHANGE})


def job(name: Any, status: str, **members: Any) -> dict[str, Any]:
    return {"job_status": {"id": f"{name}", "status": status, "progress": None, "results": None, **members}}


def updated(ids: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": ticket, "success": True, "action": "update", "status": "Updated"} for ticket in ids]


async def test_250_tickets_go_out_in_three_batches_and_each_comes_back_with_its_result(upstream, desk):
    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": joined(range(1, 251)), "ticket": CHANGE})

    assert answer.decoded() == {
        "status": "completed",
        "total": 250,
        "progress": 250,
        "message": "250 of 250 tickets updated",
        "succeeded": 250,
        "failed": 0,
        "results": [{"id": ticket, "success": True} for ticket in range(1, 251)],
    }
    assert set(upstream.started) == {joined(range(1, 101)), joined(range(101, 201)), joined(range(201, 251))}
    assert {request.path for request in upstream.received if request.method == "PUT"} == {
        "/api/v2/tickets/update_many.json"
    }
    assert upstream.bodies == [{"ticket": CHANGE}] * 3


async def test_batches_run_side_by_side_as_many_as_the_application_takes(upstream, desk):
    upstream.may_end.clear()
    run = asyncio.create_task(desk.run(PreparedCall.of(OPERATION, asked(range(1, 4001))), Notebook()))
    await eventually(lambda: len(upstream.running) == 30)
    upstream.may_end.set()
    answer = await run

    assert answer.decoded()["succeeded"] == 4000
    assert len(upstream.started) == 40
    assert upstream.most_running == 30


async def test_where_the_application_takes_fewer_the_run_waits_for_its_own_and_starts_none_twice(upstream, desk):
    upstream.room, run_context = 2, Notebook()

    answer = await desk.run(PreparedCall.of(OPERATION, asked(range(1, 701))), run_context)

    assert answer.decoded()["succeeded"] == 700
    assert len(upstream.started) == len(set(upstream.started)) == 7
    assert upstream.most_running == 2
    assert [record["id"] for record in run_context.records] == list(range(1, 701))


async def test_progress_of_the_batches_adds_up(upstream, desk):
    run_context = Notebook()
    upstream.tells(1, job(1, "working", progress=40))
    upstream.tells(1, job(1, "working", progress=70))
    upstream.tells(101, job(101, "completed", progress=1, results=[{"id": 101, "success": False, "error": "closed"}]))

    await desk.run(PreparedCall.of(OPERATION, asked(range(1, 102))), run_context)

    assert {(40, 101, "40 of 101 tickets updated"), (41, 101, "41 of 101 tickets updated")} & set(run_context.told)
    assert (71, 101, "71 of 101 tickets updated") in run_context.told
    assert run_context.told[-1] == (101, 101, "100 of 101 tickets updated, 1 failed")


@pytest.mark.parametrize(
    ("ending", "results"),
    [
        (
            job(1, "completed", results=[*updated([1]), {"id": 2, "success": False, "error": "TicketClosed"}]),
            [{"id": 1, "success": True}, {"id": 2, "success": False, "error": "TicketClosed"}],
        ),
        (
            job(1, "completed", results=[{"id": 2, "error": "E", "details": "Ticket is closed"}]),
            [{"id": 1, "success": True}, {"id": 2, "success": False, "error": "Ticket is closed"}],
        ),
        (
            job(1, "completed", results=[{"index": 1, "error": "TicketNotFound"}, {"index": 9, "error": "?"}, "?"]),
            [{"id": 1, "success": True}, {"id": 2, "success": False, "error": "TicketNotFound"}],
        ),
        (
            job(1, "completed"),
            [{"id": 1, "success": True}, {"id": 2, "success": True}],
        ),
        (
            job(1, "failed", message="Not allowed"),
            [{"id": 1, "success": False, "error": "Not allowed"}, {"id": 2, "success": False, "error": "Not allowed"}],
        ),
        (
            job(1, "killed", results=updated([2])),
            [{"id": 1, "success": False, "error": "killed"}, {"id": 2, "success": True}],
        ),
    ],
)
async def test_every_ticket_gets_a_result_however_its_batch_ends(upstream, desk, ending, results):
    upstream.tells(1, ending)

    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": "1,2", "ticket": CHANGE})

    succeeded = sum(result["success"] for result in results)
    record = answer.decoded()
    assert (record["succeeded"], record["failed"], record["results"]) == (succeeded, 2 - succeeded, results)


async def test_what_was_started_is_noted_before_it_is_followed(upstream, desk):
    run_context = Notebook()

    await desk.run(PreparedCall.of(OPERATION, asked([1])), run_context)

    started, finished = run_context.states
    assert (started["started"], started["finished"]) == ({"0": "1"}, {})
    assert (finished["started"], finished["finished"]) == ({}, {"0": {"succeeded": 1, "failed": 0, "unknown": 0}})


async def test_what_is_sure_is_in_the_state(upstream, desk):
    run_context = Notebook()

    await desk.run(PreparedCall.of(OPERATION, asked([1, 2])), run_context)

    started, finished = (Effects.of(state) for state in run_context.states)
    assert (started.is_open, started.known["batches_started"], started.known["items_done"]) == (True, 1, 0)
    assert (finished.is_open, finished.known["batches_finished"], finished.known["items_done"]) == (False, 1, 2)
    assert finished.summary == "2 of 2 tickets updated"


async def test_batches_that_were_started_are_followed_and_not_sent_again(upstream, desk):
    upstream.started += [joined(range(101, 201)), joined(range(201, 251))]
    run_context = Notebook({"finished": {"0": {"succeeded": 98, "failed": 2}}, "started": {"1": "101", "2": "201"}})

    answer = await desk.run(PreparedCall.of(OPERATION, asked(range(1, 251))), run_context)

    assert {request.method for request in upstream.received} == {"GET"}
    assert (answer.decoded()["succeeded"], answer.decoded()["failed"]) == (248, 2)
    assert answer.collected == "results"
    assert [record["id"] for record in run_context.records] == list(range(101, 251))


async def test_finished_batches_are_not_sent_again(upstream, desk):
    run_context = Notebook({"finished": {"0": {"succeeded": 100, "failed": 0}}})

    await desk.run(PreparedCall.of(OPERATION, asked(range(1, 102))), run_context)

    assert upstream.started == ["101"]


async def test_a_run_that_was_done_is_only_told(upstream, desk):
    run_context = Notebook({"finished": {"0": {"succeeded": 2, "failed": 0}}})

    answer = await desk.run(PreparedCall.of(OPERATION, asked([1, 2])), run_context)

    assert upstream.received == []
    assert answer.decoded()["succeeded"] == 2


async def test_an_application_that_is_unavailable_for_a_moment_does_not_end_the_run(upstream, desk):
    for _ in range(3):
        upstream.tells(1, {"error": "maintenance"}, 503)

    answer = await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})

    assert answer.decoded()["succeeded"] == 1


async def test_a_status_that_is_unknown_ends_the_run(upstream, desk):
    upstream.tells(1, job(1, "paused"))

    with pytest.raises(UpstreamInvalidResponse, match="unknown status 'paused'"):
        await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})


async def test_a_batch_that_can_be_followed_no_more_ends_the_run_when_the_others_have_ended(upstream, desk):
    run_context = Notebook()
    upstream.tells(1, {"error": "RecordNotFound"}, 404)
    upstream.tells(101, job(101, "working"))

    with pytest.raises(UpstreamNotFound):
        await desk.run(PreparedCall.of(OPERATION, asked(range(1, 151))), run_context)

    effects = Effects.of(run_context.state)
    assert effects.is_open
    assert (effects.known["batches_finished"], effects.known["items_done"]) == (1, 50)


@pytest.mark.parametrize("body", [{}, {"job_status": None}, {"job_status": {"status": "queued"}}])
async def test_a_batch_without_a_job_to_follow_ends_the_run(upstream, desk, body):
    upstream.refuses(1, body, 200)

    with pytest.raises(UpstreamInvalidResponse, match="its response has no id"):
        await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})


async def test_a_queue_full_of_others_jobs_leaves_the_run_where_it_was(upstream, desk):
    run_context = Notebook({"finished": {"0": {"succeeded": 100, "failed": 0}}})
    upstream.refuses(101, {"error": "TooManyJobs"}, 429, Retry_After="60")

    with pytest.raises(UpstreamRateLimited) as limited:
        await desk.run(PreparedCall.of(OPERATION, asked(range(1, 102))), run_context)

    assert limited.value.retry_after == 60
    assert run_context.states == []


async def test_a_refused_batch_ends_the_run_with_the_applications_words(upstream, desk):
    upstream.refuses(1, {"error": "Forbidden", "description": "Agents only"}, 403)

    with pytest.raises(UpstreamRejected, match="Agents only"):
        await desk.execute("ticket_bulk_updates", "create", {"ids": "1", "ticket": CHANGE})


async def test_a_canceled_run_starts_nothing_more_and_follows_what_it_started(upstream, desk):
    upstream.room, run_context = 1, Notebook()
    upstream.may_end.clear()
    run = asyncio.create_task(desk.run(PreparedCall.of(OPERATION, asked(range(1, 301))), run_context))
    await eventually(lambda: run_context.states)
    run_context.is_canceled = True
    upstream.may_end.set()

    with pytest.raises(JobCanceled):
        await run

    effects = Effects.of(run_context.state)
    assert upstream.started == [joined(range(1, 101))]
    assert (effects.is_open, effects.summary) == (False, "100 of 300 tickets updated")


@pytest.mark.parametrize(
    ("text", "ids"), [("1", "1"), (" 1, 2 ,3", "1,2,3"), ("1,1,2,1", "1,2"), ("2,1", "2,1"), ("1,,2", "1,2")]
)
def test_ids_are_taken_in_order_and_once(text, ids):
    [portion] = portions_of(OPERATION, {"ids": text, "ticket": CHANGE})

    assert portion.params == {"ids": ids, "ticket": CHANGE}


@pytest.mark.parametrize("text", ["", " , "])
def test_a_text_without_an_id_is_refused(text):
    with pytest.raises(InvalidParams, match="has no items"):
        portions_of(OPERATION, {"ids": text, "ticket": CHANGE})


@pytest.mark.parametrize("text", ["1,a", "1;2", "-1", "1.5", "١"])
def test_what_is_no_id_is_refused(text):
    with pytest.raises(InvalidParams, match="ids"):
        validated(OPERATION, {"ids": text, "ticket": CHANGE})


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_a_batch_holds_at_most_100_tickets(count, sizes):
    portions = portions_of(OPERATION, {"ids": joined(range(count)), "ticket": CHANGE})

    assert [len(portion.items) for portion in portions] == sizes
    assert all(portion.params["ticket"] == CHANGE for portion in portions)


def test_an_error_of_a_ticket_holds_no_secret():
    how = OPERATION.action.long_running.results.items

    lines = item_lines(how, ["1"], [{"id": 1, "success": False, "error": "bearing-1234 may not"}], None)
    [result] = masked(lines, SECRETS)

    assert result == {"id": 1, "success": False, "error": "*** may not"}
