"""Measures how long callbacks hold the event loop of a test, in processor time, which other processes do not change."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.harness.machine import slowness

T = TypeVar("T")

#: the largest part of a computation that one callback may take, if it is divided into turns or is made in a thread
PART = 0.25
#: maximum seconds of one callback
LIMIT = 0.1 * slowness()


@dataclass
class LongestCallback:
    """The callback that held the event loop longest."""

    seconds: float = 0.0
    callback: str = ""


@contextmanager
def never_blocked(limit: float = LIMIT) -> Iterator[LongestCallback]:
    """Fail if a callback of an event loop takes longer; the loop is asyncio's own, as in all tests."""
    longest = LongestCallback()
    with measured(longest):
        yield longest
    assert longest.seconds <= limit, f"{longest.callback} held the event loop for {longest.seconds:.3f} s"


@contextmanager
def measured(longest: LongestCallback) -> Iterator[None]:
    run = asyncio.Handle._run  # type: ignore[attr-defined]

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        seconds = time.thread_time() - begun
        if seconds > longest.seconds:
            longest.seconds, longest.callback = seconds, repr(handle)[:500]

    asyncio.Handle._run = timed  # type: ignore[attr-defined]
    try:
        yield
    finally:
        asyncio.Handle._run = run  # type: ignore[attr-defined]


async def divided(computation: Coroutine[Any, Any, T], part: float = PART) -> T:
    """The result of a computation; fails if one callback takes a larger part of its processor time.

    It is a task of its own, because what a task does before it first waits is not measured within that task.
    """
    longest, begun = LongestCallback(), time.process_time()
    with measured(longest):
        result = await asyncio.get_running_loop().create_task(computation)
    whole = time.process_time() - begun
    assert longest.seconds <= part * whole, f"{longest.callback} took {longest.seconds:.3f} s of {whole:.3f} s"
    return result
