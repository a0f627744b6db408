"""When a failed request may be sent again: never a write that may have arrived."""

import pytest

from gateway.contract.kinds import Effect
from gateway.errors import (
    ReauthorizationRequired,
    Unavailable,
    UpstreamBusy,
    UpstreamError,
    UpstreamFault,
    UpstreamInvalidResponse,
    UpstreamRateLimited,
    UpstreamRejected,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
)
from gateway.upstream.retries import Attempt, delay, final, of_run
from gateway.upstream.run_context import Effects

READ, IDEMPOTENT, WRITE = Effect.READ, Effect.IDEMPOTENT, Effect.WRITE


@pytest.mark.parametrize(
    ("effect", "error", "was_sent", "again"),
    [
        (READ, UpstreamError("broke"), True, True),
        (READ, UpstreamTimeout("slow"), True, True),
        (READ, UpstreamTruncated("cut"), True, True),
        (READ, UpstreamInvalidResponse("odd"), True, False),
        (READ, UpstreamTooLarge("big"), True, False),
        (READ, UpstreamRejected("no"), True, False),
        (READ, ReauthorizationRequired("who"), True, False),
        (IDEMPOTENT, UpstreamError("broke"), True, False),
        (IDEMPOTENT, UpstreamError("broke"), False, True),
        (WRITE, UpstreamError("broke"), True, False),
        (WRITE, UpstreamTimeout("slow"), True, False),
        (WRITE, UpstreamTruncated("cut"), True, False),
        (WRITE, UpstreamError("unreachable"), False, True),
        (WRITE, UpstreamTimeout("unreachable"), False, True),
        (WRITE, UpstreamRateLimited("wait", retry_after=1), True, True),
        (WRITE, UpstreamBusy("try again", retry_after=1), True, True),
        (WRITE, UpstreamInvalidResponse("forbidden address"), False, False),
    ],
)
def test_what_may_be_sent_again(effect, error, was_sent, again):
    wait = delay(effect, Attempt(1, error, was_sent), timeout=10)

    assert (wait is not None) is again


@pytest.mark.parametrize(("number", "shortest", "longest"), [(1, 0.125, 0.375), (2, 0.25, 0.75)])
def test_waits_grow_and_are_jittered(number, shortest, longest):
    waits = {delay(READ, Attempt(number, UpstreamError(), True), timeout=10) for _ in range(50)}

    assert len(waits) > 1
    assert shortest <= min(waits) <= max(waits) <= longest


def test_there_is_no_fourth_try():
    assert delay(READ, Attempt(3, UpstreamError(), True), timeout=10) is None


@pytest.mark.parametrize(("seconds", "wait"), [(1, 1.0), (10, 10.0), (11, None)])
def test_the_applications_own_wait_is_obeyed_within_patience(seconds, wait):
    limited = Attempt(1, UpstreamRateLimited(retry_after=seconds), was_sent=True)

    assert delay(WRITE, limited, timeout=10) == wait


def test_a_write_that_the_application_did_not_do_may_be_sent_again_by_the_caller():
    busy = UpstreamBusy("locked", upstream=UpstreamFault(status=423), retry_after=2)

    assert final(WRITE, Attempt(3, busy, was_sent=True)).retryable is True


def test_a_write_whose_answer_was_lost_ends_unknown():
    lost = final(WRITE, Attempt(1, UpstreamTimeout("no answer"), was_sent=True))

    assert isinstance(lost, UpstreamTimeout)
    assert lost.is_outcome_unknown
    assert not lost.retryable
    assert "look it up" in lost.detail


def test_an_update_whose_answer_was_lost_ends_unknown_and_may_be_sent_again():
    lost = final(IDEMPOTENT, Attempt(1, UpstreamTimeout("no answer"), was_sent=True))

    assert lost.is_outcome_unknown
    assert lost.extra["safe_to_retry"] is True


@pytest.mark.parametrize(
    ("status", "is_unknown"),
    [(500, True), (501, True), (502, True), (503, False), (504, True), (520, True), (524, True)],
)
def test_a_5xx_whose_meaning_is_not_stated_leaves_the_outcome_of_a_write_open(status, is_unknown):
    error = final(WRITE, Attempt(1, UpstreamError(upstream=UpstreamFault(status=status)), was_sent=True))

    assert error.is_outcome_unknown is is_unknown
    assert error.extra.get("known", {}).get("response_status") == (status if is_unknown else None)
    assert not error.retryable


def test_an_idempotent_write_that_was_answered_with_500_may_be_sent_again():
    error = final(IDEMPOTENT, Attempt(1, UpstreamError(upstream=UpstreamFault(status=500)), was_sent=True))

    assert (error.is_outcome_unknown, error.extra["safe_to_retry"]) == (True, True)


def test_a_5xx_that_states_that_nothing_was_done_is_a_failure():
    error = UpstreamError(upstream=UpstreamFault(status=500))
    error.nothing_done = True

    assert not final(WRITE, Attempt(1, error, was_sent=True)).is_outcome_unknown


@pytest.mark.parametrize(
    ("effect", "was_sent", "error"),
    [
        (READ, True, UpstreamTimeout()),
        (IDEMPOTENT, True, UpstreamError(upstream=UpstreamFault(status=503))),
        (WRITE, False, UpstreamTimeout()),
        (WRITE, True, UpstreamRejected()),
    ],
)
def test_any_other_error_stays_as_it_is(effect, was_sent, error):
    assert final(effect, Attempt(1, error, was_sent)) is error


_STARTED = Effects(known={"run_id": "r1"}, is_open=True)


@pytest.mark.parametrize(
    ("effect", "error", "effects", "is_unknown"),
    [
        (WRITE, UpstreamError("broke"), _STARTED, True),
        (WRITE, UpstreamRejected("no"), _STARTED, True),
        (WRITE, UpstreamRateLimited("wait"), _STARTED, True),
        (WRITE, Unavailable("away"), _STARTED, True),
        (WRITE, UpstreamRejected("no"), Effects(), False),
        (IDEMPOTENT, UpstreamError("broke"), _STARTED, True),
        (IDEMPOTENT, UpstreamRateLimited("wait"), _STARTED, False),
        (IDEMPOTENT, Unavailable("away"), _STARTED, False),
        (READ, UpstreamError("broke"), _STARTED, False),
    ],
)
def test_what_a_run_that_nothing_resumes_has_started_is_unknown(effect, error, effects, is_unknown):
    found = of_run(effect, error, effects)

    assert found.is_outcome_unknown is is_unknown
    assert found.extra.get("safe_to_retry", False) is (is_unknown and effect is IDEMPOTENT)
