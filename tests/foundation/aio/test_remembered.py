"""One computing for all who ask within a moment."""

import asyncio

import pytest

from gateway.foundation.aio.remembered import Remembered


class Computing:
    """Counts how often it is computed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.times = 0
        self._error = error

    async def __call__(self) -> int:
        self.times += 1
        await asyncio.sleep(0)
        if self._error is not None:
            raise self._error
        return self.times


async def test_all_who_ask_at_once_and_within_a_moment_get_one_answer():
    computing = Computing()
    remembered = Remembered(computing, seconds=60)

    together = await asyncio.gather(*(remembered() for _ in range(100)))
    later = await remembered()

    assert {*together, later} == {1}
    assert computing.times == 1


async def test_an_old_answer_is_computed_again():
    remembered = Remembered(Computing(), seconds=0)

    assert [await remembered(), await remembered()] == [1, 2]


async def test_an_error_is_not_remembered():
    computing = Computing(ValueError())
    remembered = Remembered(computing, seconds=60)

    for _ in range(2):
        with pytest.raises(ValueError):
            await remembered()

    assert computing.times == 2
