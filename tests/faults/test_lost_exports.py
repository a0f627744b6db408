"""Workers that are killed in the middle of an export: the file is exact, and at most one page is read again."""

import json

import pytest

from tests.faults.exports import export_storm
from tests.harness.deployment import deployed
from tests.harness.sandbox import fault
from tests.harness.waiting import eventually

TICKETS = "/api/v2/tickets.json"
LIST = {"entity": "tickets", "action": "list", "params": {"per_page": 10}, "output": {"file": "ndjson"}}


@pytest.fixture
async def deployment(tmp_path, database_url, redis_url):
    async with deployed(tmp_path, database_url, redis_url, GATEWAY_SYNCHRONIZE="false") as running:
        yield running


async def pages_read(deployment):
    return [each["query"].get("page", "1") for each in await deployment.upstream_requests() if each["path"] == TICKETS]


async def submitted(connector):
    return (await connector.api.post(f"{connector.path}/execute", LIST)).document(202)["job"]


async def killed_after(deployment, pages):
    """The worker is killed once so many pages were read; there is another one afterwards."""

    async def enough():
        return len(await pages_read(deployment)) >= pages

    await eventually(enough)
    [worker] = deployment.workers
    await worker.kill()
    await worker.start()


async def test_an_export_killed_three_times_holds_every_record_once(deployment):
    async with deployment.api() as api:
        connector = await api.connector()
        tickets, params = [], {"per_page": 100}
        while params is not None:
            page = await connector.execute("tickets", "list", params)
            tickets, params = tickets + page["result"], page["next"]
        started = len(await pages_read(deployment))
        await connector.api.ended_job(await submitted(connector))
        before = len(await pages_read(deployment))

        async with fault(deployment.upstream_url, kind="support-desk", path_prefix=TICKETS, latency_ms=60):
            job = await submitted(connector)
            for pages in (8, 20, 35):
                await killed_after(deployment, before + pages)
            job = await api.ended_job(job)
        file = await api.get(f"/api/v1/jobs/{job['id']}/result")
        read_again = len(await pages_read(deployment)) - before - (before - started)

    assert (job["status"], job["attempt"]) == ("succeeded", 4)
    assert [json.loads(line)["id"] for line in file.body.splitlines()] == [ticket["id"] for ticket in tickets]
    assert read_again <= 3


async def test_a_storm_over_exports_leaves_exact_files_only():
    report = await export_storm(exports=3, records=200, faults=2)

    assert report.is_clean, report.table()
    assert report.ended["exports"] == {"succeeded": 4}
