"""A list of pages without an end stops being read."""

import pytest

from gateway.context_store.sync.checkpoint import MAX_EMPTY_PAGES, MAX_PAGES, MAX_SECONDS, Checkpoint

BEGAN = 1_767_225_600.0


def read(tokens, has_records=True, start=None):
    """The checkpoint after these pages, and the reason for which it ends there."""
    checkpoint = start or Checkpoint(began=BEGAN)
    for token in tokens:
        before, checkpoint = checkpoint, checkpoint.replace(token=token)
        checkpoint = checkpoint.counted(before, has_records=has_records)
        if reason := checkpoint.endless(before, BEGAN + 1):
            return checkpoint, reason
    return checkpoint, None


@pytest.mark.parametrize("cycle", [1, 2, 3, 7, 100])
def test_a_cycle_of_pages_is_found_whatever_its_length(cycle):
    checkpoint, reason = read(f"t{number % cycle}" for number in range(10_000))

    assert reason == "the application's pages repeat"
    assert checkpoint.pages <= 4 * cycle + 4


def test_a_long_list_without_repetition_goes_on():
    checkpoint, reason = read(range(10_000))

    assert (checkpoint.pages, reason) == (10_000, None)


def test_pages_without_records_end_only_if_they_follow_each_other():
    some, reason = read(range(MAX_EMPTY_PAGES - 1), has_records=False)
    after_records, _ = read(["x"], start=some)
    _, none_yet = read(range(MAX_EMPTY_PAGES - 1), has_records=False, start=after_records)
    _, ended = read(range(MAX_EMPTY_PAGES), has_records=False)

    assert (reason, none_yet) == (None, None)
    assert ended == "the application sent 1,000 pages without records in a row"


def test_a_run_ends_after_many_pages_and_after_a_week():
    many = Checkpoint(began=BEGAN, token="t", pages=MAX_PAGES)

    assert many.endless(Checkpoint(), BEGAN) == "the list has more than 1,000,000 pages"
    assert Checkpoint(began=BEGAN).overdue(BEGAN + MAX_SECONDS) is None
    assert Checkpoint(began=BEGAN).overdue(BEGAN + MAX_SECONDS + 1) == "reading takes more than 7 days"
