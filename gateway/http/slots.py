"""Room in a front end for so many at a time, shared so that nobody can take all of it."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from gateway.errors import Unavailable
from gateway.telemetry.metrics import REFUSED


class FairSlots:
    """No holder takes more than half of what the others leave, so that there is always some left for one who is new."""

    def __init__(self, total: int, name: str, what: str, *, retry_after: int = 1) -> None:
        self._total = total
        self._name = name
        #: what a place is for, in the plural
        self._what = what
        #: seconds
        self._retry_after = retry_after
        self._held: dict[Hashable, int] = {}
        self.taken = 0

    def take(self, holder: Hashable) -> None:
        """A place for the holder until it gives it back; raises Unavailable."""
        held = self._held.get(holder, 0)
        left = self._total - (self.taken - held)
        if self.taken >= self._total or held >= max(1, left // 2):
            REFUSED.add(self._name)
            who = f"all {self._total} slots" if self.taken >= self._total else f"{held} of {self._total} slots"
            raise Unavailable(f"{who} for {self._what} are taken; try again in a moment", retry_after=self._retry_after)
        self._held[holder] = held + 1
        self.taken += 1

    def give_back(self, holder: Hashable) -> None:
        self.taken -= 1
        held = self._held.pop(holder) - 1
        if held:
            self._held[holder] = held

    @contextmanager
    def held(self, holder: Hashable) -> Iterator[None]:
        """A place for as long as the block lasts; raises Unavailable."""
        self.take(holder)
        try:
            yield
        finally:
            self.give_back(holder)
