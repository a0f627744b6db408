"""Processes that are killed and frozen: nothing accepted is lost, nothing is sent twice, nothing is invented."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator

import pytest

from tests.faults.arena import Arena, arena, ticket, until


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    """Two front ends and no worker: each test starts those it wants."""
    async with arena(fronts=2, workers=0) as opened:
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


async def test_a_killed_workers_job_goes_on_elsewhere(gateway: Arena):
    first = await gateway.add_worker()
    async with gateway.caller() as caller:
        await caller.connect()
        gateway.upstream.gate.clear()
        job = await caller.submit("tickets", "list", {})
        await caller.running(job["id"])
        await gateway.add_worker()

        await first.kill()
        killed_at = time.monotonic()
        gateway.upstream.gate.set()
        ended = await caller.ended(job["id"])

    assert ended["status"] == "succeeded"
    assert ended["attempt"] == 2
    assert time.monotonic() - killed_at <= 15


async def test_a_write_whose_worker_was_killed_after_sending_is_unknown_and_not_sent_again(gateway: Arena):
    worker = await gateway.add_worker()
    async with gateway.caller() as caller:
        await caller.connect()
        gateway.upstream.gate.clear()
        job = await caller.create("killed-1")
        await until(lambda: _is_created(gateway, "killed-1"))

        await worker.kill()
        await gateway.add_worker()
        ended = await caller.ended(job["id"])
        status, error, _ = await caller.call("GET", f"/api/v1/jobs/{job['id']}/result")

    assert ended["status"] == "unknown"
    assert gateway.upstream.created["killed-1"] == 1
    assert (status, error["code"]) == (409, "outcome_unknown")
    assert error["known"]["find_by"].startswith("tickets.list")
    assert error["known"]["sent_at"]


async def test_a_frozen_workers_late_result_is_refused_and_nothing_is_sent_twice(gateway: Arena):
    frozen = await gateway.add_worker()
    async with gateway.caller() as caller:
        await caller.connect()
        gateway.upstream.gate.clear()
        write, read = await caller.create("frozen-1"), await caller.submit("tickets", "get", {"ticket_id": 1})
        await until(lambda: _is_created(gateway, "frozen-1"))
        await caller.running(read["id"])

        frozen.send(signal.SIGSTOP)
        await gateway.add_worker()
        gateway.upstream.gate.set()
        ended = [await caller.ended(job["id"]) for job in (write, read)]
        frozen.send(signal.SIGCONT)
        await gateway.swept()
        thawed = [await caller.job(job["id"]) for job in (write, read)]

    assert [job["status"] for job in ended] == ["unknown", "succeeded"]
    assert thawed == ended
    assert gateway.upstream.created["frozen-1"] == 1


async def test_a_call_whose_front_end_died_before_sending_gives_its_key_back(gateway: Arena):
    await gateway.add_worker()
    doomed = await gateway.add_front()
    async with gateway.caller() as caller, gateway.caller(doomed) as lost:
        lost.connector_id = await caller.connect()
        gateway.upstream.gate.clear()
        gateway.upstream.arrived.clear()
        # Reads are safe to run again, so that the key is free however far this one came.
        call = asyncio.create_task(lost.execute("tickets", "list", {}, Idempotency_Key="k-1"))
        await gateway.upstream.arrived.wait()
        in_flight, _, headers = await caller.execute("tickets", "list", {}, Idempotency_Key="k-1")

        await doomed.kill()
        await asyncio.gather(call, return_exceptions=True)
        gateway.upstream.gate.set()
        taken = await until(lambda: _executes(caller, "tickets", "list", {}, "k-1"))

    assert in_flight == 409
    assert "Retry-After" in headers
    assert taken <= 15
    gateway.fronts.remove(doomed)


async def test_a_write_whose_front_end_died_after_sending_stays_unknown_under_its_key(gateway: Arena):
    await gateway.add_worker()
    doomed = await gateway.add_front()
    async with gateway.caller() as caller, gateway.caller(doomed) as lost:
        lost.connector_id = await caller.connect()
        gateway.upstream.gate.clear()
        call = asyncio.create_task(lost.execute("tickets", "create", ticket("front-1"), Idempotency_Key="k-2"))
        await until(lambda: _is_created(gateway, "front-1"))

        await doomed.kill()
        await asyncio.gather(call, return_exceptions=True)
        gateway.upstream.gate.set()
        await until(lambda: _is_answered_by(caller, ticket("front-1"), "k-2", "outcome_unknown"))

    assert gateway.upstream.created["front-1"] == 1
    gateway.fronts.remove(doomed)


async def test_twenty_equal_requests_with_one_key_make_one_write(gateway: Arena):
    async with gateway.caller() as caller, gateway.caller(gateway.fronts[1]) as other:
        other.connector_id = await caller.connect()

        answers = await asyncio.gather(
            *(
                each.execute("tickets", "create", ticket("same"), Idempotency_Key="k-3")
                for each in (caller, other)
                for _ in range(10)
            )
        )
        status, replayed, headers = await other.execute("tickets", "create", ticket("same"), Idempotency_Key="k-3")

    assert gateway.upstream.created["same"] == 1
    assert {answer[0] for answer in answers} <= {200, 409}
    assert sum(answer[0] == 200 for answer in answers) >= 1
    assert status == 200
    assert headers["Idempotency-Replayed"] == "true"
    assert replayed["result"]["external_id"] == "same"


async def _is_created(gateway: Arena, external_id: str) -> bool:
    return gateway.upstream.created[external_id] > 0


async def _executes(caller, entity: str, action: str, params, key: str) -> bool:
    return (await caller.execute(entity, action, params, Idempotency_Key=key))[0] == 200


async def _is_answered_by(caller, params, key: str, code: str) -> bool:
    return (await caller.execute("tickets", "create", params, Idempotency_Key=key))[1].get("code") == code
