"""Waiting for jobs: all waiters of a process share its one connection for notifications."""

import asyncio
import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from math import inf
from uuid import UUID

from gateway.foundation.aio.single_flight import SingleFlight
from gateway.foundation.aio.waiting import Waits
from gateway.jobs.model import JobSummary
from gateway.jobs.store import JobStore

#: seconds after which a waiter polls, in case a notification was lost
_POLL_INTERVAL = 5.0


@dataclass(eq=False, slots=True)
class _Waiter:
    #: the version that the caller has seen: None until the first read, infinite if it waits only for the end
    version: float | None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    #: the newest version that it was woken for: infinite if a notification may have been missed
    newest: float = 0


class JobWaiters:
    """Wakes waiters when their job has changed; the waiters of one job share its read."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        #: by organization, job and version: a read that began before the change is not shared
        self._reading: SingleFlight[tuple[UUID, UUID, float], JobSummary] = SingleFlight(
            lambda key: store.get(key[0], key[1])
        )
        self._waiters: defaultdict[str, set[_Waiter]] = defaultdict(set)
        self.is_shutting_down = False
        self.waits = Waits()

    def on_notify(self, change: str) -> None:
        """Handle a notification of the trigger on jobs: `id:version:is_final`."""
        job_id, number, is_final = change.split(":")
        version = int(number)
        for waiter in self._waiters.get(job_id, ()):
            if is_final == "true" or waiter.version is None or version > waiter.version:
                waiter.newest = max(waiter.newest, version)
                waiter.woken.set()

    def wake_all(self) -> None:
        """Make every waiter read its job, because notifications may have been missed."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.newest = inf
                waiter.woken.set()

    def stop_waiting(self) -> None:
        """Return the current job to every waiter, because the process shuts down."""
        self.is_shutting_down = True
        self.wake_all()

    async def changed(self, organization_id: UUID, job_id: UUID, version: int | None, seconds: float) -> JobSummary:
        """The job as soon as it is newer than `version` or done, or as it is after `seconds`; raises NotFound.

        Without a version: as soon as it is newer than now.
        """
        return await self._until((organization_id, job_id), _Waiter(version), seconds)

    async def done(self, organization_id: UUID, job_id: UUID, seconds: float) -> JobSummary:
        """The job as soon as it is done, or as it is after `seconds`."""
        return await self._until((organization_id, job_id), _Waiter(inf), seconds)

    async def _until(self, key: tuple[UUID, UUID], waiter: _Waiter, seconds: float) -> JobSummary:
        waiters = self._waiters[str(key[1])]
        waiters.add(waiter)
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            job = await self._store.get(*key)
            seen = waiter.version = job.version if waiter.version is None else waiter.version
            while not (job.is_done or job.version > seen or self.is_shutting_down):
                left = deadline - asyncio.get_running_loop().time()
                if left <= 0:
                    break
                if waiter.newest <= job.version:
                    waiter.woken.clear()  # the job was read after that change
                newest = await self._woken(waiter, min(left, _POLL_INTERVAL))
                job = await self._reading((*key, newest))
            return job
        finally:
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(str(key[1]), None)

    async def _woken(self, waiter: _Waiter, seconds: float) -> float:
        """Wait to be woken, at most `seconds`; returns the version that the waiter was woken for."""
        with self.waits.one(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await waiter.woken.wait()
        newest, waiter.newest = waiter.newest, 0
        waiter.woken.clear()
        return newest
