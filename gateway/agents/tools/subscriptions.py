"""Notifications of tasks, for clients that subscribe instead of polling."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import missing_capability, notification
from gateway.agents.tools.calls import Calls
from gateway.agents.tools.tasks import JobTasks
from gateway.errors import Unavailable
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.mcp import TASKS
from gateway.jobs.model import JobSummary

#: maximum tasks that one stream follows
_MAX = 50
#: seconds after which a job is read even without a notification
_POLL_INTERVAL = 30.0


class TaskSubscriptions:
    """Serves `taskIds` of a `subscriptions/listen` request. The gateway's lists do not change while a server runs."""

    capabilities: Mapping[str, Mapping[str, Any]] = {}

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._tasks = JobTasks(calls)

    def honored(self, context: Context, subscription_filter: Mapping[str, Any]) -> dict[str, Any]:
        """The part of the filter that is served: at most `_MAX` tasks."""
        if "taskIds" not in subscription_filter:
            return {}
        if not context.message.has_tasks:
            raise missing_capability({"extensions": {TASKS: {}}})
        return {"taskIds": list(subscription_filter["taskIds"])[:_MAX]}

    async def notifications(self, context: Context, honored: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """A notification for each change of a task, until all tasks have ended.

        The stream waits while PostgreSQL is unavailable. Raises RpcError for a task that does not exist, and
        Unavailable when the process stops: a client without a result subscribes again.
        """
        updates: asyncio.Queue[dict[str, Any] | asyncio.Task[None]] = asyncio.Queue()
        followers = [
            asyncio.create_task(self._follow(context, task_id, updates)) for task_id in honored.get("taskIds", ())
        ]
        for follower in followers:
            follower.add_done_callback(updates.put_nowait)
        following = len(followers)
        try:
            while following:
                update = await updates.get()
                if isinstance(update, asyncio.Task):
                    update.result()
                    following -= 1
                else:
                    yield notification("notifications/tasks", update)
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*followers, return_exceptions=True)

    async def _follow(
        self, context: Context, task_id: str, updates: "asyncio.Queue[dict[str, Any] | asyncio.Task[None]]"
    ) -> None:
        job = await retry_until_available(lambda: self._tasks.job(context, task_id))
        while True:
            await updates.put(await retry_until_available(partial(self._tasks.document, context, job)))
            if job.is_done:
                return
            job = await self._changed(context, job)

    async def _changed(self, context: Context, job: JobSummary) -> JobSummary:
        """The job as soon as it has a new version or has ended; raises Unavailable if the process stops before."""
        version = job.version
        while job.version == version and not job.is_done:
            if self._calls.is_stopping:
                raise Unavailable("this front end is stopping; subscribe again", retry_after=1)
            job = await self._calls.changed(context, job, _POLL_INTERVAL)
        return job
