"""One statement for many callers: what is asked for while a statement runs goes out together with the next.

A lone caller waits for nobody; under load a hundred callers share one round trip and one flush of the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from gateway.errors import InternalError, Unavailable

Asked = TypeVar("Asked")
Given = TypeVar("Given")


class Batcher(Generic[Asked, Given]):
    """Gathers what callers ask for and gives each its own answer; an error that one causes is told to that one."""

    def __init__(
        self, answer: Callable[[Sequence[Asked]], Awaitable[Sequence[Given]]], *, most: int = 100, lanes: int = 2
    ) -> None:
        self._answer = answer
        self._most = most
        self._lanes = lanes
        self._waiting: list[tuple[Asked, asyncio.Future[Given]]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, asked: Asked) -> Given:
        """The answer to this one; it is given even when its caller goes away meanwhile."""
        waiting: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, waiting))
        if len(self._running) < self._lanes:
            task = asyncio.create_task(self._work_off())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await waiting

    async def _work_off(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            await self._give(batch)

    async def _give(self, batch: list[tuple[Asked, "asyncio.Future[Given]"]]) -> None:
        try:
            given = await self._answer([asked for asked, _ in batch])
            if len(given) != len(batch):
                raise InternalError(f"{len(given)} answers to {len(batch)} that asked")
        except asyncio.CancelledError:
            for _, waiting in batch:
                waiting.cancel()
            raise
        except Exception as error:
            if len(batch) == 1 or isinstance(error, Unavailable | InternalError):
                for _, waiting in batch:
                    if not waiting.done():
                        waiting.set_exception(error)
            else:
                for alone in batch:
                    await self._give([alone])
            return
        for (_, waiting), each in zip(batch, given, strict=True):
            if not waiting.done():
                waiting.set_result(each)
