"""Admission control: rate limits of callers, and the limit of requests in progress by the load of the process."""

import asyncio
from contextlib import ExitStack
from math import ceil
from uuid import UUID

import pytest

from gateway.access.identity.model import Caller, Client
from gateway.errors import Unavailable
from gateway.foundation.telemetry.loop_lag import LoopLag
from gateway.settings import Settings
from gateway.web.admission.gradient import GradientLimit
from gateway.web.admission.load_shedding import Limits
from gateway.web.admission.refusals import NEGLIGIBLE_REFUSALS, Refusals
from gateway.web.admission.token_buckets import Bucket, Rates

ORGANIZATION, OTHER = UUID(int=1), UUID(int=2)
BUSY, NOT_BUSY = 0.99, 0.5
#: requests in progress
MANY = 200
#: seconds of a cycle of the event loop: twice the allowed time for requests that take one sample's time, and much less
LONG, SHORT = 0.012, 0.001


def caller(client: int = 1, organization: UUID = ORGANIZATION) -> Caller:
    return Caller(
        Client(id=UUID(int=client), name="c", organization_ids=frozenset({organization}), scopes=frozenset({"read"})),
        organization,
    )


def overloaded() -> GradientLimit:
    """A limit after nine samples of long cycles, with requests that take one sample's time."""
    limit = GradientLimit(max_load=0.95)
    return after(limit, BUSY, LONG, MANY, samples=9)


def after(limit: GradientLimit, busy: float, cycle: float, in_progress: int, samples: int) -> GradientLimit:
    for _ in range(samples):
        limit.observe(busy, cycle, in_progress, admitted=in_progress, calling=in_progress)
    return limit


@pytest.mark.parametrize(
    ("rate", "moments", "taken"),
    [
        (2.0, [0, 0, 0], [True, True, False]),
        (2.0, [0, 0, 0.5, 0.5], [True, True, True, False]),
        (2.0, [0, 60, 60, 60], [True, True, True, False]),
        (0.5, [0, 1, 2], [True, False, True]),
    ],
)
def test_a_bucket_gives_its_rate_and_at_most_the_tokens_of_a_second_at_once(
    rate: float, moments: list[float], taken: list[bool]
):
    bucket = Bucket(rate, max(1.0, rate), at=0)

    assert [bucket.try_acquire(moment) for moment in moments] == taken


def test_a_client_over_its_rate_gets_retry_after():
    rates = Rates(client_rate=2, organization_rate=0)

    taken = [rates.try_acquire(caller()) for _ in range(3)]

    assert [each.refusal is None for each in taken] == [True, True, False]
    assert taken[0].headers == {"RateLimit": '"client";r=1;t=1', "RateLimit-Policy": '"client";q=2;w=1'}
    assert taken[2].headers["RateLimit"] == '"client";r=0;t=1'
    assert taken[2].refusal is not None
    assert taken[2].refusal.retry_after == 1


def test_the_clients_of_an_organization_share_its_rate_and_other_organizations_do_not():
    rates = Rates(client_rate=0, organization_rate=2)

    ours = [rates.try_acquire(caller(client)).refusal is None for client in (1, 2, 3)]
    theirs = rates.try_acquire(caller(4, OTHER)).refusal is None

    assert ours == [True, True, False]
    assert theirs


def test_a_clients_rate_counts_its_requests_in_all_organizations():
    rates = Rates(client_rate=1, organization_rate=0)

    assert rates.try_acquire(caller(1, ORGANIZATION)).refusal is None
    assert rates.try_acquire(caller(1, OTHER)).refusal is not None


def test_without_rates_nothing_is_limited():
    assert not Rates(0, 0).is_limiting


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param([], id="nothing known"),
        pytest.param([(NOT_BUSY, LONG)] * 10, id="not busy"),
        pytest.param([(BUSY, SHORT)] * 10, id="busy, but nothing waits"),
        pytest.param([(BUSY, LONG)] * 8, id="busy for a moment"),
        pytest.param([(BUSY, LONG), (BUSY, LONG), (NOT_BUSY, LONG)] * 4, id="busy, but not throughout"),
    ],
)
def test_a_short_or_interrupted_series_of_long_samples_is_no_overload(samples: list[tuple[float, float]]):
    limit = GradientLimit(max_load=0.95)

    for busy, cycle in samples:
        limit.observe(busy, cycle, MANY, admitted=MANY, calling=MANY)

    assert limit.max_in_progress > 2 * MANY - 1


def test_the_samples_of_a_starting_process_are_no_overload():
    limit = GradientLimit(max_load=0.95, warm_up=10)

    at_its_start = [after(limit, BUSY, LONG, MANY, samples=1).max_in_progress > 10**6 for _ in range(10)]
    afterwards = [after(limit, BUSY, LONG, MANY, samples=1).max_in_progress > 10**6 for _ in range(8)]

    assert all(at_its_start)
    assert not afterwards[-1]


def test_a_queue_is_no_overload_while_another_process_restarts():
    limit = overloaded()
    before = limit.max_in_progress

    limit.expect_restart()
    at_once = limit.max_in_progress
    during = [after(limit, BUSY, LONG, MANY, samples=1).max_in_progress for _ in range(299)]
    afterwards = after(limit, BUSY, LONG, MANY, samples=2).max_in_progress

    assert before < 256
    assert min(at_once, *during) >= 256
    assert afterwards < 256


def test_the_limit_falls_below_the_requests_in_progress_while_they_wait_too_long():
    limit = overloaded()

    assert limit.max_in_progress == pytest.approx(MANY / 2)
    assert limit.max_in_progress <= MANY
    assert limit.max_in_progress > 99


def test_longer_requests_may_wait_longer():
    limit = GradientLimit(max_load=0.95)

    for _ in range(100):
        limit.observe(BUSY, 2 * LONG, 1000, admitted=50, calling=800)  # by Little's law a second each

    assert limit.max_in_progress > 1999


@pytest.mark.parametrize(("calling", "admits"), [(1000, True), (600, True), (400, False), (0, False)])
def test_requests_may_wait_in_the_process_as_long_as_for_applications(calling: int, admits: bool):
    limit = GradientLimit(max_load=0.95)

    for _ in range(100):
        limit.observe(BUSY, SHORT, 1000, admitted=50, calling=calling)

    assert (limit.max_in_progress > 999) is admits


def test_the_requests_of_a_busy_process_at_most_double_per_sample():
    limit = after(GradientLimit(max_load=0.95), BUSY, SHORT, MANY, samples=3)

    assert limit.max_in_progress > 2 * MANY - 1
    assert limit.max_in_progress <= 2 * MANY
    assert after(limit, NOT_BUSY, SHORT, MANY, samples=1).max_in_progress > 10**6


def test_a_burst_before_the_first_request_has_ended_is_no_overload():
    limit = GradientLimit(max_load=0.95)

    for _ in range(10):
        limit.observe(BUSY, 10 * LONG, 600, admitted=0)

    assert limit.max_in_progress > 1199


def test_the_limit_is_not_reduced_again_before_the_last_reduction_has_taken_effect():
    limit = overloaded()

    before = after(limit, BUSY, LONG, MANY, samples=20).max_in_progress
    afterwards = after(limit, BUSY, LONG, MANY // 2, samples=1).max_in_progress

    assert before == pytest.approx(MANY / 2)
    assert afterwards == pytest.approx(MANY / 4)


def test_the_limit_never_falls_below_its_minimum():
    limit = overloaded()

    for in_progress in (100, 50, 32, 32):
        after(limit, BUSY, LONG, in_progress, samples=1)

    assert limit.max_in_progress > 31
    assert limit.max_in_progress <= 32


@pytest.mark.parametrize(("is_rush", "most"), [(False, 60), (True, 32)])
def test_the_allowed_wait_is_shorter_in_a_rush(is_rush: bool, most: int):
    """The process ends a thousand requests a second, and always has as many as the limit allows."""
    limit = overloaded()

    for _ in range(400):
        limit.observe(BUSY, SHORT, ceil(limit.max_in_progress), admitted=50, is_rush=is_rush)

    assert ceil(limit.max_in_progress) == pytest.approx(most, abs=2)


def test_the_limit_rises_above_a_load_that_causes_no_waits():
    limit = overloaded()

    for _ in range(400):
        limit.observe(BUSY, SHORT, min(50, ceil(limit.max_in_progress)), admitted=50)

    assert limit.max_in_progress > 50


def test_the_limit_grows_slowly_while_waits_are_short():
    limit = after(overloaded(), BUSY, SHORT, MANY // 2, samples=2)

    before = limit.max_in_progress
    after(limit, NOT_BUSY, SHORT, MANY // 2, samples=1)

    assert before < limit.max_in_progress <= before * 1.05


def test_the_limit_rises_above_requests_that_wait_for_applications():
    limit = overloaded()
    for in_progress in (100, 50, 32):
        after(limit, BUSY, LONG, in_progress, samples=1)

    after(limit, NOT_BUSY, SHORT, 500, samples=60)

    assert limit.max_in_progress > 500


def test_the_limit_is_lifted_after_a_second_with_few_requests():
    limit = after(overloaded(), NOT_BUSY, SHORT, MANY // 2, samples=3)

    during = after(limit, NOT_BUSY, SHORT, MANY // 10, samples=10).max_in_progress
    after(limit, NOT_BUSY, SHORT, MANY // 10, samples=15)

    assert during < 10**6
    assert limit.max_in_progress > 10**6


def test_a_maximum_load_of_1_turns_the_limit_off():
    limit = after(GradientLimit(max_load=1), 1.0, LONG, MANY, samples=100)

    assert limit.max_in_progress > 10**6


def refusals_after(*seconds: tuple[int, int]) -> Refusals:
    """The state after seconds, each with its admitted and refused requests."""
    refusals = Refusals()
    for admitted, refused in seconds:
        for _ in range(refused):
            refusals.add()
        for sample in range(20):
            refusals.observe(admitted if sample == 0 else 0)
    return refusals


@pytest.mark.parametrize(
    ("seconds", "retry_after"),
    [
        ([], 1),
        ([(0, NEGLIGIBLE_REFUSALS)], 1),
        ([(0, NEGLIGIBLE_REFUSALS + 1)], 2),
        ([(1000, 500)], 1),
        ([(1000, 501)], 2),
        ([(1000, 501)] * 20, 10),
        ([(1000, 501), (1000, 501), (1000, 250)], 3),
        ([(1000, 501), (1000, 501), (1000, 249)], 2),
        ([(1000, 501), (1000, 0), (1000, 0)], 1),
    ],
)
def test_retry_after_grows_while_refusals_are_too_many(seconds: list[tuple[int, int]], retry_after: int):
    assert refusals_after(*seconds).retry_after == retry_after


@pytest.mark.parametrize(
    ("admitted", "refused", "is_rush"),
    [(0, NEGLIGIBLE_REFUSALS, False), (0, NEGLIGIBLE_REFUSALS + 1, True), (2000, 200, False), (2000, 201, True)],
)
def test_a_rush_is_measured_over_the_last_second(admitted: int, refused: int, is_rush: bool):
    assert refusals_after((admitted, refused)).is_rush is is_rush
    assert refusals_after((admitted, refused), (admitted, 0)).is_rush is False


def test_too_many_refusals_are_measured_against_the_requests_admitted_in_the_last_second():
    refusals = refusals_after((1000, 0))

    for _ in range(500):
        refusals.add()
    few = refusals.are_too_many
    refusals.add()

    assert (few, refusals.are_too_many) == (False, True)


def test_suspended_requests_do_not_count_against_the_limit():
    limits = Limits(Settings(max_downloads=1000))
    limits.load = overloaded()
    limits.in_progress = MANY
    limits.turns.begin(None)
    assert not limits.admits()

    with limits.suspended():
        assert limits.at_work == MANY - 1
    with ExitStack() as waiting:
        for number in range(MANY - 1):
            waiting.enter_context(limits.one_download(UUID(int=number)))
        assert limits.admits()

    assert limits.at_work == MANY


def test_requests_that_wait_for_a_job_do_not_count_as_at_work():
    limits, lag = Limits(Settings()), LoopLag()
    limits.in_progress = 10

    with limits.watching(lag, lambda: 7, lambda: 0):
        assert limits.at_work == 3


async def test_the_load_of_a_process_is_measured_repeatedly():
    limits, lag, measured = Limits(Settings()), LoopLag(), asyncio.Semaphore(0)

    with lag.watching(), limits.watching(lag, lambda: 0, lambda: 0):
        lag.subscribe(
            lambda _: measured.release()
        )  # after the measurement: not reached, and never again, if that fails
        async with asyncio.timeout(10):
            for _ in range(2):
                await measured.acquire()


def test_files_beyond_the_limit_are_refused_until_one_is_sent():
    limits = Limits(Settings(max_downloads=1))

    with limits.one_download(ORGANIZATION), pytest.raises(Unavailable), limits.one_download(OTHER):
        pass

    with limits.one_download(OTHER):
        pass
