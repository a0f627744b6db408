"""Notifications of tasks, for clients that stay to hear them instead of asking again and again."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.messages import TASKS, missing_capability, notification
from gateway.agents.tools.calls import Calls
from gateway.agents.tools.tasks import JobTasks

#: tasks that one stream tells of at most
_MAX = 50
#: seconds after which a waiter looks for itself
_POLL_INTERVAL = 30.0


class TaskSubscriptions:
    """`taskIds` of a `subscriptions/listen` request; lists of ours do not change while a server runs."""

    capabilities: Mapping[str, Mapping[str, Any]] = {}

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._tasks = JobTasks(calls)

    def honored(self, context: Context, subscription_filter: Mapping[str, Any]) -> dict[str, Any]:
        """The tasks that are told of."""
        if "taskIds" not in subscription_filter:
            return {}
        if not context.message.takes_tasks:
            raise missing_capability({"extensions": {TASKS: {}}})
        return {"taskIds": list(subscription_filter["taskIds"])[:_MAX]}

    async def notifications(self, context: Context, honored: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Each task as it is, whenever it has changed, until all have ended."""
        updates: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        followers = [
            asyncio.create_task(self._follow(context, task_id, updates)) for task_id in honored.get("taskIds", ())
        ]
        try:
            running = len(followers)
            while running:
                task = await updates.get()
                if task is None:
                    running -= 1
                else:
                    yield notification("notifications/tasks", task)
        finally:
            for follower in followers:
                follower.cancel()

    async def _follow(self, context: Context, task_id: str, updates: "asyncio.Queue[dict[str, Any] | None]") -> None:
        try:
            job = await self._tasks.job(context, task_id)
            while True:
                await updates.put(await self._tasks.document(context, job))
                if job.is_done:
                    return
                job = await self._calls.changed(context, job, _POLL_INTERVAL)
        finally:
            updates.put_nowait(None)
