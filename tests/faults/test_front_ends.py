"""Front ends and workers that come and go while callers watch, wait and read."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import aiohttp
import psutil
import pytest

from tests.faults.arena import Arena, arena, ticket
from tests.faults.rolling import SPACING, rolling
from tests.harness.caller import ASYNC, Api
from tests.harness.waiting import eventually

#: requests a second of the rolling restart; `make faults` has twice as many
RATE = 50
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
    async with arena(front_ends=2, workers=2) as opened:
        yield opened


async def test_events_resume_across_a_restart_of_the_front_end_without_gap_or_repeat(gateway: Arena):
    front_end = await gateway.front_end_apart()
    gateway.upstream.gate.clear()
    async with gateway.desk() as desk, gateway.api(front_end) as api:
        job = await desk.submit("tickets", "create", ticket(uuid4().hex))
        await desk.api.running_job(job)
        before: list[tuple[int, str]] = []
        after: list[tuple[int, str]] = []
        reading = asyncio.create_task(_read_events(api, job["id"], before))
        await eventually(lambda: len(before) >= 2)
        await front_end.kill()
        await reading
        gateway.upstream.gate.set()
        await front_end.start()
        await _read_events(api, job["id"], after, seen=before[-1][0])

    assert [number for number, _ in before + after] == [1, 2, 3, 4]
    assert after[-1][1] == "done"
    await front_end.kill()
    gateway.front_ends.remove(front_end)


async def _read_events(api: Api, job_id: str, told: list[tuple[int, str]], seen: int = 0) -> None:
    """Number and name of each event, as it comes, until the stream ends or is cut."""
    headers = {**api.headers, "Last-Event-ID": str(seen)}
    try:
        async with api.session.get(f"/api/v1/jobs/{job_id}/events", headers=headers) as response:
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
    front_end = psutil.Process(gateway.front_ends[0].pid)
    async with gateway.desk() as desk:
        job = await desk.api.ended_job(await desk.submit("tickets", "list", {}))
        await gateway.stores.rows("DELETE FROM job_results WHERE job_id = $1", job["id"])
        await gateway.stores.rows(MILLION, job["id"], gateway.api_client.organization_id)
        await gateway.stores.rows(AS_A_LIST, job["id"])
        before, most, count = front_end.memory_info().rss, 0, 0

        headers = {**desk.api.headers, "Accept": "application/x-ndjson"}
        async with desk.api.session.get(f"/api/v1/jobs/{job['id']}/result", headers=headers) as response:
            async for piece in response.content.iter_any():
                count += piece.count(b"\n")
                most = max(most, front_end.memory_info().rss)

    assert count == 1_000_000
    assert (most - before) >> 20 <= 16


async def test_a_chain_of_redirects_outlives_its_token_and_opens_nothing_else(gateway: Arena):
    gateway.upstream.gate.clear()
    front_end = await gateway.front_end_apart(GATEWAY_TOKEN_SECONDS="8")
    async with gateway.desk(front_end) as desk:
        api, sdk = desk.api, {"X-ADP-Agent-SDK": "1"}
        body = {"entity": "tickets", "action": "create", "params": ticket(uuid4().hex)}
        first = await api.post(f"{desk.path}/execute", body, headers={**sdk, **ASYNC}, allow_redirects=False)
        hop = first.headers["Location"]
        result = hop.partition("?")[0]

        await eventually(lambda: _is_refused(api))
        gateway.upstream.gate.set()
        led = await api.get(hop, headers=sdk, allow_redirects=False)
        refused = [
            await api.get(result),
            await api.get(result.removesuffix("/result"), headers=sdk),
            await api.get(hop, headers={**sdk, "Authorization": "Bearer x"}),
        ]

    await gateway.stop(front_end)
    assert led.status == 200
    assert [answer.status for answer in refused] == [401, 401, 401]


async def _is_refused(api: Api) -> bool:
    return (await api.get("/api/v1/jobs")).status == 401


async def test_a_rolling_restart_under_load_fails_and_doubles_nothing():
    report = await rolling(RATE)

    assert report.is_clean, report.table()
    assert report.calls >= 4 * SPACING * RATE


async def test_all_phases_of_a_stop_share_one_grace():
    grace = 4
    async with arena(GATEWAY_SHUTDOWN_GRACE=str(grace)) as gateway, gateway.desk() as desk:
        gateway.upstream.gate.clear()
        calls = [
            asyncio.create_task(desk.send("tickets", "list", {})),
            asyncio.create_task(desk.send("tickets", "create", ticket("in-flight"), {"Idempotency-Key": "k"})),
        ]
        await eventually(lambda: gateway.upstream.open == len(calls))

        started = time.monotonic()
        programs = (*gateway.front_ends, *gateway.workers)
        for program in programs:
            program.send(signal.SIGTERM)
        codes = [await program.ended() for program in programs]
        took = time.monotonic() - started
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)

    assert codes == [0, 0]
    # Phases of their own would take twice as long: the jobs a grace, and then the requests another one.
    assert took < 1.75 * grace
