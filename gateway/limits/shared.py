"""What processes share about rate scopes, through Redis; without it each holds to what it knows itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.limits.budget import ThrottledRate

#: seconds until Redis counts as away
_TIMEOUT = 0.5
#: seconds without a word after which a process counts as one that no longer uses a scope
GONE = 5.0
_AWAY = (RedisError, OSError, TimeoutError)
#: sorted sets of the scopes that are limited now, by the Unix time until which
_PAUSED, _THROTTLED = "gateway:paused", "gateway:throttled"


@dataclass(frozen=True, slots=True)
class Restriction:
    """How a scope is limited: seconds that its pause and its throttling still last."""

    paused: float = 0.0
    throttled: float = 0.0


class SharedLimits:
    """Commands without scripts, so that any Redis will do; None or nothing when it is away."""

    def __init__(self, redis: "Redis", process: str) -> None:
        self._redis = redis
        self._process = process

    @classmethod
    def at(cls, url: str, process: str) -> "SharedLimits":
        return cls(Redis.from_url(url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT), process)

    async def close(self) -> None:
        await self._redis.aclose()

    async def take_tokens(
        self, scope: str, rate: ThrottledRate, unix_time: float, tokens: int, max_tokens: int
    ) -> int | None:
        """Up to so many of a window's tokens, of which `max_tokens` are to be had."""
        key = f"gateway:tokens:{scope}:{rate.window_at(unix_time)}"
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.incrby(key, tokens)
                pipe.pexpire(key, int(rate.seconds * 2000))
                taken, _ = await pipe.execute()
            granted = max(0, min(tokens, max_tokens - (int(taken) - tokens)))
            if granted < tokens:
                await self._redis.decrby(key, tokens - granted)
        except _AWAY:
            return None
        return granted

    async def publish(self, scope: str, unix_time: float, paused: float, throttled: float) -> None:
        """Let the others know for how many seconds a scope is paused, and throttled."""
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                for key, seconds in ((_PAUSED, paused), (_THROTTLED, throttled)):
                    pipe.zremrangebyscore(key, "-inf", unix_time)
                    if seconds > 0:
                        pipe.zadd(key, {scope: unix_time + seconds}, gt=True)
                await pipe.execute()
        except _AWAY:
            return

    async def restrictions(self, unix_time: float) -> Mapping[str, Restriction] | None:
        """All scopes that are limited now: one round trip, however many scopes are in use."""
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                for key in (_PAUSED, _THROTTLED):
                    pipe.zrangebyscore(key, unix_time, "+inf", withscores=True)
                paused, throttled = (dict(each) for each in await pipe.execute())
        except _AWAY:
            return None
        return {
            scope.decode(): Restriction(
                max(0.0, paused.get(scope, 0.0) - unix_time), max(0.0, throttled.get(scope, 0.0) - unix_time)
            )
            for scope in {**paused, **throttled}
        }

    async def processes(self, scopes: Sequence[str], unix_time: float) -> Mapping[str, int] | None:
        """How many processes use each of these scopes, all of which this process uses."""
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                for scope in scopes:
                    key = f"gateway:processes:{scope}"
                    pipe.zadd(key, {self._process: unix_time})
                    pipe.expire(key, int(GONE * 2))
                    pipe.zcount(key, unix_time - GONE, "+inf")
                replies = await pipe.execute()
        except _AWAY:
            return None
        return dict(zip(scopes, replies[2::3], strict=True))
