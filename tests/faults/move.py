"""An organization moves to another gateway under load: writes are refused for a while, and nothing is lost or doubled.

python -m tests.faults.move [--writes 400] [--queued 200]
"""

import argparse
import asyncio
import itertools
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.faults.arena import Arena, arena, ticket
from tests.faults.storm import FINAL
from tests.harness.caller import ASYNC, Answer, ConnectorApi
from tests.harness.command_line import Ended, ran
from tests.harness.waiting import eventually

#: writes that are accepted before the move and again after it, and jobs that are submitted as it begins
WRITES, QUEUED = 400, 200
#: maximum seconds between the first refused write and the first that the new gateway accepts
TARGET = 60.0
_KEYS = "k9:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
_SETTINGS = {"GATEWAY_WORKER_JOBS": "2"}
#: concurrent writers, seconds until a refused write is repeated, and one of how many writes exports a list
_WRITERS, _PAUSE, _EXPORT_EVERY = 4, 0.2, 25
#: records of a list, and seconds that an application takes at most
_LISTED, _SLOWEST = 300, 0.4
_EXPORT = {"entity": "tickets", "action": "list", "params": {"per_page": 100}, "output": {"file": "ndjson"}}
_JOBS = "SELECT id, status FROM jobs WHERE NOT is_inline"
_QUEUED = "SELECT id FROM jobs WHERE NOT is_inline AND status = 'queued'"


@dataclass
class MoveReport:
    """The result of a move."""

    #: answered calls and accepted jobs, by the gateway: old or new
    accepted: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    #: statuses of other answers
    failed: Counter[str] = field(default_factory=Counter)
    #: seconds of both commands, and between the first refused write and the first that the new gateway accepted
    export: float = 0.0
    import_: float = 0.0
    refused: float = float("inf")
    #: whether both commands counted the same rows and files
    is_complete: bool = False
    #: jobs that moved in the queue, and how all jobs ended
    queued: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    #: stored files of jobs that had ended, their bytes, and those that the new gateway has otherwise
    files: int = 0
    file_bytes: int = 0
    changed: int = 0
    lost: int = 0
    doubled: int = 0
    untrue: int = 0
    #: writes that the old gateway served after the move
    served: int = 0

    @property
    def is_clean(self) -> bool:
        is_wrong = self.failed or self.changed or self.lost or self.doubled or self.untrue or self.served
        has_moved = self.is_complete and self.queued and self.files and set(self.ends) == {"succeeded"}
        return bool(has_moved and not is_wrong and self.refused <= TARGET)

    def table(self) -> str:
        lines = [
            ("accepted by the old, by the new", f"{self.accepted['old']}, {self.accepted['new']}"),
            ("refused during the move", self.refusals),
            ("failed", _listed(self.failed) or 0),
            ("export, import", f"{self.export:.1f} s, {self.import_:.1f} s"),
            ("writes refused for", f"{self.refused:.1f} s"),
            ("rows of export and import", "the same" if self.is_complete else "not the same"),
            ("jobs moved in the queue", self.queued),
            ("jobs ended", _listed(self.ends)),
            ("stored files, changed", f"{self.files} with {self.file_bytes:,} bytes, {self.changed}"),
            ("lost, doubled, untrue", f"{self.lost}, {self.doubled}, {self.untrue}"),
            ("writes served by the old afterwards", self.served),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


class Move:
    """One move of the organization of the old gateway's client."""

    def __init__(self, old: Arena, new: Arena) -> None:
        self._old, self._new = old, new
        #: the gateway that clients call
        self._address = old
        self._numbers = itertools.count()
        self._is_over = asyncio.Event()
        #: name → the gateway that answered the create; the jobs that create; the jobs that export
        self._answered: dict[str, Arena] = {}
        self._creating: dict[str, UUID] = {}
        self._exporting: list[UUID] = []
        self._first_refusal = float("inf")
        self._first_of_new = float("inf")
        self.report = MoveReport()

    async def run(self, writes: int, queued: int) -> MoveReport:
        async with self._old.desk() as desk, asyncio.TaskGroup() as writing:
            for _ in range(_WRITERS):
                writing.create_task(self._write(desk))
            await eventually(lambda: self.report.accepted["old"] >= writes)
            for _ in range(queued):
                await self._insist(desk, self._old, next(self._numbers), is_job=True)
            await self._move()
            await eventually(lambda: self.report.accepted["new"] >= writes)
            self._is_over.set()
        await eventually(self._all_ended)
        await self._judge(desk)
        return self.report

    async def _write(self, desk: ConnectorApi) -> None:
        for number in self._numbers:
            if self._is_over.is_set():
                return
            while not await self._insist(desk, self._address, number, is_job=number % 3 > 0):  # noqa: ASYNC110  clients poll
                await asyncio.sleep(_PAUSE)

    async def _insist(self, desk: ConnectorApi, gateway: Arena, number: int, *, is_job: bool) -> bool:
        """Send a write under its key; returns whether it was accepted."""
        name, is_export = f"move-{number}", number % _EXPORT_EVERY == 0
        headers = {"Idempotency-Key": name, **(ASYNC if is_job or is_export else {})}
        body = _EXPORT if is_export else {"entity": "tickets", "action": "create", "params": ticket(name)}
        async with gateway.api(client=self._old.api_client) as api:
            answer = await api.post(f"{desk.path}/execute", body, headers=headers)
        if answer.status == 503:
            self.report.refusals += 1
            self._first_refusal = min(self._first_refusal, time.monotonic())
        elif answer.status in (200, 202):
            self._accept(answer, gateway, name, is_export=is_export)
        else:
            self.report.failed[f"{answer.status} {answer.json().get('detail')}"] += 1
        return answer.status != 503

    def _accept(self, answer: Answer, gateway: Arena, name: str, *, is_export: bool) -> None:
        self.report.accepted["old" if gateway is self._old else "new"] += 1
        if gateway is self._new:
            self._first_of_new = min(self._first_of_new, time.monotonic())
        if answer.status == 200:
            self._answered[name] = gateway
        elif is_export:
            self._exporting.append(UUID(answer.json()["job"]["id"]))
        else:
            self._creating[name] = UUID(answer.json()["job"]["id"])

    async def _move(self) -> None:
        """Export and import the organization, and send its clients to the new gateway."""
        file = self._new.stores.directory / "organization.sealed"
        recipient = (await _command(self._new, "keys", "recipient")).out.strip()
        started = time.monotonic()
        organization = str(self._old.api_client.organization_id)
        sealing = ("--recipient", recipient, "-o", "json")
        exported = await _command(self._old, "export-organization", organization, str(file), *sealing)
        self.report.export = time.monotonic() - started
        imported = await self._imported(file)
        self.report.import_ = time.monotonic() - started - self.report.export
        self._address = self._new
        self.report.is_complete = exported.json() == imported.json()
        self.report.queued = len(await self._old.stores.rows(_QUEUED))

    async def _imported(self, file: Path) -> Ended:
        return await _command(self._new, "import-organization", str(file), "-o", "json")

    async def _all_ended(self) -> bool:
        return all(status in FINAL for status in (await _jobs_of(self._new)).values())

    async def _judge(self, desk: ConnectorApi) -> None:
        report, jobs = self.report, await _jobs_of(self._new)
        here, there = self._old.upstream.created, self._new.upstream.created
        report.ends.update(jobs.values())
        report.refused = self._first_of_new - self._first_refusal
        report.lost = sum(job not in jobs for job in (*self._creating.values(), *self._exporting))
        for name in (*self._answered, *self._creating):
            report.lost += here[name] + there[name] == 0
            report.doubled += here[name] + there[name] > 1
        report.untrue = sum(gateway.upstream.created[name] != 1 for name, gateway in self._answered.items())
        report.untrue += len((here.keys() | there.keys()) - self._answered.keys() - self._creating.keys())
        await self._compare_files()
        await self._write_again(desk)

    async def _compare_files(self) -> None:
        """Compare the files of the jobs that the old gateway has run."""
        ended = [job for job, status in (await _jobs_of(self._old)).items() if status == "succeeded"]
        client = self._old.api_client
        async with self._old.api() as old, self._new.api(client=client) as new:
            for job in set(self._exporting) & set(ended):
                path = f"/api/v1/jobs/{job}/result"
                file, moved = await old.get(path), await new.get(path)
                self.report.files += 1
                self.report.file_bytes += len(file.body)
                self.report.changed += moved.status != 200 or moved.body != file.body

    async def _write_again(self, desk: ConnectorApi) -> None:
        """Send writes to the old gateway."""
        async with self._old.api() as api:
            there = desk.through(api)
            answers: list[Any] = [
                await there.send("tickets", "create", ticket("late")),
                await there.send("tickets", "create", ticket("later"), ASYNC),
                await api.post("/api/v1/webhooks", {"url": "https://hooks.example/", "types": ["job.*"]}),
            ]
        self.report.served = sum(answer.status != 503 for answer in answers)


async def _command(gateway: Arena, *words: str) -> Ended:
    """Run a command of the gateway's operator, which must succeed."""
    ended = await ran(*words, environment=gateway.environment, directory=gateway.stores.directory)
    assert ended.code == 0, ended.err
    return ended


async def _jobs_of(gateway: Arena) -> dict[UUID, str]:
    """Id → status of its jobs."""
    return {row["id"]: row["status"] for row in await gateway.stores.rows(_JOBS)}


async def move_storm(writes: int, queued: int) -> MoveReport:
    """Move an organization under load; returns the report."""
    async with (
        arena(front_ends=1, workers=2, **_SETTINGS) as old,
        arena(front_ends=1, workers=2, GATEWAY_ENCRYPTION_KEYS=_KEYS, **_SETTINGS) as new,
    ):
        for gateway in (old, new):
            gateway.upstream.slowest, gateway.upstream.listed = _SLOWEST, _LISTED
        return await Move(old, new).run(writes, queued)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=WRITES)
    parser.add_argument("--queued", type=int, default=QUEUED)
    options = parser.parse_args()
    report = asyncio.run(move_storm(options.writes, options.queued))
    sys.stdout.write(report.table() + "\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
