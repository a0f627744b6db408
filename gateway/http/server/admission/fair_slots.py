"""Slots that several holders share fairly."""

from collections.abc import Hashable

from gateway.errors import Unavailable
from gateway.telemetry.metrics import REFUSED


class FairSlots:
    """Slots of which a holder gets at most half of what the others leave, so that a new holder finds some free."""

    def __init__(self, total: int, name: str, what: str, *, retry_after: int = 1) -> None:
        self._total = total
        self._name = name
        #: what a slot is for, in the plural, for the error
        self._what = what
        #: seconds
        self._retry_after = retry_after
        self._held: dict[Hashable, int] = {}
        self.in_use = 0

    def acquire(self, holder: Hashable) -> None:
        """Take a slot for the holder until `release`; raises Unavailable."""
        held = self._held.get(holder, 0)
        free = self._total - (self.in_use - held)
        if self.in_use >= self._total or held >= max(1, free // 2):
            REFUSED.add(self._name)
            who = f"all {self._total} slots" if self.in_use >= self._total else f"{held} of {self._total} slots"
            raise Unavailable(f"{who} for {self._what} are taken; try again in a moment", retry_after=self._retry_after)
        self._held[holder] = held + 1
        self.in_use += 1

    def release(self, holder: Hashable) -> None:
        self.in_use -= 1
        held = self._held.pop(holder) - 1
        if held:
            self._held[holder] = held
