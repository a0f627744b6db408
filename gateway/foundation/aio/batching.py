"""One statement for many callers: items that arrive while a statement runs are sent together in the next one.

A single caller does not wait; under load, a hundred callers share one round trip and one flush of the write-ahead log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar, cast

from gateway.errors import InternalError, Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Runs the items of many callers in batches, each caller with its own result and only the errors that it causes."""

    def __init__(
        self,
        run_batch: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        max_batch: int = 100,
        concurrency: int = 2,
    ) -> None:
        self._run_batch = run_batch
        self._max_batch = max_batch
        self._concurrency = concurrency
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, item: Item) -> Result:
        """The result of this item, which is run even if its caller is canceled meanwhile."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._running) < self._concurrency:
            task = asyncio.create_task(self._run_waiting())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await future

    async def _run_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
            await self._run(batch)
        # Not left to the callback, which runs after a caller that adds its next item as soon as it has its result.
        self._running.discard(cast(asyncio.Task[None], asyncio.current_task()))

    async def _run(self, batch: list[tuple[Item, "asyncio.Future[Result]"]]) -> None:
        try:
            results = await self._run_batch([item for item, _ in batch])
            if len(results) != len(batch):
                raise InternalError(f"{len(results)} results of {len(batch)} items")
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            if len(batch) == 1 or isinstance(error, Unavailable | InternalError):
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for alone in batch:
                    await self._run([alone])
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
