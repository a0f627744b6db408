"""Organizations share the threads of a process."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from gateway.foundation.aio.threads import FairThreads, share_threads
from gateway.foundation.aio.turns import compute_for


@pytest.fixture
async def end() -> AsyncIterator[threading.Event]:
    """Set: the calls that wait for it end."""
    end = threading.Event()
    yield end
    end.set()


async def called_for(organization: str, threads: FairThreads, call: object, *arguments: object) -> object:
    compute_for(organization)
    return await asyncio.get_running_loop().run_in_executor(threads, call, *arguments)


async def test_an_organization_has_half_of_the_threads_that_the_others_leave(end: threading.Event):
    threads, begun = FairThreads(8, "test"), threading.Semaphore(0)

    def held() -> bool:
        begun.release()
        return end.wait(5)

    hostile = [asyncio.create_task(called_for("hostile", threads, held)) for _ in range(100)]
    for _ in range(4):
        assert await asyncio.to_thread(begun.acquire, timeout=5)

    assert [await called_for("polite", threads, int, text) for text in ("1", "2")] == [1, 2]
    assert not begun.acquire(blocking=False)
    end.set()
    assert await asyncio.gather(*hostile) == [True] * 100


async def test_organizations_that_wait_for_a_thread_take_turns(end: threading.Event):
    threads, order = FairThreads(1, "test"), list[str]()
    first = asyncio.create_task(called_for("hostile", threads, end.wait, 5))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(called_for("hostile", threads, order.append, "hostile")) for _ in range(10)]
    await asyncio.sleep(0)
    polite = asyncio.create_task(called_for("polite", threads, order.append, "polite"))
    await asyncio.sleep(0)

    end.set()
    await asyncio.gather(first, *waiting, polite)

    assert order.index("polite") <= 1


async def test_a_call_that_fails_or_is_cancelled_leaves_its_thread_to_others(end: threading.Event):
    threads = FairThreads(1, "test")
    with pytest.raises(ValueError, match="invalid literal"):
        await called_for("one", threads, int, "x")
    held = asyncio.create_task(called_for("one", threads, end.wait, 5))
    await asyncio.sleep(0)
    cancelled = asyncio.create_task(called_for("one", threads, int, "1"))
    await asyncio.sleep(0)
    cancelled.cancel()
    end.set()

    assert await held is True
    assert await called_for("one", threads, int, "2") == 2


def test_calls_in_threads_of_a_loop_share_them():
    async def named() -> str:
        share_threads()
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert asyncio.run(named()).startswith("gateway")
