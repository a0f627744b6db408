"""A storm over exports: afterwards each file has exactly the application's records; truncated files were refused.

python -m tests.faults.exports [--seed 1] [--exports 12] [--records 3000] [--faults 20]
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field

from tests.faults.arena import Arena, arena
from tests.faults.insistent import InsistentClient
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.strikes import Strikes

EXPORTS, RECORDS, FAULTS = 12, 3000, 20
#: records of a page
_PAGE = 50


@dataclass
class ExportStorm:
    """One run."""

    gateway: Arena
    exports: int
    size: int
    faults: int
    seed: int
    report: LongWorkReport = field(init=False)

    def __post_init__(self) -> None:
        self.report = LongWorkReport(f"{self.exports} exports of {self.size} records")

    async def run(self) -> LongWorkReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        async with self.gateway.desk() as desk, asyncio.TaskGroup() as storming:
            await self._export(desk.path, "undisturbed")
            undisturbed = self._pages_read()
            storming.create_task(strikes.some(self.faults))
            for number in range(self.exports):
                storming.create_task(self._export_later(desk.path, f"e{number}"))
        counts = self.report.counts
        counts["pages read again"] = self._pages_read() - (1 + self.exports) * undisturbed
        # an attempt reads one page again at most
        self.report.doubled += max(0, counts["pages read again"] - counts["attempts again"])
        return self.report.finish(strikes, time.monotonic() - started)

    def _pages_read(self) -> int:
        return sum(self.gateway.upstream.pages.values())

    async def _export_later(self, path: str, name: str) -> None:
        await asyncio.sleep(random.Random(f"{self.seed} {name} later").uniform(0, self.faults))
        await self._export(path, name)

    async def _export(self, path: str, name: str) -> None:
        """Submit an export, wait for it, and read its file."""
        client = InsistentClient(self.gateway, random.Random(f"{self.seed} {name}"))
        body = {"entity": "tickets", "action": "list", "params": {"per_page": _PAGE}, "output": {"file": "ndjson"}}
        job_id = await client.submit(f"{path}/execute", body, name)
        job = await client.ended(job_id)
        self.report.add_end("exports", job["status"] if job else "not ended")
        if job is None or job["status"] != "succeeded":
            self.report.lost += 1
            return
        self.report.counts["attempts again"] += job["attempt"] - 1
        file = (await client.result(job_id)).body
        ids = [json.loads(line)["id"] for line in file.splitlines()]
        self.report.doubled += len(ids) > len(set(ids))
        self.report.untrue += ids != list(range(self.size))


async def export_storm(exports: int, records: int, faults: int, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=2) as gateway:
        gateway.upstream.slowest, gateway.upstream.listed = 0.2, records
        return await ExportStorm(gateway, exports, records, faults, seed).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, export_storm, exports=EXPORTS, records=RECORDS, faults=FAULTS))
