"""Slots of a front end: no holder takes all of them."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import aiohttp
import pytest

from gateway.contract.events import EventType
from gateway.errors import Unavailable
from gateway.events.recording import add_event
from gateway.foundation.mcp import TASKS, VERSIONS
from gateway.web.admission.load_shedding import FairSlots
from tests.agents.mcp.conftest import CAPABILITIES, VERSION, headers_of
from tests.harness.caller import Api
from tests.harness.in_process import FrontEnd, front_end
from tests.harness.waiting import eventually

PER_CALLER = 50


def taken(slots: FairSlots, holder: str) -> int:
    """The number of slots that a holder gets if it takes all it can."""
    for number in range(10_000):
        try:
            slots.acquire(holder)
        except Unavailable:
            return number
    raise AssertionError("there is no end")


@pytest.mark.parametrize(
    ("total", "shares"),
    [(100, [50, 25, 12, 6, 3, 2, 1, 1, 0]), (10, [5, 2, 1, 1, 1, 0]), (1, [1, 0]), (2, [1, 1, 0])],
)
def test_each_holder_gets_half_of_what_the_others_leave(total: int, shares: list[int]):
    slots = FairSlots(total, "test", "tests")

    assert [taken(slots, f"holder {number}") for number in range(len(shares))] == shares


def test_a_released_slot_is_free_again():
    slots = FairSlots(2, "test", "tests", retry_after=7)
    slot = slots.acquire("a")
    with pytest.raises(Unavailable) as refused:
        slots.acquire("a")

    slot.release()

    assert refused.value.retry_after == 7
    assert (slots.in_use, slots._held) == (0, {})


def test_what_cannot_be_refused_takes_what_is_left_of_the_share_and_nothing_of_the_others():
    slots = FairSlots(100, "test", "tests")

    large = [slots.acquire_rest("a", 40) for _ in range(3)]
    others = slots.acquire("b", 25)
    with pytest.raises(Unavailable):
        slots.require("a")
    slots.require("c")

    assert [slot.count for slot in large] == [40, 10, 0]
    for slot in (*large, others):
        slot.release()
    slots.require("a")
    assert (slots.in_use, slots._held) == (0, {})


def test_parts_become_smaller_and_leave_half_to_the_others():
    slots = FairSlots(1600, "test", "tests")

    parts = parts_taken(slots, "a")
    other = slots.acquire_part("b", 10, 90)

    assert parts[:3] == [90, 88, 77]
    assert parts == sorted(parts, reverse=True)
    assert (parts[-1], sum(parts) <= 800, len(parts) > 20) == (10, True, True)
    assert other.count > 40
    assert slots.acquire_part("b", 0, 5).count == 5


def parts_taken(slots: FairSlots, holder: str) -> list[int]:
    """The sizes of the parts that a holder gets if it takes all it can."""
    parts: list[int] = []
    with contextlib.suppress(Unavailable):
        while len(parts) < 10_000:
            parts += [slots.acquire_part(holder, 10, 90).count]
    return parts


@pytest.fixture(scope="module")
async def small(tmp_path_factory, database_url, redis_url):
    """A front end with few slots."""
    folder = tmp_path_factory.mktemp("small")
    async with front_end(folder, database_url, redis_url, max_requests=100, max_downloads=4) as opened:
        yield opened


async def half_bodies(front, path: bytes, headers: bytes, count: int) -> list[asyncio.StreamWriter]:
    """Open requests whose bodies are not sent."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", int(front.base_url.rpartition(":")[2]))
        writer.write(b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n" + headers + b"\r\n{")
        writers.append(writer)
    return writers


async def until_refused(call) -> int:
    """The status once it is no longer 200, 401 or 422, because requests are counted only when they arrive."""
    async with asyncio.timeout(10):
        while (status := (await call()).status) < 500:
            pass
    return status


async def test_incomplete_requests_without_a_token_leave_slots_for_callers(small):
    form = b"Content-Type: application/x-www-form-urlencoded\r\n"
    async with small.api() as api:
        writers = await half_bodies(small, b"/oauth/token", form, 20)
        stranger = await until_refused(lambda: api.call("POST", "/oauth/token", data=b"grant_type=x", headers={}))
        caller = await api.get("/api/v1/jobs")
        for writer in writers:
            writer.close()

    assert (stranger, caller.status) == (503, 200)


async def test_the_requests_of_one_organization_leave_slots_for_others(small):
    async with small.api() as greedy, small.api() as other:
        token = f"Authorization: {greedy.headers['Authorization']}\r\n".encode()
        writers = await half_bodies(small, b"/api/v1/integrations/connectors", token, 60)
        refused = await until_refused(lambda: greedy.get("/api/v1/jobs"))
        served = [await other.get("/api/v1/jobs") for _ in range(5)]
        for writer in writers:
            writer.close()

    assert refused == 503
    assert {response.status for response in served} == {200}


async def test_waits_of_one_organization_leave_slots_for_others(small):
    async with small.api() as greedy, small.api() as other:
        waits = [asyncio.ensure_future(greedy.get("/api/v1/events?wait=60")) for _ in range(60)]
        await eventually(lambda: small.services.events.feed.waits.of_requests >= 50)

        refused = await until_refused(lambda: greedy.get("/api/v1/jobs"))
        served = [await other.get("/api/v1/jobs") for _ in range(5)]
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    assert refused == 503
    assert {response.status for response in served} == {200}


class Streams:
    """Opens streams of events, by Server-Sent Events and for agents."""

    def __init__(self, front: FrontEnd, api: Api, stack: contextlib.AsyncExitStack) -> None:
        self._front, self._api, self._stack = front, api, stack
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(front.base_url, connector=connector, headers=api.headers)

    async def plain(self) -> aiohttp.ClientResponse:
        return await self._stack.enter_async_context(self._session.get("/api/v1/events/stream"))

    async def agents(self, method: str = "events/stream", **params: object) -> aiohttp.ClientResponse:
        meta = {"_meta": {VERSION: VERSIONS[0], CAPABILITIES: {"extensions": {TASKS: {}}}}}
        params = {"name": "connector.created", **params, **meta}
        document = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        request = self._session.post("/mcp", json=document, headers=headers_of(method, params))
        return await self._stack.enter_async_context(request)


@contextlib.asynccontextmanager
async def streams_of(front: FrontEnd, api: Api) -> AsyncIterator[Streams]:
    async with contextlib.AsyncExitStack() as stack:
        streams = Streams(front, api, stack)
        stack.push_async_callback(streams._session.close)
        yield streams


async def test_streams_take_no_slot_of_a_request_and_leave_streams_for_others(small):
    async with small.api() as greedy, small.api() as other, streams_of(small, greedy) as many:
        opened = [await open_() for open_ in [many.plain, many.agents] * 25]
        for each in opened:
            await each.content.readany()
        held = small.limits.streams.in_use, small.limits.requests.in_use
        refused, refused_agent = await many.plain(), await many.agents()
        error = (await refused_agent.json())["error"]
        served = await greedy.get("/api/v1/jobs")
        async with streams_of(small, other) as few:
            others = [await few.plain(), await few.agents()]
            started = [await each.content.readany() for each in others]

    assert held == (50, 0)
    assert (refused.status, served.status) == (503, 200)
    assert ([each.status for each in others], all(started)) == ([200] * 2, True)
    assert (error["code"], error["data"]) == (-32025, {"limit": "streams"})
    await eventually(lambda: small.limits.streams.in_use == 0)


async def test_streams_are_no_work_even_if_nobody_reads_them(small, database_url):
    """Otherwise clients that do not read would make the calls of others 503."""
    organization_id = await small.organization()
    async with small.api(organization_id) as api, streams_of(small, api) as many:
        async with small.services.database.system() as connection:
            for _ in range(20):
                data = {"labels": {"a": "x" * 1_000_000}}
                await add_event(connection, organization_id, EventType.JOB_FAILED, data)
        await many.agents(name="job.failed", cursor="0")
        await many.plain()
        await eventually(lambda: small.limits.streams.in_use == 2)
        waiting = small.services.events.feed.waits.total

        assert waiting == 0
        assert small.limits.at_work == small.limits.in_progress - 2 == 0


async def test_a_stream_of_many_tasks_is_no_work_and_hides_none(small):
    async with small.api() as api, streams_of(small, api) as many:
        connector = await api.connector()
        ids = [(await connector.submit("tickets", "list", {}))["id"] for _ in range(5)]
        await many.agents("subscriptions/listen", notifications={"taskIds": ids})
        await eventually(lambda: small.services.jobs.waiters.waits.total == 5)

        assert small.limits.at_work == 0


async def test_probes_are_answered_from_memory(small):
    async with small.api() as api:
        first = await api.get("/metrics")
        again = await asyncio.gather(*(api.get("/metrics") for _ in range(20)))
        ready = await asyncio.gather(*(api.get("/readyz") for _ in range(20)))

    assert {response.body for response in again} <= {first.body, again[-1].body}
    assert len({response.body for response in ready}) == 1


async def test_long_pages_of_one_organization_wait_for_each_other_and_short_or_others_pages_do_not(small):
    greedy_id = await small.organization()
    async with small.api(greedy_id) as greedy, small.api() as other:
        async with small.limits.one_long_page(greedy_id), small.limits.one_long_page(greedy_id):
            waiting = asyncio.ensure_future(greedy.get("/api/v1/jobs?limit=1000"))
            await eventually(lambda: small.limits.in_progress and not small.limits.at_work)
            served = [
                await greedy.get("/api/v1/jobs?limit=100"),
                await greedy.get("/api/v1/events?limit=1000"),
                await other.get("/api/v1/jobs?limit=1000"),
            ]
            has_waited = not waiting.done()
        page = await waiting

    assert [page.status for page in [*served, page]] == [200] * 4
    assert has_waited


async def test_organizations_share_the_threads_of_a_front_end(front):
    thread = await asyncio.to_thread(threading.current_thread)

    assert thread.name.startswith("gateway")
