"""Long operations of every shape: to their ends, and killed at every step of the way."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from gateway.contract.kinds import Effect
from gateway.errors import (
    JobCanceled,
    OutcomeUnknown,
    UpstreamError,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamRejected,
)
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
    "label": TAGS,
    "set": THINGS,
}
#: what each operation did in the application once it has ended
DONE = {
    "copy": {"copy": 1},
    "tag": dict.fromkeys(TAGS["ids"], 1),
    "import": {"a": 1, "locked": 1, "c": 1},
    "query": {},
    "make": {"a": 1, "c": 1},
    "label": dict.fromkeys(TAGS["ids"], 1),
    "set": {"a": 1, "c": 1},
}
#: the operations whose result has a line for each thing
WITH_LINES = ("tag", "make", "label", "set")
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
LABELED = {**RESULTS["tag"][0], "message": "4 of 5 things labeled, 1 failed"}
RESULTS |= {"label": (LABELED, RESULTS["tag"][1]), "set": RESULTS["make"]}


def of_things(action: str, names: str) -> dict[str, Any]:
    """Params of an operation with a line for each thing."""
    return {"things": [{"name": each} for each in names]} if action in ("make", "set") else {"ids": list(names)}


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


@pytest.mark.parametrize("action", WITH_LINES)
async def test_a_kill_at_any_step_says_of_each_item_only_what_is_certain(action):
    params, is_write = of_things(action, "abcde"), ACTIONS[action]["effect"] == Effect.WRITE
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
            row.taken_over()
            application.killer = row.killer
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
    assert (len(unknown) > 1) is is_write


@pytest.mark.parametrize("action", WITH_LINES)
async def test_items_whose_response_is_lost_are_unknown_and_only_items_that_were_not_sent_are_called_so(action):
    size = ACTIONS[action]["long_running"]["split"]["size"]
    names = "abcdefgh"
    async with factory() as (application, connector):
        application.loses["c"] = 10
        row = Row(Killer())
        with pytest.raises(UpstreamError) as lost:
            await connector.run(prepare(connector.kind.operation("things", action), of_things(action, names)), row)

    assert lost.value.is_outcome_unknown
    assert lost.value.extra["safe_to_retry"] is (ACTIONS[action]["effect"] == Effect.IDEMPOTENT)
    told = {name: line["success"] for name, line in zip(names, row.records, strict=True)}
    is_unsent = ["not sent" in line.get("error", "") for line in row.records]
    assert [name for name in names if told[name] is None] == list("cd" if size == 2 else "c")
    assert {name for name in names if told[name]} == {name for name in application.done if told[name] is not None}
    assert is_unsent == [name not in application.done for name in names]
    effects, unknown = Effects.of(row.state), 2 if size == 2 else 1
    assert (effects.is_open, row.is_in_flight) == (False, False)
    assert effects.known["items_unknown"] == unknown
    assert effects.known.get("items_not_sent", 0) == sum(is_unsent)
    assert effects.known["items_done"] == sum(bool(done) for done in told.values())
    assert "failed" not in effects.summary


@pytest.mark.parametrize("action", ["label", "set"])
async def test_a_portion_that_may_be_repeated_is_sent_again_after_a_lost_response(action):
    async with factory() as (application, connector):
        application.loses["c"] = 1
        row = Row(Killer())
        await connector.run(prepare(connector.kind.operation("things", action), of_things(action, "abc")), row)

    assert [line["success"] for line in row.records] == [True] * 3
    assert row.is_in_flight is False
    assert application.done == dict.fromkeys("abc", 1)


@pytest.mark.parametrize("action", ["label", "set"])
async def test_a_portion_that_is_refused_when_it_is_sent_again_is_unknown(action):
    async with factory() as (application, connector):
        application.loses["a"] = 1
        row = Row(Killer())
        application.refuses_after_loss["a"] = 403
        with pytest.raises(UpstreamRejected) as refused:
            await connector.run(prepare(connector.kind.operation("things", action), of_things(action, "a")), row)

    assert refused.value.is_outcome_unknown
    assert [line["success"] for line in row.records] == [None]


@pytest.mark.parametrize("action", WITH_LINES)
async def test_a_refused_portion_is_failed_with_the_applications_words_and_the_others_say_what_is_known(action):
    names = "abcdefghijkl"
    async with factory() as (application, connector):
        application.refuses["c"] = 403
        row = Row(Killer())
        with pytest.raises(UpstreamRejected):
            await connector.run(prepare(connector.kind.operation("things", action), of_things(action, names)), row)

    lines = dict(zip(names, row.records, strict=True))
    assert lines["c"] == {"id": lines["c"]["id"], "success": False, "error": "the application answered 403: Not yours"}
    assert {name for name in names if lines[name]["success"]} == set(application.done)
    assert "not sent" in lines["l"]["error"]
    assert all(line["success"] is not None for line in row.records)


async def test_a_started_portion_that_cannot_be_followed_is_unknown_item_by_item():
    async with factory() as (application, connector):
        row = Row(Killer())
        row.state = {"started": {"0": "gone"}}
        with pytest.raises(UpstreamError):
            await connector.run(prepare(connector.kind.operation("things", "tag"), {"ids": ["a", "b"]}), row)

    effects = Effects.of(row.state)
    assert [line["success"] for line in row.records] == [None, True]
    assert (effects.is_open, effects.known["items_unknown"], effects.known["batches_finished"]) == (True, 1, 1)
    assert application.done == {"b": 1}


@pytest.mark.parametrize("action", ["tag", "label"])
async def test_a_run_canceled_while_the_application_takes_no_request_waits_for_what_it_started(action):
    async with factory() as (application, connector):
        application.pauses = True
        row, call = Row(Killer()), prepare(connector.kind.operation("things", action), {"ids": ["a", "b"]})
        row.state = {"started": {"0": "tags-1"}}
        application.runs["tags-1"] = {"sort": "tags", "looks": 0, "state": "running", "ids": ["a"]}
        row.is_canceled = True
        with pytest.raises(UpstreamRateLimited):
            await connector.run(call, row)
        is_open = Effects.of(row.state or {}).is_open or row.state == {"started": {"0": "tags-1"}}
        application.pauses = False
        with pytest.raises(JobCanceled):
            await connector.run(call, row)

    assert is_open
    assert [line["success"] for line in row.records] == [True]
    assert not Effects.of(row.state).is_open


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


async def test_only_the_status_of_a_run_that_has_ended_may_be_larger_than_1_mib():
    async with factory() as (application, connector):
        application.message_sizes = (100, 1 << 20)
        _, ended = await ran(application, connector, "tag", TAGS)
        application.message_sizes = (1 << 20, 100)

        with pytest.raises(UpstreamInvalidResponse, match="over 1 MiB"):
            await ran(application, connector, "tag", TAGS)

    assert ended
