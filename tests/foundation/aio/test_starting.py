"""A start that waits ends when the process is told to stop."""

import asyncio

import pytest

from gateway.foundation.aio.starting import unless_stopped


async def test_a_start_that_waits_ends_without_an_error_when_the_process_stops():
    stopping, steps = asyncio.Event(), []

    with unless_stopped(stopping):
        steps.append("begun")
        asyncio.get_running_loop().call_soon(stopping.set)
        await asyncio.Event().wait()
        steps.append("not reached")
    await asyncio.sleep(0)

    assert steps == ["begun"]


async def test_a_start_that_is_cancelled_by_others_is_cancelled():
    async def start() -> None:
        with unless_stopped(asyncio.Event()):
            await asyncio.Event().wait()

    task = asyncio.create_task(start())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
