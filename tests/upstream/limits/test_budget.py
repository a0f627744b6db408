"""What follows from what an application says of its limits."""

import pytest

from gateway.kinds.failures import RateLimit
from gateway.upstream.limits.budget import Budget, throttled_rate

PUBLISHED = RateLimit(requests=100, seconds=10)
TOLD = RateLimit(
    requests=100,
    seconds=10,
    allowances=[{"limit": "x-limit", "remaining": "x-left", "reset": "x-reset"}],
    concurrent=20,
)


@pytest.mark.parametrize(
    ("requests", "seconds", "window_seconds", "tokens"),
    [
        (100, 10, 1, 10),
        (200, 60, 6, 20),
        (50, 60, 6, 5),
        (5, 60, 12, 1),
        (3, 1, 1, 3),
        (100_000, 86_400, 8640, 10_000),
    ],
)
def test_a_budget_is_cut_into_windows(requests, seconds, window_seconds, tokens):
    rate = throttled_rate(requests, seconds)

    assert (rate.seconds, rate.tokens) == (window_seconds, tokens)


def test_a_published_budget_is_not_held_to_until_the_application_limits():
    budget = Budget.of(PUBLISHED)

    before = budget.is_throttled(0)
    budget.pause(0, 5)

    assert not before
    assert budget.paused_until == 5
    assert [budget.is_throttled(moment) for moment in (1, 14, 16)] == [True, True, False]


@pytest.mark.parametrize("seconds", [3601.0, 86_400.0, 1.8e9])
def test_no_pause_is_longer_than_an_hour(seconds):
    budget = Budget.of(PUBLISHED)

    budget.pause(10, seconds)

    assert budget.paused_until == 3610


@pytest.mark.parametrize(
    ("left", "is_throttled", "paused_until"), [("99", False, 0), ("21", False, 0), ("20", True, 0), ("0", True, 7)]
)
def test_an_account_is_throttled_when_little_is_left_and_paused_when_nothing_is(left, is_throttled, paused_until):
    budget = Budget.of(TOLD)

    budget.observe(0, lambda: 0, {"x-left": left, "x-reset": "7"})

    assert budget.is_throttled(1) is is_throttled
    assert budget.paused_until == paused_until


@pytest.mark.parametrize("number", ["9" * 5000, "²", "-1", "1e3", ""])
def test_what_is_no_number_is_not_heeded(number):
    budget = Budget.of(TOLD)

    budget.observe(0, lambda: 0, {"x-limit": number, "x-left": number, "x-reset": number})

    assert (budget.requests, budget.is_throttled(1)) == (100, False)


def test_the_applications_word_goes_before_what_is_published():
    budget = Budget.of(TOLD)

    budget.observe(0, lambda: 0, {"x-limit": "700", "x-left": "600"})

    assert budget.requests == 700
    assert budget.rate.tokens == 70


@pytest.mark.parametrize(
    "words", [{}, {"x-left": "many"}, {"x-left": "-1"}, {"x-left": ""}, {"x-left": "٣"}, {"x-left": "9" * 5000}]
)
def test_what_is_no_number_says_nothing(words):
    budget = Budget.of(TOLD)

    assert not budget.observe(0, lambda: 0, words)


@pytest.mark.parametrize(("told", "pause"), [("4", 4), ("1700000003", 3), ("9999", 10), ("0", 0)])
def test_a_reset_is_a_number_of_seconds_or_a_moment(told, pause):
    budget = Budget.of(TOLD)

    budget.observe(0, lambda: 1_700_000_000, {"x-left": "0", "x-reset": told})

    assert budget.paused_until == pause


def test_what_may_be_under_way_is_divided_among_the_processes():
    budget = Budget.of(TOLD)

    shares = []
    for processes in (1, 3, 50, 0):
        budget.divide(processes)
        shares.append(budget.share)

    assert shares == [20, 6, 1, 20]


def test_refused_requests_get_different_values_of_retry_after():
    budget = Budget.of(PUBLISHED)
    budget.pause(0, 3)

    stays = [budget.retry_after(0) for _ in range(100)]

    assert (stays[0], stays[-1]) == (4, 13)
    assert stays == sorted(stays)
