"""One look-up for all concurrent callers, so that an expired answer does not cause a rush of look-ups."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Shares a look-up in progress; it continues if the caller that started it is canceled."""

    def __init__(self, look_up: Callable[[K], Coroutine[Any, Any, V]]) -> None:
        self._look_up = look_up
        self._in_progress: dict[K, asyncio.Task[V]] = {}
        #: the number of `forget` calls; a look-up that began before the last one may have read old data
        self.generation = 0

    async def __call__(self, key: K) -> V:
        """The result of the look-up; raises its errors."""
        task = self._in_progress.get(key)
        if task is None:
            task = self._in_progress[key] = asyncio.create_task(self._look_up(key))
            task.add_done_callback(lambda done: self._on_done(key, done))
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Do not share look-ups that are in progress with later callers, because the data has changed."""
        self.generation += 1
        self._in_progress.clear()

    def forget_one(self, key: K) -> None:
        """Do not share the look-up of this key that is in progress with later callers."""
        self._in_progress.pop(key, None)

    def is_shared(self, key: K) -> bool:
        """Whether the look-up that asks is still shared: its data has not been forgotten since it began."""
        return self._in_progress.get(key) is asyncio.current_task()

    def _on_done(self, key: K, task: "asyncio.Task[V]") -> None:
        if self._in_progress.get(key) is task:
            del self._in_progress[key]
        if not task.cancelled():
            task.exception()  # mark the error as retrieved, also if every caller was canceled
