"""A synchronization that takes too long ends, and says what is missing."""

from gateway.context_store.sync.checkpoint import MAX_SECONDS, Checkpoint

BEGAN = 1_767_225_600.0


def test_a_run_ends_after_a_week():
    run = Checkpoint(began=BEGAN)

    assert run.overdue(BEGAN + MAX_SECONDS) is None
    assert run.overdue(BEGAN + MAX_SECONDS + 1) == "reading takes more than 7 days"


def test_the_first_reason_for_missing_records_stays():
    assert Checkpoint().without("a").without("b").missing == "a"
