"""Which job is next: a flood of one organization's or connector's does not hold up another's."""

from uuid import UUID, uuid4

from gateway.jobs.claims import Shares
from tests.jobs.conftest import SHARES, WORKER

FLOOD = """
    INSERT INTO jobs (id, organization_id, created_at)
    SELECT gen_random_uuid(), $1, now() - interval '1 hour' + number * interval '1 ms'
    FROM generate_series(1, $2::integer) AS number
"""
FLOOD_OF_CONNECTOR = """
    INSERT INTO jobs (id, organization_id, connector_id, kind, created_at)
    SELECT gen_random_uuid(), $1, $2, 'support-desk', now() - interval '1 hour' + number * interval '1 ms'
    FROM generate_series(1, $3::integer) AS number
"""
#: one job of each of so many connectors, whose ids begin with 2
ONE_EACH = """
    INSERT INTO jobs (id, organization_id, connector_id)
    SELECT gen_random_uuid(), $1, lpad(to_hex(number), 32, '0')::uuid FROM generate_series(2, $2::integer + 1) AS number
"""


async def test_ten_thousand_jobs_of_one_organization_do_not_hold_up_anothers_one(
    jobs, claims, new_job, sql, organization_id, another_organization_id
):
    await sql(FLOOD, organization_id, 10_000)
    for number in range(15):
        await claims.claim(f"worker-{number}", 20, SHARES)
    single = await jobs.accept(new_job(organization_id=another_organization_id))

    claimed = await claims.claim(WORKER, 1, SHARES)

    assert [job.id for job in claimed] == [single.job.id]


async def test_no_organization_takes_a_whole_worker(claims, sql, organization_id):
    await sql(FLOOD, organization_id, 200)

    taken = [len(await claims.claim(WORKER, 20, SHARES)) for _ in range(5)]
    elsewhere = await claims.claim("another", 20, SHARES)

    assert taken == [20, 20, 20, 15, 0]
    assert len(elsewhere) == 20


async def test_organizations_get_turns(claims, sql, organization_id, another_organization_id):
    await sql(FLOOD, organization_id, 100)
    await sql(FLOOD, another_organization_id, 100)

    claimed = await claims.claim(WORKER, 20, SHARES)
    of_each = {
        each: sum(job.organization_id == each for job in claimed) for each in (organization_id, another_organization_id)
    }

    assert of_each == {organization_id: 10, another_organization_id: 10}


async def test_an_organizations_oldest_job_is_first(jobs, claims, new_job):
    accepted = [(await jobs.accept(new_job())).job.id for _ in range(3)]

    claimed = [job.id for _ in range(3) for job in await claims.claim(WORKER, 1, SHARES)]

    assert claimed == accepted


async def test_with_more_organizations_than_a_claim_looks_at_all_get_their_turn(claims, sql):
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

    claimed = [job for _ in range(12) for job in await claims.claim(WORKER, 20, SHARES)]

    assert len({job.organization_id for job in claimed}) == 120


def connector(number: int) -> UUID:
    return UUID(int=number)


async def test_ten_thousand_jobs_of_one_connector_do_not_hold_up_those_of_others(claims, sql, organization_id):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 10_000)
    await sql(ONE_EACH, organization_id, 15)

    claimed = await claims.claim(WORKER, 20, SHARES)
    of_others = sum(job.connector_id != connector(1) for job in claimed)

    assert of_others == 15


async def test_no_connector_takes_a_whole_worker(claims, sql, organization_id):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 200)

    taken = [len(await claims.claim(WORKER, 20, Shares(75, 50))) for _ in range(4)]

    assert taken == [20, 20, 10, 0]


async def test_no_more_jobs_of_a_connector_run_than_its_application_takes_at_a_time(claims, sql, organization_id):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 50)
    shares = Shares(75, 50, {"support-desk": 7})

    taken = [len(await claims.claim(worker, 5, shares)) for worker in ("one", "another", "a third")]

    assert taken == [5, 2, 0]


async def test_a_connector_whose_rate_scope_is_used_up_is_left_in_its_queue(
    claims, leases, sql, organization_id, claimed
):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 50)
    await sql(ONE_EACH, organization_id, 3)
    await leases.hold(connector(1), 60)

    taken = await claims.claim(WORKER, 20, SHARES)
    await sql("UPDATE connector_holds SET held_until = now()")
    later = await claims.claim(WORKER, 20, SHARES)

    assert {job.connector_id for job in taken} == {connector(2), connector(3), connector(4)}
    assert {job.connector_id for job in later} == {connector(1)}


async def test_a_job_whose_own_time_has_come_is_not_held_back_with_the_others(claims, leases, sql, organization_id):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 2)
    await sql("UPDATE jobs SET attempt = 1 WHERE id = (SELECT min(id::text)::uuid FROM jobs)")
    await leases.hold(connector(1), 60)

    taken = await claims.claim(WORKER, 20, SHARES)

    assert [job.attempt for job in taken] == [2]


async def test_the_first_who_is_refused_says_how_long_a_connector_is_held(leases, sql):
    for seconds in (20, 40, 10, 3600):
        await leases.hold(connector(1), seconds)

    ((left,),) = await sql("SELECT extract(epoch FROM held_until - now()) FROM connector_holds")

    assert 8 < left <= 10


async def test_background_work_is_claimed_apart(claims, jobs, new_job):
    background = await jobs.accept(new_job(is_background=True))
    foreground = await jobs.accept(new_job())

    first = await claims.claim(WORKER, 5, SHARES)
    then = await claims.claim(WORKER, 5, SHARES, is_background=True)

    assert [job.id for job in first] == [foreground.job.id]
    assert [job.id for job in then] == [background.job.id]


async def test_organizations_get_turns_however_many_connectors_each_has(
    claims, sql, organization_id, another_organization_id
):
    await sql(ONE_EACH, organization_id, 40)
    await sql(FLOOD, another_organization_id, 40)

    claimed = await claims.claim(WORKER, 20, SHARES)

    assert sum(job.organization_id == organization_id for job in claimed) == 10
