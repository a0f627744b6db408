"""Permits to send a request: each takes a place in the limit of its rate scope, and one connection of the process."""

from collections.abc import Hashable, Mapping
from types import TracebackType
from typing import Self

from gateway.errors import Unavailable
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.telemetry import tracing
from gateway.foundation.telemetry.metrics import REFUSED
from gateway.upstream.rate_limits import RateLimiter, RateScope

#: `Retry-After` in seconds when no connection is left
_RETRY_AFTER = 1


class Permits:
    """The permits of a process.

    An organization holds no more connections than are left, and none of its rate scopes more than are left of this
    share: a slow account leaves the others at least as many as it uses. Work that belongs to no organization, such as
    that of a process with one caller, may use all of them.
    """

    def __init__(self, limiter: RateLimiter, max_connections: int) -> None:
        self.limiter = limiter
        #: connections that are left
        self.left = max_connections
        #: scope → its connections, and organization or None → its connections, of those that have any
        self.held: dict[Hashable, int] = {}


class Permit:
    """`async with` a permit of a scope; a class, because a generator costs more.

    Raises UpstreamRateLimited when the scope has no place within `timeout` seconds, then Unavailable at once if no
    connection is left.
    """

    __slots__ = ("_has_place", "_organization", "_permits", "_scope", "_timeout", "headers")

    def __init__(self, permits: Permits, scope: RateScope, timeout: float) -> None:
        self._permits = permits
        self._scope = scope
        self._timeout = timeout
        self._organization = computing_for()
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
        organization, all_held = self._organization, permits.held
        held, held_by_organization = all_held.get(scope_id, 0), all_held.get(organization, 0)
        room = permits.left if organization is None else (permits.left - held_by_organization) // 2
        if held >= room:
            self.give_place()
            REFUSED.add("upstream_connections")
            raise Unavailable("too many calls of applications are under way; try again", retry_after=_RETRY_AFTER)
        permits.left -= 1
        all_held[scope_id] = held + 1
        all_held[organization] = held_by_organization + 1
        return self

    def give_place(self) -> None:
        """Give back the place within the limit, and keep the connection."""
        if self._has_place:
            self._has_place = False
            self._permits.limiter.release(self._scope, self.headers)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permits = self._permits
        permits.left += 1
        for holder in (self._scope.id, self._organization):
            held = permits.held.pop(holder) - 1
            if held:
                permits.held[holder] = held
        self.give_place()
