"""Policies that read what a client has called before: what counts, and that a call does not count against itself."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from gateway.access.policy.history import PRUNE_HISTORY
from gateway.foundation.db.pruning import prune
from tests.harness.caller import Answer, Api, ConnectorApi
from tests.harness.in_process import FrontEnd
from tests.web.test_policies import EVERYTHING, UPDATE, put, run_jobs

TWO_WRITES = f'{EVERYTHING} @id("two") forbid(principal, action, resource) when {{ context.writes.today >= 2 }};'
THIRD_ASKS = f"""{EVERYTHING} @approval("The third write of a day needs a person.")
    forbid(principal, action in [Action::"write", Action::"idempotent"], resource)
    when {{ context.writes.today >= 2 }};"""
_ROWS = "SELECT count(*) FROM policy_history WHERE organization_id = $1"
ASYNC = {"Prefer": "respond-async"}


@dataclass(frozen=True)
class Writer:
    """A client whose writes policies count, and an administrator."""

    front: FrontEnd
    organization_id: UUID
    admin: Api
    desk: ConnectorApi

    async def update(self, headers: dict[str, str] | None = None, **members: Any) -> Answer:
        return await self.desk.send("tickets", "update", UPDATE, headers, **members)

    async def status(self, answer: Answer) -> str:
        return str((await self.admin.get(f"/api/v1/jobs/{answer.document(202)['job']['id']}")).document()["status"])


@pytest.fixture
async def writer(front: FrontEnd) -> AsyncIterator[Writer]:
    organization_id = await front.organization()
    async with front.api(organization_id) as admin, front.api(organization_id) as client:
        yield Writer(front, organization_id, admin, (await admin.connector()).through(client))


async def test_the_writes_of_a_client_are_counted_and_those_of_another_are_not(writer: Writer):
    await put(writer.admin, TWO_WRITES)

    answers = [await writer.update() for _ in range(3)]
    read = await writer.desk.send("tickets", "list", {"per_page": 1})
    others = await writer.desk.through(writer.admin).send("tickets", "update", UPDATE)

    assert [each.status for each in answers] == [200, 200, 403]
    assert answers[-1].json()["policy"] == "two"
    assert (read.status, others.status) == (403, 200)


async def test_what_was_not_made_does_not_count(writer: Writer):
    await put(writer.admin, TWO_WRITES)

    for _ in range(2):
        await writer.update(dry_run=True)
        await writer.desk.send("tickets", "update", {"ticket_id": "none"})
        await writer.update({"Idempotency-Key": "k"})

    assert (await writer.update()).status == 200


async def test_a_job_does_not_count_against_itself(writer: Writer):
    await put(writer.admin, TWO_WRITES)

    accepted = [await writer.update(ASYNC) for _ in range(2)]
    refused = await writer.update(ASYNC)
    await run_jobs(writer.front)

    assert refused.status == 403
    assert [await writer.status(each) for each in accepted] == ["succeeded", "succeeded"]
    result = await writer.admin.get(f"/api/v1/jobs/{accepted[0].document(202)['job']['id']}/result")
    assert result.status == 200


async def test_each_line_of_a_batch_counts(writer: Writer):
    await put(writer.admin, TWO_WRITES)
    line = {"entity": "tickets", "action": "update", "params": UPDATE}

    body = {"operations": [line] * 4, "concurrency": 1}
    job = (await writer.desk.api.post(f"{writer.desk.path}/batch", body)).document(202)["job"]
    await run_jobs(writer.front)

    await writer.admin.call("DELETE", "/api/v1/policies/main")
    result = (await writer.admin.get(f"/api/v1/jobs/{job['id']}/result")).document()["result"]
    assert (result["succeeded"], result["failed"]) == (2, 2)


@pytest.mark.parametrize("is_batch", [False, True], ids=["call", "batch"])
async def test_a_call_that_needs_an_approval_because_of_others_gets_none_by_waiting(writer: Writer, is_batch: bool):
    await put(writer.admin, THIRD_ASKS)
    line = {"entity": "tickets", "action": "update", "params": UPDATE}
    [await writer.update() for _ in range(1 if is_batch else 2)]

    if is_batch:
        body = {"operations": [line] * 2, "concurrency": 1}
        third = await writer.desk.api.post(f"{writer.desk.path}/batch", body)
    else:
        third = await writer.update()
    await run_jobs(writer.front)

    if is_batch:
        await writer.admin.call("DELETE", "/api/v1/policies/main")
        path = f"/api/v1/jobs/{third.document(202)['job']['id']}/result"
        result = (await writer.admin.get(path)).document()["result"]
        assert (result["succeeded"], result["failed"]) == (1, 1)
        assert "cannot wait" in result["results"][1]["error"]["detail"]
    else:
        assert await writer.status(third) == "waiting"


async def test_the_sum_of_a_param_is_counted(writer: Writer):
    stripe = (await writer.admin.connector("stripe", {"api_key": "sk_test"})).through(writer.desk.api)
    await put(
        writer.admin,
        f"""{EVERYTHING} forbid(principal, action == Action::"stripe.refunds.create", resource)
        when {{ context.params has amount && context.sum.amount.today + context.params.amount > 1000 }};""",
    )

    refunds = [{"charge": "ch_1", "amount": amount} for amount in (600, 500, 400)]
    answers = [(await stripe.send("refunds", "create", refund)).status for refund in refunds]

    assert [status == 403 for status in answers] == [False, True, False]


async def test_counts_are_forgotten_after_a_day(writer: Writer):
    database = writer.front.services.database
    await put(writer.admin, TWO_WRITES)
    await writer.update()
    async with database.system() as connection:
        await connection.execute("UPDATE policy_history SET minute = minute - interval '24 hours'")
        await prune(database, PRUNE_HISTORY)
        kept = await connection.fetchval(_ROWS, writer.organization_id)
        await connection.execute("UPDATE policy_history SET minute = minute - interval '2 hours'")
    await prune(database, PRUNE_HISTORY)
    async with database.system() as connection:
        left = await connection.fetchval(_ROWS, writer.organization_id)

    assert (kept, left) == (2, 0)
    assert [(await writer.update()).status for _ in range(3)] == [200, 200, 403]
