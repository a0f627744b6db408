"""What processes tell each other of accounts' limits, through Redis; without it each holds to what it knows itself."""

from dataclasses import dataclass

from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.limits.budget import Pace

#: seconds until Redis counts as away
_TIMEOUT = 0.5
#: seconds without a word after which a process counts as one that no longer uses an account
_GONE = 3.0
_AWAY = (RedisError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class News:
    """What all processes together know of an account; seconds that its pause and its pace still last."""

    processes: int
    paused: float
    paced: float


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

    async def take(self, account: str, pace: Pace, unix_time: float, tokens: int, most: int) -> int | None:
        """Up to so many of a slice's tokens, of which `most` are to be had."""
        key = f"gateway:pace:{account}:{pace.slice_at(unix_time)}"
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.incrby(key, tokens)
                pipe.pexpire(key, int(pace.seconds * 2000))
                taken, _ = await pipe.execute()
            granted = max(0, min(tokens, most - (int(taken) - tokens)))
            if granted < tokens:
                await self._redis.decrby(key, tokens - granted)
        except _AWAY:
            return None
        return granted

    async def tell(self, account: str, paused: float, paced: float) -> None:
        """Let the others know for how many seconds an account is paused, and paced."""
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                for what, seconds in (("paused", paused), ("paced", paced)):
                    if seconds > 0:
                        pipe.set(f"gateway:{what}:{account}", b"1", px=max(1, int(seconds * 1000)))
                await pipe.execute()
        except _AWAY:
            return

    async def news(self, accounts: list[str], unix_time: float) -> dict[str, News] | None:
        """What is known of these accounts, all of which this process uses."""
        try:
            async with self._redis.pipeline(transaction=False) as pipe:
                for account in accounts:
                    users = f"gateway:users:{account}"
                    pipe.zadd(users, {self._process: unix_time})
                    pipe.zremrangebyscore(users, "-inf", unix_time - _GONE)
                    pipe.expire(users, int(_GONE * 2))
                    pipe.zcard(users)
                    pipe.pttl(f"gateway:paused:{account}")
                    pipe.pttl(f"gateway:paced:{account}")
                answers = await pipe.execute()
        except _AWAY:
            return None
        rows = [answers[start : start + 6] for start in range(0, len(answers), 6)]
        return {
            account: News(int(row[3]), max(0, int(row[4])) / 1000, max(0, int(row[5])) / 1000)
            for account, row in zip(accounts, rows, strict=True)
        }
