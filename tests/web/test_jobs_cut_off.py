"""Jobs of deleted or disabled connectors and organizations: retries are refused, jobs and streams are ended."""

import asyncio
from uuid import UUID

from tests.harness.caller import ConnectorApi
from tests.harness.in_process import FrontEnd

PATIENCE = 60.0


async def submitted(connector: ConnectorApi) -> str:
    """The path of a job that no worker claims."""
    return f"/api/v1/jobs/{(await connector.submit('tickets', 'list', {}))['id']}"


async def test_a_job_of_a_deleted_connector_cannot_be_retried(support_desk: ConnectorApi):
    api = support_desk.api
    path = await submitted(support_desk)
    canceled = await api.post(f"{path}/cancel")
    retried = await api.post(f"{path}/retry")
    await api.call("DELETE", support_desk.path)

    refused = await api.post(f"{path}/retry")

    assert (canceled.status, retried.status) == (202, 202)
    assert (refused.status, refused.json()["code"]) == (404, "not_found")


async def test_a_job_of_a_disabled_connector_cannot_be_retried(support_desk: ConnectorApi):
    api = support_desk.api
    path = await submitted(support_desk)
    await api.post(f"{path}/cancel")
    await api.call("PATCH", support_desk.path, json={"status": "disabled"})

    refused = await api.post(f"{path}/retry")

    assert (refused.status, refused.json()["code"]) == (409, "connector_not_ready")


async def test_a_disabled_organizations_jobs_are_canceled_and_its_streams_end(
    front: FrontEnd, support_desk: ConnectorApi
):
    api = support_desk.api
    path = await submitted(support_desk)
    job_id = UUID(path.rpartition("/")[2])
    async with front.services.database.system() as connection:
        organization_id = await connection.fetchval("SELECT organization_id FROM jobs WHERE id = $1", job_id)
    async with api.session.get(f"{path}/events", headers=api.headers) as stream:
        await stream.content.readuntil(b"event: status\n")
        waiting = asyncio.create_task(api.get(f"{path}?wait=60"))

        await front.services.identity.disable_organization(organization_id)
        async with asyncio.timeout(PATIENCE):
            rest, waited = await stream.content.read(), await waiting

    async with front.services.database.system() as connection:
        is_canceled = await connection.fetchval("SELECT cancel_requested FROM jobs WHERE id = $1", job_id)
    assert b"event: done" not in rest
    assert waited.status in (403, 404)
    assert is_canceled
