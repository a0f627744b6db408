"""What the edge refuses before anything is done for it: too many requests of one caller, and more than it can carry."""

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from uuid import UUID

from gateway.errors import RateLimited, Unavailable
from gateway.identity.model import Caller
from gateway.lag import LoopLag
from gateway.metrics import REFUSED
from gateway.settings import Settings

#: callers whose buckets are remembered; who was not seen for long has a full one anyway
_REMEMBERED = 10_000
#: requests in progress that are never too many: with fewer, what makes the loop late is not the number of requests
_FEW = 50
#: looks at the loop, all of them late, that make an overload of a hiccup
_LOOKS = 5
#: how the admitted share moves with each look, and how far down it goes
_LESS, _MORE, _LEAST = 0.75, 0.02, 0.05
#: seconds that a refusal is held back, so that callers who come again at once do not take the processor; and how many
_HOLD, _HELD = 0.25, 2000


@dataclass(slots=True)
class Bucket:
    """Tokens of one caller: `rate` a second, at most a second's worth of them at once."""

    rate: float
    tokens: float
    at: float
    #: tokens taken here that other processes do not know of yet
    untold: float = 0.0

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
        self.untold += 1
        return True

    def taken_elsewhere(self, tokens: float) -> None:
        """What other processes took from the same caller; a debt of a second's worth at most."""
        self.tokens = max(-float(self.quota), self.tokens - tokens)

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
    """Lets in the share of requests that the process can carry: judged by how late its event loop is.

    Only the loop's lateness tells work that waits for applications, of which there may be much, from too much work.
    """

    def __init__(self, most_lag: float) -> None:
        self._most_lag = most_lag
        self._looks: deque[float] = deque(maxlen=_LOOKS)
        self.share = 1.0
        self._credit = 0.0
        self.held = 0

    def looked(self, lag: float) -> None:
        """A look at the loop: late throughout means less, in time means a little more."""
        if not self._most_lag:
            return
        self._looks.append(lag)
        if self.share == 1.0 and (len(self._looks) < _LOOKS or min(self._looks) <= self._most_lag):
            return
        if lag > self._most_lag:
            self.share = max(_LEAST, self.share * _LESS)
        else:
            self.share = min(1.0, self.share + _MORE)

    def is_admitted(self, in_progress: int) -> bool:
        """Whether the next request is among those that are let in."""
        if self.share == 1.0 or in_progress <= _FEW:
            return True
        self._credit += self.share
        if self._credit < 1:
            return False
        self._credit -= 1
        return True

    async def refuse(self) -> None:
        """Raises Unavailable, after a moment."""
        REFUSED.add("overload")
        if self.held < _HELD:
            self.held += 1
            try:
                await asyncio.sleep(_HOLD)
            finally:
                self.held -= 1
        raise Unavailable("the gateway has more to do than it can; try again in a moment", retry_after=1)


class Limits:
    """All limits of one front end."""

    def __init__(self, settings: Settings) -> None:
        self.rates = Rates(settings.client_rate, settings.organization_rate)
        self.overload = Overload(settings.most_lag)
        self._most = settings.most_requests
        self.in_progress = 0
        self._most_downloads = settings.most_downloads
        self._downloads = 0

    def watch(self, lag: LoopLag) -> None:
        lag.subscribe(self.overload.looked)

    async def enter(self) -> None:
        """Before anything is done for a request; raises Unavailable."""
        if not self.overload.is_admitted(self.in_progress - self.overload.held):
            await self.overload.refuse()
        if self.in_progress >= self._most:
            REFUSED.add("requests")
            raise Unavailable(f"{self._most} requests are in progress; try again in a moment", retry_after=1)

    @contextmanager
    def one_download(self) -> Iterator[None]:
        """A place for a file that is streamed, for as long as the block lasts; raises Unavailable."""
        if self._downloads >= self._most_downloads:
            REFUSED.add("downloads")
            raise Unavailable(f"{self._most_downloads} files are being sent; try again in a moment", retry_after=5)
        self._downloads += 1
        try:
            yield
        finally:
            self._downloads -= 1
