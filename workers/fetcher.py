"""What a worker takes on: due jobs in small batches, as far as its slots are free, so that workers share a burst."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from gateway.errors import Unavailable
from gateway.jobs.leases import Leases
from gateway.jobs.model import Job
from gateway.jobs.runner import Runner
from gateway.jobs.wakeup import BATCH

log = logging.getLogger(__name__)

#: of a worker's slots, those that one organization may take; the rest is free for others at once
_SHARE = 0.75


class Intake:
    """Fills the slots of a worker; whoever asks while it is at it is served by its next look."""

    def __init__(self, leases: Leases, runner: Runner, slots: int) -> None:
        self._leases = leases
        self._runner = runner
        self._slots = slots
        self._share = max(1, round(slots * _SHARE))
        self._is_asked = False
        self._is_taking = False
        self._is_open = True
        self._looks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Take nothing more."""
        self._is_open = False

    async def settled(self) -> None:
        """Returns when no look is under way any more, so that all that was taken is known."""
        if self._looks:
            await asyncio.wait(self._looks)

    async def take(self) -> None:
        """Start what is due."""
        self._is_asked = True
        if self._is_taking:
            return
        self._is_taking = True
        await asyncio.wait([self._look(self._take_all())])

    async def take_suspect(self) -> None:
        """Start one job that lost its worker before, unless one is running here."""
        await asyncio.wait([self._look(self._take_suspect())])

    def _look(self, looking: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """A task of its own: a claim that is broken off may have taken a job that nobody knows of."""
        look = asyncio.create_task(looking)
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        return look

    async def _take_all(self) -> None:
        try:
            while self._is_asked and self._is_open:
                self._is_asked = False
                most = min(self._slots - self._runner.held, BATCH)
                if most <= 0:
                    return
                taken = await self._leases.claim(self._runner.worker, most, self._share)
                for job in taken:
                    self._start(job)
                self._is_asked = self._is_asked or len(taken) == most
        except Unavailable:
            log.warning("PostgreSQL is away; trying again")
        finally:
            self._is_taking = False

    async def _take_suspect(self) -> None:
        if not self._is_open or self._runner.has_suspect or self._runner.held >= self._slots:
            return
        try:
            job = await self._leases.claim_suspect(self._runner.worker)
        except Unavailable:
            return
        if job is not None:
            self._start(job)

    def _start(self, job: Job) -> None:
        on_end = self._on_suspect_end if job.is_suspect else self._on_end
        self._runner.start(job, on_end)

    def _on_end(self) -> None:
        """A slot is free: look for the next job."""
        if self._is_open:
            self._look(self.take())

    def _on_suspect_end(self) -> None:
        self._on_end()
        if self._is_open:
            self._look(self._take_suspect())
