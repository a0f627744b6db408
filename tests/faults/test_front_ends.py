"""Front ends and workers that come and go while callers watch, wait and read."""

import asyncio
import itertools
import json
import signal
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import aiohttp
import psutil
import pytest

from tests.faults.arena import Arena, Caller, Part, arena, ticket, until

#: requests a second of the rolling restart, and seconds between two restarts
RATE, SPACING = 50, 1.0
MILLION = """
    INSERT INTO job_results (job_id, organization_id, part, lines)
    SELECT $1, $2, part,
           string_agg(format('{"id":%s,"subject":"record %s of a million"}', number, number), E'\\n') || E'\\n'
    FROM generate_series(1, 1000) AS part, generate_series((part - 1) * 1000 + 1, part * 1000) AS number
    GROUP BY part
"""
AS_A_LIST = """
    UPDATE jobs SET result = '{"result": null, "collected": "$", "meta": null, "parts": 1000}' WHERE id = $1
"""


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena(fronts=2, workers=2) as opened:
        yield opened


async def test_events_resume_across_a_restart_of_the_front_end_without_gap_or_repeat(gateway: Arena):
    front = await gateway.add_front()
    gateway.upstream.gate.clear()
    async with gateway.caller() as caller:
        await caller.connect()
        job = await caller.create(uuid4().hex)
        await caller.running(job["id"])

    async with gateway.caller() as caller:
        before: list[tuple[int, str]] = []
        after: list[tuple[int, str]] = []
        reading = asyncio.create_task(_read_events(caller, gateway.url_of(front), job["id"], before))
        await until(lambda: len(before) >= 2)
        await front.kill()
        await reading
        gateway.upstream.gate.set()
        await front.start()
        await _read_events(caller, gateway.url_of(front), job["id"], after, seen=before[-1][0])

    assert [number for number, _ in before + after] == [1, 2, 3, 4]
    assert after[-1][1] == "done"
    await front.kill()
    gateway.fronts.remove(front)


async def _read_events(caller: Caller, base_url: str, job_id: str, told: list[tuple[int, str]], seen: int = 0) -> None:
    """Number and name of each event, as it comes, until the stream ends or is cut."""
    headers = {**caller.headers, "Last-Event-ID": str(seen)}
    try:
        async with caller.session.get(f"{base_url}/api/v1/jobs/{job_id}/events", headers=headers) as response:
            assert response.status == 200, await response.text()
            async for line in response.content:
                name, _, value = line.decode().strip().partition(": ")
                if name == "id":
                    number = int(value)
                elif name == "event":
                    told.append((number, value))
    except aiohttp.ClientError:
        pass


async def test_a_result_of_a_million_records_is_read_with_flat_memory(gateway: Arena):
    front = psutil.Process(gateway.fronts[0].pid)
    async with gateway.caller() as caller:
        await caller.connect()
        job = await caller.ended((await caller.submit("tickets", "list", {}))["id"])
        await gateway.rows("DELETE FROM job_results WHERE job_id = $1", job["id"])
        await gateway.rows(MILLION, job["id"], gateway.organization_id)
        await gateway.rows(AS_A_LIST, job["id"])
        async with gateway.caller() as fresh:
            fresh.connector_id = caller.connector_id
            before, most, count = front.memory_info().rss, 0, 0

            headers = {**fresh.headers, "Accept": "application/x-ndjson"}
            async with fresh.session.get(
                f"{fresh.base_url}/api/v1/jobs/{job['id']}/result", headers=headers
            ) as response:
                async for piece in response.content.iter_any():
                    count += piece.count(b"\n")
                    most = max(most, front.memory_info().rss)

    assert count == 1_000_000
    assert (most - before) >> 20 <= 16


async def test_a_chain_of_redirects_outlives_its_token_and_opens_nothing_else(gateway: Arena):
    gateway.upstream.gate.clear()
    front = await gateway.front_end_apart(GATEWAY_TOKEN_SECONDS="8")
    async with gateway.caller(front) as caller, aiohttp.ClientSession() as session:
        await caller.connect()
        body = {"entity": "tickets", "action": "create", "params": ticket(uuid4().hex)}
        sdk = {**caller.headers, "X-ADP-Agent-SDK": "1", "Prefer": "respond-async"}
        path = f"/api/v1/integrations/connectors/{caller.connector_id}/execute"
        async with session.post(caller.base_url + path, json=body, headers=sdk, allow_redirects=False) as first:
            hop = first.headers["Location"]
        result = hop.partition("?")[0]

        await until(lambda: _is_refused(session, caller, "/api/v1/jobs"))
        gateway.upstream.gate.set()
        led = await _status(session, caller.base_url + hop, sdk)
        without_the_mark = await _status(session, caller.base_url + result, caller.headers)
        the_job = await _status(session, caller.base_url + result.removesuffix("/result"), sdk)
        another_token = await _status(session, caller.base_url + hop, {**sdk, "Authorization": "Bearer x"})

    await gateway.stop(front)
    assert led == 200
    assert [without_the_mark, the_job, another_token] == [401, 401, 401]


async def _status(session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> int:
    async with session.get(url, headers=headers, allow_redirects=False) as response:
        return response.status


async def _is_refused(session: aiohttp.ClientSession, caller: Caller, path: str) -> bool:
    return await _status(session, caller.base_url + path, caller.headers) == 401


async def test_a_rolling_restart_under_load_fails_and_doubles_nothing():
    async with arena(fronts=2, workers=2) as gateway, gateway.caller() as caller:
        await caller.connect()
        load = Load(gateway, caller)
        running = asyncio.create_task(load.run())

        codes = [await _rolled(gateway, part) for part in (*gateway.fronts, *gateway.workers)]
        load.is_over.set()
        await running
        ended = [await caller.ended(job_id) for job_id in load.jobs]

    assert load.failures == []
    assert len(load.names) >= 4 * SPACING * RATE
    assert {job["status"] for job in ended} == {"succeeded"}
    assert {gateway.upstream.created[name] for name in load.names} == {1}
    assert codes == [0, 0, 0, 0]


async def _rolled(gateway: Arena, part: Part) -> int:
    """The exit code of a process that was told to stop, once its successor works."""
    await asyncio.sleep(SPACING)
    code = await part.stop()
    await part.start()
    return code


class Load:
    """So many creates a second, every second one as a job, over whichever front end takes them."""

    def __init__(self, gateway: Arena, caller: Caller) -> None:
        self._gateway = gateway
        self._caller = caller
        self.is_over = asyncio.Event()
        self.names: list[str] = []
        self.jobs: list[str] = []
        self.failures: list[object] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as calls:
            for number in itertools.count():
                if self.is_over.is_set():
                    return
                calls.create_task(self._call(number))
                await asyncio.sleep(1 / RATE)

    async def _call(self, number: int) -> None:
        name = f"rolling-{number}"
        self.names.append(name)
        status, answer = await self._taken(number, name)
        if status == 202:
            self.jobs.append(answer["job"]["id"])
        elif status != 200:
            self.failures.append((status, answer))

    async def _taken(self, number: int, name: str) -> tuple[int, object]:
        """As a load balancer has it: where no connection comes about, the other front end is asked."""
        path = f"/api/v1/integrations/connectors/{self._caller.connector_id}/execute"
        body = json.dumps({"entity": "tickets", "action": "create", "params": ticket(name)})
        headers = {**self._caller.headers, "Content-Type": "application/json"}
        headers |= {"Prefer": "respond-async"} if number % 2 else {}
        for turn in range(2):
            front = self._gateway.fronts[(number + turn) % 2]
            try:
                async with self._caller.session.post(
                    self._gateway.url_of(front) + path, data=body, headers=headers
                ) as response:
                    return response.status, await response.json()
            except aiohttp.ClientConnectorError:
                continue
            except aiohttp.ClientError as error:
                return 0, repr(error)
        return 0, "neither front end takes connections"


async def test_all_phases_of_a_stop_share_one_grace():
    grace = 4
    async with arena(GATEWAY_SHUTDOWN_GRACE=str(grace)) as gateway, gateway.caller() as caller:
        await caller.connect()
        gateway.upstream.gate.clear()
        calls = [
            asyncio.create_task(caller.execute("tickets", "list", {})),
            asyncio.create_task(caller.execute("tickets", "create", ticket("in-flight"), Idempotency_Key="k")),
        ]
        await until(lambda: _is_open(gateway, len(calls)))

        started = time.monotonic()
        for part in (*gateway.fronts, *gateway.workers):
            part.send(signal.SIGTERM)
        codes = [await part.ended() for part in (*gateway.fronts, *gateway.workers)]
        took = time.monotonic() - started
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)

    assert codes == [0, 0]
    # Phases of their own would take twice as long: the jobs a grace, and then the requests another one.
    assert took < 1.75 * grace


async def _is_open(gateway: Arena, requests: int) -> bool:
    return gateway.upstream.open == requests
