"""Workers that are killed in the middle of a synchronization: another goes on from what was committed."""

import asyncio
from collections import Counter

import aiohttp
import asyncpg
import pytest

from tests.harness.deployment import deployed
from tests.harness.sandbox import fault
from tests.harness.waiting import PATIENCE, eventually

ATTACHMENTS = "/api/1.0/attachments"
IDS = """
    SELECT r.id FROM context_records AS r JOIN context_entities AS e ON e.id = r.entity_id
    WHERE e.connector_id = $1 AND e.entity = 'attachments' AND r.deleted_at IS NULL ORDER BY r.id
"""


@pytest.fixture
async def deployment(tmp_path, database_url, redis_url):
    async with deployed(tmp_path, database_url, redis_url, GATEWAY_SYNCHRONIZE="false") as running:
        yield running


async def parents_read(deployment):
    """How often the attachments of each task were asked for."""
    requests = await deployment.upstream_requests()
    return Counter(request["query"]["parent"] for request in requests if request["path"] == ATTACHMENTS)


async def until_read(deployment, parents):
    """What was read once the attachments of so many tasks were."""

    async def enough():
        read = await parents_read(deployment)
        return len(read) >= parents and read

    return await eventually(enough)


async def read_until_killed(deployment, parents):
    """How many parents were read when the worker was killed that had come so far; there is another one afterwards."""
    [worker] = deployment.workers
    read = await until_read(deployment, parents)
    await worker.kill()
    await worker.start()
    return len(read)


async def asked_for(connector):
    """The id of a job that synchronizes the attachments, with the tasks and projects that they lie below."""
    accepted = await connector.api.post(f"{connector.path}/context-store/sync", {"entities": ["attachments"]})
    return accepted.json()["job"]["id"]


async def result(connector, job_id):
    async with asyncio.timeout(2 * PATIENCE):
        return (await connector.api.get(f"/api/v1/jobs/{job_id}/result?wait=120")).json()


async def test_a_synchronization_killed_twice_continues_each_time_from_where_it_was(deployment, database_url):
    async with deployment.api() as api, aiohttp.ClientSession(deployment.upstream_url) as control:
        connector = await api.connector("Work-Management", {"token": "token"})
        undisturbed = await api.connector("Work-Management", {"token": "token"})
        await (await control.delete("/_sandbox/requests")).release()

        async with fault(deployment.upstream_url, kind="work-management", path_prefix=ATTACHMENTS, latency_ms=20):
            job_id = await asked_for(connector)
            read_before = [await read_until_killed(deployment, parents) for parents in (100, 300)]
            outcome = await result(connector, job_id)
            job = (await connector.api.get(f"/api/v1/jobs/{job_id}")).json()
            read = await parents_read(deployment)
        await result(undisturbed, await asked_for(undisturbed))

    database = await asyncpg.connect(database_url)
    found = [row["id"] for row in await database.fetch(IDS, connector.record["id"])]
    expected = [row["id"] for row in await database.fetch(IDS, undisturbed.record["id"])]
    await database.close()
    assert outcome["status"] == "success"
    assert job["attempt"] == 3
    assert max(read_before) < 600
    assert found == expected
    assert len(found) == 200
    assert (len(read), sum(read.values())) <= (600, 604)
