"""What admission control refuses: too many requests of one caller, and more than the process can carry."""

import asyncio
from contextlib import ExitStack
from math import ceil
from uuid import UUID

import pytest

from gateway.errors import Unavailable
from gateway.http.server.admission.gradient import GradientLimit
from gateway.http.server.admission.load_shedding import Limits
from gateway.http.server.admission.refusals import NEGLIGIBLE_REFUSALS, Refusals
from gateway.http.server.admission.token_buckets import Bucket, Rates
from gateway.identity.model import Caller, Client
from gateway.settings import Settings
from gateway.telemetry.loop_lag import LoopLag

ORGANIZATION, OTHER = UUID(int=1), UUID(int=2)
BUSY, AT_EASE = 0.99, 0.5
#: requests in progress
MANY = 200
#: seconds of a cycle of the event loop: twice as long as it may be for requests that take a look's time each
LONG, SHORT = 0.012, 0.001


def caller(client: int = 1, organization: UUID = ORGANIZATION) -> Caller:
    return Caller(Client(UUID(int=client), "c", frozenset({organization}), frozenset({"read"})), organization)


def overloaded() -> GradientLimit:
    """Of requests that take a look's time each."""
    overload = GradientLimit(max_load=0.95)
    return after(overload, BUSY, LONG, MANY, looks=9)


def after(overload: GradientLimit, busy: float, cycle: float, in_progress: int, looks: int) -> GradientLimit:
    for _ in range(looks):
        overload.observe(busy, cycle, in_progress, admitted=in_progress, calling=in_progress)
    return overload


@pytest.mark.parametrize(
    ("rate", "moments", "taken"),
    [
        (2.0, [0, 0, 0], [True, True, False]),
        (2.0, [0, 0, 0.5, 0.5], [True, True, True, False]),
        (2.0, [0, 60, 60, 60], [True, True, True, False]),
        (0.5, [0, 1, 2], [True, False, True]),
    ],
)
def test_a_bucket_gives_its_rate_and_a_seconds_worth_at_once(rate: float, moments: list[float], taken: list[bool]):
    bucket = Bucket(rate, max(1.0, rate), at=0)

    assert [bucket.try_acquire(moment) for moment in moments] == taken


def test_a_client_over_its_rate_is_told_when_to_come_again():
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


def test_a_client_is_limited_in_each_organization_together():
    rates = Rates(client_rate=1, organization_rate=0)

    assert rates.try_acquire(caller(1, ORGANIZATION)).refusal is None
    assert rates.try_acquire(caller(1, OTHER)).refusal is not None


def test_without_rates_there_is_nothing_to_take():
    assert not Rates(0, 0).is_limiting


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([], id="nothing known"),
        pytest.param([(AT_EASE, LONG)] * 10, id="at ease"),
        pytest.param([(BUSY, SHORT)] * 10, id="busy, but nothing waits"),
        pytest.param([(BUSY, LONG)] * 8, id="busy for a moment"),
        pytest.param([(BUSY, LONG), (BUSY, LONG), (AT_EASE, LONG)] * 4, id="busy, but not throughout"),
    ],
)
def test_a_hiccup_is_no_overload(looks: list[tuple[float, float]]):
    overload = GradientLimit(max_load=0.95)

    for busy, cycle in looks:
        overload.observe(busy, cycle, MANY, admitted=MANY, calling=MANY)

    assert overload.max_in_progress > 2 * MANY - 1


def test_what_a_process_does_at_its_start_is_no_overload():
    overload = GradientLimit(max_load=0.95, warm_up=10)

    at_its_start = [after(overload, BUSY, LONG, MANY, looks=1).max_in_progress > 10**6 for _ in range(10)]
    afterwards = [after(overload, BUSY, LONG, MANY, looks=1).max_in_progress > 10**6 for _ in range(8)]

    assert all(at_its_start)
    assert not afterwards[-1]


def test_a_queue_is_no_overload_while_a_process_beside_this_one_restarts():
    overload = overloaded()
    before = overload.max_in_progress

    overload.expect_restart()
    at_once = overload.max_in_progress
    during = [after(overload, BUSY, LONG, MANY, looks=1).max_in_progress for _ in range(299)]
    afterwards = after(overload, BUSY, LONG, MANY, looks=2).max_in_progress

    assert before < 256
    assert min(at_once, *during) >= 256
    assert afterwards < 256


def test_a_process_in_which_requests_wait_for_long_takes_fewer_than_it_has():
    overload = overloaded()

    assert overload.max_in_progress == pytest.approx(MANY / 2)
    assert overload.max_in_progress <= MANY
    assert overload.max_in_progress > 99


def test_requests_that_take_long_may_wait_for_each_other_for_longer():
    overload = GradientLimit(max_load=0.95)

    for _ in range(100):
        overload.observe(BUSY, 2 * LONG, 1000, admitted=50, calling=800)  # by Little's law a second each

    assert overload.max_in_progress > 1999


@pytest.mark.parametrize(("calling", "admits"), [(1000, True), (600, True), (400, False), (0, False)])
def test_requests_wait_here_no_longer_than_for_applications(calling: int, admits: bool):
    overload = GradientLimit(max_load=0.95)

    for _ in range(100):
        overload.observe(BUSY, SHORT, 1000, admitted=50, calling=calling)

    assert (overload.max_in_progress > 999) is admits


def test_a_busy_process_takes_at_most_twice_what_it_has_until_it_is_looked_at_again():
    overload = after(GradientLimit(max_load=0.95), BUSY, SHORT, MANY, looks=3)

    assert overload.max_in_progress > 2 * MANY - 1
    assert overload.max_in_progress <= 2 * MANY
    assert after(overload, AT_EASE, SHORT, MANY, looks=1).max_in_progress > 10**6


def test_a_burst_of_requests_of_which_none_has_ended_yet_is_no_overload():
    overload = GradientLimit(max_load=0.95)

    for _ in range(10):
        overload.observe(BUSY, 10 * LONG, 600, admitted=0)

    assert overload.max_in_progress > 1199


def test_nothing_is_taken_back_until_what_was_taken_back_last_has_had_its_effect():
    overload = overloaded()

    before = after(overload, BUSY, LONG, MANY, looks=20).max_in_progress
    afterwards = after(overload, BUSY, LONG, MANY // 2, looks=1).max_in_progress

    assert before == pytest.approx(MANY / 2)
    assert afterwards == pytest.approx(MANY / 4)


def test_a_few_requests_are_never_too_many():
    overload = overloaded()

    for in_progress in (100, 50, 32, 32):
        after(overload, BUSY, LONG, in_progress, looks=1)

    assert overload.max_in_progress > 31
    assert overload.max_in_progress <= 32


@pytest.mark.parametrize(("is_rush", "most"), [(False, 60), (True, 32)])
def test_the_queue_is_shorter_where_many_are_refused_anyway(is_rush: bool, most: int):
    """Of a process that ends a thousand requests a second, and is asked for whatever it takes."""
    overload = overloaded()

    for _ in range(400):
        overload.observe(BUSY, SHORT, ceil(overload.max_in_progress), admitted=50, is_rush=is_rush)

    assert ceil(overload.max_in_progress) == pytest.approx(most, abs=2)


def test_a_load_that_was_fine_before_an_overload_is_fine_again_after_it():
    overload = overloaded()

    for _ in range(400):
        overload.observe(BUSY, SHORT, min(50, ceil(overload.max_in_progress)), admitted=50)

    assert overload.max_in_progress > 50


def test_a_process_that_finds_some_ease_takes_a_few_more_each_time():
    overload = after(overloaded(), BUSY, SHORT, MANY // 2, looks=2)

    before = overload.max_in_progress
    after(overload, AT_EASE, SHORT, MANY // 2, looks=1)

    assert before < overload.max_in_progress <= before * 1.05


def test_waiting_callers_do_not_keep_others_out_once_the_process_is_at_ease():
    overload = overloaded()
    for in_progress in (100, 50, 32):
        after(overload, BUSY, LONG, in_progress, looks=1)

    after(overload, AT_EASE, SHORT, 500, looks=60)

    assert overload.max_in_progress > 500


def test_an_overload_ends_when_the_rush_has_been_over_for_a_second():
    overload = after(overloaded(), AT_EASE, SHORT, MANY // 2, looks=3)

    during = after(overload, AT_EASE, SHORT, MANY // 10, looks=10).max_in_progress
    after(overload, AT_EASE, SHORT, MANY // 10, looks=15)

    assert during < 10**6
    assert overload.max_in_progress > 10**6


def test_a_process_that_may_be_busy_all_the_time_turns_nobody_away():
    overload = after(GradientLimit(max_load=1), 1.0, LONG, MANY, looks=100)

    assert overload.max_in_progress > 10**6


def refusals_after(*seconds: tuple[int, int]) -> Refusals:
    """After seconds of which each had so many requests let in, and so many refused."""
    refusals = Refusals()
    for admitted, refused in seconds:
        for _ in range(refused):
            refusals.add()
        for look in range(20):
            refusals.observe(admitted if look == 0 else 0)
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
def test_who_is_refused_is_to_come_again_later_the_longer_too_many_do(seconds: list[tuple[int, int]], retry_after: int):
    assert refusals_after(*seconds).retry_after == retry_after


@pytest.mark.parametrize(
    ("admitted", "refused", "is_rush"),
    [(0, NEGLIGIBLE_REFUSALS, False), (0, NEGLIGIBLE_REFUSALS + 1, True), (2000, 200, False), (2000, 201, True)],
)
def test_a_rush_is_told_by_the_last_second(admitted: int, refused: int, is_rush: bool):
    assert refusals_after((admitted, refused)).is_rush is is_rush
    assert refusals_after((admitted, refused), (admitted, 0)).is_rush is False


def test_refusals_are_many_beside_what_was_let_in_the_second_before():
    refusals = refusals_after((1000, 0))

    for _ in range(500):
        refusals.add()
    few = refusals.are_too_many
    refusals.add()

    assert (few, refusals.are_too_many) == (False, True)


def test_requests_that_only_wait_keep_nobody_out_of_a_busy_process():
    limits = Limits(Settings(max_downloads=1000))
    limits.load = overloaded()
    limits.in_progress = MANY
    assert not limits.admits()

    with limits.suspended():
        assert limits.at_work == MANY - 1
    with ExitStack() as waiting:
        for number in range(MANY - 1):
            waiting.enter_context(limits.one_download(UUID(int=number)))
        assert limits.admits()

    assert limits.at_work == MANY


def test_requests_that_wait_for_a_job_are_no_work():
    limits, lag = Limits(Settings()), LoopLag()
    limits.in_progress = 10

    with limits.watching(lag, lambda: 7, lambda: 0):
        assert limits.at_work == 3


async def test_the_load_of_a_process_is_measured_again_and_again():
    limits, lag, measured = Limits(Settings()), LoopLag(), asyncio.Semaphore(0)

    with lag.watching(), limits.watching(lag, lambda: 0, lambda: 0):
        lag.subscribe(
            lambda _: measured.release()
        )  # after the measurement: not reached, and never again, if that fails
        async with asyncio.timeout(10):
            for _ in range(2):
                await measured.acquire()


def test_more_files_than_may_be_sent_are_refused_until_one_is_done():
    limits = Limits(Settings(max_downloads=1))

    with limits.one_download(ORGANIZATION), pytest.raises(Unavailable), limits.one_download(OTHER):
        pass

    with limits.one_download(OTHER):
        pass
