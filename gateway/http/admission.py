"""Admission control: what is refused before anything is done for it, by rate, by slots and by load."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf
from statistics import median
from uuid import UUID

from gateway.errors import RateLimited
from gateway.http.slots import FairSlots
from gateway.identity.model import Caller
from gateway.settings import Settings
from gateway.telemetry.load import Busyness
from gateway.telemetry.loop_lag import INTERVAL, LoopLag
from gateway.telemetry.metrics import REFUSED

#: callers whose buckets are remembered; who was not seen for long has a full one anyway
_REMEMBERED = 10_000
#: the part of the slots for requests that those without a token have of their own
_STRANGERS = 20
#: requests in progress that are never too many: they keep a process busy without making each other wait for long
_FEW = 32
#: looks, all of them at a process whose cycles are too long, that make an overload of a burst
_LOOKS = 8
#: of those, the ones that make an overload where too much waits, and whose median tells how it is now
_RECENT = 3
#: looks, 20 a second, at a process that has just begun to answer: in a rolling restart it must not refuse what comes
#: from the one that stops
_WARM_UP = 60
#: seconds of a cycle of the event loop that are never too long, and what else it may be of the time that a request is
#: in progress: some ten cycles are half of it
_SHORT_CYCLE, _CYCLE_SHARE = 0.006, 0.05
#: seconds that a request may always wait here, besides as long as it waits for applications; and how many times as
#: long as it may is an overload at once
_SHORT_WAIT, _FLOOD = 0.06, 4
#: of the averages over the last second, what one look counts
_WEIGHT = INTERVAL
#: how the number moves: at most halved at a time, a few more with each look, and the part of it in progress that shows,
#: for a second, that the rush is over
_LEAST, _MORE, _EASE = 0.5, 0.05, 0.5
_EASY_LOOKS = round(1 / INTERVAL)


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


class RequestTime:
    """How long requests are in progress, by Little's law: as many as there are, over as many as end in a second.

    In seconds, on average over about the last second.
    """

    def __init__(self) -> None:
        self._here, self._calling, self._rate = 0, 0.0, 0.0
        self._last = 0

    def looked(self, in_progress: int, calling: int, admitted: int) -> None:
        """A look: so many are in progress, of which so many wait for applications; `admitted` since the last one."""
        ended = admitted - (in_progress - self._last)
        self._last = in_progress
        self._here = max(0, in_progress - calling)
        self._calling += (min(in_progress, calling) - self._calling) * _WEIGHT
        self._rate += (ended / INTERVAL - self._rate) * _WEIGHT

    @property
    def here(self) -> float:
        """In our own hands, by those that are there now."""
        return self._here / self._rate if self._rate > 0 else 0.0

    @property
    def calling(self) -> float:
        """Waiting for applications."""
        return self._calling / self._rate if self._rate > 0 else inf


@dataclass(frozen=True, slots=True)
class _Look:
    """Of a busy process: how long requests wait in our own hands, and how long a cycle takes, as parts of how long they
    may; more than 1 is too long.
    """

    here: float
    cycle: float


class Overload:
    """How many requests may be in progress: judged by how long they wait for each other, and found by feeling for it.

    What waits is seen at the cycles of the event loop and, by Little's law, at the number that waits for anything but
    an application. How long is too long goes by the time that a request takes: next to an application that answers in
    a second a tenth of it is little, next to a fast one it is an overload.
    """

    def __init__(self, max_load: float, *, warm_up: int = 0) -> None:
        self._max_load = max_load
        #: looks that do not count yet: what a process has to do at its start is no overload
        self._warm_up = warm_up
        self._looks: deque[_Look] = deque(maxlen=_LOOKS)
        self._time = RequestTime()
        #: looks in a row at a busy process, which takes at most twice what it has until the next look
        self._busy_looks = 0
        self._ceiling = inf
        self._easy_looks = 0
        self.most = inf

    def looked(self, busy: float, cycle: float, in_progress: int, admitted: int, calling: int = 0) -> None:
        """A look at the process: the busy share of its time, and the seconds of a cycle of its event loop.

        Of the requests in progress, `calling` wait for applications, and `admitted` came since the last look.
        """
        if self._max_load >= 1:
            return
        self._time.looked(in_progress, calling, admitted)
        if self._warm_up:
            self._warm_up -= 1
            return
        is_busy = busy >= self._max_load
        self._busy_looks = self._busy_looks + 1 if is_busy else 0
        self._ceiling = 2 * max(_FEW, in_progress) if self._busy_looks >= _RECENT else inf
        self._looks.append(self._look(cycle) if is_busy else _Look(0.0, 0.0))
        if self.most < inf:
            self._adjust(in_progress)
        elif self._has_begun():
            self.most = max(_FEW, in_progress * _LEAST)

    def _look(self, cycle: float) -> "_Look":
        here, calling = self._time.here, self._time.calling
        return _Look(here / max(_SHORT_WAIT, calling), cycle / max(_SHORT_CYCLE, _CYCLE_SHARE * (here + calling)))

    def _has_begun(self) -> bool:
        looks = list(self._looks)
        if len(looks) < _RECENT:
            return False
        return (
            looks[-1].here > _FLOOD
            or all(each.here > 1 for each in looks[-_RECENT:])
            or (len(looks) == _LOOKS and all(each.cycle > 1 for each in looks))
        )

    def _adjust(self, in_progress: int) -> None:
        excess = self._excess()
        self._easy_looks = self._easy_looks + 1 if excess <= 1 and in_progress < self.most * _EASE else 0
        if self._easy_looks >= _EASY_LOOKS:
            self.most = inf
            self._looks.clear()
        elif excess <= 1:
            self.most *= 1 + _MORE * (1 - excess)
        elif in_progress <= ceil(self.most):  # until then the last lowering has not had its effect
            self.most = self._lowered(in_progress)

    def _excess(self) -> float:
        return median(max(each.here, each.cycle) for each in list(self._looks)[-_RECENT:])

    def _lowered(self, in_progress: int) -> float:
        return max(_FEW, in_progress * max(_LEAST, 1 / self._excess()))

    def admits(self, in_progress: int) -> bool:
        """Whether one more request may come in."""
        return in_progress < min(self.most, self._ceiling)


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
        self._admitted = 0
        #: of those, the ones that wait without work, but for jobs: they take room, but no time
        self._parked = 0
        self._waiting_for_jobs: Callable[[], int] = lambda: 0

    @contextmanager
    def watching(self, lag: LoopLag, waiting_for_jobs: Callable[[], int], calling: Callable[[], int]) -> Iterator[None]:
        """Look at how busy the process is as often as at its loop, for as long as the block lasts."""
        self._waiting_for_jobs = waiting_for_jobs
        busyness = Busyness()

        def look(_lag: float) -> None:
            admitted, self._admitted = self._admitted, 0
            self.overload.looked(busyness.look(), lag.cycle, self.at_work, admitted, calling())

        lag.subscribe(look)
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

    def admits(self) -> bool:
        """Before anything is done for a request, which counts as in progress already: whether it may come in."""
        if not self.overload.admits(self.at_work - 1):
            REFUSED.add("overload")
            return False
        self._admitted += 1
        return True

    @contextmanager
    def one_download(self, organization_id: UUID) -> Iterator[None]:
        """A place for a file that is streamed, for as long as the block lasts; raises Unavailable."""
        with self.downloads.held(organization_id), self.parked():
            yield
