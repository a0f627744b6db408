"""The gate that every request passes: as many under way, and as many in a time, as the application allows.

Far from any limit it costs a few comparisons: Redis is asked in the background, and on the way only when requests are
paced, for several tokens at a time.
"""

import asyncio
import contextlib
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType

from gateway.aio.loops import every, running
from gateway.connectors.transport import Account
from gateway.errors import UpstreamRateLimited
from gateway.kinds.spec import RateLimit
from gateway.limits.budget import BACKGROUND_SHARE, Budget
from gateway.limits.shared import SharedLimits

#: seconds between news from the other processes, and for which an account without requests is still asked about
_NEWS, _IDLE = 0.5, 5.0
#: seconds after which an account without requests is forgotten
_FORGOTTEN = 600.0
#: a kind that publishes nothing
_UNLIMITED = RateLimit(requests=1_000_000, seconds=1)


class AccountLimiter:
    """The gate of one account in this process: who is let through next."""

    def __init__(self, account: str, limit: RateLimit, shared: SharedLimits) -> None:
        self.account = account
        self.budget = Budget.of(limit)
        self.used_at = 0.0
        self._shared = shared
        self._under_way = 0
        #: tokens at hand, and the slice that they belong to
        self._tokens, self._slice = 0, -1
        #: tokens taken in the slice while Redis is away
        self._taken_here = 0
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._letting_in: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def goes_through(self, now: float) -> bool:
        """Take a place at once, where nobody waits and nothing limits."""
        self.used_at = now
        if self._waiting or now < self.budget.paused_until or self.budget.is_paced(now) or not self._has_place():
            return False
        self._under_way += 1
        return True

    def _has_place(self) -> bool:
        return self.budget.share is None or self._under_way < self.budget.share

    async def wait(self, is_background: bool, timeout: float) -> None:
        """Take a place in turn, callers first; raises UpstreamRateLimited."""
        now = asyncio.get_running_loop().time()
        if self.budget.paused_until - now > timeout:
            raise self._refusal(now)
        place = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (is_background, next(self._order), place))
        self.changed()
        try:
            async with asyncio.timeout(timeout):
                await place
        except (TimeoutError, asyncio.CancelledError) as error:
            if place.done() and not place.cancelled():
                self.leave()
            if isinstance(error, TimeoutError):
                raise self._refusal(asyncio.get_running_loop().time()) from None
            raise

    def _refusal(self, now: float) -> UpstreamRateLimited:
        return UpstreamRateLimited(
            "the application's limit for this connector is used up", retry_after=self.budget.stay_away(now)
        )

    @property
    def is_idle(self) -> bool:
        return not self._under_way and not self._waiting

    def leave(self) -> None:
        """Give the place to the next."""
        self._under_way -= 1
        self.changed()

    def changed(self) -> None:
        """What limits may be less now."""
        if self._waiting:
            self._changed.set()
            self._let_in()

    def _let_in(self) -> None:
        if self._letting_in is None or self._letting_in.done():
            self._letting_in = asyncio.create_task(self._let_in_all(), name="gate")

    async def _let_in_all(self) -> None:
        """Let in who waits, for as long as anybody does."""
        while self._drop_gone():
            now = asyncio.get_running_loop().time()
            if now < self.budget.paused_until:
                await self._change_within(self.budget.paused_until - now)
            elif not self._has_place():
                await self._change_within(_NEWS)
            elif self.budget.is_paced(now) and not await self._token(is_background=self._waiting[0][0]):
                await self._change_within(self.budget.pace.until_next(time.time()))
            elif self._drop_gone():
                self._under_way += 1
                self.budget.served(now)
                heapq.heappop(self._waiting)[2].set_result(None)

    def _drop_gone(self) -> bool:
        """Whether anybody waits, those left out who gave up."""
        while self._waiting and self._waiting[0][2].done():
            heapq.heappop(self._waiting)
        return bool(self._waiting)

    async def _change_within(self, seconds: float) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _token(self, *, is_background: bool) -> bool:
        """Take a token of the slice that is now."""
        pace, unix_time = self.budget.pace, time.time()
        if self._slice != pace.slice_at(unix_time):
            self._tokens, self._taken_here, self._slice = 0, 0, pace.slice_at(unix_time)
        if not self._tokens:
            most = max(1, int(pace.tokens * BACKGROUND_SHARE)) if is_background else pace.tokens
            wanted = min(pace.batch, len(self._waiting))
            granted = await self._shared.take(self.account, pace, unix_time, wanted, most)
            if granted is None:
                granted = max(0, min(wanted, most - self._taken_here))
            self._taken_here += granted
            self._tokens = granted
        if not self._tokens:
            return False
        self._tokens -= 1
        return True


class _Pass(contextlib.AbstractAsyncContextManager[None]):
    """A place at the gate for as long as the block lasts."""

    __slots__ = ("_account", "_limiter", "_timeout")

    def __init__(self, limiter: AccountLimiter, account: Account, timeout: float) -> None:
        self._limiter, self._account, self._timeout = limiter, account, timeout

    async def __aenter__(self) -> None:
        if not self._limiter.goes_through(asyncio.get_running_loop().time()):
            await self._limiter.wait(self._account.is_background, self._timeout)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.leave()


class SharedGate:
    """The gate of a process: one limiter for each account, and the news from other processes."""

    def __init__(self, shared: SharedLimits) -> None:
        self._shared = shared
        self._limiters: dict[str, AccountLimiter] = {}
        self._telling: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, redis_url: str, process: str) -> AsyncIterator["SharedGate"]:
        """A gate that hears from the others for as long as the block lasts."""
        gate = cls(SharedLimits.at(redis_url, process))
        try:
            async with running(every(_NEWS, gate._hear, name="rate limit notifications")):
                yield gate
        finally:
            if gate._telling:
                await asyncio.wait(gate._telling)
            await gate._shared.close()

    def pass_through(self, account: Account, timeout: float) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for a place; raises UpstreamRateLimited when none comes within `timeout` seconds."""
        return _Pass(self._limiter(account), account, timeout)

    def learn(self, account: Account, status: int, headers: Mapping[str, str]) -> None:
        """Take note of what the application's answer says about its limits."""
        limiter, now = self._limiter(account), asyncio.get_running_loop().time()
        if limiter.budget.learned(now, time.time(), headers):
            self._tell(limiter, now)

    def pause(self, account: Account, seconds: float) -> None:
        """Let nothing through for so long: the application limits."""
        limiter, now = self._limiter(account), asyncio.get_running_loop().time()
        limiter.budget.paused(now, seconds)
        self._tell(limiter, now)

    def _limiter(self, account: Account) -> AccountLimiter:
        limiter = self._limiters.get(account.id)
        if limiter is None:
            limiter = AccountLimiter(account.id, account.limit or _UNLIMITED, self._shared)
            self._limiters[account.id] = limiter
        return limiter

    def _tell(self, limiter: AccountLimiter, now: float) -> None:
        budget = limiter.budget
        telling = asyncio.create_task(
            self._shared.tell(limiter.account, budget.paused_until - now, budget.paced_until - now)
        )
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _hear(self) -> None:
        now = asyncio.get_running_loop().time()
        self._forget(now)
        used = [each.account for each in self._limiters.values() if now - each.used_at < _IDLE]
        news = await self._shared.news(used, time.time()) if used else None
        for account, each in (news or {}).items():
            limiter = self._limiters[account]
            limiter.budget.heard(now, each.processes, each.paused, each.paced)
            limiter.changed()

    def _forget(self, now: float) -> None:
        idle = [account for account, each in self._limiters.items() if each.is_idle and now - each.used_at > _FORGOTTEN]
        for account in idle:
            del self._limiters[account]
