"""Deleting connectors and workspaces with everything that belonged to them."""

import contextlib
from uuid import UUID

import msgspec

from gateway.connectors.responses import Answer
from gateway.context_store import records
from gateway.errors import NotFound
from gateway.jobs.model import Job
from gateway.jobs.run_context import JobJournal
from gateway.jobs.runner import Task
from gateway.services import Services

_DELETED = Answer(msgspec.Raw(b'{"deleted":true}'))


def tasks(services: Services) -> dict[str, Task]:
    """The tasks by the name that jobs carry."""

    async def delete_connector(job: Job, journal: JobJournal) -> Answer:
        assert job.connector_id is not None
        await _delete(services, job.organization_id, job.connector_id)
        return _DELETED

    async def delete_workspace(job: Job, journal: JobJournal) -> Answer:
        workspace_id = UUID(job.params["workspace_id"])
        doomed = await services.connector_store.deleted_of(job.organization_id, workspace_id)
        for done, connector_id in enumerate(doomed):
            await journal.progress(done, len(doomed), f"{done} of {len(doomed)} connectors deleted")
            await _delete(services, job.organization_id, connector_id)
        await services.identity.delete_workspace(job.organization_id, workspace_id)
        return _DELETED

    return {"delete_connector": delete_connector, "delete_workspace": delete_workspace}


async def _delete(services: Services, organization_id: UUID, connector_id: UUID) -> None:
    """Idempotent: a job that lost its worker half-way does it again."""
    with contextlib.suppress(NotFound):
        await services.oauth.grants.revoke(await services.connector_store.get_deleted(organization_id, connector_id))
    async with services.database.tenant(organization_id) as connection:
        await records.remove(connection, connector_id)
    await services.connector_store.delete(organization_id, connector_id)
