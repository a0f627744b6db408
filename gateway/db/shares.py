"""Shares of a pool: an organization that uses many connections waits for its own, and leaves some to the others."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

#: of the connections, the part that organizations leave to claims, leases and sign-ins
_RESERVE = 4
#: seconds after its last use of a connection for which an organization counts as active
ACTIVE = 60.0


class ConnectionShares:
    """The number of connections of a pool that each holder may use at a time.

    An organization may use half of what the others leave, one at least. While no other organization is active, it may
    use all of them. Those that wait take turns.
    """

    def __init__(self, size: int, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        #: the two holders that used a connection last, with the time: they tell whether another one is active
        self._latest: dict[str, float] = {}
        #: connections that organizations may use together
        self.total = size - size // _RESERVE
        self._used: Counter[str] = Counter()
        self._in_use = 0
        #: by holder, those in front whose turn comes first
        self._waiting: dict[str, dict[asyncio.Future[None], None]] = {}

    def used(self, holder: str) -> int:
        """How many connections the holder uses."""
        return self._used[holder]

    async def acquire(self, holder: str) -> None:
        """Wait until the holder may use one connection more; `release` gives it back."""
        self._note(holder)
        if holder not in self._waiting and self._may_use_more(holder):
            self._take(holder)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, {})[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(holder)
            else:
                self._withdraw(holder, turn)
            raise

    def release(self, holder: str) -> None:
        """One connection less is in use; the next in turn may use it."""
        self._in_use -= 1
        self._used[holder] -= 1
        if not self._used[holder]:
            del self._used[holder]
        while self._waiting and self._in_use < self.total and (following := self._next()) is not None:
            self._grant(following)

    def _may_use_more(self, holder: str) -> bool:
        if self._in_use >= self.total:
            return False
        if not self._is_another_active(holder):
            return True
        left_by_others = self.total - (self._in_use - self._used[holder])
        return self._used[holder] < max(1, left_by_others // 2)

    def _note(self, holder: str) -> None:
        self._latest.pop(holder, None)
        self._latest[holder] = self._now()
        if len(self._latest) > 2:
            del self._latest[next(iter(self._latest))]

    def _is_another_active(self, holder: str) -> bool:
        since = self._now() - ACTIVE
        return any(other != holder and at > since for other, at in self._latest.items())

    def _withdraw(self, holder: str, turn: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(holder, {})
        waiters.pop(turn, None)
        if not waiters:
            self._waiting.pop(holder, None)

    def _take(self, holder: str) -> None:
        self._in_use += 1
        self._used[holder] += 1

    def _next(self) -> str | None:
        """The first in turn that may use more; at most as many are passed over as there are connections."""
        return next((holder for holder in self._waiting if self._may_use_more(holder)), None)

    def _grant(self, holder: str) -> None:
        waiters = self._waiting.pop(holder)
        turn = next(iter(waiters))
        del waiters[turn]
        if waiters:
            self._waiting[holder] = waiters
        if not turn.done():
            self._take(holder)
            turn.set_result(None)
