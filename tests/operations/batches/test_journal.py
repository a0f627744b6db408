"""The journal of a batch: ranges of what has ended, and parts of the result in the order asked for."""

import random

import pytest

from gateway.operations.batches.journal import PART_LINES, Journal, parts_of
from gateway.operations.batches.model import ItemStatus
from gateway.upstream.run_context import Effects


def finished(total: int, indexes) -> Journal:
    journal = Journal(total)
    for index in indexes:
        journal.finish(index, ItemStatus.SUCCEEDED)
    return journal


@pytest.mark.parametrize("seed", range(5))
def test_operations_end_in_any_order_and_the_state_stays_small(seed):
    order = list(range(500))
    random.Random(seed).shuffle(order)
    journal = Journal(500)

    for count, index in enumerate(order, 1):
        journal.finish(index, ItemStatus.SUCCEEDED)
        assert [each for each in range(500) if journal.is_done(each)] == sorted(order[:count])

    assert journal.document()["done"] == [(0, 500)]
    assert list(journal.gaps()) == []


def test_a_stored_journal_continues_where_it_stopped():
    journal = finished(10, [0, 1, 2, 7])
    journal.in_flight.add(4)

    again = Journal.of(journal.document(), 10)

    assert again.document() == journal.document()
    assert [list(gap) for gap in again.gaps()] == [[3, 4, 5, 6], [8, 9]]


def test_gaps_come_in_parts():
    assert [len(gap) for gap in finished(2500, [0]).gaps()] == [PART_LINES, PART_LINES, 499]


def test_a_job_is_open_while_a_write_is_in_flight_and_needs_closing_until_all_have_ended():
    journal = finished(3, [0])
    journal.in_flight.add(1)
    effects = Effects.of(journal.document())
    assert (effects.is_open, effects.needs_closing) == (True, True)
    assert effects.summary == "1 of 3 operations done"
    assert effects.result == {"total": 3, "succeeded": 1, "failed": 0, "unknown": 1, "skipped": 1}

    for index in (1, 2):
        journal.finish(index, ItemStatus.UNKNOWN)
    effects = Effects.of(journal.document())
    assert (effects.is_open, effects.needs_closing) == (False, False)
    assert effects.summary == "1 of 3 operations done, 2 unknown"


def test_what_has_not_ended_counts_as_skipped():
    assert finished(5, [1, 2]).head() == {"total": 5, "succeeded": 2, "failed": 0, "unknown": 0, "skipped": 3}


def test_consecutive_operations_share_a_part_numbered_by_the_first():
    lines = {index: f"{index}\n" for index in (7, 3, 4, 0, 5)}

    assert parts_of(lines) == {1: "0\n", 4: "3\n4\n5\n", 8: "7\n"}


def test_parts_are_bounded():
    lines = dict.fromkeys(range(2 * PART_LINES + 1), "x" * 100 + "\n")
    large = dict.fromkeys(range(4), "x" * (600 << 10))

    assert list(parts_of(lines)) == [1, PART_LINES + 1, 2 * PART_LINES + 1]
    assert list(parts_of(large)) == [1, 3]
