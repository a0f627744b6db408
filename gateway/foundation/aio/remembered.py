"""A value that is computed once for all callers within some seconds."""

import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.foundation.aio.single_flight import SingleFlight

V = TypeVar("V")


class Remembered(Generic[V]):
    """The result of `compute`, computed again on a call after `seconds`, or if `version` returns another value."""

    def __init__(
        self, compute: Callable[[], Awaitable[V]], seconds: float, version: Callable[[], object] = lambda: None
    ) -> None:
        self._compute = compute
        self._seconds = seconds
        self._version = version
        self._computing: SingleFlight[object, V] = SingleFlight(self._computed)
        self._cached: tuple[V, float, object] | None = None

    async def __call__(self) -> V:
        """The value; raises the errors of `compute`, which are not cached."""
        version = self._version()
        if self._cached is not None and version == self._cached[2]:
            value, computed_at, _ = self._cached
            if time.monotonic() - computed_at < self._seconds:
                return value
        return await self._computing(version)

    async def _computed(self, version: object) -> V:
        value = await self._compute()
        self._cached = value, time.monotonic(), version
        return value
