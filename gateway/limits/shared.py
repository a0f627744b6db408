"""What processes tell each other of rate scopes, through Redis; without it each holds to what it knows itself."""

from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.limits.budget import ThrottledRate

#: seconds until Redis counts as away
_TIMEOUT = 0.5
#: seconds without a word after which a process counts as one that no longer uses a scope
_GONE = 3.0
_AWAY = (RedisError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class ScopeState:
    """What all processes together know of a scope; seconds that its pause and its throttling still last."""

    processes: int
    paused: float
    throttled: float


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

    async def publish(self, scope: str, paused: float, throttled: float) -> None:
        """Let the others know for how many seconds a scope is paused, and throttled."""
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                for what, seconds in (("paused", paused), ("throttled", throttled)):
                    if seconds > 0:
                        pipe.set(f"gateway:{what}:{scope}", b"1", px=max(1, int(seconds * 1000)))
                await pipe.execute()
        except _AWAY:
            return

    async def states(self, scopes: list[str], unix_time: float) -> dict[str, ScopeState] | None:
        """What is known of these scopes, all of which this process uses."""
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                for scope in scopes:
                    processes = f"gateway:processes:{scope}"
                    pipe.zadd(processes, {self._process: unix_time})
                    pipe.zremrangebyscore(processes, "-inf", unix_time - _GONE)
                    pipe.expire(processes, int(_GONE * 2))
                    pipe.zcard(processes)
                    pipe.pttl(f"gateway:paused:{scope}")
                    pipe.pttl(f"gateway:throttled:{scope}")
                answers = await pipe.execute()
        except _AWAY:
            return None
        rows = [answers[start : start + 6] for start in range(0, len(answers), 6)]
        return {
            scope: ScopeState(int(row[3]), max(0, int(row[4])) / 1000, max(0, int(row[5])) / 1000)
            for scope, row in zip(scopes, rows, strict=True)
        }
