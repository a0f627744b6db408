"""The loops of a worker process."""

import asyncio
from uuid import uuid4

from gateway.contract.jobs import JobStatus
from gateway.foundation.db.pool import Database
from gateway.jobs.model import NewJob
from gateway.jobs.tasks import DELETE_WORKSPACE, TASKS
from gateway.run.services import Services
from gateway.run.work import work_of
from tests.harness.waiting import PATIENCE, eventually
from workers.main import Worker

#: two consents of one client, which ended six and eight days ago
FLOWS = """
    WITH organization AS (
        INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), $1) RETURNING id
    ), client AS (
        INSERT INTO clients (id, name, secret_hashes) VALUES (gen_random_uuid(), 'c', '{}')
        RETURNING id
    ), workspace AS (
        INSERT INTO workspaces (id, organization_id, name) SELECT gen_random_uuid(), id, 'w' FROM organization
        RETURNING id, organization_id
    )
    INSERT INTO oauth_flows (id, organization_id, client_id, workspace_id, kind, redirect_url, state_hash,
                             app_client_id, key_id, wrapped_key, sealed, expires_at)
    SELECT gen_random_uuid(), organization_id, client.id, workspace.id, 'support-desk', 'http://localhost',
           sha256(days::text::bytea), 'app', 'k', '\\x00', '\\x00', now() - make_interval(days => days)
    FROM client, workspace, unnest(array[6, 8]) AS days
"""


async def test_consents_are_pruned_a_week_after_their_end(services: Services, database: Database):
    async with database.system() as connection:
        await connection.execute(FLOWS, uuid4().hex)

    async def left() -> int:
        async with database.system() as connection:
            return await connection.fetchval("SELECT count(*) FROM oauth_flows")

    stopping = asyncio.Event()
    working = asyncio.create_task(Worker(services).until(stopping))

    async def is_pruned() -> bool:
        return await left() == 1

    assert await eventually(is_pruned)
    stopping.set()
    await working


async def test_every_task_has_a_function(services: Services):
    assert work_of(services).keys() == TASKS.keys()


async def test_a_job_of_an_unknown_task_stays_queued_and_does_not_block_others(
    services: Services,
):
    organization_id = (await services.identity.create_organization(uuid4().hex)).id
    newer = await services.jobs.store.accept(
        NewJob(id=uuid4(), organization_id=organization_id, task="of a newer version")
    )
    known = await services.jobs.store.accept(
        NewJob(
            id=uuid4(),
            organization_id=organization_id,
            task=DELETE_WORKSPACE.name,
            params={"workspace_id": str(uuid4())},
        )
    )
    stopping = asyncio.Event()
    working = asyncio.create_task(Worker(services).until(stopping))

    async with asyncio.timeout(PATIENCE):
        while not (done := await services.jobs.waiters.done(organization_id, known.job.id, 5)).is_done:
            pass
    left = await services.jobs.store.get(organization_id, newer.job.id)

    stopping.set()
    await working
    assert done.status is JobStatus.SUCCEEDED
    assert (left.status, left.attempt) == (JobStatus.QUEUED, 0)
