"""The leases that this process holds: kept alive by heartbeats, cancelled when callers ask, drained at the end.

Workers run jobs from the queue with it, front ends those that they accepted for a caller who waits.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from gateway.aio.loops import every, running
from gateway.errors import Unavailable
from gateway.jobs.lease import JobRunContext, Lease, Work
from gateway.jobs.leases import LeaseKey, Leases
from gateway.jobs.model import StoredJob
from gateway.upstream.responses import OperationResult

#: seconds between heartbeats; a third of the lease
HEARTBEAT = 3.0


class Runner:
    """The jobs that this process runs; `heartbeat` is the seconds between heartbeats."""

    def __init__(self, leases: Leases, worker: str, *, heartbeat: float = HEARTBEAT) -> None:
        self._leases = leases
        self.worker = worker
        self._heartbeat = heartbeat
        self._held: dict[LeaseKey, Lease] = {}

    @property
    def jobs(self) -> list[StoredJob]:
        return [lease.job for lease in self._held.values()]

    @asynccontextmanager
    async def renewing_leases(self) -> AsyncIterator["Runner"]:
        """Heartbeats go out for as long as the block lasts."""
        async with running(every(self._heartbeat, self.beat, name="heartbeat")):
            yield self

    def start(self, job: StoredJob, work: Work, on_end: Callable[[], None] = lambda: None) -> None:
        """Run a claimed job until it finishes or the process shuts down; then another worker continues it."""
        self._hold(job, work).task.add_done_callback(lambda _: on_end())

    async def run(self, job: StoredJob, work: Work) -> OperationResult:
        """Run a job for the caller who waits: its answer once that is stored; raises the job's error.

        Raises Unavailable when it cannot be stored for now; it will be, as soon as PostgreSQL is back. The job goes on
        when its caller goes away.
        """
        lease = self._hold(job, work)
        ends: list[asyncio.Future[Any]] = [lease.task, lease.database_away]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        outcome = lease.task.result() if lease.task.done() and not lease.task.cancelled() else None
        if isinstance(outcome, OperationResult):
            return outcome
        if outcome is not None:
            raise outcome
        raise Unavailable("the outcome cannot be stored now; send the same request with the same key", retry_after=2)

    def adopt(self, job: StoredJob, reading: "asyncio.Future[OperationResult]") -> None:
        """Take over what is running already: a read that outlasted its caller's timeout."""

        async def read_on(_job: StoredJob, _run_context: JobRunContext) -> OperationResult:
            return await reading

        self._hold(job, read_on)

    def _hold(self, job: StoredJob, work: Work) -> Lease:
        lease = Lease(self._leases, job, work)
        self._held[lease.key] = lease
        lease.task.add_done_callback(lambda _: self._held.pop(lease.key, None))
        return lease

    async def beat(self) -> None:
        """Extend all leases, and apply what became of the jobs meanwhile; raises Unavailable."""
        keys = list(self._held)
        if not keys:
            return
        alive = await self._leases.heartbeat(self.worker, keys)
        for key in keys:
            if alive.get(key) and key in self._held:
                self._held[key].cancel()
        # A lease that was just ended may be missing from the heartbeat's answer: it knows that by itself.
        lost = [key for key in keys if key not in alive and key in self._held and self._held[key].lose()]
        if lost:
            await self._leases.restore(lost)

    def on_notify(self, job_id: str) -> None:
        """A caller wants a job canceled."""
        for lease in self._leases_of(UUID(job_id)):
            lease.cancel()

    def _leases_of(self, job_id: UUID) -> list[Lease]:
        return [lease for (held_id, _), lease in self._held.items() if held_id == job_id]

    async def drain(self, grace: float) -> list[StoredJob]:
        """Let running jobs finish within `grace` seconds; then requeue what was not sent, to be notified of again."""
        for lease in self._held.values():
            lease.run_context.stop()
        if self._held:
            await asyncio.wait([lease.task for lease in self._held.values()], timeout=grace)
        left = list(self._held.values())
        for lease in left:
            lease.task.cancel()
        if left:
            await asyncio.wait([lease.task for lease in left])
        is_needed = await asyncio.gather(*(lease.requeue() for lease in left))
        return [lease.job for lease, is_it in zip(left, is_needed, strict=True) if is_it]
