"""Timeouts: each ends its own wait, in time, and none after its end; work that takes longer continues."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.foundation.aio.timeouts import RESOLUTION, IdleTimeout, Timeouts, Wait, start_and_wait
from tests.harness.waiting import eventually


@pytest.fixture
async def timeouts() -> AsyncIterator[Timeouts]:
    opened = Timeouts()
    yield opened
    opened.close()


@asynccontextmanager
async def took(at_least: float, at_most: float) -> AsyncIterator[None]:
    clock = asyncio.get_running_loop().time
    began = clock()
    yield
    assert at_least <= clock() - began < at_most


async def test_a_block_that_takes_too_long_ends(timeouts):
    async with took(0.2, 2.0):
        with pytest.raises(TimeoutError), IdleTimeout(timeouts, 0.2, 60):
            await asyncio.Event().wait()


async def test_a_block_in_which_nothing_happens_ends_sooner(timeouts):
    async with took(0.2, 2.0):
        with pytest.raises(TimeoutError), IdleTimeout(timeouts, 60, 0.2):
            await asyncio.Event().wait()


async def test_what_comes_again_and_again_continues_until_the_whole_time_is_over(timeouts):
    async def steadily() -> None:
        with IdleTimeout(timeouts, 1.0, 0.5) as timeout:
            while True:
                await asyncio.sleep(0.05)
                timeout.touch()

    async with took(1.0, 5.0):
        with pytest.raises(TimeoutError):
            await steadily()


async def test_while_nobody_is_waited_for_only_the_whole_time_counts(timeouts):
    async def busy() -> None:
        with IdleTimeout(timeouts, 0.6, 0.1) as timeout:
            timeout.hold()
            await asyncio.Event().wait()

    async with took(0.6, 5.0):
        with pytest.raises(TimeoutError):
            await busy()


async def test_a_timeout_ends_its_own_block_alone(timeouts):
    with IdleTimeout(timeouts, 60, 60), pytest.raises(TimeoutError), IdleTimeout(timeouts, 0.1, 60):
        await asyncio.Event().wait()


async def test_a_task_that_is_cancelled_in_a_block_is_cancelled(timeouts):
    is_within = asyncio.Event()

    async def within() -> None:
        with IdleTimeout(timeouts, 60, 60):
            is_within.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(within())
    await is_within.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


class Told(Wait):
    """Tells that it expired."""

    def __init__(self, name: str, expired: list[str]) -> None:
        super().__init__(60, 60)
        self.name = name
        self.expired = expired

    def expire(self) -> None:
        self.expired.append(self.name)


async def test_a_wait_expires_once_when_its_time_has_come_and_never_when_it_is_removed(timeouts):
    expired: list[str] = []
    moved, removed, last = (Told(name, expired) for name in ("moved", "removed", "last"))
    for wait in (moved, removed, last):
        timeouts.add(wait)

    moved.at = removed.at = 0.0
    timeouts.remove(removed)
    await eventually(lambda: "moved" in expired)
    last.at = 0.0
    await eventually(lambda: "last" in expired)

    assert expired == ["moved", "last"]


async def test_a_task_that_is_cancelled_as_its_time_ends_is_cancelled(timeouts):
    is_within = asyncio.Event()

    async def within() -> None:
        with IdleTimeout(timeouts, 60, 60) as timeout:
            is_within.set()
            try:
                await asyncio.Event().wait()
            finally:
                timeout.expire()

    task = asyncio.create_task(within())
    await is_within.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_timer_rests_when_nothing_waits(timeouts):
    with IdleTimeout(timeouts, 60, 60):
        pass

    await eventually(lambda: timeouts._timer is None, within=20 * RESOLUTION)


async def found() -> str:
    return "found"


async def test_work_that_ends_in_time_is_done():
    task = await start_and_wait(found, 60)

    assert task.done()
    assert task.result() == "found"


async def test_work_that_failed_is_done_as_well():
    async def work() -> None:
        raise ValueError

    task = await start_and_wait(work, 60)

    assert isinstance(task.exception(), ValueError)


async def test_work_that_takes_longer_continues():
    enough = asyncio.Event()

    task = await start_and_wait(enough.wait, 0)

    assert not task.done()
    enough.set()
    assert await task


async def test_work_whose_caller_is_cancelled_is_cancelled():
    is_cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await start_and_wait(work, 60)

    await is_cancelled.wait()
