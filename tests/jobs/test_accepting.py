"""Accepting jobs: once for each key, durable when told."""

import asyncio
import time
from dataclasses import replace
from uuid import UUID, uuid4

import msgspec
import pytest

from gateway.contract.jobs import JobStatus
from gateway.errors import IdempotencyMismatch, InternalError, NotFound, Unavailable
from gateway.foundation.db.pool import Database
from gateway.jobs.model import JobFilter
from gateway.jobs.store import IdempotencyKey, JobStore
from tests.harness.postgres_relay import postgres_relay
from tests.jobs.conftest import RETENTION, SHARES, UNSEALED

KEY = IdempotencyKey("k", b"request", 3600)


async def test_an_accepted_job_is_there_as_it_was_given(jobs, new_job):
    new = new_job(params={"a": "\u0000 ü"}, labels={"team": "x"}, workspace_name="w", kind="support-desk")

    accepted = await jobs.accept(new)
    job = await jobs.get_stored(new.organization_id, new.id)

    assert accepted.is_new
    assert accepted.job == job
    assert (job.status, job.attempt, job.version) == (JobStatus.QUEUED, 0, 1)
    assert (job.params, job.labels, job.workspace_name) == ({"a": "\u0000 ü"}, {"team": "x"}, "w")


async def test_params_of_a_job_are_read_as_they_were_given(jobs, new_job):
    params = {"b": {"é": [1, 2**63, -(2**63), 1.0, -0.0, 5e-324, 1.5e300], "a": []}, "text": '東京 🦊 \u2028\0\x1f"\\/'}
    new = new_job(params=params)

    await jobs.accept(new)

    assert repr((await jobs.get_stored(new.organization_id, new.id)).params) == repr(params)


async def test_jobs_accepted_at_once_are_each_their_own(jobs, new_job):
    new = [new_job(params={"number": number}) for number in range(250)]

    accepted = await asyncio.gather(*(jobs.accept(each) for each in new))

    assert [each.job.id for each in accepted] == [each.id for each in new]
    assert [each.job.params["number"] for each in accepted] == list(range(250))


async def test_one_bad_job_among_many_fails_alone(jobs, new_job):
    new = [new_job() for _ in range(20)]
    new[7] = msgspec.structs.replace(new[7], organization_id=uuid4())

    outcomes = await asyncio.gather(*(jobs.accept(each) for each in new), return_exceptions=True)

    assert [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Exception)] == [7]


async def test_a_job_that_was_accepted_before_and_cannot_be_read_fails_alone(database, jobs, new_job, sql):
    new = [new_job() for _ in range(3)]
    for each in new[:2]:
        await jobs.accept(each)
    await sql("UPDATE jobs SET params = 'altered' WHERE id = $1", new[0].id)

    async with database.system() as connection:
        accepted = await jobs.accept_all_within(connection, new)
    outcomes = await asyncio.gather(*(jobs.accept(each) for each in new), return_exceptions=True)

    for found in (accepted, [getattr(each, "job", each) for each in outcomes]):
        assert isinstance(found[0], InternalError)
        assert [each.id for each in found[1:]] == [each.id for each in new[1:]]


async def test_a_key_brings_its_first_job_back(jobs, new_job):
    first = await jobs.accept(new_job(), KEY)
    second = await jobs.accept(new_job(), KEY)

    assert second.job.id == first.job.id
    assert not second.is_new


async def test_a_key_with_another_request_is_a_mismatch(jobs, new_job):
    await jobs.accept(new_job(), KEY)

    with pytest.raises(IdempotencyMismatch):
        await jobs.accept(new_job(), replace(KEY, fingerprint=b"another"))


@pytest.mark.parametrize("member", ["client_id", "connector_id"])
async def test_a_key_counts_for_its_client_and_connector_only(jobs, new_job, member):
    await jobs.accept(new_job(), KEY)

    other = await jobs.accept(new_job(**{member: UUID(int=9)}), KEY)

    assert other.is_new


async def test_a_key_counts_for_its_organization_only(jobs, new_job, another_organization_id):
    await jobs.accept(new_job(), KEY)

    other = await jobs.accept(new_job(organization_id=another_organization_id), KEY)

    assert other.is_new


async def test_of_twenty_first_uses_of_a_key_at_once_one_is_new(jobs, new_job):
    accepted = await asyncio.gather(*(jobs.accept(new_job(), KEY) for _ in range(20)))

    assert sum(each.is_new for each in accepted) == 1
    assert len({each.job.id for each in accepted}) == 1


async def test_a_key_past_its_time_is_free(jobs, new_job, sql):
    first = await jobs.accept(new_job(), KEY)
    await sql("UPDATE idempotency_keys SET expires_at = now() - interval '1 second'")

    second = await jobs.accept(new_job(), KEY)

    assert second.is_new
    assert second.job.id != first.job.id


async def test_a_job_inserted_as_running_is_held_by_the_process_that_accepted_it(jobs, new_job, claims):
    accepted = await jobs.accept(new_job(), claimed_by="me")
    claimed = await claims.claim("another", 1, SHARES)

    assert (accepted.job.status, accepted.job.fence, accepted.job.attempt) == (JobStatus.RUNNING, 1, 1)
    assert claimed == []


async def test_an_inline_call_is_no_job_to_callers(jobs, new_job):
    new = new_job(is_inline=True)
    await jobs.accept(new, KEY, claimed_by="me")

    listed = (await jobs.page(new.organization_id, JobFilter(), None, 10)).jobs

    assert listed == []
    with pytest.raises(NotFound):
        await jobs.get(new.organization_id, new.id)


async def test_another_organizations_job_does_not_exist(jobs, new_job, another_organization_id):
    accepted = await jobs.accept(new_job())

    with pytest.raises(NotFound):
        await jobs.get(another_organization_id, accepted.job.id)


async def test_a_job_whose_acceptance_is_not_confirmed_is_answered_within_two_seconds(database_url, new_job):
    async with postgres_relay(database_url) as relay, Database.open(relay.url, size=1) as cut_off:
        new = new_job()
        async with cut_off.system():
            relay.flows.clear()
        accepting = asyncio.create_task(JobStore(cut_off, RETENTION, UNSEALED).accept(new))
        await relay.holds.wait()
        started = time.monotonic()
        relay.is_open = False
        relay.cut()

        with pytest.raises(Unavailable) as unavailable:
            await accepting

    assert time.monotonic() - started <= 2.2
    assert unavailable.value.extra["known"] == {"job_id": str(new.id)}


async def test_a_job_whose_acceptance_was_cut_off_is_accepted_when_postgres_is_back_at_once(database_url, new_job):
    async with postgres_relay(database_url) as relay, Database.open(relay.url, size=1) as cut_off:
        async with cut_off.system():
            relay.flows.clear()
        accepting = asyncio.create_task(JobStore(cut_off, RETENTION, UNSEALED).accept(new_job()))
        await relay.holds.wait()
        relay.cut()
        relay.flows.set()

        assert (await accepting).is_new
