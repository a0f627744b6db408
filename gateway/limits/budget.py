"""What is known of an account's limits, and what follows from it: pure, and told the time.

An application is believed: its published budget is not held to until it limits, or says that little is left. From then
on requests are paced evenly, for as long as the budget's own time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from gateway.kinds.spec import RateLimit

#: of the budget, what may be left before requests are paced
_LITTLE = 0.2
#: of a pace's tokens, what requests that nobody waits for may use
BACKGROUND_SHARE = 0.5
#: parts into which the budget's time is cut, so that no burst spends it at once; and seconds of the shortest
_SLICES, _SHORTEST_SLICE = 10, 1.0
#: seconds that a refused request is told to stay away at most
_LONGEST_STAY = 300
#: a reset beyond this is a moment (Unix time), not a number of seconds
_A_MOMENT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """So many tokens in each slice of time, for all processes together."""

    seconds: float
    tokens: int

    def slice_at(self, unix_time: float) -> int:
        return int(unix_time // self.seconds)

    def until_next(self, unix_time: float) -> float:
        """Seconds until the next slice begins."""
        return self.seconds - unix_time % self.seconds

    @property
    def batch(self) -> int:
        """Tokens that a process takes at a time, so that the others get some too."""
        return max(1, self.tokens // 4)


def pace_of(requests: int, seconds: float) -> Pace:
    """The budget cut into slices."""
    length = max(seconds / _SLICES, min(_SHORTEST_SLICE, seconds))
    tokens = int(requests * length / seconds)
    return Pace(length, tokens) if tokens else Pace(seconds / requests, 1)


@dataclass(slots=True)
class Budget:
    """One account's limits as this process knows them; moments are those of its monotonic clock, in seconds."""

    limit: RateLimit
    #: requests in the budget's time: published, or as the application says
    requests: int
    #: requests that may be under way here; the limit is shared with other processes
    share: int | None
    paused_until: float = 0.0
    paced_until: float = 0.0
    #: refused since the pace began, and not yet served
    backlog: int = 0

    @classmethod
    def of(cls, limit: RateLimit) -> "Budget":
        return cls(limit, limit.requests, limit.concurrent)

    @property
    def pace(self) -> Pace:
        return pace_of(self.requests, self.limit.seconds)

    def is_paced(self, now: float) -> bool:
        return now < self.paced_until

    def heard(self, now: float, processes: int, paused: float, paced: float) -> None:
        """Take in what all processes know: how many use the account, and what is left of its pause and its pace."""
        if self.limit.concurrent is not None:
            self.share = max(1, self.limit.concurrent // max(1, processes))
        self.paused_until = max(self.paused_until, now + paused) if paused else self.paused_until
        self.paced_until = max(self.paced_until, now + paced) if paced else self.paced_until

    def paused(self, now: float, seconds: float) -> None:
        """Nothing goes out for so long, and then no faster than the budget."""
        self.paused_until = max(self.paused_until, now + seconds)
        self.paced_until = max(self.paced_until, self.paused_until + self.limit.seconds)

    def learned(self, now: float, unix_time: float, headers: Mapping[str, str]) -> bool:
        """Take in what an answer says; whether others should hear of it."""
        self.requests = _number(headers, self.limit.limit_header) or self.requests
        left = _number(headers, self.limit.remaining_header)
        if left is None or left > self.requests * _LITTLE:
            return False
        if left <= 0:
            self.paused(now, _reset(headers, self.limit, unix_time))
        self.paced_until = max(self.paced_until, now + self.limit.seconds)
        return True

    def stay_away(self, now: float) -> int:
        """Whole seconds after which a refused request finds a place; each later one is sent later."""
        self.backlog += 1
        pause = max(0.0, self.paused_until - now)
        queue = self.backlog * self.limit.seconds / self.requests if self.is_paced(now) else 0.0
        return min(_LONGEST_STAY, max(1, ceil(pause + queue)))

    def served(self, now: float, tokens: int = 1) -> None:
        """So many went out."""
        self.backlog = max(0, self.backlog - tokens) if self.is_paced(now) else 0


def _number(headers: Mapping[str, str], name: str | None) -> int | None:
    text = headers.get(name, "").strip() if name else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _reset(headers: Mapping[str, str], limit: RateLimit, unix_time: float) -> float:
    """Seconds until the application's budget is full again, as it says or by the length of a slice."""
    told = _number(headers, limit.reset_header)
    if told is None:
        return pace_of(limit.requests, limit.seconds).seconds
    return min(float(limit.seconds), max(0.0, told - unix_time if told > _A_MOMENT else float(told)))
