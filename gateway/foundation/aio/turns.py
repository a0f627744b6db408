"""Long computations beside the other tasks of an event loop: in short turns, one computation at a time."""

import asyncio
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
R = TypeVar("R")

#: seconds that a computation holds the event loop in one turn
_TURN = 0.01
_COMPUTING: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_IN_THREAD: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def mapped(
    function: Callable[[T], R], items: Iterable[T], is_large: Callable[[T], bool] = lambda item: False
) -> list[R]:
    """`function` of each item, in order, without holding the event loop for more than a turn.

    The first turn runs at once. Further turns alternate with those of other computations. A large item, which may take
    longer than a turn, is computed in a thread, one at a time.
    """
    results: list[R] = []
    left = iter(items)

    def turn() -> list[T] | None:
        """Compute items for one turn; the large item that is next, if there is one; None after the last item."""
        ends_at = perf_counter() + _TURN
        for item in left:
            if is_large(item):
                return [item]
            results.append(function(item))
            if perf_counter() > ends_at:
                return []
        return None

    large = turn()
    while large is not None:
        for item in large:
            results.append(await in_thread(function, item))
        large = await in_turn(turn)
    return results


async def in_turn(computation: Callable[[], R]) -> R:
    """The result of a computation that takes about one turn, between the turns of others."""
    async with _lock(_COMPUTING):
        await asyncio.sleep(0)
        return computation()


async def in_thread(function: Callable[[T], R], argument: T) -> R:
    """The result of a computation that may take longer than a turn; one at a time runs beside the event loop."""
    async with _lock(_IN_THREAD):
        return await asyncio.to_thread(function, argument)


def _lock(locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]) -> asyncio.Lock:
    return locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
