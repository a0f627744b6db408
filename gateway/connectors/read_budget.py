"""The bytes of answers that a process reads at once: small ones never wait, large ones go one after the other."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: bytes that all answers being read may hold together; beyond them one goes on at a time
SHARED = 4 << 20


class ReadBudget:
    """Shared by all answers of a process; what one of them may have at most is up to its reader."""

    def __init__(self, shared: int = SHARED) -> None:
        self.available = shared
        #: held by the one answer that goes on beyond them
        self.overflow = asyncio.Lock()

    @contextmanager
    def reading(self) -> Iterator["Reservation"]:
        """One answer, until it is read or dropped."""
        reading = Reservation(self)
        try:
            yield reading
        finally:
            self.available += reading.reserved
            if reading.is_beyond:
                self.overflow.release()


@dataclass(slots=True)
class Reservation:
    """What one answer holds of the budget."""

    budget: ReadBudget
    reserved: int = 0
    is_beyond: bool = False

    async def grow(self, size: int) -> None:
        """Hold so many bytes more; waits, not reading on, while other large answers are being read."""
        if self.is_beyond:
            return
        if size > self.budget.available:
            await self.budget.overflow.acquire()
            self.is_beyond = True
        else:
            self.budget.available -= size
            self.reserved += size
