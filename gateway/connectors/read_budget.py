"""The bytes of answers that a process reads at once: small ones never wait, large ones go one after the other."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

#: bytes that all answers being read may hold together; beyond them one goes on at a time
SHARED = 16 << 20


class ReadBudget:
    """Shared by all answers of a process; what one of them may have at most is up to its reader."""

    def __init__(self, shared: int = SHARED) -> None:
        self._left = shared
        self._beyond = asyncio.Lock()

    @contextmanager
    def reading(self) -> Iterator["Reading"]:
        """One answer, until it is read or dropped."""
        reading = Reading(self)
        try:
            yield reading
        finally:
            reading.end()

    def take(self, size: int) -> bool:
        if size > self._left:
            return False
        self._left -= size
        return True

    def give_back(self, size: int) -> None:
        self._left += size

    async def go_beyond(self) -> None:
        await self._beyond.acquire()

    def end_beyond(self) -> None:
        self._beyond.release()


class Reading:
    """What one answer holds of the budget."""

    __slots__ = ("_budget", "_is_beyond", "_taken")

    def __init__(self, budget: ReadBudget) -> None:
        self._budget = budget
        self._taken = 0
        self._is_beyond = False

    async def grow(self, size: int) -> None:
        """Hold so many bytes more; waits, not reading on, while other large answers are being read."""
        if self._is_beyond:
            return
        if self._budget.take(size):
            self._taken += size
            return
        await self._budget.go_beyond()
        self._is_beyond = True

    def end(self) -> None:
        self._budget.give_back(self._taken)
        if self._is_beyond:
            self._budget.end_beyond()
