"""A rolling restart of front ends and workers under load: no call is refused, and no write is doubled.

python -m tests.faults.rolling [RATE]
"""

import asyncio
import contextlib
import itertools
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.faults.arena import Arena, arena, ticket
from tests.harness.caller import ASYNC, Answer, ConnectorApi
from tests.harness.processes import Program

#: calls a second, and seconds between two restarts
RATE, SPACING = 100, 1.0
#: front ends that are tried in turns before a call fails
_TURNS = 3


@dataclass
class RollingReport:
    """The outcomes of the calls."""

    rate: int
    calls: int = 0
    #: statuses of calls that were neither answered nor accepted, and the names of connection errors
    refused: Counter[str] = field(default_factory=Counter)
    #: how the jobs among them ended
    ends: Counter[str] = field(default_factory=Counter)
    #: writes that the application received twice, or never
    doubled: int = 0
    missing: int = 0
    exit_codes: list[int] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        is_refused = self.refused.total() or set(self.ends) - {"succeeded"} or any(self.exit_codes)
        return not (is_refused or self.doubled or self.missing)

    def table(self) -> str:
        lines = [
            ("calls a second, two front ends", self.rate),
            ("restarted", f"{len(self.exit_codes)} processes, exit codes {sorted(set(self.exit_codes))}"),
            ("calls", self.calls),
            ("refused", _listed(self.refused) or 0),
            ("jobs ended", _listed(self.ends)),
            ("doubled", self.doubled),
            ("missing", self.missing),
            ("slowest call", f"{self.slowest:.1f} s"),
            ("took", f"{self.seconds:.0f} s"),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


class Load:
    """Creates at a fixed rate, every second one as a job, at either of two front ends."""

    def __init__(self, rate: int, *desks: ConnectorApi) -> None:
        self._desks = desks
        self.is_over = asyncio.Event()
        self.names: list[str] = []
        self.jobs: list[dict[str, Any]] = []
        self.report = RollingReport(rate)

    async def run(self) -> None:
        started = time.monotonic()
        async with asyncio.TaskGroup() as calls:
            for number in itertools.count():
                if self.is_over.is_set():
                    return
                calls.create_task(self._call(number))
                await asyncio.sleep(started + (number + 1) / self.report.rate - time.monotonic())

    async def _call(self, number: int) -> None:
        name, started = f"rolling-{number}", time.monotonic()
        self.names.append(name)
        try:
            answer = await self._taken(number, name)
        except aiohttp.ClientError as error:
            self.report.refused[type(error).__name__] += 1
            return
        self.report.slowest = max(self.report.slowest, time.monotonic() - started)
        if answer.status == 202:
            self.jobs.append(answer.json()["job"])
        elif answer.status != 200:
            self.report.refused[f"{answer.status} {answer.json().get('detail')}"] += 1

    async def _taken(self, number: int, name: str) -> Answer:
        """As a load balancer has it: where no connection comes about, the other front end is asked.

        A call may wait for a connection until its front end is restarted as well, and is then asked of the first again.
        """
        call = ("tickets", "create", ticket(name), ASYNC if number % 2 else {})
        for turn in range(number, number + _TURNS):
            with contextlib.suppress(aiohttp.ClientConnectorError):
                return await self._desks[turn % 2].send(*call)
        return await self._desks[number % 2].send(*call)


async def _rolled(program: Program) -> int:
    """Stop a process after its successor is ready; returns the exit code."""
    await asyncio.sleep(SPACING)
    code = await program.stop()
    await program.start()
    return code


async def _restarted_under_load(gateway: Arena, rate: int) -> RollingReport:
    started = time.monotonic()
    async with gateway.desk() as desk, gateway.api(gateway.front_ends[1]) as other:
        load = Load(rate, desk, desk.through(other))
        report = load.report
        running = asyncio.create_task(load.run())
        report.exit_codes = [await _rolled(program) for program in (*gateway.front_ends, *gateway.workers)]
        load.is_over.set()
        await running
        report.ends.update([(await desk.api.ended_job(job))["status"] for job in load.jobs])
    report.calls = len(load.names)
    times = [gateway.upstream.created[name] for name in load.names]
    report.doubled, report.missing = sum(each > 1 for each in times), times.count(0)
    report.seconds = time.monotonic() - started
    return report


async def rolling(rate: int) -> RollingReport:
    """Two front ends and two workers, restarted one after the other."""
    async with arena(front_ends=2, workers=2) as gateway:
        return await _restarted_under_load(gateway, rate)


def main() -> int:
    report = asyncio.run(rolling(int(sys.argv[1]) if len(sys.argv) > 1 else RATE))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
