"""Tools of MCP servers that answer with a task: followed to its end, canceled, and never started twice."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from gateway.contract.kinds import Effect
from gateway.errors import (
    GatewayError,
    JobCanceled,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamNotFound,
    UpstreamRejected,
)
from gateway.foundation.aio.background import cancel_and_wait
from gateway.foundation.mcp import VERSIONS
from gateway.kinds.importing.mapping import Options, import_document
from gateway.kinds.long_running import LongRunStatus
from gateway.upstream.connector import UpstreamConnector
from gateway.upstream.long_running.operation_run import interval_named
from gateway.upstream.prepared import prepare
from gateway.upstream.run_context import Effects
from tests.harness.mcp_server import CREATE, REPORT
from tests.harness.waiting import eventually
from tests.upstream.long_running.factory import Killer, Row, attempt
from tests.upstream.mcp_reached import KIND, TITLE, Reached, reaching

NEW, OLD = VERSIONS[0], "2025-11-25"
REVISIONS = [NEW, OLD]
DONE, FOREVER = ("working", "completed"), ("working",)
CALLED = "tools/call make_report"
TEXT = [{"type": "text", "text": json.dumps(TITLE)}]


class CanceledRow(Row):
    """The row of a job that is canceled once this is set."""

    is_canceled = False


async def run(connector: UpstreamConnector, row: Row | None = None, effect: Effect = Effect.WRITE) -> Any:
    """The result of a call of the tool as a job runs it."""
    operation = connector.kind.operation(KIND, "make_report").changed(effect=effect)
    answer = await connector.run(prepare(operation, TITLE), row or CanceledRow(Killer()))
    return answer.decoded()


def offering(**members: Any) -> AbstractAsyncContextManager[Reached]:
    """A server with a tool that may answer with a task, and one that may not before 2026-07-28."""
    return reaching(**{"tools": [CREATE, REPORT], **members})


@pytest.mark.parametrize("protocol", REVISIONS)
@pytest.mark.parametrize("streams", [False, True])
async def test_a_task_is_followed_to_its_result(protocol, streams):
    async with offering(protocol=protocol, states=DONE, streams=streams) as reached:
        connector = await reached.connector()

        result = await run(connector)

    assert result["content"] == TEXT
    assert reached.server.asked.count(CALLED) == 1
    assert next(iter(reached.server.looks.values())) >= 2
    assert reached.server.canceled == set()


@pytest.mark.parametrize("protocol", REVISIONS)
async def test_a_server_that_answers_at_once_is_not_asked_for_a_task(protocol):
    async with offering(protocol=protocol, states=DONE) as reached:
        connector = await reached.connector()
        reached.server.states = None

        result = await run(connector)

    assert result["content"] == TEXT
    assert [each for each in reached.server.asked if each.startswith("tasks/")] == []


SUPPORT = {
    (NEW, None): True, (NEW, "optional"): True, (NEW, "forbidden"): False,
    (OLD, None): False, (OLD, "optional"): True, (OLD, "required"): True, (OLD, "forbidden"): False,
    ("2025-06-18", "required"): False,
}  # fmt: skip


@pytest.mark.parametrize(("protocol", "support"), SUPPORT)
async def test_a_tool_runs_as_a_job_if_its_server_may_answer_with_a_task(protocol, support):
    tool = {**REPORT, "execution": {} if support is None else {"taskSupport": support}}
    async with offering(protocol=protocol, states=DONE, tools=[tool]) as reached:
        imported = import_document(await reached.described(), Options(kind=KIND))
        without = import_document({**await reached.described(), "capabilities": {}}, Options(kind=KIND))

    action = imported.entities[KIND]["actions"]["make_report"]
    assert ("long_running" in action, action.get("runs") == "job") == (SUPPORT[protocol, support],) * 2
    assert "long_running" not in without.entities[KIND]["actions"]["make_report"]


FAILURES = {
    "an error of the tool": (
        DONE,
        {"content": [{"type": "text", "text": "no such project"}], "isError": True},
        UpstreamRejected,
        "no such project",
    ),
    "a failed task": (("failed",), {"error": {"code": -32601, "message": "gone"}}, UpstreamNotFound, "gone"),
    "a failed task without a reason": (("failed",), {"content": []}, UpstreamError, "it is failed"),
    "a state that there is not": (("paused",), None, UpstreamInvalidResponse, "unknown status 'paused'"),
    "a task that the server canceled": (("cancelled",), None, UpstreamRejected, "canceled it"),
}


@pytest.mark.parametrize("protocol", REVISIONS)
@pytest.mark.parametrize(("states", "answer", "error", "words"), FAILURES.values(), ids=FAILURES)
async def test_a_task_that_failed_says_why(protocol, states, answer, error, words):
    async with offering(protocol=protocol, states=states, answer=answer) as reached:
        connector = await reached.connector()
        with pytest.raises(error, match=words):
            await run(connector)


@pytest.mark.parametrize("protocol", REVISIONS)
async def test_a_task_that_asks_a_person_is_canceled_and_may_have_done_a_part(protocol):
    async with offering(protocol=protocol, states=("working", "input_required")) as reached:
        connector, row = await reached.connector(), CanceledRow(Killer())
        with pytest.raises(UpstreamRejected, match="asked a person"):
            await run(connector, row)

    effects = Effects.of(row.state)
    assert reached.server.canceled == {*reached.server.tasks}
    assert (effects.known, effects.is_open) == ({"run_id": next(iter(reached.server.tasks))}, False)


@pytest.mark.parametrize("protocol", REVISIONS)
async def test_a_canceled_write_cancels_its_task_and_says_what_was_started(protocol):
    async with offering(protocol=protocol, states=FOREVER) as reached:
        connector, row = await reached.connector(), CanceledRow(Killer())
        running = asyncio.create_task(run(connector, row))
        await eventually(lambda: reached.server.looks.total() >= 2)
        row.is_canceled = True
        with pytest.raises(JobCanceled):
            await running

    assert reached.server.canceled == {*reached.server.tasks}
    assert reached.server.asked.count("tasks/cancel") == 1
    assert Effects.of(row.state).known == {"run_id": next(iter(reached.server.tasks))}


async def test_a_task_that_ends_although_it_was_canceled_has_its_result():
    async with offering(states=FOREVER) as reached:
        connector, row = await reached.connector(), CanceledRow(Killer())
        running = asyncio.create_task(run(connector, row))
        await eventually(lambda: reached.server.looks.total() >= 2)
        reached.server.states, reached.server.canceled = ("completed",), Deaf()
        row.is_canceled = True

        result = await running

    assert result["content"] == TEXT


class Deaf(set):
    """A server that accepts cancellations and cancels nothing."""

    def add(self, _: object) -> None: ...


@pytest.mark.parametrize("is_canceled", [True, False])
async def test_a_read_that_is_stopped_cancels_its_task_only_if_its_job_is_canceled(is_canceled):
    async with offering(states=FOREVER) as reached:
        connector, row = await reached.connector(), CanceledRow(Killer())
        running = asyncio.create_task(run(connector, row, Effect.READ))
        await eventually(lambda: reached.server.looks.total() >= 2)
        row.is_canceled = is_canceled
        await cancel_and_wait(running)

    assert bool(reached.server.canceled) is is_canceled


@pytest.mark.parametrize("at", range(1, 12))
async def test_a_worker_that_is_killed_starts_no_task_twice(at):
    async with offering(states=("working", "working", "completed")) as reached:
        connector, row = await reached.connector(), Row(Killer(at))
        call = prepare(connector.kind.operation(KIND, "make_report"), TITLE)
        result = await attempt(connector, call, row)
        if result is None and not row.is_in_flight:
            row.taken_over()
            result = await attempt(connector, call, row)

    assert reached.server.asked.count(CALLED) <= 1
    assert (result is None) is row.is_in_flight


async def test_a_write_whose_first_response_is_lost_is_unknown_and_is_not_repeated():
    async with offering(states=DONE, streams=True) as reached:
        connector = await reached.connector()
        reached.server.is_cut = True
        with pytest.raises(GatewayError) as raised:
            await run(connector)

    assert raised.value.is_outcome_unknown
    assert reached.server.asked.count(CALLED) == 1


async def test_a_task_that_the_server_has_forgotten_may_have_been_done():
    async with offering(states=FOREVER) as reached:
        connector, row = await reached.connector(), CanceledRow(Killer())
        running = asyncio.create_task(run(connector, row))
        await eventually(lambda: reached.server.looks.total() >= 2)
        reached.server.tasks.clear()
        with pytest.raises(UpstreamRejected, match="no such task"):
            await running

    assert Effects.of(row.state).is_open


@pytest.mark.parametrize(
    ("named", "seconds"), [(2_000, 2), (10**12, 30), (0, 0.05), (-5, 0.05), ("soon", None), (True, None), (None, None)]
)
def test_the_interval_that_a_server_names_is_kept_within_bounds(named, seconds):
    document = {"result": {"wait": named}}
    status = {"request": "POST /mcp", "path": "s", "running": ["working"], "succeeded": ["completed"], "interval": 30}

    assert interval_named(document, LongRunStatus.model_validate({**status, "wait": "result.wait"})) == seconds
    assert interval_named(document, LongRunStatus.model_validate(status)) is None


async def test_tools_that_run_at_once_are_not_offered_a_task():
    async with offering(protocol=OLD, states=DONE) as reached:
        connector = await reached.connector()

        result = await connector.execute(KIND, "create_issue", TITLE)

    assert result.decoded()["content"] == TEXT
    assert reached.server.tasks == {}


async def test_a_dry_run_shows_that_a_task_is_taken():
    async with offering(states=DONE) as reached:
        connector = await reached.connector()

        [shown] = connector.dry_run(KIND, "make_report", TITLE)

    assert "io.modelcontextprotocol/tasks" in json.dumps(shown["body"]["params"]["_meta"])
    assert reached.server.asked == []
