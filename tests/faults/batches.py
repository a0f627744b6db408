"""A storm over batches: afterwards every operation has one result, which agrees with the application.

python -m tests.faults.batches [--seed 1] [--batches 20] [--operations 400] [--faults 20]
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tests.faults.arena import Arena, arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.strikes import Strikes

BATCHES, OPERATIONS, FAULTS = 20, 400, 20


def operations_of(batch: str, size: int) -> list[dict[str, Any]]:
    """Creates, which must not be sent twice, updates, which may be, and reads that are sent together."""

    def operation(number: int) -> dict[str, Any]:
        match number // 5 % 4:
            case 0:
                return {"action": "get", "params": {"ticket_id": number + 1}}
            case 1:
                return {"action": "update", "params": {"ticket_id": number, "ticket": {"subject": batch}}}
            case _:
                return {"action": "create", "params": ticket(f"{batch}-{number}")}

    return [{"id": f"{batch}-{number}", "entity": "tickets", **operation(number)} for number in range(size)]


@dataclass
class BatchStorm:
    """One run."""

    gateway: Arena
    batches: int
    size: int
    faults: int
    seed: int
    report: LongWorkReport = field(init=False)

    def __post_init__(self) -> None:
        self.report = LongWorkReport(f"{self.batches} batches of {self.size} operations")

    async def run(self) -> LongWorkReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        async with self.gateway.desk() as desk:
            async with asyncio.TaskGroup() as storming:
                storming.create_task(strikes.some(self.faults))
                jobs = [storming.create_task(self._submit(desk.path, f"b{number}")) for number in range(self.batches)]
            for number, job in enumerate(jobs):
                self._judge(f"b{number}", *await self._ended(job.result()))
        self.report.doubled = sum(count > 1 for count in self.gateway.upstream.created.values())
        return self.report.finish(strikes, time.monotonic() - started)

    async def _submit(self, path: str, name: str) -> str:
        """The id of the batch's job."""
        chooser = random.Random(f"{self.seed} {name}")
        await asyncio.sleep(chooser.uniform(0, self.faults))
        body = {"operations": operations_of(name, self.size), "concurrency": 10}
        return await InsistentClient(self.gateway, chooser).submit(f"{path}/batch", body, name)

    async def _ended(self, job_id: str) -> tuple[str, list[dict[str, Any]]]:
        """The job's final state and the lines of its result."""
        client = InsistentClient(self.gateway, random.Random(job_id))
        job = await client.ended(job_id)
        if job is None:
            return "not ended", []
        answer = await client.result(job_id, Accept="application/x-ndjson")
        if job["status"] != "succeeded":
            return job["status"], list((answer.json().get("result") or {}).get("results", ()))
        return job["status"], [json.loads(line) for line in answer.body.splitlines()]

    def _judge(self, name: str, state: str, lines: list[dict[str, Any]]) -> None:
        report, sent = self.report, operations_of(name, self.size)
        report.add_end("batches", state)
        for line in lines:
            report.add_end("operations", line["status"])
        in_order = [line.get("id") for line in lines] == [operation["id"] for operation in sent]
        report.lost += 0 if in_order else len(sent) - len(lines) or 1
        for line in lines:
            operation = sent[line["index"]]
            if operation["action"] == "create":
                was_done = self.gateway.upstream.created[operation["id"]] > 0
                says_done, says_undone = line["status"] == "succeeded", line["status"] in ("failed", "skipped")
                report.untrue += (says_done and not was_done) or (says_undone and was_done)
            elif operation["action"] == "get" and line["status"] == "succeeded":
                report.untrue += line["result"]["id"] != operation["params"]["ticket_id"]


async def batch_storm(batches: int, operations: int, faults: int, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=2) as gateway:
        gateway.upstream.slowest = 0.2
        return await BatchStorm(gateway, batches, operations, faults, seed).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, batch_storm, batches=BATCHES, operations=OPERATIONS, faults=FAULTS))
