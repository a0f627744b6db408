"""Asynchronous objects for programs without an event loop, which runs in another thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
Target = TypeVar("Target")

_END = object()


class LoopThread:
    """An event loop in a thread, until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; if the waiting thread is interrupted, the work is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items as they arrive; the iterator is closed when the caller stops."""

        async def following() -> T | object:
            return await anext(items, _END)

        try:
            while (item := self.run(following())) is not _END:
                yield cast(T, item)
        finally:
            self.run(_close(items))

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Synchronous(Generic[Target]):
    """The synchronous counterpart of an asynchronous object; the subclasses are generated."""

    def __init__(self, target: Target, loop: LoopThread) -> None:
        self._target = target
        self._loop = loop

    def __repr__(self) -> str:
        return repr(self._target)


async def _close(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()
