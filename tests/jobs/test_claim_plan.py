"""The plan of a claim in a database whose jobs were inserted just now, so that PostgreSQL has no statistics of them."""

import json
from uuid import UUID

from tests.jobs.test_fairness import FLOOD_OF_CONNECTOR, ONE_EACH, connector

#: the oldest jobs of 50 queues, starting at a queue
EXPLAINED = """
    EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
    SELECT * FROM gateway_oldest_jobs(false, ARRAY['operation'], $1, $2, 50, 400)
"""


async def test_a_claim_does_not_read_through_a_deep_queue(sql, organization_id):
    await sql(FLOOD_OF_CONNECTOR, organization_id, connector(1), 10_000)
    await sql(ONE_EACH, organization_id, 300)

    ((plan,),) = await sql(EXPLAINED, UUID(int=0), connector(2))
    (document,) = json.loads(plan) if isinstance(plan, str) else plan

    assert document["Plan"]["Shared Hit Blocks"] + document["Plan"]["Shared Read Blocks"] < 2_000
