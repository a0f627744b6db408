"""The bytes of answers that a process reads at once: small ones never wait, large ones go one after the other."""

import asyncio
from dataclasses import dataclass

#: bytes that all answers being read may hold together; beyond them one goes on at a time
SHARED = 4 << 20


class ReadBudget:
    """Shared by all answers of a process; what one of them may have at most is up to its reader."""

    def __init__(self, shared: int = SHARED) -> None:
        self.available = shared
        #: held by the one answer that goes on beyond them
        self.overflow = asyncio.Lock()

    def reading(self) -> "Reservation":
        """One answer, until it is read or dropped."""
        return Reservation(self)


@dataclass(slots=True)
class Reservation:
    """What one answer holds of the budget, for as long as the block lasts."""

    budget: ReadBudget
    reserved: int = 0
    is_beyond: bool = False

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.budget.available += self.reserved
        if self.is_beyond:
            self.budget.overflow.release()

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
