"""Which jobs a worker claims when it is woken up."""

import asyncio
from uuid import UUID, uuid4

import msgspec

from gateway.jobs.claims import Claims
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.run_context import JobRunContext
from gateway.run.services import Services
from gateway.upstream.responses import OperationResult
from workers.fetcher import Fetcher, Slots

TASK = "recorded"


class Ran:
    """The jobs that ran."""

    def __init__(self) -> None:
        self.ids: list[UUID] = []

    async def __call__(self, job: StoredJob, run_context: JobRunContext) -> OperationResult:
        self.ids.append(job.id)
        return OperationResult(result=msgspec.Raw(b"null"))


async def claimed(fetcher: Fetcher) -> None:
    """Let the fetcher claim once."""
    fetching = asyncio.create_task(fetcher.fetch())
    await asyncio.sleep(0)
    await fetcher.drained()
    fetching.cancel()
    await asyncio.wait([fetching])


async def test_wake_for_all_claims_background_jobs_before_the_next_poll(services: Services):
    ran = Ran()
    claims = Claims(services.database, services.jobs.sealing, [TASK])
    fetcher = Fetcher(claims, services.jobs.runner, {TASK: ran}, Slots.of(20), dict)
    organization_id = (await services.identity.create_organization(uuid4().hex)).id
    await claimed(fetcher)
    new = NewJob(id=uuid4(), organization_id=organization_id, task=TASK, is_background=True)
    await services.jobs.store.accept(new)

    fetcher.wake_for_all()
    await claimed(fetcher)

    assert new.id in {job.id for job in services.jobs.runner.jobs} | set(ran.ids)
