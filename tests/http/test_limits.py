"""What the edge refuses: too many requests of one caller, and more than the process can carry."""

from uuid import UUID

import pytest

from gateway.errors import Unavailable
from gateway.http.limits import Bucket, Limits, Overload, Rates
from gateway.identity.model import Caller, Client
from gateway.settings import Settings

ORGANIZATION, OTHER = UUID(int=1), UUID(int=2)
LATE, PUNCTUAL = 0.2, 0.0
#: requests in progress
FEW, MANY = 50, 51


def caller(client: int = 1, organization: UUID = ORGANIZATION) -> Caller:
    return Caller(Client(UUID(int=client), "c", frozenset({organization}), frozenset({"read"})), organization)


def overloaded() -> Overload:
    overload = Overload(most_lag=0.05)
    for _ in range(5):
        overload.looked(LATE)
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


def test_what_is_taken_elsewhere_is_missing_here_up_to_a_seconds_worth():
    bucket = Bucket(10.0, 10.0, at=0)

    bucket.taken_elsewhere(500)

    assert bucket.tokens == -10
    assert not bucket.take(1.0)
    assert bucket.take(2.5)


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
        pytest.param([PUNCTUAL] * 10, id="punctual"),
        pytest.param([5.0], id="one long pause"),
        pytest.param([LATE] * 4 + [PUNCTUAL] + [LATE] * 4, id="late, but not throughout"),
    ],
)
def test_a_hiccup_is_no_overload(looks: list[float]):
    overload = Overload(most_lag=0.05)

    for lag in looks:
        overload.looked(lag)

    assert [overload.is_admitted(MANY) for _ in range(100)] == [True] * 100


def test_a_loop_that_is_late_throughout_lets_less_in():
    overload = overloaded()

    assert sum(overload.is_admitted(MANY) for _ in range(100)) == pytest.approx(75, abs=1)


def test_a_loop_that_is_late_for_other_reasons_than_many_requests_turns_nobody_away():
    overload = overloaded()

    assert [overload.is_admitted(FEW) for _ in range(100)] == [True] * 100


def test_the_share_falls_to_a_twentieth_and_no_further():
    overload = overloaded()

    for _ in range(100):
        overload.looked(LATE)

    assert sum(overload.is_admitted(MANY) for _ in range(100)) == pytest.approx(5, abs=1)


def test_a_loop_that_is_in_time_again_lets_everybody_in_after_a_while():
    overload = overloaded()

    for _ in range(20):
        overload.looked(PUNCTUAL)

    assert overload.share == 1.0


def test_a_limit_of_nothing_never_turns_anybody_away():
    overload = Overload(most_lag=0)

    for _ in range(100):
        overload.looked(LATE)

    assert overload.is_admitted(MANY)


async def test_more_requests_than_may_be_in_progress_are_refused():
    limits = Limits(Settings(most_requests=2))
    await limits.enter()

    limits.in_progress = 3

    with pytest.raises(Unavailable, match="2 requests are in progress") as refused:
        await limits.enter()
    assert refused.value.retry_after == 1


def test_more_files_than_may_be_sent_are_refused_until_one_is_done():
    limits = Limits(Settings(most_downloads=1))

    with limits.one_download(), pytest.raises(Unavailable), limits.one_download():
        pass

    with limits.one_download():
        pass
