"""The plans of claims where the statistics that PostgreSQL has of jobs are missing or of another time."""

import json
from typing import Any
from uuid import UUID

import asyncpg

from gateway.jobs.claims import CLAIM
from tests.jobs.test_fairness import FLOOD_OF_CONNECTOR, ONE_EACH, connector

EXPLAINED = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
#: the oldest jobs of 50 queues, starting at a queue
OLDEST = "SELECT * FROM gateway_oldest_jobs(false, ARRAY['operation'], $1, $2, 50, 400)"
ENDED = """
    INSERT INTO jobs (id, organization_id, status)
    SELECT gen_random_uuid(), $1, 'succeeded' FROM generate_series(1, 100000)
"""
#: 20 jobs of each of 20 connectors
QUEUED = """
    INSERT INTO jobs (id, organization_id, connector_id)
    SELECT gen_random_uuid(), $1, lpad(to_hex(number % 20), 32, '0')::uuid FROM generate_series(1, 400) AS number
"""


def plan_of(rows: list[Any]) -> dict[str, Any]:
    """The plan of the explained statement."""
    ((plan,),) = rows
    (document,) = json.loads(plan) if isinstance(plan, str) else plan
    return dict(document["Plan"])


def indexes_of(node: dict[str, Any]) -> set[str]:
    """The indexes that a plan reads."""
    own = {node["Index Name"]} if "Index Name" in node else set()
    return own.union(*map(indexes_of, node.get("Plans", ())))


async def test_a_claim_does_not_read_through_a_deep_queue(sql, organization_id):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 10_000)
    await sql(ONE_EACH, organization_id, 300)

    plan = plan_of(await sql(EXPLAINED + OLDEST, UUID(int=0), connector(2)))

    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 2_000


async def test_a_claim_reads_jobs_by_their_ids_although_statistics_say_that_none_is_queued(
    sql, organization_id, database_url
):
    await sql(ENDED, organization_id)
    connection = await asyncpg.connect(database_url)
    await connection.execute("VACUUM ANALYZE jobs")  # in no transaction
    await connection.close()
    await sql(QUEUED, organization_id)
    anywhere = (UUID(int=0), UUID(int=0))

    plan = plan_of(await sql(EXPLAINED + CLAIM, "here", 5, *anywhere, 400, 400, [], [], False, ["operation"], []))

    assert indexes_of(plan) == {"jobs_pkey", "jobs_running"}
