"""Jobs as tasks of the protocol. Each task is a job, so that every front end serves it, also after a restart."""

import contextlib
from collections.abc import Mapping
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import invalid_params
from gateway.agents.mcp.results import Result, url_elicitation
from gateway.agents.tools import answers
from gateway.agents.tools.calls import Calls
from gateway.contract.jobs import JobStatus
from gateway.errors import InvalidParams, JobNotCancelable, NotFound
from gateway.jobs.model import JobSummary

#: the key of the question to a person
_QUESTION = "approval"


class JobTasks:
    """Tasks whose ids are those of their jobs. While PostgreSQL is unavailable, every method raises Unavailable."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, context: Context, task_id: str) -> Result:
        """The current task; it contains the call's result if the job has ended."""
        return await self.document(context, await self.job(context, task_id))

    async def document(self, context: Context, job: JobSummary) -> Result:
        """The task of a job."""
        task = answers.task_document(job)
        if job.asks:
            approval = answers.approval_of(job, context.caller.base_url)["approval"]
            question = url_elicitation(approval["reason"], approval["url"], approval["id"])
            return {**task, "status": "input_required", "inputRequests": {_QUESTION: question}}
        if not job.is_done or job.status is JobStatus.CANCELED:
            return task
        return {**task, "result": {**await self._calls.outcome(context, job), "resultType": "complete"}}

    async def update(self, context: Context, task_id: str, responses: Mapping[str, Any]) -> None:
        """Ignore the responses: a job goes on when its approval is given. Raises RpcError for an unknown task."""
        await self.job(context, task_id)

    async def cancel(self, context: Context, task_id: str) -> None:
        """Request the cancellation of the job; a job that has ended does not change."""
        job = await self.job(context, task_id)
        with contextlib.suppress(JobNotCancelable):
            await self._calls.cancel(context, job)

    async def job(self, context: Context, task_id: str) -> JobSummary:
        """The job of a task; raises RpcError only if it does not exist, because an agent then starts the work again."""
        try:
            return await self._calls.job(context, task_id)
        except (NotFound, InvalidParams) as error:
            raise invalid_params(f"there is no task {task_id}") from error
