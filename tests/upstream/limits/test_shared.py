"""What processes share through Redis."""

import asyncio

from redis.asyncio import Redis

from gateway.foundation.aio.turns import compute_for
from gateway.upstream.limits.budget import ThrottledRate
from gateway.upstream.limits.shared import SharedLimits


async def test_many_throttled_accounts_of_one_organization_take_few_connections(redis_url: str):
    limits = SharedLimits.at(redis_url, "process")
    redis, rate = Redis.from_url(redis_url), ThrottledRate(1.0, 1)
    before = (await redis.info("clients"))["connected_clients"]
    compute_for("hostile")

    granted = await asyncio.gather(*(limits.take_tokens(f"scope {number}", rate, 1.0, 2, 1) for number in range(300)))

    connected = (await redis.info("clients"))["connected_clients"] - before
    await limits.close()
    await redis.aclose()
    assert granted == [1] * 300
    assert connected < 100
