"""One statement for many callers, and an answer of one's own for each."""

import asyncio

import pytest

from gateway.aio.batching import Batcher
from gateway.errors import InternalError, Unavailable


class Statement:
    """Answers with squares, when it is let; nothing and less is an error, 1000 an absence."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_end = asyncio.Event()

    async def __call__(self, asked):
        self.batches.append(list(asked))
        await self.may_end.wait()
        if 1000 in asked:
            raise Unavailable
        if min(asked) <= 0:
            raise ValueError("nothing")
        return [number * number for number in asked]


async def started(together: Batcher[int, int], numbers) -> list["asyncio.Task[int]"]:
    tasks = [asyncio.ensure_future(together(number)) for number in numbers]
    await asyncio.sleep(0)
    return tasks


async def test_what_is_asked_for_meanwhile_goes_out_together():
    statement = Statement()
    together: Batcher[int, int] = Batcher(statement, most=4, lanes=1)

    first = await started(together, [1])
    rest = await started(together, range(2, 8))
    statement.may_end.set()
    answers = await asyncio.gather(*first, *rest)

    assert statement.batches == [[1], [2, 3, 4, 5], [6, 7]] or statement.batches == [[1, 2, 3, 4], [5, 6, 7]]
    assert answers == [number * number for number in range(1, 8)]


async def test_an_error_is_told_to_the_one_that_caused_it():
    statement = Statement()
    statement.may_end.set()
    together: Batcher[int, int] = Batcher(statement, lanes=1)

    answers = await asyncio.gather(*(together(number) for number in (1, 0, 3)), return_exceptions=True)

    assert answers[0] == 1
    assert isinstance(answers[1], ValueError)
    assert answers[2] == 9


async def test_an_absence_is_told_to_all_and_not_tried_one_by_one():
    statement = Statement()
    statement.may_end.set()
    together: Batcher[int, int] = Batcher(statement, lanes=1)

    answers = await asyncio.gather(*(together(number) for number in (1, 1000, 3)), return_exceptions=True)

    assert len(statement.batches) == 1
    assert all(isinstance(answer, Unavailable) for answer in answers)


async def test_who_goes_away_takes_nothing_from_the_others():
    statement = Statement()
    together: Batcher[int, int] = Batcher(statement, lanes=1)
    gone, stays = await started(together, [2, 3])

    gone.cancel()
    statement.may_end.set()

    assert await stays == 9
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_a_statement_with_the_wrong_number_of_answers_leaves_nobody_waiting():
    async def short(asked):
        return asked[1:]

    together: Batcher[int, int] = Batcher(short, lanes=1)

    answers = await asyncio.gather(*(together(number) for number in range(3)), return_exceptions=True)

    assert all(isinstance(answer, InternalError) for answer in answers)
