"""What a run that did not succeed means for its job and for its key."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway import errors
from gateway.jobs.model import Job, JobStatus
from gateway.jobs.outcome import classify_outcome, gives_key_back, is_put_aside
from gateway.kinds.spec import Effect

SENT = datetime(2026, 1, 2, tzinfo=UTC)
LOST = errors.UpstreamError("the connection broke", extra={"outcome": "unknown"})


def job(effect: Effect) -> Job:
    members: dict[str, Any] = dict.fromkeys(Job.__dataclass_fields__)
    return Job(**{**members, "effect": effect, "request_id": "r-1", "find_by": "a list"})


@pytest.mark.parametrize(
    ("effect", "error", "sent_at", "status"),
    [
        (Effect.WRITE, LOST, SENT, "unknown"),
        (Effect.WRITE, errors.UpstreamInvalidResponse(), SENT, "unknown"),
        (Effect.WRITE, errors.InternalError(), SENT, "unknown"),
        (Effect.WRITE, errors.Unavailable(), SENT, "unknown"),
        (Effect.WRITE, errors.InternalError(), None, "failed"),
        (Effect.WRITE, errors.UpstreamError(), None, "failed"),
        (Effect.WRITE, errors.UpstreamRejected(), SENT, "failed"),
        (Effect.IDEMPOTENT, errors.InternalError(), SENT, "failed"),
        (Effect.READ, errors.UpstreamTimeout(), None, "failed"),
        (Effect.READ, errors.JobCanceled(), None, "canceled"),
        (Effect.WRITE, errors.JobCanceled(), None, "canceled"),
    ],
)
def test_an_error_ends_a_job_as_honestly_as_its_effect_demands(effect, error, sent_at, status):
    assert classify_outcome(job(effect), error, sent_at).status == status


def test_an_unknown_end_tells_what_there_is_to_go_by():
    ending = classify_outcome(job(Effect.WRITE), LOST, SENT)

    assert ending.status is JobStatus.UNKNOWN
    assert ending.error["code"] == "outcome_unknown"
    assert ending.error["known"] == {"request_id": "r-1", "sent_at": "2026-01-02T00:00:00Z", "find_by": "a list"}


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
    assert gives_key_back(error) is is_given_back


@pytest.mark.parametrize(
    ("error", "waits"),
    [(errors.UpstreamRateLimited(), True), (errors.Unavailable(), True), (errors.UpstreamError(), False)],
)
def test_a_job_waits_for_limits_and_for_our_own_stores(error, waits):
    assert is_put_aside(error) is waits
