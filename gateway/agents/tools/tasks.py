"""Jobs as tasks of the protocol: one to one, so that any front end answers for any of them, after any restart."""

import contextlib
from collections.abc import Mapping
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import invalid_params
from gateway.agents.mcp.results import Result
from gateway.agents.tools import answers
from gateway.agents.tools.calls import Calls
from gateway.contract.jobs import JobStatus
from gateway.errors import InvalidParams, JobNotCancelable, NotFound
from gateway.jobs.model import JobSummary


class JobTasks:
    """The task id is the job's id. While PostgreSQL is unavailable every method raises Unavailable."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, context: Context, task_id: str) -> Result:
        """The job as it is; the task of a job that has ended contains the call's result."""
        return await self.document(context, await self.job(context, task_id))

    async def document(self, context: Context, job: JobSummary) -> Result:
        """A job as its task."""
        task = answers.task_document(job)
        if not job.is_done or job.status is JobStatus.CANCELED:
            return task
        return {**task, "result": {**await self._calls.outcome(context, job), "resultType": "complete"}}

    async def update(self, context: Context, task_id: str, responses: Mapping[str, Any]) -> None:
        """Jobs ask nothing once they run, so the responses are ignored."""
        await self.job(context, task_id)

    async def cancel(self, context: Context, task_id: str) -> None:
        """Request the cancellation of the job; a job that has ended stays as it ended."""
        job = await self.job(context, task_id)
        with contextlib.suppress(JobNotCancelable):
            await self._calls.cancel(context, job)

    async def job(self, context: Context, task_id: str) -> JobSummary:
        """The job of a task; raises RpcError only where there is none, because an agent then starts the work again."""
        try:
            return await self._calls.job(context, task_id)
        except (NotFound, InvalidParams) as error:
            raise invalid_params(f"there is no task {task_id}") from error
