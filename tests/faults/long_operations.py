"""A storm over long operations: what was started is followed, nothing is done twice, and every result is true.

python -m tests.faults.long_operations [--seed 1] [--operations 24] [--tickets 1000] [--faults 20]
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.faults.arena import Arena, arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.strikes import Strikes

OPERATIONS, TICKETS, FAULTS = 24, 1000, 20
#: seconds that the application works at a portion
_PORTION_SECONDS = 1.5


@dataclass
class LongReport:
    """The result of a storm over long operations."""

    operations: int = 0
    tickets: int = 0
    strikes: Counter[str] = field(default_factory=Counter)
    #: operations by their final states, and attempts beyond the first
    states: Counter[str] = field(default_factory=Counter)
    repeats: int = 0
    #: operations without an end, or that succeeded without a line for each ticket; tickets that were created twice;
    #: lines and ends that the application denies
    lost: int = 0
    doubled: int = 0
    untrue: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.untrue)

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "operations": f"{self.operations} of {self.tickets // max(1, self.operations)} tickets",
            "faults": ", ".join(f"{count} {name}" for name, count in sorted(self.strikes.items())),
            "operations ended": ", ".join(f"{count} {name}" for name, count in sorted(self.states.items())),
            "attempts again": str(self.repeats),
            "lost, doubled, untrue": f"{self.lost}, {self.doubled}, {self.untrue}",
            "seconds": f"{self.seconds:.0f}",
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


@dataclass
class LongStorm:
    """One run: every second operation creates tickets, which must not be sent twice, the others update them."""

    gateway: Arena
    operations: int
    size: int
    faults: int
    seed: int
    report: LongReport = field(default_factory=LongReport)

    async def run(self) -> LongReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        async with self.gateway.desk() as desk, asyncio.TaskGroup() as storming:
            storming.create_task(strikes.some(self.faults))
            for number in range(self.operations):
                storming.create_task(self._operation(desk.path, number))
        self.report.strikes = Counter(strike.fault.name for strike in strikes.all)
        self.report.doubled = sum(count > 1 for count in self.gateway.upstream.created.values())
        self.report.seconds = time.monotonic() - started
        return self.report

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
        self.report.operations += 1
        self.report.tickets += self.size
        self.report.states[job["status"] if job else "not ended"] += 1
        if job is None:
            self.report.lost += 1
            return
        self.report.repeats += job["attempt"] - 1
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
        """What a job that did not succeed says of its tickets: no more than was done, and of a failed one nothing."""
        done = sum(self.gateway.upstream.created[name] > 0 for name in names)
        told = sum(bool(line["success"]) for line in result.get("results", ()))
        self.report.untrue += told > done or (status == "failed" and done > 0)


async def long_storm(operations: int, size: int, faults: int, seed: int = 1) -> LongReport:
    """The result of a storm of so many operations with so many tickets each and so many faults."""
    async with arena(front_ends=2, workers=2) as gateway:
        gateway.upstream.slowest, gateway.upstream.batch_seconds = 0.2, _PORTION_SECONDS
        return await LongStorm(gateway, operations, size, faults, seed).run()


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--tickets", type=int, default=TICKETS)
    parser.add_argument("--faults", type=int, default=FAULTS)
    options = parser.parse_args()
    report = asyncio.run(long_storm(options.operations, options.tickets, options.faults, options.seed))
    print(report.table())
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
