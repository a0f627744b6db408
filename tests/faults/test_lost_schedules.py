"""Workers that are killed while slots come: every slot has one job, however often it was begun."""

from collections import Counter
from datetime import datetime

import asyncpg
import pytest

from tests.faults.schedules import schedule_storm
from tests.harness.deployment import deployed
from tests.harness.waiting import eventually

SCHEDULES, SLOTS = 80, 3
BODY = {"entity": "tickets", "action": "list", "params": {"per_page": 1}, "cron": "0 0 1 1 *", "overlap": "queue"}
COME = "UPDATE schedules SET next_run_at = $1"
JOBS = """
    SELECT labels ->> 'schedule_id' AS schedule, labels ->> 'scheduled_for' AS slot FROM jobs
    WHERE labels ? 'schedule_id'
"""
WAITING = "SELECT count(*) FROM schedules WHERE next_run_at <= now()"


@pytest.fixture
async def deployment(tmp_path, database_url, redis_url):
    async with deployed(tmp_path, database_url, redis_url, workers=3, GATEWAY_SYNCHRONIZE="false") as running:
        yield running


async def test_a_slot_has_one_job_whichever_worker_is_killed(deployment, database_url):
    database = await asyncpg.connect(database_url)
    async with deployment.api() as api:
        connector = await api.connector()
        body = {**BODY, "connector_id": connector.record["id"]}
        for number in range(SCHEDULES):
            (await api.post("/api/v1/schedules", {**body, "name": str(number)})).document(201)

        for slot in range(SLOTS):
            await database.execute(COME, datetime.fromisoformat(f"2026-01-0{slot + 1}T00:00:00+00:00"))
            begun = slot * SCHEDULES

            async def some_began(begun=begun):
                return len(await database.fetch(JOBS)) > begun

            async def none_waits():
                return await database.fetchval(WAITING) == 0

            await eventually(some_began)
            for worker in deployment.workers:
                await worker.kill()
                await worker.start()
            await eventually(none_waits)

    runs = Counter((row["schedule"], row["slot"]) for row in await database.fetch(JOBS))
    await database.close()
    assert len(runs) == SCHEDULES * SLOTS
    assert set(runs.values()) == {1}


async def test_a_storm_over_schedules_runs_each_slot_once():
    report = await schedule_storm(schedules=8, slots=2, faults=2)

    assert report.is_clean, report.table()
    assert report.ended["jobs"].total() == 16
