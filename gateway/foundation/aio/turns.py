"""Long computations between the other tasks of an event loop: in short turns, one computation at a time.

Organizations take turns, so that many computations of one do not delay those of another.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from contextvars import ContextVar
from itertools import islice
from time import perf_counter
from typing import TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")
R = TypeVar("R")

#: seconds that a computation holds the event loop in one turn
_TURN = 0.005
#: seconds of the first turn, for which a computation does not wait
_FIRST_TURN = 0.001
_HOLDER: ContextVar[Hashable] = ContextVar("holder of computations", default=None)


def compute_for(holder: Hashable) -> None:
    """Count the computations of this task, and of those that it starts, as those of a holder: an organization."""
    # The hash of a UUID is computed in Python, that of a number is not.
    _HOLDER.set(holder.int if isinstance(holder, UUID) else holder)


def computing_for() -> Hashable:
    """The holder of this task's computations; None if none was set."""
    return _HOLDER.get()


class Turns:
    """Places: the holders that wait for one take turns, and so do the computations of one. By default a lock."""

    def __init__(self, places: int = 1, of_one: int | None = None) -> None:
        self._left = places
        #: places that one holder may have
        self._of_one = places if of_one is None else of_one
        self._held: Counter[Hashable] = Counter()
        #: holder → its waiting computations; the first holder that may have a place is next
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def __aenter__(self) -> None:
        await self.acquire(_HOLDER.get())

    async def __aexit__(self, *_: object) -> None:
        self.release(_HOLDER.get())

    async def acquire(self, holder: Hashable) -> None:
        """Take a place for the holder, until its `release`."""
        if self._may_take(holder):
            self._take(holder)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(holder)
            raise

    def release(self, holder: Hashable) -> None:
        """Give the place to the holder that has waited longest; it is the last one afterwards."""
        self._left += 1
        self._held[holder] -= 1
        if not self._held[holder]:
            del self._held[holder]
        while following := list(islice(filter(self._may_take, self._waiting), 1)):
            (holder,) = following
            turns = self._waiting.pop(holder)
            turn = turns.popleft()
            if turns:
                self._waiting[holder] = turns
            if not turn.done():
                self._take(holder)
                turn.set_result(None)

    def _may_take(self, holder: Hashable) -> bool:
        return self._left > 0 and self._held[holder] < self._of_one

    def _take(self, holder: Hashable) -> None:
        self._left -= 1
        self._held[holder] += 1


class Places:
    """So many places for each holder; who finds none waits."""

    def __init__(self, places: int) -> None:
        self._places = places
        #: kept while a task of the holder has a place or waits for one
        self._by_holder: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, holder: Hashable) -> asyncio.Semaphore:
        """The places of the holder: `async with` takes one."""
        return self._by_holder.setdefault(holder, asyncio.Semaphore(self._places))


_COMPUTING: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()
_IN_THREAD: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


async def mapped(
    function: Callable[[T], R], items: Iterable[T], is_large: Callable[[T], bool] = lambda item: False
) -> list[R]:
    """`function` of each item, in order, without holding the event loop for more than a turn.

    A short first turn runs at once. Further turns alternate with those of other computations. A large item, which may
    take longer than a turn, is computed in a thread, one at a time.
    """
    results: list[R] = []
    left = iter(items)

    def turn(seconds: float = _TURN) -> list[T] | None:
        """Compute items for one turn; the large item that is next, if there is one; None after the last item."""
        ends_at = perf_counter() + seconds
        for item in left:
            if is_large(item):
                return [item]
            results.append(function(item))
            if perf_counter() > ends_at:
                return []
        return None

    large = turn(_FIRST_TURN)
    while large is not None:
        for item in large:
            results.append(await in_thread(function, item))
        large = await in_turn(turn)
    return results


async def in_turn(computation: Callable[[], R]) -> R:
    """The result of a computation that takes about one turn, between the turns of others."""
    async with _turns(_COMPUTING):
        await asyncio.sleep(0)
        return computation()


async def in_thread(function: Callable[[T], R], argument: T) -> R:
    """The result of a computation that may take longer than a turn; one at a time runs outside the event loop."""
    async with _turns(_IN_THREAD):
        return await asyncio.to_thread(function, argument)


def _turns(by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]) -> Turns:
    return by_loop.setdefault(asyncio.get_running_loop(), Turns())
