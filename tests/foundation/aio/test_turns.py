"""Long computations hold the event loop for a turn at most, and let others have theirs."""

import asyncio
import time

import pytest

from gateway.foundation.aio.turns import Turns, compute_for, in_thread, in_turn, mapped
from tests.harness.blocked_loop import never_blocked


def spin(seconds: float) -> float:
    ends_at = time.thread_time() + seconds
    while time.thread_time() < ends_at:
        pass
    return seconds


async def test_items_are_computed_in_order():
    assert await mapped(lambda item: item * 2, range(100_000), lambda item: item in {0, 7, 99_999}) == [
        item * 2 for item in range(100_000)
    ]
    assert await mapped(str, []) == []


async def test_a_long_computation_is_divided_into_turns():
    with never_blocked(0.05):
        computed = await asyncio.gather(*(mapped(spin, [0.002] * 50) for _ in range(4)))

    assert computed == [[0.002] * 50] * 4


async def test_a_large_item_does_not_hold_the_loop():
    with never_blocked(0.05):
        computed = await mapped(spin, [0.001, 0.3, 0.001], lambda seconds: seconds > 0.1)

    assert computed == [0.001, 0.3, 0.001]


async def test_computations_alternate():
    ended = []

    async def computed(name: str, items: int) -> None:
        await mapped(spin, [0.011] * items)
        ended.append(name)

    await asyncio.gather(computed("long", 12), computed("short", 2))

    assert ended == ["short", "long"]


async def test_organizations_take_turns_whatever_the_number_of_their_computations():
    ended, in_threads = [], []

    async def computed(organization: str) -> None:
        compute_for(organization)
        await mapped(spin, [0.011] * 4)
        ended.append(organization)

    async def computed_in_thread(organization: str) -> None:
        compute_for(organization)
        await in_thread(in_threads.append, organization)

    await asyncio.gather(*(computed("hostile") for _ in range(10)), computed("polite"))
    await asyncio.gather(*(computed_in_thread("hostile") for _ in range(10)), computed_in_thread("polite"))

    assert ended[0] == "polite"
    assert in_threads.index("polite") <= 2


async def test_a_computation_that_is_cancelled_when_its_turn_comes_passes_it_on():
    async def held(begun: asyncio.Event, end: asyncio.Event) -> None:
        async with turns:
            begun.set()
            await end.wait()

    turns, begun, end, passed = Turns(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    holder = asyncio.ensure_future(held(begun, end))
    await begun.wait()
    cancelled = asyncio.ensure_future(held(asyncio.Event(), end))
    following = asyncio.ensure_future(held(passed, end))
    await asyncio.sleep(0)
    end.set()
    await holder  # its turn is given to the second one, which has not run since
    cancelled.cancel()

    async with asyncio.timeout(5):
        await following
    assert passed.is_set()


async def test_a_computation_that_fails_or_is_cancelled_leaves_its_turn_to_others():
    def fail(item: float) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await mapped(fail, [1])
    with pytest.raises(ValueError):
        await in_thread(fail, 1)
    cancelled = asyncio.ensure_future(mapped(spin, [0.011] * 100))
    await asyncio.sleep(0)
    cancelled.cancel()

    assert await in_turn(lambda: 1) == 1
    assert await in_thread(spin, 0) == 0


async def test_the_guard_names_the_callback_that_blocks():
    async def block() -> None:
        with never_blocked(0.05):
            asyncio.get_running_loop().call_soon(spin, 0.06)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="held the event loop"):
        await block()
