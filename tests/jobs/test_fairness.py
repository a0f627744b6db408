"""Which job is next: a flood of one organization's does not hold up another's."""

from uuid import uuid4

from tests.jobs.conftest import WORKER

FLOOD = """
    INSERT INTO jobs (id, organization_id, created_at)
    SELECT gen_random_uuid(), $1, now() - interval '1 hour' + number * interval '1 ms'
    FROM generate_series(1, $2::integer) AS number
"""


async def test_ten_thousand_jobs_of_one_organization_do_not_hold_up_anothers_one(
    jobs, leases, new_job, sql, organization_id, another_organization_id
):
    await sql(FLOOD, organization_id, 10_000)
    for number in range(15):
        await leases.claim(f"worker-{number}", 20, 75)
    single = await jobs.accept(new_job(organization_id=another_organization_id))

    claimed = await leases.claim(WORKER, 1, 75)

    assert [job.id for job in claimed] == [single.job.id]


async def test_no_organization_takes_a_whole_worker(leases, sql, organization_id):
    await sql(FLOOD, organization_id, 200)

    taken = [len(await leases.claim(WORKER, 20, 75)) for _ in range(5)]
    elsewhere = await leases.claim("another", 20, 75)

    assert taken == [20, 20, 20, 15, 0]
    assert len(elsewhere) == 20


async def test_organizations_get_turns(leases, sql, organization_id, another_organization_id):
    await sql(FLOOD, organization_id, 100)
    await sql(FLOOD, another_organization_id, 100)

    claimed = await leases.claim(WORKER, 20, 75)
    of_each = {
        each: sum(job.organization_id == each for job in claimed) for each in (organization_id, another_organization_id)
    }

    assert of_each == {organization_id: 10, another_organization_id: 10}


async def test_an_organizations_oldest_job_is_first(jobs, leases, new_job):
    accepted = [(await jobs.accept(new_job())).job.id for _ in range(3)]

    claimed = [job.id for _ in range(3) for job in await leases.claim(WORKER, 1, 75)]

    assert claimed == accepted


async def test_with_more_organizations_than_a_claim_looks_at_all_get_their_turn(leases, sql):
    await sql(
        """
        WITH made AS (
            INSERT INTO organizations (id, name) SELECT gen_random_uuid(), 'many-' || number || $1
            FROM generate_series(1, 120) AS number RETURNING id
        )
        INSERT INTO jobs (id, organization_id) SELECT gen_random_uuid(), id FROM made
        """,
        uuid4().hex,
    )

    claimed = [job for _ in range(12) for job in await leases.claim(WORKER, 20, 75)]

    assert len({job.organization_id for job in claimed}) == 120
