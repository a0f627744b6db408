"""Cached responses while processes die during a write, and connections to PostgreSQL break.

python -m tests.faults.remembered_answers [ROUNDS]
"""

import asyncio
import contextlib
import itertools
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp

from tests.faults.arena import Arena, arena
from tests.harness.caller import ASYNC, Answer, ConnectorApi
from tests.harness.processes import Program
from tests.harness.waiting import eventually

#: strikes of each kind
ROUNDS = 3
#: seconds after a write until no process may return an older cached response
SETTLED = 5.0
#: seconds for which responses are checked after that
WATCHED = 3.0
_MAX_AGE = {"Cache-Control": "max-age=600"}
_CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IS NOT NULL AND pid <> pg_backend_pid()"


@dataclass
class RememberedReport:
    """The responses that callers received."""

    strikes: Counter[str] = field(default_factory=Counter)
    #: answers of each kind: from memory, or the application's
    answers: Counter[str] = field(default_factory=Counter)
    #: answers from memory that were older than the write, though it had settled
    stale: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not self.stale

    def table(self) -> str:
        lines = [
            ("strikes with a write under way", f"{self.strikes.total()}: {_listed(self.strikes)}"),
            ("answers afterwards", _listed(self.answers)),
            (f"stale {SETTLED:g} s after the write", _listed(self.stale) or 0),
            ("took", f"{self.seconds:.0f} s"),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


Strike = Callable[[Arena], Awaitable[None]]


async def _kill(program: Program) -> None:
    await program.kill()
    await program.start()


async def _kill_writer(gateway: Arena) -> None:
    await _kill(gateway.front_ends[0])


async def _kill_worker(gateway: Arena) -> None:
    await _kill(gateway.workers[0])


async def _kill_postgres(gateway: Arena) -> None:
    await gateway.stores.restart(gateway.stores.postgres)


async def _cut_connections(gateway: Arena) -> None:
    await gateway.stores.rows(_CUT)


#: the strike during a write, and how the write is sent
STRIKES: dict[str, tuple[Strike, dict[str, str]]] = {
    "writing front end killed": (_kill_writer, {}),
    "writing worker killed": (_kill_worker, ASYNC),
    "PostgreSQL killed": (_kill_postgres, {}),
    "connections cut": (_cut_connections, {}),
}


class RememberedRun:
    """One write after the other, each struck while the application works at it; readers are at the other front end."""

    def __init__(self, gateway: Arena) -> None:
        self._gateway = gateway
        self._numbers = itertools.count(1)
        self.report = RememberedReport()

    async def run(self, rounds: int) -> RememberedReport:
        started = time.monotonic()
        gateway = self._gateway
        for name in list(STRIKES) * rounds:
            # A new connector, because nothing is cached for a connector while a write counts as in progress.
            async with gateway.desk() as writer, gateway.api(gateway.front_ends[1]) as api:
                await self._round(name, writer, writer.through(api))
        self.report.seconds = time.monotonic() - started
        return self.report

    async def _round(self, name: str, writer: ConnectorApi, reader: ConnectorApi) -> None:
        strike, headers = STRIKES[name]
        upstream, number = self._gateway.upstream, next(self._numbers)
        await eventually(lambda: _is_remembered(reader))
        upstream.update_gate.clear()
        call = ("tickets", "update", {"ticket_id": 1, "ticket": {"subject": f"written {number}"}}, headers)
        writing = asyncio.create_task(_tried(writer, call))
        await eventually(lambda: upstream.subject == f"written {number}")
        await strike(self._gateway)
        upstream.update_gate.set()
        await writing
        self.report.strikes[name] += 1
        await asyncio.sleep(SETTLED)
        await self._judge(name, reader, f"written {number}")

    async def _judge(self, name: str, reader: ConnectorApi, subject: str) -> None:
        until = time.monotonic() + WATCHED
        while time.monotonic() < until:
            answer = await reader.send("tickets", "get", {"ticket_id": 1}, _MAX_AGE)
            if answer.status == 200:
                self.report.answers["from memory" if _is_hit(answer) else "from the application"] += 1
                self.report.stale[name] += answer.json()["result"]["subject"] != subject
            await asyncio.sleep(0.1)
        self.report.stale = +self.report.stale


async def _tried(writer: ConnectorApi, call: tuple[str, str, dict[str, object], dict[str, str]]) -> None:
    """Send the write; its process may be killed."""
    with contextlib.suppress(aiohttp.ClientError):
        await writer.send(*call)


async def _is_remembered(reader: ConnectorApi) -> bool:
    answer = await reader.send("tickets", "get", {"ticket_id": 1}, _MAX_AGE)
    return answer.status == 200 and _is_hit(answer)


def _is_hit(answer: Answer) -> bool:
    return answer.headers["Cache-Status"] == "gateway; hit"


async def remembered_answers(rounds: int) -> RememberedReport:
    """Each strike so many times."""
    async with arena(front_ends=2, workers=1) as gateway:
        return await RememberedRun(gateway).run(rounds)


def main() -> int:
    report = asyncio.run(remembered_answers(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
