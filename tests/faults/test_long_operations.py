"""Workers that are killed while an application runs what they started: it is followed, read once, and done once."""

import pytest

from tests.harness.deployment import deployed
from tests.harness.sandbox import fault
from tests.harness.waiting import eventually

JOBS = "/services/data/v59.0/jobs"
CONNECTOR = {
    "credentials": {"access_token": "t", "refresh_token": "r"},
    "environment": {"instance_url": "https://acme.my.salesforce.com"},
}
QUERY = {"query": "SELECT Id, Name FROM Account"}
#: pages of the query's results that the application has
PAGES = 118


@pytest.fixture
async def deployment(tmp_path, database_url, redis_url):
    async with deployed(tmp_path, database_url, redis_url, GATEWAY_SYNCHRONIZE="false") as running:
        yield running


async def seen(deployment, method, end):
    """The requests that the application has received of a method, with a path that ends so."""
    received = await deployment.upstream_requests()
    return [each for each in received if each["method"] == method and each["path"].endswith(end)]


async def killed_after(deployment, method, end, count):
    """The worker is killed once the application has received so many requests; there is another one afterwards."""

    async def enough():
        return len(await seen(deployment, method, end)) >= count

    await eventually(enough)
    [worker] = deployment.workers
    await worker.kill()
    await worker.start()


async def test_a_bulk_query_killed_while_it_runs_and_while_it_is_read_holds_every_record_once(deployment):
    async with deployment.api() as api:
        crm = await api.connector("crm-query", **CONNECTOR)
        async with fault(deployment.upstream_url, kind="crm-query", path_prefix=f"{JOBS}/query", latency_ms=60):
            job = await crm.submit("bulk_queries", "run", QUERY)
            await killed_after(deployment, "POST", "/jobs/query", 1)
            for pages in (10, 25):
                await killed_after(deployment, "GET", "/results", pages)
            job = await api.ended_job(job)
        records = (await api.get(f"/api/v1/jobs/{job['id']}/result")).json()["result"]
        lines = await api.get(f"/api/v1/jobs/{job['id']}/result", headers={"Accept": "application/x-ndjson"})
        reads = len(await seen(deployment, "GET", "/results"))
        chosen = await crm.execute("bulk_queries", "run", QUERY, select_fields=["Id"])

    assert (job["status"], job["attempt"]) == ("succeeded", 4)
    assert PAGES <= reads <= PAGES + 3
    assert len({record["Id"] for record in records}) == len(records) == len(lines.body.splitlines())
    assert chosen["result"] == [{"Id": record["Id"]} for record in records]


async def test_a_bulk_write_killed_when_it_was_closed_is_followed_and_written_once(deployment):
    records = [{"Name": f"Killed {number}"} for number in range(50)]
    async with deployment.api() as api:
        crm = await api.connector("crm-query", **CONNECTOR)
        job = await crm.submit("bulk_writes", "run", {"object": "Account", "operation": "insert", "records": records})
        await eventually(lambda: seen(deployment, "PATCH", ""))
        await killed_after(deployment, "GET", "", 1)
        job = await api.ended_job(job)
        result = (await api.get(f"/api/v1/jobs/{job['id']}/result")).json()["result"]
        found = await crm.execute(
            "bulk_queries", "run", {"query": "SELECT Name FROM Account WHERE Name LIKE 'Killed %'"}
        )

    assert (job["status"], job["message"]) == ("succeeded", "50 of 50 records written")
    assert len({each["id"] for each in result["results"]}) == 50
    assert sorted(record["Name"] for record in found["result"]) == sorted(record["Name"] for record in records)
