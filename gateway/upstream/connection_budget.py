"""Shares the connections of a process to applications among rate scopes."""

from gateway.errors import Unavailable
from gateway.telemetry.metrics import REFUSED
from gateway.upstream.rate_limits import RateScope

#: `Retry-After` in seconds when no connection is left
_RETRY_AFTER = 1


class ConnectionBudget:
    """The number of connections of a process to all applications.

    No rate scope holds more connections than are left: a slow account leaves the others at least as many as it uses.
    """

    def __init__(self, max_connections: int) -> None:
        self._max = max_connections
        self._total = 0
        self._held: dict[str, int] = {}

    def one(self, scope: RateScope) -> "_Connection":
        """Hold one connection within the block; raises Unavailable at once if none is left."""
        return _Connection(self, scope.id)

    def acquire(self, scope_id: str) -> None:
        held = self._held.get(scope_id, 0)
        if held >= self._max - self._total:
            REFUSED.add("upstream_connections")
            raise Unavailable("too many calls of applications are under way; try again", retry_after=_RETRY_AFTER)
        self._total += 1
        self._held[scope_id] = held + 1

    def release(self, scope_id: str) -> None:
        self._total -= 1
        held = self._held.pop(scope_id) - 1
        if held:
            self._held[scope_id] = held


class _Connection:
    """A held connection; a class, because a generator costs more."""

    __slots__ = ("_budget", "_scope_id")

    def __init__(self, budget: ConnectionBudget, scope_id: str) -> None:
        self._budget = budget
        self._scope_id = scope_id

    def __enter__(self) -> None:
        self._budget.acquire(self._scope_id)

    def __exit__(self, *_: object) -> None:
        self._budget.release(self._scope_id)
