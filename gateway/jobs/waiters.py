"""Waiting for jobs: every waiter of a process hangs on its one connection for changes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

from gateway.jobs.model import Job
from gateway.jobs.store import JobStore

#: seconds after which a waiter looks for itself, should a notification have been lost
_LOOK = 5.0


class JobWaiters:
    """Tells waiters when their job changed."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._waiters: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._is_over = False
        #: how many wait now
        self.waiting = 0

    def on_notify(self, topic: str, subject: str) -> None:
        if topic == "job":
            for waiter in self._waiters.get(subject, ()):
                waiter.set()

    @property
    def shutting_down(self) -> bool:
        return self._is_over

    def wake_all(self) -> None:
        """Notifications may have been missed: everybody looks."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.set()

    def stop_waiting(self) -> None:
        """The process stops: every waiter gets its job as it is, now."""
        self._is_over = True
        self.wake_all()

    async def changed(self, organization_id: UUID, job_id: UUID, version: int, seconds: float) -> Job:
        """The job as soon as it is past that version or done, or as it is after `seconds`; raises NotFound."""
        return await self._until(organization_id, job_id, seconds, lambda job: job.version > version or job.is_done)

    async def done(self, organization_id: UUID, job_id: UUID, seconds: float) -> Job:
        """The job as soon as it is done, or as it is after `seconds`."""
        return await self._until(organization_id, job_id, seconds, lambda job: job.is_done)

    async def _until(self, organization_id: UUID, job_id: UUID, seconds: float, is_it: Callable[[Job], bool]) -> Job:
        waiter, key = asyncio.Event(), str(job_id)
        self._waiters[key].add(waiter)
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            while True:
                waiter.clear()
                job = await self._store.get(organization_id, job_id)
                left = deadline - asyncio.get_running_loop().time()
                if left <= 0 or self._is_over or is_it(job):
                    return job
                self.waiting += 1
                try:
                    await _set_within(waiter, min(left, _LOOK))
                finally:
                    self.waiting -= 1
        finally:
            self._waiters[key].discard(waiter)
            if not self._waiters[key]:
                del self._waiters[key]


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
