"""How many connections to applications a process holds, and how rate scopes share them: pure."""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.connectors.rate_limits import RateScope
from gateway.errors import Unavailable
from gateway.telemetry.metrics import REFUSED

#: seconds after which a refused caller may try again
_RETRY_AFTER = 1


class ConnectionBudget:
    """The ceiling is the process's, whatever hosts are called: all tenants of a kind share one.

    No scope holds more connections than are left: a slow account, or one that does not answer at all, leaves at least
    as many for the others as it takes.
    """

    def __init__(self, max_connections: int) -> None:
        self._max = max_connections
        self._total = 0
        self._held: dict[str, int] = {}

    @contextmanager
    def one(self, scope: RateScope) -> Iterator[None]:
        """One connection for as long as the block lasts; raises Unavailable at once where there is none."""
        held = self._held.get(scope.id, 0)
        if held >= self._max - self._total:
            REFUSED.add("upstream_connections")
            raise Unavailable("too many calls of applications are under way; try again", retry_after=_RETRY_AFTER)
        self._total += 1
        self._held[scope.id] = held + 1
        try:
            yield
        finally:
            self._total -= 1
            held = self._held.pop(scope.id) - 1
            if held:
                self._held[scope.id] = held
