"""A read that goes on as a job has one entry in the audit log, whenever its process is killed."""

from pathlib import Path

import pytest

from gateway.access.audit.entry import Entry
from gateway.access.audit.log import Audit
from gateway.contract.jobs import JobStatus
from gateway.contract.kinds import Effect
from gateway.foundation.db.pool import Database
from gateway.jobs.leases import JobOutcome
from tests.harness.waiting import eventually
from tests.jobs.conftest import SHARES, WORKER

ENTRIES = "SELECT outcome, entry_kind FROM audit WHERE organization_id = $1 AND what = 'tickets.get'"


@pytest.mark.parametrize(
    ("accepted", "ended_at", "outcomes"),
    [
        (False, None, ["interrupted"]),
        (True, "before its process is missed", ["succeeded"]),
        (True, "after that", ["succeeded"]),
    ],
)
async def test_a_read_whose_process_is_killed_while_it_becomes_a_job_is_recorded_once(
    database: Database, tmp_path: Path, jobs, claims, leases, new_job, sql, accepted, ended_at, outcomes
):
    async with Audit(database, tmp_path).writing() as killed:  # nothing says that the read has ended
        entry = Entry(what="tickets.get", organization_id=(new := new_job()).organization_id, effect=Effect.READ)
        killed.begin_read(entry)
        members = {"organization_id": new.organization_id, "action": "get", "effect": Effect.READ}
        new = new_job(id=killed.promote_read(entry), **members)
        if accepted:
            await jobs.accept(new)

    async def end() -> None:
        [job] = await claims.claim(WORKER, 1, SHARES)
        await leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED))

    if ended_at == "before its process is missed":
        await end()
    async with Audit(database, tmp_path).writing():
        await eventually(lambda: not list(tmp_path.glob("*.journal")))
    if ended_at == "after that":
        await end()
    entries = await sql(ENTRIES, new.organization_id)

    assert [each["outcome"] for each in entries] == outcomes
