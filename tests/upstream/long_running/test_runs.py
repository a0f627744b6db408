"""Long operations of every shape: to their ends, and killed at every step of the way."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from gateway.contract.kinds import Effect
from gateway.errors import JobCanceled, OutcomeUnknown, UpstreamError, UpstreamRejected
from gateway.upstream.field_selection import FieldSelection
from gateway.upstream.prepared import prepare
from gateway.upstream.run_context import Effects
from tests.upstream.long_running.factory import ACTIONS, Killer, Row, attempt, factory, ran

TAGS = {"ids": ["a", "b", "c", "locked", "e"]}
ROWS = {"rows": [{"name": "a"}, {"name": "locked"}, {"name": "c"}], "object": "Thing"}
THINGS = {"things": [{"name": "a"}, {"name": "locked"}, {"name": "c"}]}
PARAMS: dict[str, dict[str, Any]] = {
    "copy": {"name": "Copy"},
    "tag": TAGS,
    "import": ROWS,
    "query": {"q": "all"},
    "make": THINGS,
}
#: what each operation did in the application once it has ended
DONE = {
    "copy": {"copy": 1},
    "tag": dict.fromkeys(TAGS["ids"], 1),
    "import": {"a": 1, "locked": 1, "c": 1},
    "query": {},
    "make": {"a": 1, "c": 1},
}
TALLY = {"status": "completed", "results": []}
#: the head of each result, and the records that are stored beside it
RESULTS: dict[str, tuple[Any, list[Any]]] = {
    "copy": ({"id": "c-1", "name": "Copy"}, []),
    "tag": (
        {**TALLY, "total": 5, "progress": 5, "message": "4 of 5 things tagged, 1 failed", "succeeded": 4, "failed": 1},
        [
            {"id": "a", "success": True},
            {"id": "b", "success": True},
            {"id": "c", "success": True},
            {"id": "locked", "success": False, "error": "Locked"},
            {"id": "e", "success": True},
        ],
    ),
    "import": (
        {**TALLY, "total": 3, "progress": 3, "message": "2 of 3 items done, 1 failed", "succeeded": 2, "failed": 1},
        [
            {"id": "a", "success": True, "record": {"new_id": "a", "why": "", "success": True}},
            {"id": "locked", "success": False, "error": "Locked"},
            {"id": "c", "success": True, "record": {"new_id": "c", "why": "", "success": True}},
        ],
    ),
    "query": (None, [{"id": number} for number in range(9)]),
    "make": (
        {**TALLY, "total": 3, "progress": 3, "message": "2 of 3 items done, 1 failed", "succeeded": 2, "failed": 1},
        [
            {"id": "m-a", "success": True, "record": {"id": "m-a", "trace": "0"}},
            {"id": None, "success": False, "error": "Locked"},
            {"id": "m-c", "success": True, "record": {"id": "m-c", "trace": "0"}},
        ],
    ),
}


@pytest.mark.parametrize("action", ACTIONS)
async def test_an_operation_ends_with_its_result(action):
    async with factory() as (application, connector):
        result, records = await ran(application, connector, action, PARAMS[action])

    assert (result.decoded(), _decoded(records)) == RESULTS[action]
    assert application.done == DONE[action]


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_kill_at_any_step_loses_nothing_and_does_nothing_twice(action):
    async with factory() as (application, connector):
        await ran(application, connector, action, PARAMS[action])
        steps = application.killer.steps
    assert steps > 4

    for at in range(1, steps + 1):
        async with factory() as (application, connector):
            try:
                result, records = await ran(application, connector, action, PARAMS[action], at)
            except OutcomeUnknown:
                assert max(application.done.values(), default=0) <= 1, f"done twice after a kill at step {at}"
                # Before `close` an import does nothing, and afterwards its state says whether it was closed.
                assert action != "import"
                assert ACTIONS[action]["effect"] == Effect.WRITE
                continue
        assert application.done == DONE[action], f"after a kill at step {at}"
        assert (result.decoded(), _decoded(records)) == RESULTS[action], f"after a kill at step {at}"


@pytest.mark.parametrize("action", ["tag", "make"])
async def test_a_kill_during_a_start_leaves_its_items_unknown_and_reports_all_others(action):
    things = [{"name": each} for each in "abcde"]
    params = {"things": things} if action == "make" else {"ids": list("abcde")}
    async with factory() as (application, connector):
        await ran(application, connector, action, params)
        steps = application.killer.steps
    unknown = Counter[int]()

    for at in range(1, steps + 1):
        async with factory() as (application, connector):
            call = prepare(connector.kind.operation("things", action), params)
            application.killer = Killer(at)
            row = Row(application.killer)
            ended = await attempt(connector, call, row)
            application.killer = row.killer = Killer()
            try:
                ended = ended or await attempt(connector, call, row)
            except OutcomeUnknown:
                ended = None
        said = [each["success"] for each in row.records]
        unknown[said.count(None)] += 1
        effects = Effects.of(row.state)
        done = [bool(application.done[name]) for name in "abcde"]
        where = f"killed at step {at}"
        assert (len(said), row.is_in_flight, effects.is_open) == (5, False, False), where
        assert effects.known.get("items_unknown", 0) == said.count(None), where
        assert (ended is None) is (None in said), where
        assert max(application.done.values(), default=0) <= 1, where
        assert all(told is None or told == was for told, was in zip(said, done, strict=True)), where

    assert unknown[0] > 0
    assert len(unknown) > 1


async def test_a_lost_response_to_a_start_leaves_its_items_unknown_and_the_others_are_followed():
    async with factory() as (application, connector):
        application.loses = "c"
        row = Row(Killer())
        with pytest.raises(UpstreamError) as lost:
            await connector.run(prepare(connector.kind.operation("things", "tag"), {"ids": ["a", "b", "c"]}), row)

    assert lost.value.is_outcome_unknown
    assert {each["id"]: each["success"] for each in row.records} == {"a": True, "b": True, "c": None}
    effects = Effects.of(row.state)
    assert (effects.known["items_done"], effects.known["items_unknown"], effects.is_open) == (2, 1, False)
    assert effects.summary == "2 of 3 things tagged, 1 unknown"


async def test_rows_are_uploaded_as_csv_and_left_out_of_the_start():
    async with factory() as (application, connector):
        await ran(application, connector, "import", {"rows": [{"name": "a, b", "size": 1}, {"name": "c"}]})

    assert application.received[:3] == [
        ("POST", "/imports"),
        ("PUT", "/imports/imports-1/data"),
        ("PATCH", "/imports/imports-1"),
    ]
    assert application.bodies[:3] == ["{}", 'name,size\n"a, b",1\nc,\n', '{"state":"closed"}']


@pytest.mark.parametrize("action", ["copy", "query"])
async def test_an_operation_that_the_application_gives_up_ends_with_its_message(action):
    async with factory() as (application, connector):
        application.fails = True
        row = Row(Killer())
        with pytest.raises(UpstreamError, match="the operation failed in the application: Not today") as failed:
            await connector.run(prepare(connector.kind.operation("things", action), PARAMS[action]), row)

    assert not failed.value.retryable
    assert not Effects.of(row.state).is_open


async def test_items_of_a_portion_that_fails_were_not_done():
    async with factory() as (application, connector):
        application.fails = True
        _, records = await ran(application, connector, "tag", {"ids": ["a", "b"]})

    assert records == [{"id": each, "success": False, "error": "Not today"} for each in ("a", "b")]


async def test_a_started_write_is_named_in_the_state():
    async with factory() as (_, connector):
        row = Row(Killer())
        await connector.run(prepare(connector.kind.operation("things", "copy"), {"name": "x"}), row)

    effects = Effects.of(row.state)
    assert (effects.known, effects.is_open) == ({"run_id": "copies-1"}, True)


async def test_a_canceled_import_is_not_closed():
    async with factory() as (application, connector):
        row = Row(Killer())
        row.state = {"started": {"0": "imports-1"}}
        application.runs["imports-1"] = {"sort": "imports", "looks": 0, "state": "open", "rows": []}
        row.is_canceled = True
        with pytest.raises(JobCanceled):
            await connector.run(prepare(connector.kind.operation("things", "import"), {"rows": [{"name": "a"}]}), row)

    assert not Effects.of(row.state).is_open
    assert [method for method, _ in application.received] == ["GET"]


async def test_an_import_that_the_application_refuses_to_begin_did_nothing():
    async with factory() as (application, connector):
        application.refuses_to_close = True
        row = Row(Killer())
        with pytest.raises(UpstreamRejected):
            await connector.run(prepare(connector.kind.operation("things", "import"), ROWS), row)

    assert Effects.of(row.state) == Effects()


async def test_rows_of_an_import_that_failed_before_it_reported_on_them_were_not_written():
    async with factory() as (application, connector):
        application.fails = application.keeps_silent = True
        _, records = await ran(application, connector, "import", {"rows": [{"name": "a"}, {"name": "b"}]})

    assert records == [{"id": None, "success": False, "error": "Not today"}] * 2


async def test_records_beyond_the_limit_are_not_read():
    async with factory() as (application, connector):
        row, call = Row(Killer()), prepare(connector.kind.operation("things", "query"), {"q": "all"})
        await connector.run(call, row, FieldSelection(limit=4))

    assert _decoded(row.records) == [{"id": number} for number in range(4)]
    assert application.received.count(("GET", "/queries/queries-1")) == 2


async def test_progress_counts_the_records_that_were_read():
    async with factory() as (_, connector):
        row = Row(Killer())
        await connector.run(prepare(connector.kind.operation("things", "query"), {"q": "all"}), row)

    assert [done for done, _, _ in row.reported] == sorted(done for done, _, _ in row.reported)
    assert row.reported[-1] == (9, None, "9 records read")


async def test_a_dry_run_shows_the_start_of_each_portion():
    async with factory() as (_, connector):
        shown = connector.dry_run("things", "tag", TAGS)

    assert [each["body"] for each in shown] == [{"ids": [each]} for each in TAGS["ids"]]


async def test_a_whole_list_is_answered_where_nothing_is_stored():
    async with factory() as (_, connector):
        answer = await connector.execute("things", "query", {"q": "all"})

    assert [each["id"] for each in answer.decoded()] == list(range(9))


def _decoded(records: list[Any]) -> list[Any]:
    return [msgspec.json.decode(msgspec.json.encode(each)) for each in records]
