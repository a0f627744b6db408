"""The rate budget of a scope: pure; callers pass the time, or the clock.

The published budget is not enforced until the application answers 429, or its headers report that little is left.
From then on requests are throttled to an even rate, for one period of the budget.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, inf

import msgspec

from gateway.kinds.failures import Allowance, RateLimit
from gateway.upstream.allowances import Reading, left_until, readings
from gateway.upstream.refusals import LONGEST_WAIT

#: requests are throttled once this fraction of the budget or less is left
_LITTLE = 0.2
#: the fraction of a window's tokens that background requests may use
BACKGROUND_SHARE = 0.5
#: windows per period of the budget, so that no burst spends it at once; and the shortest window in seconds
_WINDOWS, _SHORTEST_WINDOW = 10, 1.0
#: the longest `retry_after` in seconds that the queue of refused requests adds
_LONGEST_QUEUE = 300
#: an exhausted allowance without a reset time is tried again after window / _PARTS, at most _MAX_RECHECK seconds:
#: applications do not say when a daily quota resets
_PARTS, _MAX_RECHECK = 10, 3600.0


@dataclass(frozen=True, slots=True)
class ThrottledRate:
    """A number of tokens for each window of time, for all processes together."""

    seconds: float
    tokens: int

    def window_at(self, unix_time: float) -> int:
        return int(unix_time // self.seconds)

    def until_next_window(self, unix_time: float) -> float:
        """Seconds until the next window begins."""
        return self.seconds - unix_time % self.seconds

    @property
    def batch(self) -> int:
        """Tokens that a process takes at a time, so that the other processes get some too."""
        return max(1, self.tokens // 4)


def throttled_rate(requests: int, seconds: float) -> ThrottledRate:
    """The budget cut into windows."""
    length = max(seconds / _WINDOWS, min(_SHORTEST_WINDOW, seconds))
    tokens = int(requests * length / seconds)
    return ThrottledRate(length, tokens) if tokens else ThrottledRate(seconds / requests, 1)


class HeaderNames(msgspec.Struct, frozen=True):
    """Names and prefixes of rate-limit headers, in lower case."""

    names: frozenset[str]
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, allowances: Iterable[Allowance]) -> "HeaderNames":
        named = {
            name
            for each in allowances
            for name in (each.limit, each.remaining, each.reset, each.header)
            if name is not None
        }
        prefixes = tuple(name[:-1] for name in named if name.endswith("*"))
        return cls(frozenset(name for name in named if not name.endswith("*")), prefixes)

    def are_in(self, headers: Mapping[str, str]) -> bool:
        """Whether any rate-limit header is present: a cheap test before each is parsed."""
        if not self.names.isdisjoint(headers):
            return True
        return bool(self.prefixes) and any(name.startswith(self.prefixes) for name in headers)


@dataclass(slots=True, kw_only=True)
class Budget:
    """One rate scope's limits as this process knows them; moments are those of its monotonic clock, in seconds."""

    limit: RateLimit
    #: requests in the budget's time: published, or as the application says
    requests: int
    #: concurrent requests that this process may send, its share of the limit; infinite without a limit
    share: float
    header_names: HeaderNames
    paused_until: float = 0.0
    throttled_until: float = 0.0
    #: requests refused since throttling began that have not been sent yet
    backlog: int = 0

    @classmethod
    def of(cls, limit: RateLimit) -> "Budget":
        share = inf if limit.concurrent is None else limit.concurrent
        return cls(limit=limit, requests=limit.requests, share=share, header_names=HeaderNames.of(limit.allowances))

    @property
    def rate(self) -> ThrottledRate:
        return throttled_rate(self.requests, self.limit.seconds)

    def is_throttled(self, now: float) -> bool:
        return now < self.throttled_until

    def divide(self, processes: int) -> None:
        """Set this process's share of the concurrency limit, given the number of processes."""
        if self.limit.concurrent is not None:
            self.share = max(1, self.limit.concurrent // max(1, processes))

    def restrict(self, now: float, paused: float, throttled: float) -> None:
        """Apply the state of other processes: for how many seconds the scope is paused and throttled."""
        self.paused_until = max(self.paused_until, now + paused) if paused else self.paused_until
        self.throttled_until = max(self.throttled_until, now + throttled) if throttled else self.throttled_until

    def pause(self, now: float, seconds: float) -> None:
        """Give no permits for so many seconds, an hour at most; after that, throttle to the budget's rate."""
        self.paused_until = max(self.paused_until, now + min(seconds, LONGEST_WAIT))
        self.throttled_until = max(self.throttled_until, self.paused_until + self.limit.seconds)

    def observe(self, now: float, unix_time: Callable[[], float], headers: Mapping[str, str]) -> bool:
        """Apply a response's rate-limit headers; returns whether to publish the change to other processes."""
        if not self.header_names.are_in(headers):
            return False
        is_little = False
        for allowance in self.limit.allowances:
            for reading in readings(allowance, headers):
                if reading.limit and allowance.seconds is None and not allowance.per_endpoint:
                    self.requests = reading.limit
                is_little |= self._is_little(allowance, reading, now, unix_time)
        if is_little:
            self.throttled_until = max(self.throttled_until, now + self.limit.seconds)
        return is_little

    def _is_little(self, allowance: Allowance, reading: Reading, now: float, unix_time: Callable[[], float]) -> bool:
        """Whether little is left of an allowance; if nothing is left, pause the scope."""
        if reading.remaining is None or reading.remaining > (reading.limit or self.requests) * _LITTLE:
            return False
        if reading.remaining <= 0 and not allowance.per_endpoint:
            self.pause(now, full_in(reading, allowance.seconds or self.limit.seconds, self.requests, unix_time()))
        return True

    def retry_after(self, now: float) -> int:
        """Whole seconds until a refused request may be sent; it grows with each refused request."""
        self.backlog += 1
        pause = max(0.0, self.paused_until - now)
        queue = self.backlog * self.limit.seconds / self.requests if self.is_throttled(now) else 0.0
        return max(1, ceil(pause + min(queue, _LONGEST_QUEUE)))

    def consumed(self, now: float, tokens: int = 1) -> None:
        """Count sent requests."""
        self.backlog = max(0, self.backlog - tokens) if self.is_throttled(now) else 0


def full_in(reading: Reading, seconds: float, requests: int, unix_time: float) -> float:
    """Seconds until an allowance with a window of `seconds` is full again, or is checked again."""
    if reading.reset is None:
        return min(_MAX_RECHECK, max(seconds / _PARTS, min(1.0, seconds), seconds / max(1, requests)))
    return min(float(seconds), max(0.0, left_until(reading.reset, unix_time)))
