"""Params, state and results of jobs at rest: nothing to read for whoever holds the database without the keys."""

import json
from uuid import UUID

import pytest

from gateway.connectors.key_rotation.rotation import Rotation
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.errors import InternalError
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.jobs.claims import Claims
from gateway.jobs.leases import JobOutcome, Leases
from gateway.jobs.maintenance import Maintenance
from gateway.jobs.model import StoredJob
from gateway.jobs.sealing import JobSealing
from gateway.jobs.store import JobStore
from gateway.run.sealed_tables import SEALED_TABLES
from gateway.upstream.run_context import Effects
from tests.jobs.conftest import KEY, RETENTION, SEALING, SHARES, UNSEALED, WORKER

CANARY = "CANARY-of-a-tenant"
NEW = ("k2", bytes(range(32)))
HEAD = {"result": {"note": CANARY}, "collected": "results", "meta": None}
STATE = Effects(known={"items_done": 1}, summary=CANARY).document()


async def done(leases: Leases, job: StoredJob) -> None:
    await leases.checkpoint(job, STATE, {1: json.dumps({"text": CANARY}) + "\n"})
    await leases.store_part(job, 2, json.dumps({"more": CANARY}) + "\n")
    await leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED, result=HEAD, part=3, lines=f'"{CANARY}"\n'))


async def at_rest(sql, job: StoredJob) -> str:
    rows = await sql("SELECT jobs::text FROM jobs WHERE id = $1", job.id)
    rows += await sql("SELECT job_results::text FROM job_results WHERE job_id = $1", job.id)
    return "\n".join(row[0] for row in rows)


async def read(jobs: JobStore, job: StoredJob) -> list[str]:
    return [lines async for lines in jobs.lines(job, 3)]


async def test_a_sealed_job_is_read_as_it_was_and_nothing_of_it_is_in_the_database(jobs, leases, claimed, sql):
    job = await claimed(params={"subject": CANARY})
    await done(leases, job)

    stored = await jobs.get_stored(job.organization_id, job.id)

    assert CANARY not in await at_rest(sql, job)
    assert (job.params, stored.params, stored.state) == ({"subject": CANARY}, {"subject": CANARY}, STATE)
    assert await jobs.head(job) == HEAD
    assert all(CANARY in lines for lines in await read(jobs, job))


async def test_parts_that_were_swapped_do_not_open(jobs, leases, claimed, sql):
    job = await claimed()
    await done(leases, job)

    await sql("UPDATE job_results SET lines = (SELECT lines FROM job_results WHERE job_id = $1 AND part = 1)", job.id)

    with pytest.raises(InternalError):
        await read(jobs, job)


async def test_another_jobs_params_do_not_open(jobs, new_job, sql):
    mine, theirs = [(await jobs.accept(new_job(params={"subject": CANARY}))).job for _ in range(2)]

    await sql("UPDATE jobs SET params = (SELECT params FROM jobs WHERE id = $1)", mine.id)

    with pytest.raises(InternalError):
        await jobs.get_stored(theirs.organization_id, theirs.id)


async def test_with_the_setting_off_new_jobs_are_plain_and_sealed_ones_are_read_all_the_same(
    database: Database, jobs, leases, new_job, sql
):
    sealed = (await jobs.accept(new_job(params={"subject": CANARY}))).job
    off = JobStore(database, RETENTION, UNSEALED)
    plain = (await off.accept(new_job(params={"subject": CANARY}))).job

    assert CANARY in await at_rest(sql, plain)
    assert (await off.get_stored(sealed.organization_id, sealed.id)).params == {"subject": CANARY}
    assert (await jobs.get_stored(plain.organization_id, plain.id)).params == {"subject": CANARY}


async def test_after_a_rotation_the_old_key_opens_nothing_that_the_new_one_does_not(
    database: Database, jobs, leases, claimed
):
    job = await claimed(params={"subject": CANARY})
    await done(leases, job)

    rotation = Rotation(database, Vault([NEW, KEY]), SEALED_TABLES)
    rows = [each async for each in rotation.run()]
    renewed = JobStore(database, RETENTION, JobSealing(Vault([NEW])))
    stored = await renewed.get_stored(job.organization_id, job.id)

    assert (sum(rows), rotation.failures) == (1, [])
    assert stored.params == {"subject": CANARY}
    assert all(CANARY in lines for lines in await read(renewed, stored))


async def test_a_claim_opens_what_another_process_sealed(database: Database, jobs, new_job, organization_id: UUID):
    await jobs.accept(new_job(params={"subject": CANARY}))
    elsewhere = Claims(database, JobSealing(Vault([KEY])))

    [job] = await elsewhere.claim("elsewhere", 1, SHARES)

    assert job.params == {"subject": CANARY}


@pytest.mark.parametrize(
    ("effect", "is_sent", "status"),
    [
        (Effect.READ, False, JobStatus.FAILED),
        (Effect.WRITE, False, JobStatus.FAILED),
        (Effect.WRITE, True, JobStatus.UNKNOWN),
        (Effect.IDEMPOTENT, True, JobStatus.UNKNOWN),
    ],
)
async def test_a_job_that_no_worker_can_decrypt_ends_with_that_and_holds_up_no_other(
    database: Database, jobs, leases, claims, new_job, sql, lost, effect, is_sent, status
):
    odd, other = [(await jobs.accept(new_job(effect=effect))).job for _ in range(2)]
    [first, _] = sorted(await claims.claim(WORKER, 2, SHARES), key=lambda job: job.id != odd.id)
    if is_sent:
        await leases.mark_in_flight(first)
    await leases.requeue(first)
    await sql("UPDATE jobs SET params = 'sealed:AAAA', worker_losses = 5 WHERE id = $1", odd.id)

    claimed = [*await claims.claim(WORKER, 5, SHARES), *await claims.claim_poison_candidates(WORKER, 5, is_group=False)]
    await lost(odd)
    await Maintenance(database, RETENTION, SEALING, timeout=0).reap()

    ended = await jobs.get(odd.organization_id, odd.id)
    assert claimed == []
    assert (ended.status, ended.error.get("outcome")) == (status, "unknown" if status is JobStatus.UNKNOWN else None)
    assert (await jobs.get(other.organization_id, other.id)).status is JobStatus.RUNNING
