"""A storm over schedules: afterwards every slot has one job, and the application received each slot's write once.

python -m tests.faults.schedules [--seed 1] [--schedules 40] [--slots 6] [--faults 20]
"""

import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from tests.faults.arena import Arena, arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.strikes import Strikes
from tests.harness.caller import Api

SCHEDULES, SLOTS, FAULTS = 40, 6, 20
#: seconds in which all jobs end after the last strike
_PATIENCE = 180.0
_DATABASE_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
_AWAY = object()
#: makes the slot due; the cron expression itself has times in January only
_COME = "UPDATE schedules SET next_run_at = $1 WHERE next_run_at > now()"
_WAITING = "SELECT count(*) FROM schedules WHERE next_run_at <= now()"
_OPEN = "SELECT count(*) FROM jobs WHERE finished_at IS NULL"
_JOBS = """
    SELECT labels ->> 'schedule_id' AS schedule, labels ->> 'scheduled_for' AS slot, status FROM jobs
    WHERE labels ? 'schedule_id'
"""


@dataclass
class ScheduleStorm:
    """One run."""

    gateway: Arena
    schedules: int
    slots: int
    faults: int
    seed: int

    async def run(self) -> LongWorkReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed)
        names = await self._create()
        async with asyncio.TaskGroup() as storming:
            storming.create_task(strikes.some(self.faults))
            storming.create_task(self._let_slots_come())
        await self._until(0, _OPEN)
        report = await self._judged(names)
        return report.finish(strikes, time.monotonic() - started)

    async def _create(self) -> dict[str, str]:
        """The names of the schedules by id; each creates a ticket that has its name."""
        client, names = InsistentClient(self.gateway, random.Random(self.seed)), {}
        async with self.gateway.desk() as desk:
            for number in range(self.schedules):
                body = {
                    "name": f"s{number}",
                    "connector_id": desk.record["id"],
                    "entity": "tickets",
                    "action": "create",
                    "params": ticket(f"s{number}"),
                    "cron": "0 0 1 1 *",
                    "overlap": "queue",
                }

                async def created(api: Api, body: dict[str, object] = body) -> str:
                    return str((await api.post("/api/v1/schedules", body)).document(201)["id"])

                names[await client.insist(created)] = f"s{number}"
        return names

    async def _let_slots_come(self) -> None:
        for slot in range(self.slots):
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=slot)
            await self._until(None, _COME, at)
            await self._until(0, _WAITING)

    async def _until(self, wanted: object, query: str, *arguments: object) -> None:
        """Repeat the statement until it returns this value, or until the timeout."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if await self._value(query, *arguments) == wanted:
                return
            await asyncio.sleep(0.3)

    async def _value(self, query: str, *arguments: object) -> object:
        """The value; `_AWAY` while PostgreSQL is unavailable."""
        try:
            async with asyncio.timeout(5):
                return await self.gateway.stores.value(query, *arguments)
        except _DATABASE_AWAY:
            return _AWAY

    async def _judged(self, names: dict[str, str]) -> LongWorkReport:
        rows = await self.gateway.stores.rows(_JOBS)
        report = LongWorkReport(f"{self.schedules} schedules with {self.slots} slots each")
        report.ended["jobs"] = Counter(row["status"] for row in rows)
        slots = Counter((row["schedule"], row["slot"]) for row in rows)
        report.lost = self.schedules * self.slots - len(slots)
        report.doubled = sum(count - 1 for count in slots.values())
        for schedule_id, name in names.items():
            states = Counter(row["status"] for row in rows if row["schedule"] == schedule_id)
            written = self.gateway.upstream.created[name]
            report.doubled += max(0, written - states["succeeded"] - states["unknown"])
            report.untrue += written < states["succeeded"] or sum(states.values()) > sum(
                states[final] for final in ("succeeded", "failed", "unknown")
            )
        return report


async def schedule_storm(schedules: int, slots: int, faults: int, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=3) as gateway:
        return await ScheduleStorm(gateway, schedules, slots, faults, seed).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, schedule_storm, schedules=SCHEDULES, slots=SLOTS, faults=FAULTS))
