"""What a process caches of each organization, or of each client, until PostgreSQL notifies it of a change."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from uuid import UUID

from gateway.foundation.aio.single_flight import SingleFlight

V = TypeVar("V")

#: seconds for which a value is cached, in case a notification was lost
_TRUST = 30.0
#: maximum ids with a cached value
_MAX_CACHED = 10_000


class NotifiedCache(Generic[V]):
    """Caches one value for each id of an organization or client; concurrent callers share a look-up."""

    def __init__(self, read: Callable[[UUID], Awaitable[V]]) -> None:
        self._read = read
        #: id → when its value expires, and the value; least recently read first
        self._cached: OrderedDict[UUID, tuple[float, V]] = OrderedDict()
        self._reading = SingleFlight(self._look_up)

    async def get(self, id_: UUID) -> V:
        """The value; raises what `read` raises."""
        found = self._cached.get(id_)
        if found is not None and found[0] > time.monotonic():
            return found[1]
        return await self._reading(id_)

    async def _look_up(self, id_: UUID) -> V:
        now, generation = time.monotonic(), self._reading.generation
        value = await self._read(id_)
        if generation == self._reading.generation:
            self._cached[id_] = now + _TRUST, value
            self._cached.move_to_end(id_)
            if len(self._cached) > _MAX_CACHED:
                self._cached.popitem(last=False)
        return value

    def on_notify(self, id_: str) -> None:
        """Forget the value of an id, which was changed, or all for `*`."""
        if id_ == "*":
            self.invalidate_all()
        else:
            self._reading.forget()
            self._cached.pop(UUID(id_), None)

    def invalidate_all(self) -> None:
        """Forget all values, because notifications may have been missed."""
        self._reading.forget()
        self._cached.clear()
