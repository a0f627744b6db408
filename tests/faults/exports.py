"""A storm over exports: afterwards each file holds the application's records exactly, and no cut file passed as whole.

python -m tests.faults.exports [--seed 1] [--exports 12] [--records 3000] [--faults 20]
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.faults.arena import Arena, arena
from tests.faults.insistent import InsistentClient
from tests.faults.strikes import Strikes

EXPORTS, RECORDS, FAULTS = 12, 3000, 20
#: records of a page
_PAGE = 50


@dataclass
class ExportReport:
    """The result of a storm over exports."""

    exports: int = 0
    records: int = 0
    strikes: Counter[str] = field(default_factory=Counter)
    #: exports by their final states
    states: Counter[str] = field(default_factory=Counter)
    #: attempts beyond the first, and pages that were read again
    repeats: int = 0
    pages_again: int = 0
    #: exports without a file, files with a record twice, complete responses that are not the whole file
    lost: int = 0
    doubled: int = 0
    untrue: int = 0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        """Nothing lost, doubled or untrue, and each new attempt has read one page again at most."""
        return not (self.lost or self.doubled or self.untrue) and self.pages_again <= self.repeats

    def table(self) -> str:
        """The report as lines of text."""
        rows = {
            "exports": f"{self.exports} of {self.records // max(1, self.exports)} records",
            "faults": ", ".join(f"{count} {name}" for name, count in sorted(self.strikes.items())),
            "exports ended": ", ".join(f"{count} {name}" for name, count in sorted(self.states.items())),
            "attempts again": str(self.repeats),
            "pages read again": str(self.pages_again),
            "lost, doubled, untrue": f"{self.lost}, {self.doubled}, {self.untrue}",
            "seconds": f"{self.seconds:.0f}",
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


@dataclass
class ExportStorm:
    """One run."""

    gateway: Arena
    exports: int
    size: int
    faults: int
    seed: int
    report: ExportReport = field(default_factory=ExportReport)

    async def run(self) -> ExportReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        async with self.gateway.desk() as desk, asyncio.TaskGroup() as storming:
            storming.create_task(strikes.some(self.faults))
            for number in range(self.exports):
                storming.create_task(self._export(desk.path, f"e{number}"))
        self.report.strikes = Counter(strike.fault.name for strike in strikes.all)
        pages = -(-self.size // _PAGE)
        self.report.pages_again = sum(self.gateway.upstream.pages.values()) - self.exports * pages
        self.report.seconds = time.monotonic() - started
        return self.report

    async def _export(self, path: str, name: str) -> None:
        """Submit an export, follow it, and read its file while processes are still struck."""
        chooser = random.Random(f"{self.seed} {name}")
        await asyncio.sleep(chooser.uniform(0, self.faults))
        client = InsistentClient(self.gateway, chooser)
        body = {"entity": "tickets", "action": "list", "params": {"per_page": _PAGE}, "output": {"file": "ndjson"}}
        job_id = await client.submit(f"{path}/execute", body, name)
        job = await client.ended(job_id)
        self.report.exports += 1
        self.report.records += self.size
        self.report.states[job["status"] if job else "not ended"] += 1
        if job is None or job["status"] != "succeeded":
            self.report.lost += 1
            return
        self.report.repeats += job["attempt"] - 1
        file = (await client.result(job_id)).body
        ids = [json.loads(line)["id"] for line in file.splitlines()]
        self.report.doubled += len(ids) > len(set(ids))
        self.report.untrue += ids != list(range(self.size))


async def export_storm(exports: int, size: int, faults: int, seed: int = 1) -> ExportReport:
    """The result of a storm of so many exports of so many records and so many faults."""
    async with arena(front_ends=2, workers=2) as gateway:
        gateway.upstream.slowest, gateway.upstream.listed = 0.2, size
        return await ExportStorm(gateway, exports, size, faults, seed).run()


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--exports", type=int, default=EXPORTS)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--faults", type=int, default=FAULTS)
    options = parser.parse_args()
    report = asyncio.run(export_storm(options.exports, options.records, options.faults, options.seed))
    print(report.table())
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
