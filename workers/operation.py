"""Running an operation that a caller put onto the queue."""

from gateway.connectors.responses import OperationResult
from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import JobJournal
from gateway.services import Services


async def operation(services: Services, job: StoredJob, checkpoint: JobJournal) -> OperationResult:
    """The operation of a connector, as the front end would run it inline."""
    return await services.execution.run_job(job, checkpoint)
