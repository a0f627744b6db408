"""The client without `async`: every method of the asynchronous one, driven by an event loop in a thread of its own.

Nothing is said twice: calls are passed on, coroutines run to their end, async iterators become iterators, and the
objects that come back are passed through the same bridge.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, Self

from gateway.client.apps import Apps
from gateway.client.connectors import Connectors, Consent
from gateway.client.gateway import Gateway
from gateway.client.jobs import Job, Jobs
from gateway.client.tools import Tool

#: what still has asynchronous methods when it comes back
_BRIDGED = (Apps, Connectors, Consent, Job, Jobs, Tool)
_END = object()


class _Loop:
    """An event loop that runs for as long as its owner lives."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The outcome of the work; an interrupt of the waiting thread stops it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Bridge:
    """An asynchronous object as a synchronous one."""

    def __init__(self, target: Any, loop: _Loop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._bridged(getattr(self._target, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._called(self._target.__call__)(*args, **kwargs)

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if not name.startswith("_")]

    def __repr__(self) -> str:
        return repr(self._target)

    def _bridged(self, value: Any) -> Any:
        if isinstance(value, _BRIDGED):
            return Bridge(value, self._loop)
        if isinstance(value, list):
            return [self._bridged(each) for each in value]
        if isinstance(value, AsyncGenerator):
            return self._iterated(value)
        if inspect.iscoroutine(value):
            return self._bridged(self._loop.run(value))
        if inspect.ismethod(value):
            return self._called(value)
        return value

    def _called(self, method: Any) -> Any:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            named = {name: _plain(arg) for name, arg in kwargs.items()}
            return self._bridged(method(*map(_plain, args), **named))

        return call

    def _iterated(self, items: AsyncGenerator[Any, None]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items, _END)

        try:
            while (item := self._loop.run(following())) is not _END:
                yield self._bridged(item)
        finally:
            self._loop.run(_closed(items))


def _plain(argument: Any) -> Any:
    """What stands behind the bridge, as the asynchronous client takes it."""
    return argument._target if isinstance(argument, Bridge) else argument


async def _closed(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()


class SyncGateway(Bridge):
    """`Gateway` for programs without an event loop: the same arguments, methods and errors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        loop = _Loop()
        super().__init__(Gateway(*args, **kwargs), loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections and the loop."""
        self._loop.run(self._target.close())
        self._loop.close()
