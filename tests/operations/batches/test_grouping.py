"""Operations of a batch that are sent together."""

import pytest

from gateway.kinds.catalog import Kind
from gateway.kinds.loading import load_kind, shipped_specs
from gateway.operations.batches.grouping import grouped
from gateway.operations.batches.model import StoredOperation
from gateway.upstream.prepared import PreparedCall

BASE = {"base_id": "app1", "table_id_or_name": "tbl1"}


@pytest.fixture(scope="module")
def kinds() -> dict[str, Kind]:
    return {name: load_kind(shipped_specs() / name) for name in ("support-desk", "crm-records", "airtable")}


def groups(kind: Kind, *operations: tuple[str, dict]) -> list[list[int]]:
    stored = [StoredOperation(*name.split("."), params=params) for name, params in operations]
    calls = [PreparedCall.of(kind.operation(each.entity, each.action), each.params) for each in stored]
    return [[index for index, _ in group] for group in grouped(zip(enumerate(stored), calls, strict=True))]


def ticket(number: int) -> tuple[str, dict]:
    return "tickets.get", {"ticket_id": number}


def contact(number: int, **params) -> tuple[str, dict]:
    return "contacts.get", {"contactId": str(number), **params}


def update(record: str, **params) -> tuple[str, dict]:
    return "records.update", {**BASE, "record_id": record, "fields": {"Name": record}, **params}


SOLVE = ("tickets.update", {"ticket_id": 1, "ticket": {"status": "solved"}})
USERS = ("users.list", {})


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([], []),
        ([ticket(1)], [[0]]),
        ([ticket(1), ticket(2), ticket(1)], [[0, 1, 2]]),
        ([ticket(1), ("users.get", {"user_id": 1}), ticket(2), ("users.get", {"user_id": 2})], [[0, 2], [1, 3]]),
        ([ticket(1), USERS, ticket(2)], [[0, 2], [1]]),
        ([ticket(1), SOLVE, ticket(2), ticket(3)], [[0], [1], [2, 3]]),
        ([SOLVE, SOLVE], [[0], [1]]),
    ],
)
def test_reads_of_one_operation_are_sent_together_up_to_the_next_write(kinds, operations, expected):
    assert groups(kinds["support-desk"], *operations) == expected


def test_a_request_has_no_more_items_than_the_application_takes(kinds):
    found = groups(kinds["support-desk"], *(ticket(number) for number in range(250)))

    assert [len(group) for group in found] == [100, 100, 50]
    assert [index for group in found for index in group] == list(range(250))


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([contact(1, properties="email"), contact(2, properties="email")], [[0, 1]]),
        ([contact(1, properties="email"), contact(2, properties="phone"), contact(3, properties="email")],
         [[0, 2], [1]]),
        ([contact(1, properties="email"), contact(2, properties="email", archived=True)], [[0], [1]]),
        ([contact(1), contact(2)], [[0], [1]]),
        ([contact(1, properties="email", associations="deals"), contact(2, properties="email", associations="deals")],
         [[0], [1]]),
        ([contact(1, properties="email", idProperty="email"), contact(2, properties="email", idProperty="email")],
         [[0], [1]]),
        ([("objects.get", {"objectType": kind, "objectId": "1", "properties": "a"}) for kind in ("x", "y", "x")],
         [[0, 2], [1]]),
    ],
)  # fmt: skip
def test_calls_are_sent_together_only_with_params_that_the_bulk_request_takes_for_all(kinds, operations, expected):
    assert groups(kinds["crm-records"], *operations) == expected


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([update("a"), update("b")], [[0, 1]]),
        ([update("a"), update("b"), update("a"), update("c")], [[0, 1], [2, 3]]),
        ([update("a"), ("records.get", {**BASE, "record_id": "z"}), update("b")], [[0], [1], [2]]),
        ([update("a"), update("b", typecast=True), update("c")], [[0], [1], [2]]),
        ([update(str(number)) for number in range(12)], [[*range(10)], [10, 11]]),
    ],
)
def test_writes_are_sent_together_with_their_neighbours_a_record_once(kinds, operations, expected):
    assert groups(kinds["airtable"], *operations) == expected


def test_an_operation_that_the_kind_lacks_stays_alone(kinds):
    stored = StoredOperation("tickets", "get", params={"ticket_id": 1})
    call = PreparedCall.of(kinds["support-desk"].operation("tickets", "get"), stored.params)

    assert grouped([((0, stored), call), ((1, stored), None), ((2, stored), call)]) == [
        [(0, stored)], [(1, stored)], [(2, stored)],
    ]  # fmt: skip
