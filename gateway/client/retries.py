"""Decides whether a failed call is sent again, and after which pause."""

import random
from dataclasses import dataclass

from gateway.errors import GatewayError, IdempotencyInFlight, RateLimited, Unavailable

#: attempts, about a second apart, while the gateway still executes the first request
_IN_FLIGHT_TRIES = 120


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a client repeats a call, and after which pauses."""

    #: attempts after the first
    retries: int = 4
    #: seconds of the longest pause; if `Retry-After` is longer, the error is raised
    longest_pause: float = 30.0
    #: seconds of the first pause without `Retry-After`; each further pause is twice as long
    first_pause: float = 0.25

    def pause(self, error: GatewayError, tried: int, *, is_safe: bool) -> float | None:
        """Seconds until the next attempt; None if the error is final. `is_safe`: repeating has no further effect."""
        if isinstance(error, IdempotencyInFlight):
            return float(error.retry_after or 1) if tried <= _IN_FLIGHT_TRIES else None
        if tried > self.retries or not self._may_repeat(error, is_safe=is_safe):
            return None
        if error.retry_after is not None:
            return None if error.retry_after > self.longest_pause else float(error.retry_after)
        return self.growing_pause(tried)

    def growing_pause(self, tried: int) -> float:
        """Seconds that double with each attempt, with jitter."""
        longest = min(self.longest_pause, self.first_pause * (1 << tried - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter needs no cryptographic randomness

    def _may_repeat(self, error: GatewayError, *, is_safe: bool) -> bool:
        if isinstance(error, RateLimited):
            return True
        return isinstance(error, Unavailable) and (is_safe or error.extra.get("sent") is False)
