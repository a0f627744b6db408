"""Jobs as tasks of the protocol: one to one, so that any front end answers for any of them, after any restart."""

from collections.abc import Mapping
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import RpcError, invalid_params
from gateway.agents.mcp.results import Result
from gateway.agents.tools import answers
from gateway.agents.tools.calls import Calls
from gateway.errors import GatewayError, JobNotCancelable
from gateway.jobs.model import JobStatus, JobSummary


class JobTasks:
    """The task id is the job's id."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, context: Context, task_id: str) -> Result:
        """The job as it is; one that has ended with what the call would have answered."""
        return await self.document(context, await self.job(context, task_id))

    async def document(self, context: Context, job: JobSummary) -> Result:
        """A job as its task."""
        task = answers.task_document(job)
        if not job.is_done or job.status is JobStatus.CANCELED:
            return task
        return {**task, "result": {**await self._calls.outcome(context, job), "resultType": "complete"}}

    async def update(self, context: Context, task_id: str, responses: Mapping[str, Any]) -> None:
        """Jobs ask nothing once they run, so answers to them are unasked for and ignored."""
        await self.job(context, task_id)

    async def cancel(self, context: Context, task_id: str) -> None:
        """Ask for its end; what has ended stays as it ended."""
        job = await self.job(context, task_id)
        try:
            await self._calls.cancel(context, job)
        except JobNotCancelable:
            return
        except GatewayError as error:
            raise invalid_params(error.detail) from error

    async def job(self, context: Context, task_id: str) -> JobSummary:
        """The job that a task stands for; raises RpcError."""
        try:
            return await self._calls.job(context, task_id)
        except GatewayError as error:
            raise RpcError(-32602, f"there is no task {task_id}") from error
