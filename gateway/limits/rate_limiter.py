"""The rate limiter that every request passes: as many in flight, and as many in a time, as the application allows.

Far from any limit it costs a few comparisons: Redis is asked in the background, and on the way only when a scope is
throttled, for several tokens at a time.
"""

import asyncio
import contextlib
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

from gateway.aio.loops import every, running
from gateway.connectors.rate_limits import RateScope
from gateway.errors import UpstreamRateLimited
from gateway.kinds.spec import RateLimit
from gateway.limits.budget import BACKGROUND_SHARE, Budget
from gateway.limits.pauses import Pauses
from gateway.limits.shared import SharedLimits

#: seconds between looks at what the other processes know, and for which an unused scope is still looked at
_SHARED_INTERVAL, _IDLE = 0.5, 5.0
#: seconds after which an unused scope is forgotten
_FORGOTTEN = 600.0
#: a scope of which nothing is published
_UNLIMITED = RateLimit(requests=1_000_000, seconds=1)


class ScopeLimiter:
    """The permits of one rate scope in this process, and who gets the next."""

    def __init__(
        self,
        scope_id: str,
        limit: RateLimit,
        shared: SharedLimits,
        learn: Callable[["ScopeLimiter"], Coroutine[Any, Any, None]],
    ) -> None:
        self.scope_id = scope_id
        self.budget = Budget.of(limit)
        self._learn = learn
        #: what the other processes know, asked for before the first permit
        self._learning: asyncio.Task[None] | None = None
        self._has_learned = False
        self.used_at = 0.0
        self._shared = shared
        self._in_flight = 0
        #: tokens at hand, and the window that they belong to
        self._tokens, self._window = 0, -1
        #: tokens taken in the window while Redis is away
        self._taken_here = 0
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._granting: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def try_acquire(self, now: float) -> bool:
        """Take a permit at once, where nobody waits and nothing limits."""
        self.used_at = now
        is_limited = now < self.budget.paused_until or self.budget.is_throttled(now)
        if self._waiting or is_limited or not self._has_learned or not self._has_room():
            return False
        self._in_flight += 1
        return True

    def _has_room(self) -> bool:
        return self.budget.share is None or self._in_flight < self.budget.share

    async def acquire(self, timeout: float, *, is_background: bool) -> None:
        """Take a permit in turn, callers first; raises UpstreamRateLimited."""
        if not self._has_learned:
            await self._learned()
        now = asyncio.get_running_loop().time()
        if self.budget.paused_until - now > timeout:
            raise self._refusal(now)
        permit = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (is_background, next(self._order), permit))
        self.changed()
        try:
            async with asyncio.timeout(timeout):
                await permit
        except (TimeoutError, asyncio.CancelledError) as error:
            if permit.done() and not permit.cancelled():
                self.release()
            if isinstance(error, TimeoutError):
                raise self._refusal(asyncio.get_running_loop().time()) from None
            raise

    async def _learned(self) -> None:
        """Once for all who come first; what cannot be learned now comes with the next look at the others."""
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(self), name="first look at a rate scope")
        await asyncio.wait([self._learning])
        self._has_learned = True

    def _refusal(self, now: float) -> UpstreamRateLimited:
        return UpstreamRateLimited(
            "the application's limit for this connector is used up", retry_after=self.budget.retry_after(now)
        )

    @property
    def is_idle(self) -> bool:
        return not self._in_flight and not self._waiting

    def release(self) -> None:
        """Give the permit to the next."""
        self._in_flight -= 1
        self.changed()

    def changed(self) -> None:
        """What limits may be less now."""
        if self._waiting:
            self._changed.set()
            if self._granting is None or self._granting.done():
                self._granting = asyncio.create_task(self._grant_all(), name="rate limiter")

    async def _grant_all(self) -> None:
        """Grant permits for as long as anybody waits for one."""
        while self._drop_gone():
            now = asyncio.get_running_loop().time()
            if now < self.budget.paused_until:
                await self._change_within(self.budget.paused_until - now)
            elif not self._has_room():
                await self._change_within(_SHARED_INTERVAL)
            elif self.budget.is_throttled(now) and not await self._token(is_background=self._waiting[0][0]):
                await self._change_within(self.budget.rate.until_next_window(time.time()))
            elif self._drop_gone():
                self._in_flight += 1
                self.budget.consumed(now)
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
        """Take a token of the current window."""
        rate, unix_time = self.budget.rate, time.time()
        if self._window != rate.window_at(unix_time):
            self._tokens, self._taken_here, self._window = 0, 0, rate.window_at(unix_time)
        if not self._tokens:
            max_tokens = max(1, int(rate.tokens * BACKGROUND_SHARE)) if is_background else rate.tokens
            requested = min(rate.batch, len(self._waiting))
            granted = await self._shared.take_tokens(self.scope_id, rate, unix_time, requested, max_tokens)
            if granted is None:
                granted = max(0, min(requested, max_tokens - self._taken_here))
            self._taken_here += granted
            self._tokens = granted
        if not self._tokens:
            return False
        self._tokens -= 1
        return True


class _Permit(contextlib.AbstractAsyncContextManager[None]):
    """A permit for as long as the block lasts; a class, because a generator costs more."""

    __slots__ = ("_is_background", "_limiter", "_timeout")

    def __init__(self, limiter: ScopeLimiter, timeout: float, *, is_background: bool) -> None:
        self._limiter, self._timeout, self._is_background = limiter, timeout, is_background

    async def __aenter__(self) -> None:
        if not self._limiter.try_acquire(asyncio.get_running_loop().time()):
            await self._limiter.acquire(self._timeout, is_background=self._is_background)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.release()


class SharedRateLimiter:
    """The rate limiter of a process: one limiter for each scope, and what the other processes know."""

    def __init__(self, shared: SharedLimits, pauses: Pauses | None = None) -> None:
        self._shared = shared
        self._pauses = pauses
        #: pauses that had begun before this process, as moments of its monotonic clock
        self._earlier: dict[str, float] = {}
        self._scopes: dict[str, ScopeLimiter] = {}
        self._publishing: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, redis_url: str, process: str, pauses: Pauses | None = None
    ) -> AsyncIterator["SharedRateLimiter"]:
        """A rate limiter that knows what the others know for as long as the block lasts."""
        limiter = cls(SharedLimits.at(redis_url, process), pauses)
        try:
            await limiter._read_earlier()
            async with running(every(_SHARED_INTERVAL, limiter._refresh, name="shared rate limits")):
                yield limiter
        finally:
            if limiter._publishing:
                await asyncio.wait(limiter._publishing)
            await limiter._shared.close()

    def permit(self, scope: RateScope, timeout: float) -> contextlib.AbstractAsyncContextManager[None]:
        """A permit for as long as the block lasts; raises UpstreamRateLimited when none comes within the timeout."""
        return _Permit(self._limiter(scope), timeout, is_background=scope.is_background)

    def observe(self, scope: RateScope, headers: Mapping[str, str]) -> None:
        """Take note of what the headers of an answer say about the limits."""
        limiter, now = self._limiter(scope), asyncio.get_running_loop().time()
        if limiter.budget.observe(now, time.time(), headers):
            self._publish(limiter, now)

    def pause(self, scope: RateScope, seconds: float) -> None:
        """Let nothing through for so long: the application limits."""
        limiter, now = self._limiter(scope), asyncio.get_running_loop().time()
        limiter.budget.pause(now, seconds)
        self._publish(limiter, now)
        if self._pauses is not None:
            self._in_background(self._pauses.save(scope.id, seconds))

    def _limiter(self, scope: RateScope) -> ScopeLimiter:
        limiter = self._scopes.get(scope.id)
        if limiter is None:
            limiter = ScopeLimiter(scope.id, scope.limit or _UNLIMITED, self._shared, self._learn)
            self._scopes[scope.id] = limiter
        return limiter

    async def _read_earlier(self) -> None:
        now = asyncio.get_running_loop().time()
        left = {} if self._pauses is None else await self._pauses.left()
        self._earlier = {scope_id: now + seconds for scope_id, seconds in left.items()}

    async def _learn(self, limiter: ScopeLimiter) -> None:
        """What the others know of a scope, at its first use here: from Redis, or as far as PostgreSQL can tell."""
        states = await self._shared.states([limiter.scope_id], time.time())
        now = asyncio.get_running_loop().time()
        paused = self._earlier.pop(limiter.scope_id, now) - now
        if states is not None:
            state = states[limiter.scope_id]
            limiter.budget.apply(now, state.processes, max(paused, state.paused), state.throttled)
            return
        left = {} if self._pauses is None else await self._pauses.left(limiter.scope_id)
        limiter.budget.apply(now, 1, max(paused, left.get(limiter.scope_id, 0.0)), 0.0)

    def _publish(self, limiter: ScopeLimiter, now: float) -> None:
        budget = limiter.budget
        self._in_background(
            self._shared.publish(limiter.scope_id, budget.paused_until - now, budget.throttled_until - now)
        )

    def _in_background(self, publishing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(publishing, name="publish a rate limit")
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _refresh(self) -> None:
        now = asyncio.get_running_loop().time()
        self._forget(now)
        used = [each.scope_id for each in self._scopes.values() if now - each.used_at < _IDLE]
        states = await self._shared.states(used, time.time()) if used else None
        for scope_id, state in (states or {}).items():
            limiter = self._scopes[scope_id]
            limiter.budget.apply(now, state.processes, state.paused, state.throttled)
            limiter.changed()

    def _forget(self, now: float) -> None:
        idle = [name for name, each in self._scopes.items() if each.is_idle and now - each.used_at > _FORGOTTEN]
        for scope_id in idle:
            del self._scopes[scope_id]
