"""A value that is computed once for all callers within some seconds."""

import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.foundation.aio.single_flight import SingleFlight

V = TypeVar("V")


class Remembered(Generic[V]):
    """The result of `compute`, computed again on a call after `seconds`."""

    def __init__(self, compute: Callable[[], Awaitable[V]], seconds: float) -> None:
        self._compute = compute
        self._seconds = seconds
        self._computing = SingleFlight(self._computed)
        self._cached: tuple[V, float] | None = None

    async def __call__(self) -> V:
        """The value; raises the errors of `compute`, which are not cached."""
        if self._cached is not None and time.monotonic() - self._cached[1] < self._seconds:
            return self._cached[0]
        return await self._computing(None)

    async def _computed(self, _: None) -> V:
        value = await self._compute()
        self._cached = value, time.monotonic()
        return value
