"""Admission control: what is refused before anything is done for it, by rate, by slots and by load."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf
from uuid import UUID

from gateway.errors import RateLimited, Unavailable
from gateway.http.slots import FairSlots
from gateway.identity.model import Caller
from gateway.settings import Settings
from gateway.telemetry.load import Busyness
from gateway.telemetry.loop_lag import LoopLag
from gateway.telemetry.metrics import REFUSED

#: callers whose buckets are remembered; who was not seen for long has a full one anyway
_REMEMBERED = 10_000
#: the part of the slots for requests that those without a token have of their own
_STRANGERS = 20
#: requests in progress that are never too many: they keep a process busy without making each other wait for long
_FEW = 32
#: looks, all of them at a busy process, that make an overload of a hiccup
_LOOKS = 3
#: looks, 20 a second, at a process that has just begun to answer: in a rolling restart it must not refuse what comes
#: from the one that stops
_WARM_UP = 60
#: how the number moves with each look, and the part of it in progress that shows that the rush is over
_LESS, _MORE, _EASE = 0.8, 1.05, 0.5


@dataclass(slots=True)
class Bucket:
    """Tokens of one caller: `rate` a second, at most a second's worth of them at once."""

    rate: float
    tokens: float
    at: float

    @property
    def quota(self) -> int:
        return max(1, round(self.rate))

    def take(self, now: float) -> bool:
        """One token, if there is one."""
        self.tokens = min(float(self.quota), self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    @property
    def wait(self) -> float:
        """Seconds until there is a token."""
        return max(0.0, (1 - self.tokens) / self.rate)


def _refusal(name: str, bucket: Bucket) -> RateLimited:
    REFUSED.add(f"{name}_rate")
    seconds = max(1, ceil(bucket.wait))
    return RateLimited(
        f"the {name} may make {bucket.quota} requests a second; try again in {seconds} s", retry_after=seconds
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a request at the buckets, and the headers of its answer, refused or not.

    The headers are those of draft-ietf-httpapi-ratelimit-headers-10.
    """

    headers: Mapping[str, str]
    refusal: RateLimited | None = None


#: where there are no limits
NO_RATES = Taken({})


class Rates:
    """The buckets of clients and organizations; a rate of 0 is no limit."""

    def __init__(self, client_rate: float, organization_rate: float) -> None:
        self._rates = {"client": client_rate, "organization": organization_rate}
        self.buckets: dict[tuple[str, UUID], Bucket] = {}
        self.is_limiting = any(self._rates.values())
        self._policy = ", ".join(f'"{name}";q={max(1, round(rate))};w=1' for name, rate in self._rates.items() if rate)

    def take(self, caller: Caller) -> Taken:
        """A token of the client's and one of the organization's bucket, or the refusal."""
        now, told, refusal = time.monotonic(), [], None
        for name, owner in (("client", caller.client_id), ("organization", caller.organization_id)):
            if not self._rates[name]:
                continue
            bucket = self._bucket(name, owner, now)
            if refusal is None and not bucket.take(now):
                refusal = _refusal(name, bucket)
            told.append(f'"{name}";r={max(0, int(bucket.tokens))};t={ceil(bucket.wait) or 1}')
        return Taken({"RateLimit": ", ".join(told), "RateLimit-Policy": self._policy}, refusal)

    def _bucket(self, name: str, owner: UUID, now: float) -> Bucket:
        bucket = self.buckets.get((name, owner))
        if bucket is None:
            if len(self.buckets) >= _REMEMBERED:
                self.buckets.clear()
            rate = self._rates[name]
            bucket = self.buckets[(name, owner)] = Bucket(rate, float(max(1, round(rate))), now)
        return bucket


class Overload:
    """How many requests may be in progress: judged by how busy the process is, and found by feeling for it.

    A busy process with few requests is well used; one with many makes all of them wait.
    """

    def __init__(self, max_load: float, *, warm_up: int = 0) -> None:
        self._max_load = max_load
        #: looks that do not count yet: what a process has to do at its start is no overload
        self._warm_up = warm_up
        self._looks: deque[float] = deque(maxlen=_LOOKS)
        self.most = inf

    def looked(self, busy: float, in_progress: int) -> None:
        """A look at the process: busy means fewer than there are, at ease a few more than there are."""
        if self._max_load >= 1:
            return
        if self._warm_up:
            self._warm_up -= 1
            return
        self._looks.append(busy)
        if self.most == inf and (len(self._looks) < _LOOKS or min(self._looks) < self._max_load):
            return
        if busy >= self._max_load:
            self.most = max(_FEW, min(self.most, in_progress) * _LESS)
        elif max(self._looks) < self._max_load and in_progress < self.most * _EASE:
            self.most = inf
        else:
            self.most = max(self.most, in_progress) * _MORE

    def admits(self, in_progress: int) -> bool:
        """Whether one more request may come in."""
        return in_progress < self.most


class Limits:
    """All limits of one front end."""

    def __init__(self, settings: Settings) -> None:
        self.rates = Rates(settings.client_rate, settings.organization_rate)
        self.overload = Overload(settings.max_load, warm_up=_WARM_UP)
        #: of organizations
        self.requests = FairSlots(settings.max_requests, "requests", "requests in progress")
        #: of addresses, for what needs no token
        self.strangers = FairSlots(max(1, settings.max_requests // _STRANGERS), "strangers", "requests without a token")
        #: of organizations
        self.downloads = FairSlots(settings.max_downloads, "downloads", "files that are sent", retry_after=5)
        self.in_progress = 0
        #: of those, the ones that wait without work, but for jobs: they take room, but no time
        self._parked = 0
        self._waiting_for_jobs: Callable[[], int] = lambda: 0

    @contextmanager
    def watching(self, lag: LoopLag, waiting_for_jobs: Callable[[], int]) -> Iterator[None]:
        """Look at how busy the process is as often as at its loop, for as long as the block lasts."""
        self._waiting_for_jobs = waiting_for_jobs
        busyness = Busyness()
        lag.subscribe(lambda _lag: self.overload.looked(busyness.look(), self.at_work))
        try:
            yield
        finally:
            lag.unsubscribe_all()
            busyness.close()

    @property
    def at_work(self) -> int:
        """Requests that make each other wait."""
        return self.in_progress - self._parked - self._waiting_for_jobs()

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Around what a request waits for without work, be it for minutes."""
        self._parked += 1
        try:
            yield
        finally:
            self._parked -= 1

    def enter(self) -> None:
        """Before anything is done for a request, which counts as in progress already; raises Unavailable."""
        if not self.overload.admits(self.at_work - 1):
            REFUSED.add("overload")
            raise Unavailable("the gateway has more to do than it can; try again in a moment", retry_after=1)

    @contextmanager
    def one_download(self, organization_id: UUID) -> Iterator[None]:
        """A place for a file that is streamed, for as long as the block lasts; raises Unavailable."""
        with self.downloads.held(organization_id), self.parked():
            yield
