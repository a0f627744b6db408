"""The state of rate scopes that processes share through Redis; without Redis each process uses its own."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.foundation.aio.turns import Turns
from gateway.upstream.limits.budget import ThrottledRate
from gateway.upstream.refusals import LONGEST_WAIT

#: seconds until Redis counts as unavailable
_TIMEOUT = 0.5
#: connections of a process, and those of one organization; a command waits for one for a second with its own time
_CONNECTIONS, _OF_ONE, _LONGEST = 16, 8, 1.0
#: seconds without a heartbeat after which a process no longer counts as a user of a scope
GONE = 5.0
#: seconds by which the clocks of processes may differ
_DRIFT = 60
_AWAY = (RedisError, OSError, TimeoutError)
#: sorted set of paused scopes; the score is the Unix time of the end
_PAUSED = "gateway:paused"
#: sorted set of throttled scopes; the score is the Unix time of the end
_THROTTLED = "gateway:throttled"


@dataclass(frozen=True, slots=True)
class Restriction:
    """Seconds left of a scope's pause and of its throttling."""

    paused: float = 0.0
    throttled: float = 0.0


class SharedLimits:
    """Plain Redis commands without scripts, for compatibility; None or nothing while Redis is unavailable."""

    def __init__(self, redis: "Redis", process: str) -> None:
        self._redis = redis
        self._turns = Turns(_CONNECTIONS, _OF_ONE)
        self._process = process

    @classmethod
    def at(cls, url: str, process: str) -> "SharedLimits":
        return cls(Redis.from_url(url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT), process)

    async def close(self) -> None:
        await self._redis.aclose()

    async def take_tokens(
        self, scope: str, rate: ThrottledRate, unix_time: float, tokens: int, max_tokens: int
    ) -> int | None:
        """Take up to the given number of a window's tokens; the window has `max_tokens` in all."""
        key = f"gateway:tokens:{scope}:{rate.window_at(unix_time)}"
        try:
            async with asyncio.timeout(_LONGEST), self._turns, self._redis.pipeline(transaction=True) as pipe:
                pipe.incrby(key, tokens)
                pipe.pexpire(key, int(rate.seconds * 2000))
                taken, _ = await pipe.execute()
                granted = max(0, min(tokens, max_tokens - (int(taken) - tokens)))
                if granted < tokens:
                    pipe.decrby(key, tokens - granted)
                    await pipe.execute()
        except _AWAY:
            return None
        return granted

    async def publish(self, scope: str, unix_time: float, paused: float, throttled: float) -> None:
        """Publish to other processes for how many seconds a scope is paused and throttled."""
        try:
            async with asyncio.timeout(_LONGEST), self._turns, self._redis.pipeline(transaction=True) as pipe:
                # A longer pause was stored by an earlier release, which believed any `Retry-After`.
                pipe.zremrangebyscore(_PAUSED, unix_time + LONGEST_WAIT + _DRIFT, "+inf")
                for key, seconds in ((_PAUSED, paused), (_THROTTLED, throttled)):
                    pipe.zremrangebyscore(key, "-inf", unix_time)
                    if seconds > 0:
                        pipe.zadd(key, {scope: unix_time + seconds}, gt=True)
                await pipe.execute()
        except _AWAY:
            return

    async def restrictions(self, unix_time: float) -> Mapping[str, Restriction] | None:
        """All restricted scopes, in one round trip."""
        try:
            async with asyncio.timeout(_LONGEST), self._turns, self._redis.pipeline(transaction=False) as pipe:
                for key, latest in ((_PAUSED, unix_time + LONGEST_WAIT + _DRIFT), (_THROTTLED, "+inf")):
                    pipe.zrangebyscore(key, unix_time, latest, withscores=True)
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
        """Register this process as a user of these scopes, and count the processes that use each."""
        try:
            async with asyncio.timeout(_LONGEST), self._turns, self._redis.pipeline(transaction=False) as pipe:
                for scope in scopes:
                    key = f"gateway:processes:{scope}"
                    pipe.zadd(key, {self._process: unix_time})
                    pipe.expire(key, int(GONE * 2))
                    pipe.zcount(key, unix_time - GONE, "+inf")
                replies = await pipe.execute()
        except _AWAY:
            return None
        return dict(zip(scopes, replies[2::3], strict=True))
