"""A storm over long operations: started operations are followed, nothing is done twice, and every result is true.

python -m tests.faults.long_operations [--seed 1] [--operations 24] [--tickets 1000] [--faults 20]
"""

import asyncio
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tests.faults.arena import Arena, arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.strikes import Strikes

OPERATIONS, TICKETS, FAULTS = 24, 1000, 20
#: seconds that the application takes for a portion
_PORTION_SECONDS = 1.5


@dataclass
class LongStorm:
    """One run: every second operation creates tickets, which must not be sent twice, the others update them."""

    gateway: Arena
    operations: int
    size: int
    faults: int
    seed: int
    report: LongWorkReport = field(init=False)

    def __post_init__(self) -> None:
        self.report = LongWorkReport(f"{self.operations} operations of {self.size} tickets")

    async def run(self) -> LongWorkReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        async with self.gateway.desk() as desk, asyncio.TaskGroup() as storming:
            storming.create_task(strikes.some(self.faults))
            for number in range(self.operations):
                storming.create_task(self._operation(desk.path, number))
        self.report.doubled = sum(count > 1 for count in self.gateway.upstream.created.values())
        return self.report.finish(strikes, time.monotonic() - started)

    async def _operation(self, path: str, number: int) -> None:
        chooser = random.Random(f"{self.seed} {number}")
        await asyncio.sleep(chooser.uniform(0, self.faults))
        client = InsistentClient(self.gateway, chooser)
        names = [f"l{number}-{place}" for place in range(self.size)]
        if number % 2:
            params: dict[str, Any] = {"tickets": [ticket(name)["ticket"] for name in names]}
            body = {"entity": "tickets", "action": "create_many", "params": params}
        else:
            ids = [number * self.size + place + 1 for place in range(self.size)]
            params = {"ids": ",".join(map(str, ids)), "ticket": {"status": "solved"}}
            body = {"entity": "ticket_bulk_updates", "action": "create", "params": params}
        job_id = await client.submit(f"{path}/execute", body, f"l{number}")
        job = await client.ended(job_id)
        self.report.add_end("operations", job["status"] if job else "not ended")
        if job is None:
            self.report.lost += 1
            return
        self.report.counts["attempts again"] += job["attempt"] - 1
        document = (await client.result(job_id)).json()
        if job["status"] == "succeeded":
            self._judge_success(document["result"], names if number % 2 else [])
        elif number % 2:
            self._judge_end(job["status"], document.get("result") or {}, names)

    def _judge_success(self, result: dict[str, Any], created: list[str]) -> None:
        """A line for each ticket, and each ticket was created."""
        lines = result["results"]
        self.report.lost += len(lines) != self.size or result["succeeded"] != self.size
        self.report.untrue += sum(not self.gateway.upstream.created[name] for name in created)

    def _judge_end(self, status: str, result: dict[str, Any], names: list[str]) -> None:
        """Compare the tickets of a job that did not succeed with the application."""
        done = sum(self.gateway.upstream.created[name] > 0 for name in names)
        told = sum(bool(line["success"]) for line in result.get("results", ()))
        self.report.untrue += told > done or (status == "failed" and done > 0)


async def long_storm(operations: int, tickets: int, faults: int, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=2) as gateway:
        gateway.upstream.slowest, gateway.upstream.batch_seconds = 0.2, _PORTION_SECONDS
        return await LongStorm(gateway, operations, tickets, faults, seed).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, long_storm, operations=OPERATIONS, tickets=TICKETS, faults=FAULTS))
