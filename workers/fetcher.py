"""The fetcher: claims due jobs in small batches as far as slots are free, so that workers share a burst."""

import asyncio
import contextlib
from collections.abc import Mapping

from gateway.jobs.lease import Task
from gateway.jobs.leases import Leases
from gateway.jobs.model import Job
from gateway.jobs.runner import Runner
from gateway.jobs.wakeup import BATCH

#: of a worker's slots, those that one organization may take; the rest is free for others at once
_SHARE = 0.75
#: seconds between looks for jobs that no notification came for: it may be lost, jobs are not
_POLL = 1.0


class Fetcher:
    """Fills the slots of a worker; `tasks` is what it does with a job, by the job's task."""

    def __init__(self, leases: Leases, runner: Runner, tasks: Mapping[str, Task], slots: int) -> None:
        self._leases = leases
        self._runner = runner
        self._tasks = tasks
        self._slots = slots
        self._share = max(1, round(slots * _SHARE))
        self._is_open = True
        self._is_woken = asyncio.Event()
        self._claiming: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There may be something to claim, or a slot for it."""
        self._is_woken.set()

    def close(self) -> None:
        """Claim nothing more."""
        self._is_open = False

    async def drained(self) -> None:
        """Returns when no claim is under way any more, so that all that was claimed is known."""
        if self._claiming is not None:
            await asyncio.wait([self._claiming])

    async def fetch(self) -> None:
        """Start what is due, then wait until woken or for the next poll; raises Unavailable."""
        self._is_woken.clear()
        # A task of its own: a claim that is broken off may have taken a job that nobody knows of.
        self._claiming = asyncio.create_task(self._claim_all(), name="claim")
        await asyncio.shield(self._claiming)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL):
                await self._is_woken.wait()

    async def _claim_all(self) -> None:
        while self._is_open and (free := min(self._slots - self._runner.held, BATCH)) > 0:
            claimed = await self._leases.claim(self._runner.worker, free, self._share)
            for job in claimed:
                self._start(job)
            if len(claimed) < free:
                break
        await self._claim_suspect()

    async def _claim_suspect(self) -> None:
        """Start one job that lost its worker before, unless one is running here."""
        if self._is_open and not self._runner.has_suspect and self._runner.held < self._slots:
            job = await self._leases.claim_suspect(self._runner.worker)
            if job is not None:
                self._start(job)

    def _start(self, job: Job) -> None:
        self._runner.start(job, self._tasks[job.task], self.wake)
