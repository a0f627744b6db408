"""What a process caches of each organization until PostgreSQL notifies it of a change."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from uuid import UUID

from gateway.foundation.aio.single_flight import SingleFlight

V = TypeVar("V")

#: seconds for which a value is cached, in case a notification was lost
_TRUST = 30.0
#: maximum organizations with a cached value
_MAX_CACHED = 10_000


class NotifiedCache(Generic[V]):
    """Caches one value for each organization; concurrent callers share a look-up."""

    def __init__(self, read: Callable[[UUID], Awaitable[V]]) -> None:
        self._read = read
        #: organization → when its value expires, and the value; least recently read first
        self._cached: OrderedDict[UUID, tuple[float, V]] = OrderedDict()
        self._reading = SingleFlight(self._look_up)

    async def get(self, organization_id: UUID) -> V:
        """The value; raises what `read` raises."""
        found = self._cached.get(organization_id)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        return await self._reading(organization_id)

    async def _look_up(self, organization_id: UUID) -> V:
        now, generation = time.monotonic(), self._reading.generation
        value = await self._read(organization_id)
        if generation == self._reading.generation:
            self._cached[organization_id] = now + _TRUST, value
            self._cached.move_to_end(organization_id)
            if len(self._cached) > _MAX_CACHED:
                self._cached.popitem(last=False)
        return value

    def on_notify(self, organization_id: str) -> None:
        """Forget the value of an organization, which was changed."""
        self._reading.forget()
        self._cached.pop(UUID(organization_id), None)

    def invalidate_all(self) -> None:
        """Forget all values, because notifications may have been missed."""
        self._reading.forget()
        self._cached.clear()
