"""A storm over approvals: afterwards exactly the approved calls were made, each once.

python -m tests.faults.approvals [--seed 1] [--approvals 1000] [--faults 30]
"""

import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.faults.arena import Arena, arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.storm import FINAL
from tests.faults.strikes import Strikes
from tests.harness.caller import Api, UnexpectedStatus
from tests.harness.clients import NewClient
from tests.harness.waiting import eventually

APPROVALS, FAULTS = 1000, 30
_POLICY = """
    @id("ask") @approval("Every write needs a person.")
    permit(principal, action, resource) unless { context.surface == "notice" };
    permit(principal, action, resource) when { context.surface == "notice" };
"""
#: notices of an organization in an hour
_MOST_NOTICES = 60
_NOTICES = "SELECT labels ->> 'approval_id' AS approval, status FROM jobs WHERE surface = 'notice'"
#: calls that wait at a time, and the part of them that is approved
_CONCURRENT, _APPROVED = 40, 2 / 3


@dataclass
class ApprovalStorm:
    """One run."""

    gateway: Arena
    approver: NewClient
    approvals: int
    faults: int
    seed: int
    report: LongWorkReport = field(init=False)
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT))

    def __post_init__(self) -> None:
        self.report = LongWorkReport(f"{self.approvals} calls that need an approval")

    async def run(self) -> LongWorkReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        async with self.gateway.desk() as desk:
            await desk.api.call("PUT", "/api/v1/policies/ask", json={"cedar": _POLICY, "mode": "enforce"})
            notice = {"entity": "tickets", "action": "create", "params": ticket("{{approval_id}}")}
            body = {"connector_id": desk.record["id"], **notice}
            (await desk.api.call("PUT", "/api/v1/approvals/notice", json=body)).document()
            async with asyncio.TaskGroup() as storming:
                storming.create_task(strikes.some(self.faults))
                for number in range(self.approvals):
                    storming.create_task(self._call(desk.path, f"a{number}"))
        await eventually(self._are_told, within=120)
        await self._judge_notices()
        self.report.doubled = sum(count > 1 for count in self.gateway.upstream.created.values())
        return self.report.finish(strikes, time.monotonic() - started)

    async def _are_told(self) -> bool:
        return all(row["status"] in FINAL for row in await self.gateway.stores.rows(_NOTICES))

    async def _judge_notices(self) -> None:
        """Each approval is told once, up to the bound of an hour; the notice is a ticket with the approval's id."""
        for row in await self.gateway.stores.rows(_NOTICES):
            made = self.gateway.upstream.created[row["approval"]]
            self.report.add_end("notices", row["status"])
            self.report.untrue += (row["status"] == "succeeded") > made or (row["status"] == "failed" and made > 0)
        told = self.report.ended.get("notices", Counter()).total()
        self.report.lost += max(0, min(self.approvals, _MOST_NOTICES) - told)

    async def _call(self, path: str, name: str) -> None:
        """Make a call, decide about it, and compare its end with what the application has."""
        async with self.room:
            chooser = random.Random(f"{self.seed} {name}")
            client = InsistentClient(self.gateway, chooser)
            body = {"entity": "tickets", "action": "create", "params": ticket(name)}
            job_id = await client.submit(f"{path}/execute", body, name)
            job = await client.insist(lambda api: _asking(api, job_id))
            is_approved, decided = chooser.random() < _APPROVED, time.time()
            await self._decide(job["approval"]["id"], "approve" if is_approved else "deny", chooser)
            self._judge(name, await client.ended(job_id), is_approved, decided)

    async def _decide(self, approval_id: str, word: str, chooser: random.Random) -> None:
        async def decided(api: Api) -> None:
            approval = (await api.get(f"/api/v1/approvals/{approval_id}")).document()
            (await api.post(f"/api/v1/approvals/{approval_id}/{word}", {"digest": approval["digest"]})).document()

        await InsistentClient(self.gateway, chooser, self.approver).insist(decided)

    def _judge(self, name: str, job: dict[str, Any] | None, is_approved: bool, decided: float) -> None:
        report, upstream = self.report, self.gateway.upstream
        status = "not ended" if job is None else job["status"]
        report.add_end("approved" if is_approved else "denied", status)
        made = upstream.created[name]
        if not is_approved:
            report.untrue += made > 0 or status != "canceled"
            return
        report.lost += status not in ("succeeded", "unknown")
        report.untrue += (status == "succeeded") > made or any(at < decided for at in upstream.created_at[name])


async def _asking(api: Api, job_id: str) -> dict[str, Any]:
    """The job once it waits for its approval."""
    job: dict[str, Any] = (await api.get(f"/api/v1/jobs/{job_id}?wait=5")).document()
    if job["approval"] is None:
        raise UnexpectedStatus(200, job["status"])
    return job


async def approval_storm(approvals: int, faults: int, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=2) as gateway:
        return await ApprovalStorm(gateway, await gateway.colleague(), approvals, faults, seed).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, approval_storm, approvals=APPROVALS, faults=FAULTS))
