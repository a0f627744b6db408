"""Limits the memory of responses that a process reads: small ones never wait, large ones are read one at a time.

Organizations share it: the application of one, which sends large responses slowly, does not hold up those of another.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from gateway.foundation.aio.turns import Turns, computing_for

#: bytes that all responses being read may hold together; above it an organization's are read one at a time
SHARED = 4 << 20
#: responses that may exceed the budget together, each of another organization
_BEYOND = 2


class ReadBudget:
    """Shared by all responses of a process; the reader of each response limits its size."""

    def __init__(self, shared: int = SHARED) -> None:
        self.available = shared
        #: organization → its bytes
        self.held: Counter[Hashable] = Counter()
        #: held by the responses that may exceed the budget
        self.overflow = Turns(_BEYOND, of_one=1)

    def reading(self) -> "Reservation":
        """One answer, until it is read or dropped."""
        return Reservation(self)

    def room(self, organization: Hashable) -> int:
        """The bytes that are left of an organization's share: half of what the others leave; None may take all."""
        return self.available if organization is None else (self.available - self.held[organization]) // 2


@dataclass(slots=True)
class Reservation:
    """One response's part of the budget, held for the duration of the `with` block."""

    budget: ReadBudget
    organization: Hashable = field(default_factory=computing_for)
    reserved: int = 0
    is_beyond: bool = False

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        budget, organization = self.budget, self.organization
        budget.available += self.reserved
        budget.held[organization] -= self.reserved
        if not budget.held[organization]:
            del budget.held[organization]
        if self.is_beyond:
            budget.overflow.release(organization)

    async def grow(self, size: int) -> None:
        """Reserve so many more bytes; beyond the share, waits until no other response of the organization exceeds it.

        A third organization waits until one of two others has read its response.
        """
        if self.is_beyond:
            return
        budget, organization = self.budget, self.organization
        if size > budget.room(organization):
            await budget.overflow.acquire(organization)
            self.is_beyond = True
        else:
            budget.available -= size
            budget.held[organization] += size
            self.reserved += size
