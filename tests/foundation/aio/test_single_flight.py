"""Look-ups shared by those who ask at the same time."""

import asyncio

import pytest

from gateway.foundation.aio.single_flight import SingleFlight


class Source:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()

    async def look_up(self, key: str) -> int:
        self.asked.append(key)
        await self.may_answer.wait()
        if key == "broken":
            raise LookupError(key)
        return len(self.asked)


@pytest.fixture
def source() -> Source:
    return Source()


async def asked(flight: SingleFlight[str, int], *keys: str) -> list["asyncio.Task[int]"]:
    tasks = [asyncio.create_task(flight(key)) for key in keys]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_those_who_ask_for_the_same_share_one_look_up(source: Source):
    flight = SingleFlight(source.look_up)
    tasks = await asked(flight, "a", "a", "b", "a")

    source.may_answer.set()
    answers = await asyncio.gather(*tasks)

    assert source.asked == ["a", "b"]
    assert answers[0] == answers[1] == answers[3]


async def test_who_asks_after_the_answer_asks_anew(source: Source):
    flight = SingleFlight(source.look_up)
    source.may_answer.set()

    await flight("a")
    await flight("a")

    assert source.asked == ["a", "a"]


async def test_everybody_hears_of_a_failure_and_the_next_one_tries_again(source: Source):
    flight = SingleFlight(source.look_up)
    tasks = await asked(flight, "broken", "broken")

    source.may_answer.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(each) for each in outcomes] == [LookupError, LookupError]
    with pytest.raises(LookupError):
        await flight("broken")
    assert source.asked == ["broken", "broken"]


async def test_a_disconnected_caller_takes_the_answer_from_nobody(source: Source):
    flight = SingleFlight(source.look_up)
    first, second = await asked(flight, "a", "a")

    first.cancel()
    source.may_answer.set()

    assert await second == 1


async def test_who_asks_after_news_does_not_share_what_began_before_it(source: Source):
    flight = SingleFlight(source.look_up)
    before = await asked(flight, "a")

    flight.forget()
    after = await asked(flight, "a")
    source.may_answer.set()
    await asyncio.gather(*before, *after)

    assert source.asked == ["a", "a"]
