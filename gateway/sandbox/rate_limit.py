"""The rate limit of an application of the sandbox, and the headers that report it, both from its spec."""

from math import ceil

from gateway.kinds.failures import RateLimit

#: members of an allowance that name a header each
_MEMBERS = ("limit", "remaining", "reset")


class RateLimitWindow:
    """The window of a rate limit, shared by all callers."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._began = 0.0
        self._used = 0

    def taken(self, now: float) -> int | None:
        """Count a request; returns None, or the seconds until the next window if the limit is reached."""
        if now - self._began >= self._limit.seconds:
            self._began, self._used = now, 0
        if self._used >= self._limit.requests:
            return self._reset(now)
        self._used += 1
        return None

    def headers(self, now: float) -> dict[str, str]:
        """The headers of the spec's `allowances`."""
        values = {
            "limit": self._limit.requests,
            "remaining": self._limit.requests - self._used,
            "reset": self._reset(now),
            "used": f"{self._used}/{self._limit.requests}",
        }
        found: dict[str, str] = {}
        for allowance in self._limit.allowances:
            if allowance.per_endpoint or allowance.seconds is not None:
                continue
            named = {name: getattr(allowance, name) for name in _MEMBERS}
            found |= {header: str(values[name]) for name, header in named.items() if header is not None}
            if allowance.header is not None and not allowance.header.endswith("*"):
                found[allowance.header] = ", ".join(
                    f"{word}={values[name]}" if word else f"{values[name]}" for name, word in allowance.members.items()
                )
        return found

    def _reset(self, now: float) -> int:
        return max(1, ceil(self._began + self._limit.seconds - now))
