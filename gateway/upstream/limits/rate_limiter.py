"""The rate limiter of every request: limits concurrency and rate of each scope to what the application allows.

Far from any limit it costs a few comparisons. The restrictions of all scopes are read in the background. A request
waits for Redis only if its scope is throttled (several tokens are taken at a time), or if it is the second concurrent
request of a scope whose concurrency is shared.
"""

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from gateway.errors import UpstreamRateLimited
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.loops import every, running
from gateway.kinds.failures import RateLimit
from gateway.upstream.limits.budget import BACKGROUND_SHARE, Budget
from gateway.upstream.limits.pauses import Pauses
from gateway.upstream.limits.shared import GONE, Restriction, SharedLimits
from gateway.upstream.rate_limits import RateScope

#: seconds between refreshes of the restrictions
_REFRESH_INTERVAL = 0.5
#: seconds between counts of the processes that share a scope
_COUNT_INTERVAL = GONE / 2
#: scopes whose pauses one query reads at their first use
_MAX_READS = 1000
#: seconds after which an unused scope is dropped
_IDLE_TIMEOUT = 600.0
#: the limit of a scope without a published one
_UNLIMITED = RateLimit(requests=1_000_000, seconds=1)


class ScopeLimiter:
    """The permits of one rate scope in this process, and the queue for them."""

    def __init__(
        self,
        scope_id: str,
        limit: RateLimit,
        shared: SharedLimits,
        read_pause: Callable[["ScopeLimiter"], Awaitable[None]] | None,
        join: Callable[["ScopeLimiter"], Awaitable[None]],
    ) -> None:
        self.scope_id = scope_id
        self.budget = Budget.of(limit)
        #: reads how long the scope is paused, if that is unknown before the first permit
        self._read_pause = read_pause
        #: counts this process among those that share the scope's concurrency
        self._join = join
        self._preparing: asyncio.Task[None] | None = None
        #: whether this process is counted; a process with a single request in flight need not be
        self.has_joined = limit.concurrent is None
        #: the most concurrent requests since the last count of the processes, and the time of that count
        self.peak, self.counted_at = 0, 0.0
        self.used_at = 0.0
        self._shared = shared
        self._in_flight = 0
        #: tokens left in this process, and the window that they belong to
        self._tokens, self._window = 0, -1
        #: tokens taken in the window while Redis is unavailable
        self._taken_here = 0
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._granting: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def try_acquire(self, now: float) -> bool:
        """Take a permit at once if the queue is empty and no limit applies."""
        self.used_at = now
        is_limited = now < self.budget.paused_until or now < self.budget.throttled_until
        if self._waiting or is_limited or self._needs_preparation() or self._in_flight >= self.budget.share:
            return False
        self._count()
        return True

    def _count(self) -> None:
        self._in_flight += 1
        self.peak = max(self.peak, self._in_flight)

    def _needs_preparation(self) -> bool:
        return self._read_pause is not None or (not self.has_joined and (self._in_flight > 0 or bool(self._waiting)))

    def begin_count(self, now: float) -> None:
        """Reset the peak; a process that used one permit at a time is no longer counted."""
        if self.peak < 2 and self.budget.limit.concurrent is not None:
            self.has_joined = False
        self.peak, self.counted_at = self._in_flight, now

    def is_count_due(self, now: float) -> bool:
        """Whether to count the processes that share the scope; near its limit they are counted more often."""
        if self.budget.limit.concurrent is None or not self.has_joined:
            return False
        return bool(self._waiting) or 2 * self.peak >= self.budget.share or now - self.counted_at >= _COUNT_INTERVAL

    async def acquire(self, timeout: float, *, is_background: bool) -> None:
        """Take a permit in turn, callers first; raises UpstreamRateLimited."""
        if self._needs_preparation():
            await self._prepared()
        now = monotonic()
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
                raise self._refusal(monotonic()) from None
            raise

    async def _prepared(self) -> None:
        """Read the pause and join the scope, once for all first callers; the next refresh corrects a failed read."""
        if self._preparing is None:
            self._preparing = asyncio.create_task(self._prepare(), name="prepare a rate scope")
        await asyncio.wait([self._preparing])

    async def _prepare(self) -> None:
        try:
            if self._read_pause is not None:
                await self._read_pause(self)
                self._read_pause = None
            if not self.has_joined:
                await self._join(self)
                self.has_joined, self.counted_at = True, monotonic()
                self.peak = max(self.peak, 2)
        finally:
            self._preparing = None

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
        if self._waiting:
            self.changed()

    def changed(self) -> None:
        """Grant permits again, because a limit may have been lifted."""
        if self._waiting:
            self._changed.set()
            if self._granting is None or self._granting.done():
                self._granting = asyncio.create_task(self._grant_all(), name="rate limiter")

    async def _grant_all(self) -> None:
        """Grant permits until the queue is empty."""
        while self._drop_gone():
            now = monotonic()
            if now < self.budget.paused_until:
                await self._change_within(self.budget.paused_until - now)
            elif self._in_flight >= self.budget.share:
                await self._change_within(_REFRESH_INTERVAL)
            elif self.budget.is_throttled(now) and not await self._token(is_background=self._waiting[0][0]):
                await self._change_within(self.budget.rate.until_next_window(CLOCK.unix_time()))
            elif self._drop_gone():
                self._count()
                self.budget.consumed(now)
                heapq.heappop(self._waiting)[2].set_result(None)

    def _drop_gone(self) -> bool:
        """Drop canceled callers from the queue; returns whether any caller is left."""
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
        rate, unix_time = self.budget.rate, CLOCK.unix_time()
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


class SharedRateLimiter:
    """The rate limiter of a process: one limiter for each scope, with the state that processes share."""

    def __init__(self, shared: SharedLimits, pauses: Pauses | None = None) -> None:
        self._shared = shared
        self._pauses = pauses
        #: pauses that began before this process started: scope → end by its monotonic clock
        self._earlier: dict[str, float] = {}
        #: the restrictions of the last refresh, and its time; None if Redis was unavailable
        self._restrictions: Mapping[str, Restriction] | None = None
        self._refreshed_at = 0.0
        self._scopes: dict[str, ScopeLimiter] = {}
        self._publishing: set[asyncio.Task[None]] = set()
        self._pause_reads = Batcher(self._left_of, max_batch=_MAX_READS)
        self._joins = Batcher(self._processes_of, max_batch=_MAX_READS)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, redis_url: str, process: str, pauses: Pauses | None = None
    ) -> AsyncIterator["SharedRateLimiter"]:
        """A rate limiter that shares its state with other processes for the duration of the block."""
        limiter = cls(SharedLimits.at(redis_url, process), pauses)
        try:
            await limiter._read_earlier()
            await limiter._refresh()
            async with running(every(_REFRESH_INTERVAL, limiter._refresh, name="shared rate limits")):
                yield limiter
        finally:
            if limiter._publishing:
                await asyncio.wait(limiter._publishing)
            await limiter._shared.close()

    def acquire(self, scope: RateScope, timeout: float) -> Awaitable[None] | None:
        """Take a permit: None if one is free at once, else an awaitable for it.

        Awaiting raises UpstreamRateLimited when none comes within the timeout.
        """
        limiter = self._scopes.get(scope.id) or self._added(scope)
        if limiter.try_acquire(monotonic()):
            return None
        return limiter.acquire(timeout, is_background=scope.is_background)

    def release(self, scope: RateScope, headers: Mapping[str, str] | None) -> None:
        """Give a permit back, and read the rate-limit headers of the response, if there is one."""
        limiter = self._scopes[scope.id]
        limiter.release()
        if headers is not None and scope.limit is not None and scope.limit.allowances:
            now = monotonic()
            if limiter.budget.observe(now, CLOCK.unix_time, headers):
                self._publish(limiter, now)

    def pause(self, scope: RateScope, seconds: float) -> None:
        """Give no permits for so many seconds, after a 429."""
        limiter, now = self._scopes.get(scope.id) or self._added(scope), monotonic()
        limiter.budget.pause(now, seconds)
        self._publish(limiter, now)
        if self._pauses is not None:
            self._in_background(self._pauses.save(scope.id, seconds))

    def _added(self, scope: RateScope) -> ScopeLimiter:
        """The limiter of a scope that had none."""
        read_pause = self._read_pause if self._restrictions is None else None
        limiter = ScopeLimiter(scope.id, scope.limit or _UNLIMITED, self._shared, read_pause, self._join)
        self._scopes[scope.id] = limiter
        earlier = self._earlier.pop(scope.id, None)
        if earlier is not None:
            limiter.budget.paused_until = earlier
        if self._restrictions is not None and scope.id in self._restrictions:
            restriction = self._restrictions[scope.id]
            limiter.budget.restrict(self._refreshed_at, restriction.paused, restriction.throttled)
        return limiter

    async def _read_earlier(self) -> None:
        now = monotonic()
        left = {} if self._pauses is None else await self._pauses.left()
        self._earlier = {scope_id: now + seconds for scope_id, seconds in left.items()}

    async def _read_pause(self, limiter: ScopeLimiter) -> None:
        """Read a scope's pause from PostgreSQL at its first use while Redis is unavailable."""
        left = await self._pause_reads(limiter.scope_id)
        limiter.budget.restrict(monotonic(), left, 0.0)

    async def _left_of(self, scope_ids: Sequence[str]) -> Sequence[float]:
        left = {} if self._pauses is None else await self._pauses.left(scope_ids)
        return [left.get(scope_id, 0.0) for scope_id in scope_ids]

    async def _join(self, limiter: ScopeLimiter) -> None:
        """Share the concurrency of a scope with the processes that use it too."""
        limiter.budget.divide(await self._joins(limiter.scope_id))

    async def _processes_of(self, scope_ids: Sequence[str]) -> Sequence[int]:
        processes = await self._shared.processes(scope_ids, CLOCK.unix_time()) or {}
        return [processes.get(scope_id, 1) for scope_id in scope_ids]

    def _publish(self, limiter: ScopeLimiter, now: float) -> None:
        paused, throttled = (until - now for until in (limiter.budget.paused_until, limiter.budget.throttled_until))
        self._in_background(self._shared.publish(limiter.scope_id, CLOCK.unix_time(), paused, throttled))

    def _in_background(self, publishing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(publishing, name="publish a rate limit")
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _refresh(self) -> None:
        now = monotonic()
        self._drop_idle(now)
        self._restrictions = await self._shared.restrictions(CLOCK.unix_time())
        self._refreshed_at = monotonic()
        for scope_id, restriction in (self._restrictions or {}).items():
            limiter = self._scopes.get(scope_id)
            if limiter is not None:
                limiter.budget.restrict(self._refreshed_at, restriction.paused, restriction.throttled)
                limiter.changed()
        await self._divide([each for each in self._scopes.values() if each.is_count_due(now)])

    async def _divide(self, limiters: Sequence[ScopeLimiter]) -> None:
        """Register this process in these scopes, and divide their limits by the number of processes."""
        now = monotonic()
        for limiter in limiters:
            limiter.begin_count(now)
        joined = [each.scope_id for each in limiters if each.has_joined]
        processes = await self._shared.processes(joined, CLOCK.unix_time()) if joined else None
        for scope_id, count in (processes or {}).items():
            limiter = self._scopes[scope_id]
            limiter.budget.divide(count)
            limiter.changed()

    def _drop_idle(self, now: float) -> None:
        idle = [name for name, each in self._scopes.items() if each.is_idle and now - each.used_at > _IDLE_TIMEOUT]
        for scope_id in idle:
            del self._scopes[scope_id]
