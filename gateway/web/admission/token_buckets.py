"""Token buckets: the rate limits of clients and organizations."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from uuid import UUID

from gateway.access.identity.model import Caller
from gateway.errors import RateLimited
from gateway.foundation.telemetry.metrics import REFUSED

#: maximum buckets; beyond it all are dropped, which only forgives the requests of the last second
_MAX_BUCKETS = 10_000


@dataclass(slots=True)
class Bucket:
    """A token bucket of one caller: `rate` tokens a second, and at most as many."""

    rate: float
    tokens: float
    at: float

    @property
    def quota(self) -> int:
        return max(1, round(self.rate))

    def try_acquire(self, now: float) -> bool:
        """Take a token; False if there is none."""
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
class RateDecision:
    """Whether a request was admitted, and the headers of its response in either case.

    The headers are those of draft-ietf-httpapi-ratelimit-headers-10.
    """

    headers: Mapping[str, str]
    refusal: RateLimited | None = None


class Rates:
    """The buckets of clients and organizations; a rate of 0 means no limit."""

    def __init__(self, client_rate: float, organization_rate: float) -> None:
        self._rates = {"client": client_rate, "organization": organization_rate}
        self.buckets: dict[tuple[str, UUID], Bucket] = {}
        self.is_limiting = any(self._rates.values())
        self._policy = ", ".join(f'"{name}";q={max(1, round(rate))};w=1' for name, rate in self._rates.items() if rate)

    def try_acquire(self, caller: Caller) -> RateDecision:
        """Take a token of the client's bucket and one of the organization's; an empty bucket is a refusal."""
        now, items, refusal = time.monotonic(), [], None
        for name, owner in (("client", caller.client_id), ("organization", caller.organization_id)):
            if not self._rates[name]:
                continue
            bucket = self._bucket(name, owner, now)
            if refusal is None and not bucket.try_acquire(now):
                refusal = _refusal(name, bucket)
            items.append(f'"{name}";r={max(0, int(bucket.tokens))};t={ceil(bucket.wait) or 1}')
        return RateDecision({"RateLimit": ", ".join(items), "RateLimit-Policy": self._policy}, refusal)

    def _bucket(self, name: str, owner: UUID, now: float) -> Bucket:
        bucket = self.buckets.get((name, owner))
        if bucket is None:
            if len(self.buckets) >= _MAX_BUCKETS:
                self.buckets.clear()
            rate = self._rates[name]
            bucket = self.buckets[(name, owner)] = Bucket(rate, float(max(1, round(rate))), now)
        return bucket
