"""A worker that is killed in the middle of a synchronization: another goes on from what was committed."""

import asyncio
import signal
from collections import Counter

import aiohttp
import asyncpg
import pytest

from tests.journeys.layout import laid_out
from tests.running import PATIENCE

ATTACHMENTS = "/api/1.0/attachments"
IDS = """
    SELECT r.id FROM context_records AS r JOIN context_entities AS e ON e.id = r.entity_id
    WHERE e.connector_id = $1 AND e.entity = 'attachments' AND r.deleted_at IS NULL ORDER BY r.id
"""


@pytest.fixture
async def layout(tmp_path, database_url, redis_url):
    async with laid_out(tmp_path, database_url, redis_url, GATEWAY_SYNCHRONIZE="false") as running:
        yield running


async def parents_read(layout):
    """How often the attachments of each task were asked for."""
    requests = await layout.upstream_requests()
    return Counter(request["query"]["parent"] for request in requests if request["path"] == ATTACHMENTS)


async def until_read(layout, parents):
    """What was read once the attachments of so many tasks were."""
    async with asyncio.timeout(PATIENCE):
        while True:
            read = await parents_read(layout)
            if len(read) >= parents:
                return read
            await asyncio.sleep(0.05)


async def asked_for(connector):
    """The id of a job that synchronizes the attachments, with the tasks and projects that they lie below."""
    accepted = await connector.api.post(f"{connector.path}/context-store/sync", {"entities": ["attachments"]})
    return accepted.json()["job"]["id"]


async def result(connector, job_id):
    async with asyncio.timeout(2 * PATIENCE):
        return (await connector.api.get(f"/api/v1/jobs/{job_id}/result?wait=120")).json()


async def test_a_killed_synchronization_goes_on_from_where_it_was(layout, database_url):
    async with layout.api() as api, aiohttp.ClientSession(layout.sandbox_url) as control:
        connector = await api.connector("Work-Management", {"token": "token"})
        undisturbed = await api.connector("Work-Management", {"token": "token"})
        slow = {"kind": "work-management", "path_prefix": ATTACHMENTS, "latency_ms": 20}
        assert (await control.post("/_sandbox/faults", json=slow)).status == 201
        await (await control.delete("/_sandbox/requests")).release()
        [worker] = layout.running("worker")
        job_id = await asked_for(connector)
        read_before = await until_read(layout, 100)

        worker.send_signal(signal.SIGKILL)
        await worker.wait()
        await layout.worker()
        outcome = await result(connector, job_id)
        read = await parents_read(layout)
        await (await control.delete("/_sandbox/faults")).release()
        await result(undisturbed, await asked_for(undisturbed))

    database = await asyncpg.connect(database_url)
    found = [row["id"] for row in await database.fetch(IDS, connector.record["id"])]
    expected = [row["id"] for row in await database.fetch(IDS, undisturbed.record["id"])]
    await database.close()
    assert outcome["status"] == "success"
    assert len(read_before) < 600
    assert found == expected
    assert len(found) == 200
    assert (len(read), sum(read.values())) <= (600, 602)
