"""Jobs on a real database."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.access.identity.store import IdentityStore
from gateway.contract.kinds import Effect
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.jobs.claims import Claims, Shares
from gateway.jobs.leases import Leases
from gateway.jobs.maintenance import Maintenance
from gateway.jobs.model import NewJob, StoredJob
from gateway.jobs.sealing import JobSealing
from gateway.jobs.store import JobStore

RETENTION = 3600
WORKER = "here"
KEY = ("k1", bytes(32))
SEALING = JobSealing(Vault([KEY]))
UNSEALED = JobSealing(Vault([KEY]), is_on=False)
#: of a worker with a hundred slots, where connectors have no share of their own
SHARES = Shares(organization=75, connector=75)


@pytest.fixture
async def organization_id(database: Database) -> UUID:
    return (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture
async def another_organization_id(database: Database) -> UUID:
    return (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id


@pytest.fixture(autouse=True)
async def no_jobs_left(database: Database):
    yield
    async with database.system() as connection:
        await connection.execute("DELETE FROM jobs")
        await connection.execute("DELETE FROM connector_holds")


@pytest.fixture
def jobs(database: Database) -> JobStore:
    return JobStore(database, RETENTION, SEALING)


@pytest.fixture
def claims(database: Database) -> Claims:
    return Claims(database, SEALING)


@pytest.fixture
def leases(database: Database) -> Leases:
    return Leases(database, RETENTION, SEALING)


@pytest.fixture
def maintenance(database: Database) -> Maintenance:
    return Maintenance(database, RETENTION, SEALING, timeout=0)


@pytest.fixture
def new_job(organization_id: UUID) -> Callable[..., NewJob]:
    """A job to be accepted; a write unless told otherwise."""

    def new(**members: Any) -> NewJob:
        usual = {
            "id": uuid4(), "organization_id": organization_id, "client_id": UUID(int=1), "connector_id": UUID(int=2),
            "entity": "tickets", "action": "create", "effect": Effect.WRITE, "request_id": "r-1", "find_by": "a list",
        }  # fmt: skip
        return NewJob(**{**usual, **members})

    return new


@pytest.fixture
def claimed(jobs: JobStore, claims: Claims, new_job: Callable[..., NewJob]) -> Callable[..., Any]:
    """`await claimed()`: a job that this worker runs."""

    async def claim(**members: Any) -> StoredJob:
        await jobs.accept(new_job(**members))
        return (await claims.claim(WORKER, 1, SHARES))[0]

    return claim


@pytest.fixture
def lost(sql: Callable[..., Any], database_url: str) -> Callable[..., Any]:
    """`await lost(job)`: its worker has given no sign of life for too long."""

    async def lose(job: StoredJob) -> None:
        await sql("UPDATE jobs SET lease_until = now() - interval '1 second' WHERE id = $1", job.id)

    return lose
