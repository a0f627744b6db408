"""The jobs that a caller may see: those of its organization, of its workspaces if it is limited to some, and of its
person's own connectors.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from gateway.access.audit.activity import Cause
from gateway.access.identity.model import Caller, Client
from gateway.access.identity.standing import Standing
from gateway.access.identity.store import IdentityStore
from gateway.access.identity.tokens import hashed
from gateway.contract.jobs import JobStatus
from gateway.errors import NotFound
from gateway.jobs import results
from gateway.jobs.model import MAX_COUNTED, EndedJobs, JobChange, JobFilter, JobStep, JobSummary
from gateway.jobs.store import FoundJobs, JobStore
from gateway.jobs.waiters import JobWaiters


@dataclass(frozen=True)
class JobResult:
    """A stored result: the document around the records, and the records as JSON lines, one part at a time."""

    head: Mapping[str, Any]
    lines: AsyncIterator[str]
    #: whether the job ended early, so that the result contains only what was done until then
    is_partial: bool


class JobAccess:
    """Look-ups of jobs; raises NotFound for jobs that the caller may not see, as for those that do not exist, and after
    a wait Unauthorized if the caller's token was revoked meanwhile.
    """

    def __init__(self, store: JobStore, waiters: JobWaiters, identity: IdentityStore, standing: Standing) -> None:
        self._store = store
        self._waiters = waiters
        self._identity = identity
        self._standing = standing

    async def get(self, caller: Caller, job_id: UUID) -> JobSummary:
        """The job as it is now."""
        return _seen(caller, await self._store.get(caller.organization_id, job_id))

    async def changed(self, caller: Caller, job_id: UUID, version: int | None, seconds: float) -> JobSummary:
        """The job as soon as it is past that version or done, or as it is after `seconds`."""
        return await self._waited(caller, job_id, seconds, partial(self._waiters.changed, version=version))

    async def done(self, caller: Caller, job_id: UUID, seconds: float) -> JobSummary:
        """The job as soon as it is done, or as it is after `seconds`."""
        return await self._waited(caller, job_id, seconds, self._waiters.done)

    async def _waited(
        self, caller: Caller, job_id: UUID, seconds: float, wait: Callable[..., Awaitable[JobSummary]]
    ) -> JobSummary:
        if not seconds:
            return await self.get(caller, job_id)
        await self.get(caller, job_id)  # NotFound before the wait, whose length would reveal that the job exists
        async with self._standing.held(caller.client):
            job = await wait(caller.organization_id, job_id, seconds=seconds)
        await self._standing.require(caller.client)
        return job

    async def latest(self, caller: Caller, filter_: JobFilter, limit: int) -> Sequence[JobSummary]:
        """The newest jobs that match, as many as a page has."""
        return (await self.page(caller, filter_, None, limit)).jobs

    async def page(
        self, caller: Caller, filter_: JobFilter, before: tuple[datetime, UUID] | None, limit: int
    ) -> FoundJobs:
        """Jobs that match, newest first: a page may have fewer than `limit`, even if more follow."""
        return await self._store.page(caller.organization_id, _narrowed(caller, filter_), before, limit)

    async def counts(self, caller: Caller, filter_: JobFilter) -> Mapping[JobStatus, int]:
        """The number of jobs of each status that match but for their status; at most `MAX_COUNTED` of each."""
        return await self._store.counts(caller.organization_id, _narrowed(caller, filter_), MAX_COUNTED)

    async def causes(self, caller: Caller, since: datetime, limit: int) -> Sequence[Cause]:
        """Why jobs that were created since then failed or are unknown, the most frequent cause first."""
        filter_ = _narrowed(caller, JobFilter(created_after=since))
        return await self._store.causes(caller.organization_id, filter_, MAX_COUNTED, limit)

    async def ended(self, caller: Caller, since: datetime) -> EndedJobs:
        """The jobs created since then that failed or are unknown."""
        return await self._store.ended(caller.organization_id, caller.client.workspaces, since, MAX_COUNTED)

    async def events(self, job: JobSummary, after: int) -> Sequence[JobChange]:
        """The changes of a job after that number, oldest first."""
        return await self._store.events(job, after)

    async def steps(self, job: JobSummary, limit: int) -> Sequence[JobStep]:
        """The latest changes of a job's state, oldest first."""
        return await self._store.steps(job, limit)

    async def result(self, job: JobSummary, base_url: str) -> JobResult:
        """The result of a job that is done; raises the error that the job ended with, and ResultExpired."""
        stored = await self._store.head(job)
        unfinished = results.partial_result(job, stored)
        head = results.completed(unfinished or results.require_result(job, stored), job, base_url)
        parts = results.stored_parts(job, head) if unfinished is None else job.parts
        return JobResult(head, self._store.lines(job, parts), unfinished is not None)

    async def params(self, job: JobSummary) -> Mapping[str, Any]:
        """The params that the job was accepted with."""
        return (await self._store.get_stored(job.organization_id, job.id)).params

    async def follower(self, job_id: UUID, token: str, seconds: int) -> tuple[Client, UUID] | None:
        """The client and organization that the job was accepted for under this token less than `seconds` ago."""
        promised = await self._store.follower(job_id, hashed(token), seconds)
        stored = await self._identity.client(promised[0]) if promised else None
        if promised is None or stored is None or stored.client.disabled_at is not None:
            return None
        return stored.client, promised[1]


def _narrowed(caller: Caller, filter_: JobFilter) -> JobFilter:
    """The filter for the jobs that the caller may see."""
    return replace(
        filter_,
        workspaces=caller.client.workspaces,
        person_id=caller.person_id,
        session_id=None if caller.session is None else caller.session.id,
    )


def _seen(caller: Caller, job: JobSummary) -> JobSummary:
    is_of_session = caller.session is None or (job.session is not None and job.session.id == caller.session.id)
    if not (caller.sees(job.workspace_name) and caller.owns(job.owner_id) and is_of_session):
        raise NotFound("there is no such job")
    return job
