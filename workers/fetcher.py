"""The fetcher: claims due jobs in small batches while slots are free, so that workers share a burst."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.jobs.claims import Claims, Shares
from gateway.jobs.model import StoredJob
from gateway.jobs.run_context import Work
from gateway.jobs.runner import Runner
from gateway.jobs.wakeup import BATCH

#: seconds between polls; they find jobs whose wake-up was lost
_POLL = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """How a worker divides its concurrent jobs."""

    total: int
    #: for interactive jobs; the few slots beside them keep background jobs going under load
    foreground: int
    background: int
    #: for one organization; the rest stays free for others
    organization: int
    connector: int
    #: for jobs that lost two workers: few at a time, because each may crash this worker too
    poison_candidates: int

    @classmethod
    def of(cls, total: int) -> "Slots":
        half = max(1, total // 2)
        return cls(
            total=total,
            foreground=total - total // 20,
            background=half,
            organization=max(1, round(total * 0.75)),
            connector=half,
            poison_candidates=min(10, total),
        )


class Fetcher:
    """Fills the slots of a worker; `work` has the function of each task, by its name."""

    def __init__(
        self,
        claims: Claims,
        runner: Runner,
        work: Mapping[str, Work],
        slots: Slots,
        concurrency: Callable[[], Mapping[str, int]],
    ) -> None:
        self._claims = claims
        self._runner = runner
        self._work = work
        self._slots = slots
        #: concurrent jobs of one connector by kind; kinds may be imported while the worker runs
        self._concurrency = concurrency
        self._is_open = True
        self._is_woken = asyncio.Event()
        self._claiming: asyncio.Task[None] | None = None
        #: the loop's time of the next poll, which claims background jobs too
        self._polls_at = 0.0

    def _shares(self) -> Shares:
        return Shares(self._slots.organization, self._slots.connector, self._concurrency())

    def wake(self) -> None:
        """Claim again now: a job may be due or a slot free."""
        self._is_woken.set()

    def wake_for_all(self) -> None:
        """Claim again now, also background jobs and poison candidates."""
        self._polls_at = 0.0
        self.wake()

    def close(self) -> None:
        """Stop claiming."""
        self._is_open = False

    async def drained(self) -> None:
        """Wait for the claim in progress, so that the runner has every claimed job."""
        if self._claiming is not None:
            await asyncio.wait([self._claiming])

    async def fetch(self) -> None:
        """Start due jobs, then wait for `wake` or the next poll; raises Unavailable."""
        self._is_woken.clear()
        # A task of its own: a cancelled claim could leave a job that PostgreSQL has as claimed and no worker runs.
        self._claiming = asyncio.create_task(self._claim_all(), name="claim")
        await asyncio.shield(self._claiming)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL):
                await self._is_woken.wait()

    async def _claim_all(self) -> None:
        await self._claim(is_background=False)
        now = asyncio.get_running_loop().time()
        if now >= self._polls_at:
            self._polls_at = now + _POLL
            await self._claim(is_background=True)
            await self._claim_poison_candidates()

    async def _claim(self, *, is_background: bool) -> None:
        while (limit := min(self._room(is_background=is_background), BATCH)) > 0:
            claimed = await self._claims.claim(self._runner.worker, limit, self._shares(), is_background=is_background)
            self._start(claimed, self.wake)
            if len(claimed) < limit:
                return

    def _room(self, *, is_background: bool) -> int:
        if not self._is_open:
            return 0
        jobs = self._runner.jobs
        running = sum(job.is_background == is_background for job in jobs)
        share = self._slots.background if is_background else self._slots.foreground
        return min(share - running, self._slots.total - len(jobs))

    async def _claim_poison_candidates(self) -> None:
        """Claim a few jobs that lost two workers; a job that lost more is claimed only if no other candidate runs."""
        jobs = self._runner.jobs
        candidates = [job for job in jobs if job.is_poison_candidate]
        room = min(self._slots.poison_candidates - len(candidates), self._slots.total - len(jobs))
        if not self._is_open or room <= 0 or any(job.must_run_alone for job in candidates):
            return
        claimed = await self._claims.claim_poison_candidates(self._runner.worker, room, is_group=True)
        if not candidates and not claimed:
            claimed = await self._claims.claim_poison_candidates(self._runner.worker, 1, is_group=False)
        self._start(claimed, self.wake_for_all)

    def _start(self, claimed: list[StoredJob], on_end: Callable[[], None]) -> None:
        for job in claimed:
            self._runner.start(job, self._work[job.task], on_end)
