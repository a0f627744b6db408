"""Deleting connectors and workspaces with everything that belonged to them."""

from gateway.jobs.lease import JobRunContext
from gateway.jobs.model import StoredJob
from gateway.services import Services
from gateway.upstream.responses import OperationResult


async def delete_connector(services: Services, job: StoredJob, run_context: JobRunContext) -> OperationResult:
    """One connector, its grant revoked first."""
    return await services.deletion.run_delete_connector(job, run_context)


async def delete_workspace(services: Services, job: StoredJob, run_context: JobRunContext) -> OperationResult:
    """A workspace, after the connectors in it."""
    return await services.deletion.run_delete_workspace(job, run_context)
