"""One statement for many callers, and an answer of one's own for each."""

import asyncio

import pytest

from gateway.errors import InternalError, Unavailable
from gateway.foundation.aio.batching import Batcher


class Statement:
    """Answers with squares, when it is let; nothing and less is an error, 1000 an absence."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_end = asyncio.Event()

    async def __call__(self, items):
        self.batches.append(list(items))
        await self.may_end.wait()
        if 1000 in items:
            raise Unavailable
        if min(items) <= 0:
            raise ValueError("nothing")
        return [number * number for number in items]


async def started(batcher: Batcher[int, int], numbers) -> list["asyncio.Task[int]"]:
    tasks = [asyncio.ensure_future(batcher(number)) for number in numbers]
    await asyncio.sleep(0)
    return tasks


async def test_a_caller_may_ask_again_as_soon_as_it_has_its_result():
    statement = Statement()
    statement.may_end.set()
    batcher: Batcher[int, int] = Batcher(statement, concurrency=1)

    async with asyncio.timeout(1):
        assert [await batcher(number) for number in (1, 2, 3)] == [1, 4, 9]


async def test_what_is_requested_meanwhile_goes_out_together():
    statement = Statement()
    batcher: Batcher[int, int] = Batcher(statement, max_batch=4, concurrency=1)

    first = await started(batcher, [1])
    rest = await started(batcher, range(2, 8))
    statement.may_end.set()
    results = await asyncio.gather(*first, *rest)

    assert statement.batches == [[1], [2, 3, 4, 5], [6, 7]] or statement.batches == [[1, 2, 3, 4], [5, 6, 7]]
    assert results == [number * number for number in range(1, 8)]


async def test_an_error_is_reported_to_the_one_that_caused_it():
    statement = Statement()
    statement.may_end.set()
    batcher: Batcher[int, int] = Batcher(statement, concurrency=1)

    results = await asyncio.gather(*(batcher(number) for number in (1, 0, 3)), return_exceptions=True)

    assert results[0] == 1
    assert isinstance(results[1], ValueError)
    assert results[2] == 9


async def test_an_absence_is_reported_to_all_and_not_tried_one_by_one():
    statement = Statement()
    statement.may_end.set()
    batcher: Batcher[int, int] = Batcher(statement, concurrency=1)

    results = await asyncio.gather(*(batcher(number) for number in (1, 1000, 3)), return_exceptions=True)

    assert len(statement.batches) == 1
    assert all(isinstance(result, Unavailable) for result in results)


async def test_a_disconnected_caller_takes_nothing_from_the_others():
    statement = Statement()
    batcher: Batcher[int, int] = Batcher(statement, concurrency=1)
    gone, stays = await started(batcher, [2, 3])

    gone.cancel()
    statement.may_end.set()

    assert await stays == 9
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_a_statement_with_the_wrong_number_of_results_leaves_no_caller_waiting():
    async def short(items):
        return items[1:]

    batcher: Batcher[int, int] = Batcher(short, concurrency=1)

    results = await asyncio.gather(*(batcher(number) for number in range(3)), return_exceptions=True)

    assert all(isinstance(result, InternalError) for result in results)
