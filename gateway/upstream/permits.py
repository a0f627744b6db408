"""Permits to send a request: each takes a place in the limit of its rate scope, and one connection of the process."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from gateway.errors import Unavailable
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import REFUSED
from gateway.upstream.rate_limits import RateLimiter, RateScope

#: `Retry-After` in seconds when no connection is left
_RETRY_AFTER = 1


class Permits:
    """The permits of a process.

    No rate scope holds more connections than are left: a slow account leaves the others at least as many as it uses.
    """

    def __init__(self, limiter: RateLimiter, max_connections: int) -> None:
        self.limiter = limiter
        #: connections that are left
        self.left = max_connections
        #: scope → its connections, of those that have any
        self.held: dict[str, int] = {}


class Permit:
    """`async with` a permit of a scope; a class, because a generator costs more.

    Raises UpstreamRateLimited when the scope has no place within `timeout` seconds, then Unavailable at once if no
    connection is left.
    """

    __slots__ = ("_has_place", "_permits", "_scope", "_timeout", "headers")

    def __init__(self, permits: Permits, scope: RateScope, timeout: float) -> None:
        self._permits = permits
        self._scope = scope
        self._timeout = timeout
        self._has_place = False
        #: the headers of the response, which may say what is left of the application's limit
        self.headers: Mapping[str, str] | None = None

    async def __aenter__(self) -> Self:
        permits, scope_id = self._permits, self._scope.id
        turn = permits.limiter.acquire(self._scope, self._timeout)
        if turn is not None:
            with tracing.span("wait for the rate limit", "internal"):
                await turn
        self._has_place = True
        held = permits.held.get(scope_id, 0)
        if held >= permits.left:
            self.give_place()
            REFUSED.add("upstream_connections")
            raise Unavailable("too many calls of applications are under way; try again", retry_after=_RETRY_AFTER)
        permits.left -= 1
        permits.held[scope_id] = held + 1
        return self

    def give_place(self) -> None:
        """Give back the place within the limit, and keep the connection."""
        if self._has_place:
            self._has_place = False
            self._permits.limiter.release(self._scope, self.headers)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permits, scope_id = self._permits, self._scope.id
        permits.left += 1
        held = permits.held.pop(scope_id) - 1
        if held:
            permits.held[scope_id] = held
        self.give_place()
