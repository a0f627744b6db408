"""Supervised loops: what a duty raises ends one round, and only its owner ends a loop."""

import asyncio
import logging

import asyncpg
import pytest
from redis.exceptions import ResponseError

from gateway.errors import InternalError, Unavailable
from gateway.foundation.aio.loops import every, running
from gateway.foundation.telemetry.metrics import BACKGROUND_FAILURES

ERRORS = [
    Unavailable("PostgreSQL is away"),
    InternalError(),
    asyncpg.DiskFullError(),
    asyncpg.ReadOnlySQLTransactionError(),
    asyncpg.DeadlockDetectedError(),
    ResponseError("OOM command not allowed"),
    TimeoutError(),
    asyncio.CancelledError(),
    RecursionError(),
    KeyError("bug"),
]


class Duty:
    """Raises what it is given, once; tells when it was done twice."""

    def __init__(self, error: BaseException | None = None) -> None:
        self._error = error
        self.rounds = 0
        self.is_done_again = asyncio.Event()

    async def __call__(self) -> None:
        self.rounds += 1
        if self.rounds > 1:
            self.is_done_again.set()
        elif self._error is not None:
            raise self._error


@pytest.mark.usefixtures("skipped_pauses")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_a_loop_survives_any_error_and_counts_it(error):
    duty, name = Duty(error), f"loop {type(error).__name__}"

    async with running(every(0, duty, name=name)), asyncio.timeout(10):
        await duty.is_done_again.wait()

    assert BACKGROUND_FAILURES.value(name) == 1


@pytest.mark.usefixtures("skipped_pauses")
async def test_the_first_failure_of_several_is_logged_and_its_end(caplog):
    is_over = asyncio.Event()
    rounds = []

    async def duty() -> None:
        rounds.append(1)
        if len(rounds) < 3:
            raise KeyError("bug")
        if len(rounds) == 4:
            is_over.set()

    with caplog.at_level(logging.INFO):
        async with running(every(0, duty, name="loop")), asyncio.timeout(10):
            await is_over.wait()
    told = [record.message for record in caplog.records if record.name == "gateway.foundation.aio.loops"]

    assert told == ["a background loop failed, and continues", "a background loop has recovered"]


async def test_a_loop_has_ended_when_its_block_is_left_whatever_the_duty_makes_of_that():
    began, was_canceled = asyncio.Event(), []

    async def duty() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_canceled.append(1)
            raise ConnectionError("as libraries do") from None

    async with running(every(0, duty, name="loop")):
        await began.wait()

    assert was_canceled == [1]


async def test_an_error_of_the_block_ends_the_loops_and_continues():
    duty = Duty()
    before = asyncio.all_tasks()

    with pytest.raises(ZeroDivisionError):
        async with running(every(0, duty, name="loop")):
            raise ZeroDivisionError

    assert asyncio.all_tasks() == before


async def test_rounds_are_apart_by_the_interval():
    duty = Duty()

    async with running(every(3600, duty, name="loop")):
        for _ in range(10):
            await asyncio.sleep(0)

    assert duty.rounds == 1
