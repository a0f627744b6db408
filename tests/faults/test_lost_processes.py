"""Processes are killed and frozen: no accepted job is lost, nothing is sent twice, and no result is invented."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.faults.arena import Arena, arena, seconds_until, ticket
from tests.harness.caller import ConnectorApi
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    """Two front ends and no worker: each test starts those it wants."""
    async with arena(front_ends=2, workers=0) as opened:
        yield opened


@pytest.fixture(autouse=True)
async def no_workers_left(gateway: Arena) -> AsyncIterator[None]:
    yield
    gateway.upstream.gate.set()
    gateway.upstream.slowest = 0.05
    for worker in gateway.workers:
        worker.send(signal.SIGCONT)
        await worker.kill()
    gateway.workers.clear()


async def test_a_killed_workers_job_continues_on_another(gateway: Arena):
    first = await gateway.worker()
    async with gateway.desk() as desk:
        gateway.upstream.gate.clear()
        job = await desk.submit("tickets", "list", {})
        await desk.api.running_job(job)
        await gateway.worker()

        await first.kill()
        killed_at = time.monotonic()
        gateway.upstream.gate.set()
        ended = await desk.api.ended_job(job)

    assert ended["status"] == "succeeded"
    assert ended["attempt"] == 2
    # It ran on this host, so that its death is proven before its lease of ten seconds ends.
    assert time.monotonic() - killed_at <= 8


async def test_a_write_whose_worker_was_killed_after_sending_is_unknown_and_not_sent_again(gateway: Arena):
    worker = await gateway.worker()
    async with gateway.desk() as desk:
        gateway.upstream.gate.clear()
        job = await desk.submit("tickets", "create", ticket("killed-1"))
        await eventually(lambda: gateway.upstream.created["killed-1"])

        await worker.kill()
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        error = (await desk.api.get(f"/api/v1/jobs/{job['id']}/result")).document(409)

    assert ended["status"] == "unknown"
    assert gateway.upstream.created["killed-1"] == 1
    assert error["code"] == "outcome_unknown"
    assert error["known"]["find_by"].startswith("tickets.list")
    assert error["known"]["sent_at"]


async def test_a_frozen_workers_late_result_is_refused_and_nothing_is_sent_twice(gateway: Arena):
    frozen = await gateway.worker()
    async with gateway.desk() as desk:
        gateway.upstream.gate.clear()
        write = await desk.submit("tickets", "create", ticket("frozen-1"))
        read = await desk.submit("tickets", "get", {"ticket_id": 1})
        await eventually(lambda: gateway.upstream.created["frozen-1"])
        await desk.api.running_job(read)

        frozen.send(signal.SIGSTOP)
        await gateway.worker()
        gateway.upstream.gate.set()
        ended = [await desk.api.ended_job(job) for job in (write, read)]
        frozen.send(signal.SIGCONT)
        await gateway.swept()
        thawed = [(await desk.api.get(f"/api/v1/jobs/{job['id']}")).json() for job in (write, read)]

    assert [job["status"] for job in ended] == ["unknown", "succeeded"]
    assert thawed == ended
    assert gateway.upstream.created["frozen-1"] == 1


async def test_a_call_whose_front_end_died_before_sending_gives_its_key_back(gateway: Arena):
    await gateway.worker()
    doomed = await gateway.front_end_apart()
    key = {"Idempotency-Key": "k-1"}
    async with gateway.desk() as desk, gateway.api(doomed) as lost:
        gateway.upstream.gate.clear()
        gateway.upstream.arrived.clear()
        # Reads are safe to run again, so that the key is free however far this one came.
        call = asyncio.create_task(desk.through(lost).send("tickets", "list", {}, key))
        await gateway.upstream.arrived.wait()
        in_flight = await desk.send("tickets", "list", {}, key)

        await doomed.kill()
        with pytest.raises(aiohttp.ClientConnectionError):
            await call
        gateway.upstream.gate.set()
        taken = await seconds_until(lambda: _is_listed(desk, key))

    assert in_flight.status == 409
    assert "Retry-After" in in_flight.headers
    assert taken <= 15
    gateway.front_ends.remove(doomed)


async def test_a_write_whose_front_end_died_after_sending_stays_unknown_under_its_key(gateway: Arena):
    await gateway.worker()
    doomed = await gateway.front_end_apart()
    key = {"Idempotency-Key": "k-2"}
    async with gateway.desk() as desk, gateway.api(doomed) as lost:
        gateway.upstream.gate.clear()
        call = asyncio.create_task(desk.through(lost).send("tickets", "create", ticket("front-1"), key))
        await eventually(lambda: gateway.upstream.created["front-1"])

        await doomed.kill()
        with pytest.raises(aiohttp.ClientConnectionError):
            await call
        gateway.upstream.gate.set()
        await eventually(lambda: _is_unknown(desk, ticket("front-1"), key))

    assert gateway.upstream.created["front-1"] == 1
    gateway.front_ends.remove(doomed)


async def test_twenty_equal_requests_with_one_key_make_one_write(gateway: Arena):
    call = ("tickets", "create", ticket("same"), {"Idempotency-Key": "k-3"})
    async with gateway.desk() as desk, gateway.api(gateway.front_ends[1]) as api:
        other = desk.through(api)

        answers = await asyncio.gather(*(each.send(*call) for each in (desk, other) for _ in range(10)))
        replayed = await other.send(*call)

    assert gateway.upstream.created["same"] == 1
    assert {answer.status for answer in answers} <= {200, 409}
    assert sum(answer.status == 200 for answer in answers) >= 1
    assert replayed.status == 200
    assert replayed.headers["Idempotency-Replayed"] == "true"
    assert replayed.json()["result"]["external_id"] == "same"


async def _is_listed(desk: ConnectorApi, key: dict[str, str]) -> bool:
    return (await desk.send("tickets", "list", {}, key)).status == 200


async def _is_unknown(desk: ConnectorApi, params: dict[str, Any], key: dict[str, str]) -> bool:
    return (await desk.send("tickets", "create", params, key)).json().get("code") == "outcome_unknown"
