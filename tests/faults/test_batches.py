"""Batches of real processes: killed in the middle, every operation has one result, and it is true."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.faults.arena import Arena, arena, ticket
from tests.faults.batches import batch_storm
from tests.harness.caller import ConnectorApi

#: operations that take longer than a look at the progress, which is written twice a second
OPERATIONS, SIDE_BY_SIDE = 600, 5


@pytest.fixture(scope="module")
async def gateway() -> AsyncIterator[Arena]:
    async with arena() as opened:
        yield opened


async def started(desk: ConnectorApi, name: str) -> dict[str, Any]:
    operations = [
        {"entity": "tickets", "action": "create", "params": ticket(f"{name}-{number}")} for number in range(OPERATIONS)
    ]
    body = {"operations": operations, "concurrency": SIDE_BY_SIDE}
    job: dict[str, Any] = (await desk.api.post(f"{desk.path}/batch", body)).document(202)["job"]
    return job


async def statuses_of(desk: ConnectorApi, job: dict[str, Any]) -> list[str]:
    result = await desk.api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson"})
    return [json.loads(line)["status"] for line in result.body.splitlines()]


async def test_a_batch_whose_worker_is_killed_continues_and_sends_no_write_twice(gateway: Arena):
    async with gateway.desk() as desk:
        job = await started(desk, "killed")
        await desk.api.job_once(job, lambda seen: seen["progress"] >= OPERATIONS // 3)
        gateway.upstream.gate.clear()
        requests = gateway.upstream.requests
        await gateway.workers.pop().kill()
        gateway.upstream.gate.set()
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        statuses = await statuses_of(desk, job)

    assert ended["status"] == "succeeded"
    assert 0 < statuses.count("unknown") <= SIDE_BY_SIDE
    assert statuses.count("succeeded") == OPERATIONS - statuses.count("unknown")
    assert requests < OPERATIONS <= len(gateway.upstream.created) + statuses.count("unknown")
    assert set(gateway.upstream.created.values()) == {1}


async def test_a_worker_that_shuts_down_hands_its_batch_on_and_leaves_no_write_unknown(gateway: Arena):
    gateway.upstream.created.clear()
    async with gateway.desk() as desk:
        job = await started(desk, "handed")
        await desk.api.job_once(job, lambda seen: seen["progress"] >= OPERATIONS // 3)
        await gateway.workers.pop().stop()
        await gateway.worker()
        ended = await desk.api.ended_job(job)
        statuses = await statuses_of(desk, job)

    assert ended["attempt"] == 2
    assert statuses == ["succeeded"] * OPERATIONS
    assert set(gateway.upstream.created.values()) == {1}


async def test_a_storm_over_batches_loses_doubles_and_invents_nothing():
    report = await batch_storm(batches=4, operations=100, faults=2)

    assert report.is_clean, report.table()
    assert report.ended["operations"].total() == 400
