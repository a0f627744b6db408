"""The lag of the event loop is measured repeatedly, also if a listener raises."""

import asyncio
import logging

import pytest

from gateway.foundation.telemetry.loop_lag import LoopLag


async def test_a_listener_that_raises_stops_neither_the_measurement_nor_other_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lag, measured = LoopLag(), asyncio.Semaphore(0)

    def fail(_seconds: float) -> None:
        raise RuntimeError("a bug of a listener")

    lag.subscribe(fail)
    lag.subscribe(lambda _seconds: measured.release())
    with caplog.at_level(logging.ERROR), lag.watching():
        async with asyncio.timeout(10):
            for _ in range(2):
                await measured.acquire()

    assert "a bug of a listener" in caplog.text
