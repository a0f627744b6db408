"""Many jobs while everything is killed at random again and again: afterwards nothing is lost, doubled or invented."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg

from tests.faults.arena import Arena, Caller, Part, arena, ticket

#: how PostgreSQL's absence shows
_DATABASE_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
FINAL = {"succeeded", "failed", "canceled", "unknown"}
#: seconds in which a request of the storm is under way at most: its latency, and a stalled machine
IN_FLIGHT = 3.0
_STATES = "SELECT id, status FROM jobs WHERE NOT is_inline"
_UNKNOWN = "SELECT id, error::json #>> '{known,sent_at}' AS sent_at FROM jobs WHERE status = 'unknown'"
_ERRORS = "SELECT error::json ->> 'code' AS code, count(*) AS jobs FROM jobs WHERE status = 'failed' GROUP BY 1"


@dataclass
class Report:
    """What a storm came to."""

    accepted: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    #: codes of failed jobs
    errors: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    doubled: int = 0
    #: final states that changed afterwards
    changed: int = 0
    #: writes reported as unknown that were not under way at any kill
    invented: int = 0
    #: creates reported as done that the application never saw, and the other way round
    untrue: int = 0
    #: seconds from a kill until the next job ended
    recoveries: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.changed or self.invented or self.untrue)

    def table(self) -> str:
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        states = ", ".join(f"{name} {count}" for name, count in sorted(self.states.items()))
        slowest = max(self.recoveries, default=0.0)
        median = sorted(self.recoveries)[len(self.recoveries) // 2] if self.recoveries else 0.0
        lines = [
            ("jobs accepted", self.accepted),
            ("kills and flushes", f"{sum(self.kills.values())}: {kills}"),
            ("final states", states),
            ("failed because", self.errors or "-"),
            ("lost", self.lost),
            ("creates sent twice", self.doubled),
            ("final states changed", self.changed),
            ("unknown without a kill", self.invented),
            ("results untrue", self.untrue),
            ("until the next job ends after a kill", f"median {median:.1f} s, slowest {slowest:.1f} s"),
            ("took", f"{self.seconds:.0f} s"),
        ]
        return "\n".join(f"{name:<38} {value}" for name, value in lines)


class Storm:
    """One run."""

    def __init__(self, gateway: Arena, jobs: int, kills: int, seed: int) -> None:
        self._gateway = gateway
        self._jobs = jobs
        self._kills = kills
        self._random = random.Random(seed)
        self._killed_at: list[float] = []
        self._ended: dict[UUID, str] = {}
        self._ended_at: list[float] = []
        self._creates: dict[str, str] = {}
        self._is_over = asyncio.Event()
        self.report = Report()

    async def run(self) -> Report:
        started = time.monotonic()
        async with self._gateway.caller() as caller:
            await caller.connect()
        watching = asyncio.create_task(self._watch())
        await asyncio.gather(self._submit(), self._rage())
        await self._all_ended()
        self._is_over.set()
        await watching
        await self._judge()
        self.report.seconds = time.monotonic() - started
        return self.report

    async def _submit(self) -> None:
        """Jobs of all kinds, each under a key, so that a submission that failed is made again."""
        numbers = iter(range(self._jobs))
        await asyncio.gather(*(self._submit_each(numbers) for _ in range(4)))

    async def _submit_each(self, numbers: Any) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            for number in numbers:
                name = f"storm-{number}"
                what: tuple[str, dict[str, Any]] = (
                    ("list", {}),
                    ("update", {"ticket_id": number, "ticket": {"subject": name}}),
                    ("create", ticket(name)),
                )[number % 3]
                job = await self._insist(session, name, *what)
                self.report.accepted += 1
                if what[0] == "create":
                    self._creates[name] = job["id"]
                await asyncio.sleep(self._random.uniform(0, 8 * self._kills / self._jobs))

    async def _insist(self, session: aiohttp.ClientSession, name: str, action: str, params: Any) -> dict[str, Any]:
        while True:
            try:
                caller = await Caller.of(self._gateway, session, self._random.choice(self._gateway.fronts))
                caller.connector_id = str(await self._gateway.value("SELECT id FROM connectors"))
                return await caller.submit("tickets", action, params, Idempotency_Key=name)
            except (aiohttp.ClientError, TimeoutError, AssertionError, OSError, KeyError, *_DATABASE_AWAY):
                await asyncio.sleep(0.2)

    async def _rage(self) -> None:
        """Kills of everything, in a random order, and three flushes of Redis."""
        gateway = self._gateway
        for number in range(self._kills):
            await asyncio.sleep(self._random.uniform(0.3, 3.0))
            name, kill = self._random.choice(
                (
                    ("worker", self._restarted(gateway.workers)),
                    ("worker", self._restarted(gateway.workers)),
                    ("front end", self._restarted(gateway.fronts)),
                    ("redis", lambda: gateway.restart(gateway.redis, down=0.5)),
                    ("postgres", lambda: gateway.restart(gateway.postgres, down=0.5)),
                )
            )
            await self._strike(name, kill)
            if number % max(1, self._kills // 3) == 1:
                await self._strike("flushall", gateway.flush_redis)

    def _restarted(self, parts: list[Part]) -> Callable[[], Awaitable[None]]:
        part = self._random.choice(parts)

        async def kill() -> None:
            await part.kill()
            await part.start()

        return kill

    async def _strike(self, name: str, kill: Callable[[], Awaitable[None]]) -> None:
        self.report.kills[name] += 1
        self._killed_at.append(time.time())
        await kill()

    async def _watch(self) -> None:
        """Look at every job again and again: a final state must stay."""
        while not self._is_over.is_set():
            try:
                await self._look()
            except (OSError, TimeoutError, *_DATABASE_AWAY):
                pass
            await asyncio.sleep(0.25)
        await self._look()

    async def _look(self) -> None:
        for job_id, status in await self._gateway.rows(_STATES):
            known = self._ended.get(job_id)
            if known is not None and known != status:
                self.report.changed += 1
            elif known is None and status in FINAL:
                self._ended[job_id] = status
                self._ended_at.append(time.time())

    async def _all_ended(self) -> None:
        """Until every accepted job has ended, or none has for a minute."""
        ended, since = -1, time.monotonic()
        while len(self._ended) < self._jobs and time.monotonic() - since < 60:
            if len(self._ended) != ended:
                ended, since = len(self._ended), time.monotonic()
            await asyncio.sleep(0.5)

    async def _judge(self) -> None:
        report, upstream = self.report, self._gateway.upstream
        report.states = Counter(self._ended.values())
        report.errors = {row["code"]: row["jobs"] for row in await self._gateway.rows(_ERRORS)}
        report.lost = report.accepted - len(self._ended)
        report.doubled = sum(count > 1 for count in upstream.created.values())
        report.invented = sum(not self._was_struck(row["sent_at"]) for row in await self._gateway.rows(_UNKNOWN))
        report.untrue = sum(self._is_untrue(name, self._ended.get(UUID(job))) for name, job in self._creates.items())
        for killed_at in self._killed_at:
            after = [ended_at - killed_at for ended_at in self._ended_at if ended_at > killed_at]
            report.recoveries += [min(after)] if after else []

    def _was_struck(self, sent_at: str | None) -> bool:
        if sent_at is None:
            return False
        sent = datetime.fromisoformat(sent_at).timestamp()
        return any(sent - 0.1 <= killed_at <= sent + IN_FLIGHT for killed_at in self._killed_at)

    def _is_untrue(self, name: str, status: str | None) -> bool:
        was_seen = self._gateway.upstream.created[name] > 0
        return (status == "succeeded" and not was_seen) or (status == "failed" and was_seen)


async def storm(jobs: int, kills: int, seed: int = 1) -> Report:
    async with arena(fronts=2, workers=2) as gateway:
        gateway.upstream.slowest = 0.3
        return await Storm(gateway, jobs, kills, seed).run()
