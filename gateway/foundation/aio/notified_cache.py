"""What a process caches of organizations, clients, tokens and connectors until PostgreSQL notifies it of a change."""

from collections.abc import Awaitable, Callable, Collection, Hashable
from typing import Generic, TypeVar
from uuid import UUID

from gateway.foundation.aio.clock import steady
from gateway.foundation.aio.single_flight import SingleFlight
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.least_used import LeastUsed

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: seconds after which a value is read again although no change was notified
LONGEST = 600.0


def _itself(key: K, _value: V) -> Collection[Hashable]:
    return (key,)


def _longest(_value: object) -> float:
    return LONGEST


def _of_task(_value: object) -> Hashable:
    return computing_for()


class NotifiedCache(Generic[K, V]):
    """Caches one value for each key; concurrent callers share a look-up.

    A value is used while `is_current`: until the process is notified of a change of one of the value's subjects, which
    by default is its key. While the process may miss notifications, a value is used for `unnotified` seconds. The
    organizations whose values these are share the cache: by default that of the task that looks a value up.
    """

    def __init__(
        self,
        read: Callable[[K], Awaitable[V]],
        is_current: Callable[[], bool],
        *,
        unnotified: float = 30.0,
        max_cached: int = 10_000,
        subjects: Callable[[K, V], Collection[Hashable]] = _itself,
        seconds: Callable[[V], float] = _longest,
        holder: Callable[[V], Hashable] = _of_task,
    ) -> None:
        self._read = read
        self._is_current = is_current
        self._unnotified = unnotified
        self._subjects = subjects
        #: for how long a value may be used at most
        self._seconds = seconds
        self._holder = holder
        #: key → until when its value is used without notifications, and with them
        self._cached: dict[K, tuple[float, float, V]] = {}
        self._used: LeastUsed[K] = LeastUsed(max_cached)
        self._keys: dict[Hashable, set[K]] = {}
        self._reading = SingleFlight(self._look_up)

    async def get(self, key: K) -> V:
        """The value; raises what `read` raises, which is not cached."""
        found = self._cached.get(key)
        if found is not None:
            now = steady()
            if now < found[0] or (now < found[1] and self._is_current()):
                if self._used.is_filling:
                    self._used.use(key)
                return found[2]
        return await self._reading(key)

    def peek(self, key: K) -> V | None:
        """The cached value, which may be old; None if there is none."""
        found = self._cached.get(key)
        return None if found is None else found[2]

    async def _look_up(self, key: K) -> V:
        self._drop(key)
        now, generation = steady(), self._reading.generation
        value = await self._read(key)
        if generation == self._reading.generation:  # else the value may be older than a notification
            until = now + self._seconds(value)
            self._drop(key)
            self._cached[key] = min(now + self._unnotified, until), until, value
            for subject in self._subjects(key, value):
                self._keys.setdefault(subject, set()).add(key)
            for dropped in self._used.add(key, self._holder(value)):
                self._drop(dropped)
        return value

    def _drop(self, key: K) -> None:
        found = self._cached.pop(key, None)
        if found is None:
            return
        self._used.discard(key)
        for subject in self._subjects(key, found[2]):
            keys = self._keys.get(subject, set())
            keys.discard(key)
            if not keys:
                self._keys.pop(subject, None)

    def on_notify(self, subject: str) -> None:
        """Forget the values with an id as a subject, because it was changed, or all for `*`."""
        if subject == "*":
            self.invalidate_all()
            return
        self._reading.forget()
        for key in list(self._keys.get(UUID(subject), ())):
            self._drop(key)

    def invalidate_all(self) -> None:
        """Forget all values, because notifications may have been missed."""
        self._reading.forget()
        self._cached.clear()
        self._used.clear()
        self._keys.clear()
