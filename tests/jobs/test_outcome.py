"""What a run that did not succeed means for its job and for its key."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway import errors
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.jobs.model import StoredJob
from gateway.jobs.outcome import classify_outcome, is_requeued, releases_key, with_outcome
from gateway.upstream.run_context import Effects

SENT = datetime(2026, 1, 2, tzinfo=UTC)
LOST = errors.UpstreamError("the connection broke", extra={"outcome": "unknown"})
FAILED_THERE = errors.UpstreamError("oops", upstream=errors.UpstreamFault(status=500))
UNAVAILABLE_THERE = errors.UpstreamError("oops", upstream=errors.UpstreamFault(status=503))
READ, IDEMPOTENT, WRITE = Effect.READ, Effect.IDEMPOTENT, Effect.WRITE

NOTHING: dict[str, Any] = {}
HALF = Effects(
    known={"batches_finished": 1, "batches": 3, "items_done": 100, "items": 250},
    summary="100 of 250 tickets updated",
    result={"total": 250, "succeeded": 100, "failed": 0},
    collected="results",
)
HALF_DONE, UNDER_WAY = HALF.document(), replace(HALF, is_open=True).document()


def job(effect: Effect, **members: Any) -> StoredJob:
    usual: dict[str, Any] = dict.fromkeys(StoredJob.__struct_fields__)
    return StoredJob(**{**usual, "effect": effect, "request_id": "r-1", "find_by": "a list", "state": {}, **members})


@pytest.mark.parametrize(
    ("effect", "error", "sent_at", "state", "status"),
    [
        # nothing went out
        (WRITE, errors.InternalError(), None, NOTHING, "failed"),
        (WRITE, errors.UpstreamError("unreachable"), None, NOTHING, "failed"),
        (IDEMPOTENT, errors.WorkerCrashed(), None, NOTHING, "failed"),
        # it went out, and was refused
        (WRITE, errors.UpstreamRejected(), SENT, NOTHING, "failed"),
        (IDEMPOTENT, errors.UpstreamNotFound(), SENT, NOTHING, "failed"),
        (WRITE, errors.ReauthorizationRequired(), SENT, NOTHING, "failed"),
        (WRITE, UNAVAILABLE_THERE, SENT, NOTHING, "failed"),
        # it went out, and nothing is known of it
        (WRITE, LOST, SENT, NOTHING, "unknown"),
        (WRITE, FAILED_THERE, SENT, NOTHING, "unknown"),
        (IDEMPOTENT, FAILED_THERE, SENT, NOTHING, "unknown"),
        (WRITE, errors.UpstreamInvalidResponse(), SENT, NOTHING, "unknown"),
        (WRITE, errors.UpstreamTimeout("six hours"), SENT, NOTHING, "unknown"),
        (WRITE, errors.InternalError(), SENT, NOTHING, "unknown"),
        (WRITE, errors.Unavailable(), SENT, NOTHING, "unknown"),
        (WRITE, errors.WorkerCrashed(), SENT, NOTHING, "unknown"),
        (IDEMPOTENT, LOST, SENT, NOTHING, "unknown"),
        (IDEMPOTENT, errors.InternalError(), SENT, NOTHING, "unknown"),
        (IDEMPOTENT, errors.WorkerCrashed(), SENT, NOTHING, "unknown"),
        # some of it was done
        (IDEMPOTENT, errors.WorkerCrashed(), None, HALF_DONE, "unknown"),
        (IDEMPOTENT, errors.UpstreamRejected(), None, HALF_DONE, "unknown"),
        # the application works at it
        (IDEMPOTENT, errors.UpstreamNotFound(), None, UNDER_WAY, "unknown"),
        (IDEMPOTENT, errors.JobCanceled(), None, UNDER_WAY, "unknown"),
        # a cancellation says what was done
        (WRITE, errors.JobCanceled(), None, NOTHING, "canceled"),
        (IDEMPOTENT, errors.JobCanceled(), None, HALF_DONE, "canceled"),
        (IDEMPOTENT, errors.JobCanceled(), SENT, NOTHING, "unknown"),
        # reads do nothing
        (READ, errors.UpstreamTimeout(), None, NOTHING, "failed"),
        (READ, errors.WorkerCrashed(), None, {"done": {"tickets": 1}}, "failed"),
        (READ, errors.JobCanceled(), None, NOTHING, "canceled"),
    ],
)
def test_an_end_is_as_honest_as_what_is_known(effect, error, sent_at, state, status):
    assert classify_outcome(job(effect), error, sent_at, state).status == status


def test_what_an_earlier_attempt_may_have_done_is_not_undone_by_a_later_refusal():
    tried_before = job(IDEMPOTENT, in_flight_since=SENT)

    outcome = classify_outcome(tried_before, errors.UpstreamRejected("closed"), SENT)

    assert outcome.status is JobStatus.UNKNOWN


@pytest.mark.parametrize(("is_sent", "request_sent"), [(True, True), (False, "maybe")])
def test_an_unknown_end_says_what_there_is_to_go_by(is_sent, request_sent):
    outcome = classify_outcome(job(WRITE), LOST, SENT, is_sent=is_sent)

    assert outcome.error["code"] == "outcome_unknown"
    assert outcome.error["outcome"] == "unknown"
    assert outcome.error["safe_to_retry"] is False
    assert outcome.error["known"] == {
        "request_id": "r-1",
        "request_sent": request_sent,
        "sent_at": "2026-01-02T00:00:00Z",
        "find_by": "a list",
    }


def test_what_can_be_sent_again_without_harm_says_so():
    assert classify_outcome(job(IDEMPOTENT), LOST, SENT).error["safe_to_retry"] is True


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.WorkerCrashed("its workers crashed"), "its workers crashed; 100 of 250 tickets updated"),
        (errors.JobCanceled("canceled"), "100 of 250 tickets updated before it was canceled"),
    ],
)
def test_an_end_in_the_middle_counts_what_was_done_and_keeps_it_readable(error, message):
    outcome = classify_outcome(job(IDEMPOTENT), error, None, HALF_DONE)

    assert outcome.message == message
    assert outcome.error["known"]["items_done"] == 100
    assert outcome.result == {
        "result": {"total": 250, "succeeded": 100, "failed": 0},
        "collected": "results",
        "meta": None,
    }


def test_a_caller_that_waits_gets_the_same_error():
    outcome = classify_outcome(job(IDEMPOTENT), errors.UpstreamInvalidResponse("odd"), SENT)

    error = with_outcome(errors.UpstreamInvalidResponse("odd"), outcome)

    assert isinstance(error, errors.UpstreamInvalidResponse)
    assert error.is_outcome_unknown
    assert (error.extra["known"], error.extra["safe_to_retry"]) == (outcome.error["known"], True)


@pytest.mark.parametrize(
    ("error", "is_given_back"),
    [
        (errors.UpstreamRateLimited(), True),
        (errors.Unavailable(), True),
        (errors.UpstreamError(), True),
        (errors.ReauthorizationRequired(), True),
        (errors.InternalError(), True),
        (LOST, False),
        (errors.UpstreamRejected(), False),
        (errors.UpstreamNotFound(), False),
        (errors.UpstreamInvalidResponse(), False),
    ],
)
def test_a_key_is_given_back_only_by_what_came_to_nothing(error, is_given_back):
    assert releases_key(error) is is_given_back


@pytest.mark.parametrize(
    ("effect", "error", "sent_at", "waits"),
    [
        (READ, errors.UpstreamRateLimited(), None, True),
        (WRITE, errors.UpstreamRateLimited(), None, True),
        (READ, errors.Unavailable(), None, True),
        (IDEMPOTENT, errors.Unavailable(), SENT, True),
        (WRITE, errors.Unavailable(), SENT, False),
        (READ, errors.UpstreamError(), None, False),
    ],
)
def test_a_job_waits_for_limits_and_for_our_own_stores_if_it_can_continue(effect, error, sent_at, waits):
    assert is_requeued(job(effect), error, sent_at) is waits


def test_a_call_that_a_caller_waits_for_is_not_put_aside():
    assert not is_requeued(job(READ, is_inline=True), errors.Unavailable(), None)
