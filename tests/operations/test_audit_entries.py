"""What the audit log says of an operation: the record it is done to, and names of what it writes."""

from typing import Any

import msgspec
import pytest

from gateway.operations.accounting import changed_members, created_id, target_of
from tests.harness.catalog import shipped_catalog


@pytest.mark.parametrize(
    ("kind", "entity", "action", "params", "target", "changed"),
    [
        (
            "support-desk",
            "tickets",
            "update",
            {"ticket_id": 42, "ticket": {"status": "open", "priority": "high"}},
            "42",
            ["ticket.priority", "ticket.status"],
        ),
        ("support-desk", "tickets", "create", {"ticket": {"subject": "Fire"}}, None, ["ticket.subject"]),
        ("support-desk", "tickets", "list", {"per_page": 2}, None, ["per_page"]),
        ("support-desk", "tickets", "get", {"ticket_id": 7}, "7", []),
        ("support-desk", "ticket_bulk_updates", "create", {"ids": [1, 2], "ticket": {}}, None, ["ids", "ticket"]),
    ],
)
def test_a_call_names_its_record_and_its_members(
    kind: str, entity: str, action: str, params: dict[str, Any], target: str | None, changed: list[str]
):
    operation = shipped_catalog().kind(kind).operation(entity, action)

    assert (target_of(operation, params), changed_members(operation, params)) == (target, changed)


def test_a_member_that_a_caller_named_is_cut_to_a_bounded_length():
    operation = shipped_catalog().kind("support-desk").operation("tickets", "create")

    (name,) = changed_members(operation, {"ticket": {"x" * 10_000: 1}})

    assert len(name) == 200


@pytest.mark.parametrize(
    ("result", "id_"),
    [
        (b'{"id":42,"subject":"x"}', "42"),
        (b'{"id":"ab-1"}', "ab-1"),
        (b'{"ok":true}', None),
        (b"[1]", None),
        (rb'{"id":7,"subject":"cut \ud83d","value":1e400}', "7"),
        (rb'{"id":"a\u0000b\ud83d"}', "a\ufffdb\ufffd"),
        (b'{"id":{"a":1e400}}', None),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", None),
        pytest.param(b'{"id":1,"a":"' + b"x" * (1 << 20) + b'"}', None, id="more than 1 MiB"),
    ],
)
def test_the_id_of_a_created_record_is_read_from_its_answer(result: bytes, id_: str | None):
    assert created_id(msgspec.Raw(result)) == id_
