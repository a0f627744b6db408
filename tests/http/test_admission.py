"""What admission control refuses: too many requests of one caller, and more than the process can carry."""

from contextlib import ExitStack
from uuid import UUID

import pytest

from gateway.errors import Unavailable
from gateway.http.admission import Bucket, Limits, Overload, Rates
from gateway.identity.model import Caller, Client
from gateway.settings import Settings
from gateway.telemetry.loop_lag import LoopLag

ORGANIZATION, OTHER = UUID(int=1), UUID(int=2)
BUSY, AT_EASE = 0.99, 0.5
#: requests in progress
MANY = 200


def caller(client: int = 1, organization: UUID = ORGANIZATION) -> Caller:
    return Caller(Client(UUID(int=client), "c", frozenset({organization}), frozenset({"read"})), organization)


def overloaded() -> Overload:
    overload = Overload(max_load=0.95)
    for _ in range(3):
        overload.looked(BUSY, MANY)
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

    assert [bucket.take(moment) for moment in moments] == taken


def test_a_client_over_its_rate_is_told_when_to_come_again():
    rates = Rates(client_rate=2, organization_rate=0)

    taken = [rates.take(caller()) for _ in range(3)]

    assert [each.refusal is None for each in taken] == [True, True, False]
    assert taken[0].headers == {"RateLimit": '"client";r=1;t=1', "RateLimit-Policy": '"client";q=2;w=1'}
    assert taken[2].headers["RateLimit"] == '"client";r=0;t=1'
    assert taken[2].refusal is not None
    assert taken[2].refusal.retry_after == 1


def test_the_clients_of_an_organization_share_its_rate_and_other_organizations_do_not():
    rates = Rates(client_rate=0, organization_rate=2)

    ours = [rates.take(caller(client)).refusal is None for client in (1, 2, 3)]
    theirs = rates.take(caller(4, OTHER)).refusal is None

    assert ours == [True, True, False]
    assert theirs


def test_a_client_is_limited_in_each_organization_together():
    rates = Rates(client_rate=1, organization_rate=0)

    assert rates.take(caller(1, ORGANIZATION)).refusal is None
    assert rates.take(caller(1, OTHER)).refusal is not None


def test_without_rates_there_is_nothing_to_take():
    assert not Rates(0, 0).is_limiting


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param([], id="nothing known"),
        pytest.param([AT_EASE] * 10, id="at ease"),
        pytest.param([BUSY] * 2, id="busy for a moment"),
        pytest.param([BUSY, BUSY, AT_EASE] * 4, id="busy, but not throughout"),
    ],
)
def test_a_hiccup_is_no_overload(looks: list[float]):
    overload = Overload(max_load=0.95)

    for busy in looks:
        overload.looked(busy, MANY)

    assert overload.admits(10**6)


def test_what_a_process_does_at_its_start_is_no_overload():
    overload = Overload(max_load=0.95, warm_up=10)

    at_its_start = [_looked(overload) for _ in range(10)]
    afterwards = [_looked(overload) for _ in range(3)]

    assert all(at_its_start)
    assert not afterwards[-1]


def _looked(overload: Overload) -> bool:
    """Whether a crowd is let in after one more look at a busy process."""
    overload.looked(BUSY, MANY)
    return overload.admits(10**6)


def test_a_process_that_is_busy_throughout_takes_fewer_requests_than_it_has():
    overload = overloaded()

    assert overload.most == pytest.approx(MANY * 0.8)
    assert not overload.admits(MANY)
    assert overload.admits(100)


def test_a_few_requests_are_never_too_many():
    overload = overloaded()

    for _ in range(100):
        overload.looked(BUSY, 32)

    assert overload.admits(31)
    assert not overload.admits(32)


def test_a_process_that_finds_some_ease_takes_a_few_more_than_it_has():
    overload = overloaded()

    overload.looked(AT_EASE, MANY)

    assert overload.most == pytest.approx(MANY * 1.05)


def test_waiting_callers_do_not_keep_others_out_once_the_process_is_at_ease():
    overload = overloaded()
    for _ in range(100):
        overload.looked(BUSY, 500)

    overload.looked(AT_EASE, 500)

    assert overload.admits(500)


def test_an_overload_ends_when_the_rush_is_over():
    overload = overloaded()

    for _ in range(3):
        overload.looked(AT_EASE, MANY)
    during = overload.most
    overload.looked(AT_EASE, MANY // 4)

    assert during < 10**6
    assert overload.admits(10**6)


def test_a_process_that_may_be_busy_all_the_time_turns_nobody_away():
    overload = Overload(max_load=1)

    for _ in range(100):
        overload.looked(1.0, MANY)

    assert overload.admits(10**6)


def test_requests_that_only_wait_keep_nobody_out_of_a_busy_process():
    limits = Limits(Settings(max_downloads=1000))
    limits.overload = overloaded()
    limits.in_progress = MANY
    with pytest.raises(Unavailable):
        limits.enter()

    with limits.parked():
        assert limits.at_work == MANY - 1
    with ExitStack() as waiting:
        for number in range(MANY - 1):
            waiting.enter_context(limits.one_download(UUID(int=number)))
        limits.enter()

    assert limits.at_work == MANY


def test_requests_that_wait_for_a_job_are_no_work():
    limits, lag = Limits(Settings()), LoopLag()
    limits.in_progress = 10

    with limits.watching(lag, lambda: 7):
        assert limits.at_work == 3


def test_more_files_than_may_be_sent_are_refused_until_one_is_done():
    limits = Limits(Settings(max_downloads=1))

    with limits.one_download(ORGANIZATION), pytest.raises(Unavailable), limits.one_download(OTHER):
        pass

    with limits.one_download(OTHER):
        pass
