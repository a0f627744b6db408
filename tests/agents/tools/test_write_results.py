"""Results of `write` without `fields`."""

from typing import Any

import msgspec
import pytest

from gateway.agents.tools.write_results import RequestedWrite, shown_of_batch
from gateway.kinds.find.entries import entry_of
from gateway.upstream.responses import OperationResult
from tests.harness.catalog import shipped_catalog

UPDATE = entry_of(shipped_catalog(), "support-desk.tickets.update")
RECORD = {
    "id": 7,
    "url": "https://acme.example/tickets/7",
    "subject": "Printer",
    "status": "solved",
    "description": "x" * 5000,
    "custom_fields": [{"id": 1, "value": None}],
}


def answer(document: Any) -> OperationResult:
    return OperationResult(result=msgspec.Raw(msgspec.json.encode(document)))


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"ticket_id": 7, "ticket": {"status": "solved"}}, {"id", "url", "status"}),
        ({"ticket_id": 7, "ticket": {"tags": ["new"]}}, {"id", "url"}),
        ({"ticket_id": 7, "ticket": {"custom_fields": [{"id": 1, "value": None}]}}, {"id", "url", "custom_fields"}),
    ],
)
def test_a_record_is_reduced_to_its_id_its_url_and_the_written_members(params: Any, shown: set[str]) -> None:
    assert RequestedWrite(UPDATE, params).shown(answer(RECORD)).decoded().keys() == shown


def test_a_long_written_text_is_shortened() -> None:
    shown = RequestedWrite(UPDATE, {"ticket": {"description": "x" * 5000}}).shown(answer(RECORD)).decoded()

    assert shown["description"] == "x" * 100 + "…"


def test_nested_members_are_reduced_in_the_same_way() -> None:
    record = {"ticket": {"id": 7, "status": "solved", "group_id": 1}, "audit": {"events": []}}

    shown = RequestedWrite(UPDATE, {"ticket": {"status": "solved"}}).shown(answer(record)).decoded()

    assert shown == {"ticket": {"id": 7, "status": "solved"}}


@pytest.mark.parametrize("document", [None, [RECORD], {"deleted": True}])
def test_a_result_without_such_members_is_unchanged(document: Any) -> None:
    assert RequestedWrite(UPDATE, {}).shown(answer(document)).decoded() == document


def test_in_a_batch_reads_are_unchanged_and_fields_apply_to_every_result() -> None:
    read = entry_of(shipped_catalog(), "support-desk.tickets.get")
    writes = [RequestedWrite(read, {"ticket_id": 7}), RequestedWrite(UPDATE, {"ticket": {"status": "solved"}})]
    items = [{"index": 0, "result": RECORD}, {"index": 1, "result": RECORD}, {"index": 2, "error": {}}]

    shown = shown_of_batch(writes, None)(answer({"results": items})).decoded()["results"]
    selected = shown_of_batch(writes, ["id"])(answer({"results": items})).decoded()["results"]

    assert [each.get("result", {}).keys() for each in shown] == [RECORD.keys(), {"id", "url", "status"}, set()]
    assert [each.get("result") for each in selected] == [{"id": 7}, {"id": 7}, None]
