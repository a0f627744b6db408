"""Limits the memory of responses that a process reads: small ones never wait, large ones are read one at a time."""

import asyncio
from dataclasses import dataclass

#: bytes that all responses being read may hold together; above it only one response is read at a time
SHARED = 4 << 20


class ReadBudget:
    """Shared by all responses of a process; the reader of each response limits its size."""

    def __init__(self, shared: int = SHARED) -> None:
        self.available = shared
        #: held by the one response that may exceed the budget
        self.overflow = asyncio.Lock()

    def reading(self) -> "Reservation":
        """One answer, until it is read or dropped."""
        return Reservation(self)


@dataclass(slots=True)
class Reservation:
    """One response's part of the budget, held for the duration of the `with` block."""

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
        """Reserve so many more bytes; beyond the budget, waits until no other response exceeds it."""
        if self.is_beyond:
            return
        if size > self.budget.available:
            await self.budget.overflow.acquire()
            self.is_beyond = True
        else:
            self.budget.available -= size
            self.reserved += size
