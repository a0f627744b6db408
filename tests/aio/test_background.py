"""Waiting for a task for so long and no longer."""

import asyncio

import pytest

from gateway.aio.background import done_within


async def test_a_task_that_ends_in_time_is_done():
    async def work() -> str:
        return "found"

    task = asyncio.create_task(work())

    assert await done_within(task, 60)
    assert task.result() == "found"


async def test_a_task_that_failed_is_done_as_well():
    async def work() -> None:
        raise ValueError

    task = asyncio.create_task(work())

    assert await done_within(task, 60)
    assert isinstance(task.exception(), ValueError)


async def test_a_task_that_takes_longer_goes_on():
    enough = asyncio.Event()
    task = asyncio.create_task(enough.wait())

    assert not await done_within(task, 0)

    enough.set()
    assert await task


async def test_who_stops_waiting_leaves_the_task_alone():
    enough = asyncio.Event()
    task = asyncio.create_task(enough.wait())

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await done_within(task, 60)

    enough.set()
    assert await task
