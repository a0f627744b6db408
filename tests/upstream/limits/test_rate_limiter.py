"""The limiter: places in turn, callers before what nobody waits for, one budget for all processes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from gateway.errors import UpstreamRateLimited
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.failures import RateLimit
from gateway.upstream.limits.pauses import Pauses
from gateway.upstream.limits.rate_limiter import SharedRateLimiter
from gateway.upstream.permits import Permit, Permits
from gateway.upstream.rate_limits import RateScope
from tests.harness.machine import slowness
from tests.harness.waiting import eventually
from tests.harness.work import seconds_at_most

NOBODYS_REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture
async def limiters(redis_url: str) -> AsyncIterator[list[SharedRateLimiter]]:
    """Those of two processes."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(SharedRateLimiter.open(redis_url, uuid4().hex)) for _ in range(2)]


def scope(requests: int = 1000, seconds: int = 10, concurrent: int | None = None, **members) -> RateScope:
    return RateScope(
        id=uuid4().hex,
        kind="small",
        limit=RateLimit(requests=requests, seconds=seconds, concurrent=concurrent),
        **members,
    )


def permit(limiter: SharedRateLimiter, who: RateScope, timeout: float) -> Permit:
    return Permit(Permits(limiter, max_connections=1000), who, timeout)


async def permitted(limiter: SharedRateLimiter, who: RateScope, timeout: float = 5) -> float:
    """When it went through."""
    async with permit(limiter, who, timeout):
        return time.monotonic()


async def test_no_more_requests_are_under_way_than_the_application_takes(limiters):
    limited, under_way, most = scope(concurrent=3), 0, 0

    async def request() -> None:
        nonlocal under_way, most
        async with permit(limiters[0], limited, 5):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

    await asyncio.gather(*(request() for _ in range(50)))

    assert most == 3


async def test_a_request_without_a_slot_in_time_gets_retry_after(limiters):
    limited = scope(concurrent=1)

    async with permit(limiters[0], limited, 5):
        with pytest.raises(UpstreamRateLimited) as refused:
            await permitted(limiters[0], limited, timeout=0.05)
    after = await permitted(limiters[0], limited)

    assert refused.value.retry_after >= 1
    assert after


async def test_callers_go_before_background_work(limiters):
    limited, order = scope(concurrent=1), []
    background = limited.in_background()

    async def request(name: str, who: RateScope) -> None:
        async with permit(limiters[0], who, 5):
            order.append(name)

    async with permit(limiters[0], limited, 5):
        waiting = [asyncio.create_task(request(f"background {number}", background)) for number in range(2)]
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(request("caller", limited)))
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)

    assert order == ["caller", "background 0", "background 1"]


async def test_a_pause_holds_in_every_process(limiters):
    limited = scope()
    await permitted(limiters[1], limited)

    limiters[0].pause(limited, 30)

    async def is_paused() -> bool:
        return not await _is_let_through(limiters[1], limited)

    await eventually(is_paused)
    with pytest.raises(UpstreamRateLimited) as refused:
        await permitted(limiters[1], limited, timeout=1)

    assert 25 <= refused.value.retry_after <= 31


async def _is_let_through(limiter: SharedRateLimiter, who: RateScope) -> bool:
    try:
        await permitted(limiter, who, timeout=0.01)
    except UpstreamRateLimited:
        return False
    return True


async def test_after_a_limit_all_processes_together_keep_to_the_budget(limiters):
    limited = scope(requests=100, seconds=10)
    for limiter in limiters:
        limiter.pause(limited, 0.01)

    started = time.monotonic()
    moments = await asyncio.gather(*(permitted(limiter, limited) for limiter in limiters for _ in range(15)))
    took = max(moments) - started

    # 30 requests at 10 a second: one window may have been begun before, and one is open at the end.
    assert 1.0 <= took <= 4.5


async def refused_for(limiter: SharedRateLimiter, who: RateScope) -> float:
    """Seconds that the first request of a scope is told to wait."""
    with pytest.raises(UpstreamRateLimited) as refused:
        await permitted(limiter, who, timeout=1)
    return refused.value.retry_after


async def test_a_pause_of_years_in_redis_is_forgotten(limiters, redis_url):
    limited, now = scope(), CLOCK.unix_time()
    async with Redis.from_url(redis_url) as redis:
        await redis.zadd("gateway:paused", {limited.id: now + 1.8e9})

        limiters[0].pause(scope(), 30)

        async def is_forgotten() -> bool:
            return await redis.zscore("gateway:paused", limited.id) is None

        await eventually(is_forgotten)


async def test_a_process_that_starts_later_holds_to_a_pause_from_its_first_request_on(limiters, redis_url):
    limited = scope()
    limiters[0].pause(limited, 30)
    await asyncio.gather(*limiters[0]._publishing)

    async with SharedRateLimiter.open(redis_url, uuid4().hex) as later:
        assert 25 <= await refused_for(later, limited) <= 31


@pytest.mark.parametrize("is_started_later", [True, False])
async def test_without_redis_a_pause_is_known_from_postgresql(database, is_started_later):
    limited, pauses = scope(), Pauses(database)
    async with AsyncExitStack() as stack:
        others = [] if is_started_later else [await stack.enter_async_context(_alone(pauses))]
        async with _alone(pauses) as first:
            first.pause(limited, 30)
        others = others or [await stack.enter_async_context(_alone(pauses))]

        assert 25 <= await refused_for(others[0], limited) <= 31


async def test_a_pause_of_years_that_was_stored_does_not_hold(database):
    years = uuid4().hex
    async with database.system() as connection:
        await connection.execute("INSERT INTO rate_pauses VALUES ($1, now() + interval '56 years')", years)

    before = await Pauses(database).left([years])
    await Pauses(database).save(years, 1.8e9)
    after = await Pauses(database).left([years])

    assert before == {}
    assert 3500 < after[years] <= 3600


async def test_a_pause_is_not_shortened_and_is_forgotten_when_it_is_over(database):
    pauses, long, short = Pauses(database), uuid4().hex, uuid4().hex
    await pauses.save(long, 60)
    await pauses.save(long, 1)
    await pauses.save(short, 0)

    left = await pauses.left()

    assert 55 < left[long] <= 60
    assert short not in left


def _alone(pauses: Pauses) -> AbstractAsyncContextManager[SharedRateLimiter]:
    return SharedRateLimiter.open(NOBODYS_REDIS, uuid4().hex, pauses)


async def test_without_redis_a_process_holds_to_what_it_knows_itself():
    async with SharedRateLimiter.open(NOBODYS_REDIS, "alone") as limiter:
        limited = scope(requests=100, seconds=10)
        limiter.pause(limited, 0.01)
        started = time.monotonic()

        await asyncio.gather(*(permitted(limiter, limited) for _ in range(15)))

    assert time.monotonic() - started <= 3


async def test_far_from_limits_a_permit_costs_microseconds(limiters):
    free = scope()

    with seconds_at_most(2000 * 0.0005 * slowness()):
        for _ in range(2000):
            async with permit(limiters[0], free, 5):
                pass


async def test_processes_that_send_one_request_at_a_time_share_nothing_and_from_the_second_on_divide_what_fits(
    limiters,
):
    limited, first, second = scope(concurrent=4), limiters[0], limiters[1]
    async with AsyncExitStack() as stack:
        for limiter in (first, first, second, second):
            await stack.enter_async_context(permit(limiter, limited, 5))
        await first._refresh()  # what the interval would bring

        with pytest.raises(UpstreamRateLimited):
            await permitted(first, limited, timeout=0.05)
        with pytest.raises(UpstreamRateLimited):
            await permitted(second, limited, timeout=0.05)


async def test_what_limits_is_read_once_for_all_scopes_however_many_are_in_use(limiters, redis_url):
    for _ in range(200):
        await permitted(limiters[0], scope(concurrent=4))
    async with Redis.from_url(redis_url) as redis:
        before = (await redis.info("commandstats")).get("cmdstat_zadd", {"calls": 0})["calls"]
        await limiters[0]._refresh()
        after = (await redis.info("commandstats")).get("cmdstat_zadd", {"calls": 0})["calls"]

    assert after == before
