"""Counts attempts without a token, such as wrong secrets, in Redis for all front ends; without Redis, in each one."""

import hashlib
import time
from collections import OrderedDict

from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.errors import RateLimited

#: seconds until Redis counts as unavailable
_TIMEOUT = 0.5
#: maximum attempts within a window by client id
MAX_BY_ID = 20
#: maximum attempts within a window by address, which may be that of a proxy for many callers
MAX_BY_ADDRESS = 60
#: seconds of a window
WINDOW = 60
#: maximum counts of a process without Redis; the oldest are dropped first
REMEMBERED = 10_000


class Attempts:
    """The number of attempts within a window. Ids and addresses are stored as digests only."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis
        #: count and the monotonic time at which it ends, while Redis is unavailable
        self.local_counts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    @classmethod
    def at(cls, url: str) -> "Attempts":
        return cls(Redis.from_url(url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT))

    async def close(self) -> None:
        await self._redis.aclose()

    async def require(self, what: str, address: str) -> None:
        """Count an attempt of an address without a token; raises RateLimited for too many within a window."""
        seconds = await self._wait(f"{what} {address}", MAX_BY_ADDRESS)
        if seconds:
            raise RateLimited(f"too many attempts from this address: {what}", retry_after=seconds)

    async def wrong_secret(self, client_id: str, address: str) -> int:
        """Count a wrong secret; returns the seconds for which further attempts are refused, or 0."""
        waits = [
            await self._wait(f"address {address}", MAX_BY_ADDRESS),
            await self._wait(f"id {client_id}", MAX_BY_ID),
        ]
        return max(waits)

    async def _wait(self, subject: str, max_count: int) -> int:
        key = hashlib.sha256(subject.encode(errors="replace")).hexdigest()[:32]
        try:
            count, seconds = await self._count(f"gateway:attempts:{key}")
        except (RedisError, OSError, TimeoutError):
            count, seconds = self._count_locally(key)
        return max(1, round(seconds)) if count > max_count else 0

    async def _count(self, key: str) -> tuple[int, float]:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(key, 0, ex=WINDOW, nx=True)
            pipe.incr(key)
            pipe.pttl(key)
            _, count, milliseconds = await pipe.execute()
        return int(count), max(0, int(milliseconds)) / 1000

    def _count_locally(self, key: str) -> tuple[int, float]:
        now = time.monotonic()
        count, ends_at = self.local_counts.pop(key, (0, 0.0))
        if ends_at <= now:
            count, ends_at = 0, now + WINDOW
        self.local_counts[key] = (count + 1, ends_at)
        if len(self.local_counts) > REMEMBERED:
            self.local_counts.popitem(last=False)
        return count + 1, ends_at - now
