"""Many jobs during random faults of all processes and stores: afterwards nothing is lost, doubled or invented."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import aiohttp
import asyncpg

from tests.faults.arena import Arena, arena, ticket
from tests.faults.followers import Followers
from tests.faults.report import Recovery, Report
from tests.faults.strikes import KILL_WORKER, Strikes
from tests.harness.caller import ConnectorApi, UnexpectedStatus

#: the error while PostgreSQL is unavailable
_DATABASE_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
FINAL = {"succeeded", "failed", "canceled", "unknown"}
#: maximum seconds of a request: its latency, and a stalled machine
IN_FLIGHT = 3.0
#: concurrent submissions
_SUBMITTERS = 4
#: seconds after which a submission is repeated
_ANSWERED = 10.0
#: one of so many jobs is followed by clients, and the maximum seconds until they receive its end
_FOLLOWED_EVERY, _HEARD = 5, 90.0
#: seconds between two reads of all jobs
_LOOK = 0.2
_STATES = "SELECT id, status, attempt, worker FROM jobs WHERE NOT is_inline"
_UNKNOWN = "SELECT id, error::json #>> '{known,sent_at}' AS sent_at FROM jobs WHERE status = 'unknown'"
_ENDS = "SELECT id, status, extract(epoch FROM finished_at)::float8 AS at FROM jobs WHERE finished_at IS NOT NULL"
_ERRORS = "SELECT error::json ->> 'code' AS code, count(*) AS jobs FROM jobs WHERE status = 'failed' GROUP BY 1"


@dataclass
class _Seen:
    """A job at the last read; times are those of the machine's clock."""

    status: str
    attempt: int
    worker: str | None
    since: float


@dataclass
class Storm:
    """One run."""

    gateway: Arena
    jobs: int
    faults: int
    seed: int
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._strikes = Strikes(self.gateway, self.seed)
        self._followers = Followers(self.gateway, self.seed)
        self._following: set[asyncio.Task[None]] = set()
        self._seen: dict[UUID, _Seen] = {}
        self._ended: dict[UUID, str] = {}
        self._creates: dict[str, str] = {}
        #: jobs whose worker was killed under them, and when; until they are started again or end
        self._orphans: dict[UUID, tuple[float, int]] = {}
        self._is_over = asyncio.Event()

    async def run(self) -> Report:
        started = time.monotonic()
        async with self.gateway.desk() as desk, asyncio.TaskGroup() as watching:
            watching.create_task(self._watch())
            numbers = iter(range(self.jobs))
            async with asyncio.TaskGroup() as storming:
                storming.create_task(self._strikes.some(self.faults))
                for _ in range(_SUBMITTERS):
                    storming.create_task(self._submit(desk, numbers))
            await self._all_ended()
            await self._all_heard()
            self._is_over.set()
        await self._judge()
        self.report.seconds = time.monotonic() - started
        return self.report

    async def _submit(self, desk: ConnectorApi, numbers: Iterator[int]) -> None:
        """Submit jobs of all kinds, each with a key, so that a failed submission can be repeated."""
        for number in numbers:
            name = f"storm-{number}"
            what: tuple[str, dict[str, Any]] = (
                ("list", {}),
                ("update", {"ticket_id": number, "ticket": {"subject": name}}),
                ("create", ticket(name)),
            )[number % 3]
            job = await self._insist(desk, name, *what)
            self.report.accepted += 1
            if number % _FOLLOWED_EVERY == 0:
                self._following.add(asyncio.create_task(self._followers.follow(job["id"])))
            if what[0] == "create":
                self._creates[name] = job["id"]
            await asyncio.sleep(self._random.uniform(0, 8 * self.faults / self.jobs))

    async def _insist(self, desk: ConnectorApi, name: str, action: str, params: Any) -> dict[str, Any]:
        """Each time with a new token; an answer that the OpenAPI document does not name is not asked for again."""
        while True:
            front_end = self._random.choice(self.gateway.front_ends)
            try:
                async with asyncio.timeout(_ANSWERED), self.gateway.api(front_end) as api:
                    return await desk.through(api).submit("tickets", action, params, {"Idempotency-Key": name})
            except (aiohttp.ClientError, UnexpectedStatus, TimeoutError):
                await asyncio.sleep(0.2)

    async def _watch(self) -> None:
        """Read all jobs repeatedly: a final state must not change, and a job that lost its worker must continue."""
        while not self._is_over.is_set():
            try:
                async with asyncio.timeout(5):
                    await self._look()
            except _DATABASE_AWAY:
                pass
            await asyncio.sleep(_LOOK)
        await self._look()

    async def _look(self) -> None:
        rows, now = await self.gateway.stores.rows(_STATES), time.time()
        for job_id, status, attempt, worker in rows:
            ended = self._ended.get(job_id)
            if ended is not None and ended != status:
                self.report.changed += 1
            elif ended is None and status in FINAL:
                self._ended[job_id] = status
            self._note_recovery(job_id, status, attempt, now)
            self._seen[job_id] = _Seen(status, attempt, worker, now)
        self._note_deaths()

    def _note_deaths(self) -> None:
        """Record the jobs whose worker was killed since the last read."""
        for strike in self._strikes.all:
            if strike.fault is not KILL_WORKER:
                continue
            for job_id, seen in self._seen.items():
                is_its = seen.status == "running" and f":{strike.pid}:" in (seen.worker or "")
                if is_its and job_id not in self._orphans and job_id not in self._ended:
                    self._orphans[job_id] = (strike.began, seen.attempt)

    def _note_recovery(self, job_id: UUID, status: str, attempt: int, now: float) -> None:
        began, before = self._orphans.get(job_id, (0.0, 0))
        if began and (status in FINAL or (status == "running" and attempt > before)):
            del self._orphans[job_id]
            self.report.recoveries.append(Recovery(now - began, now - max(began, self._postgres_back(now))))

    def _postgres_back(self, now: float) -> float:
        """When PostgreSQL was available again after it was last killed or frozen."""
        away = (strike.over for strike in self._strikes.all if strike.fault.name.startswith("PostgreSQL "))
        return max((over for over in away if over <= now), default=0.0)

    async def _all_ended(self) -> None:
        """Wait until every accepted job has ended, or none has for a minute."""
        ended, since = -1, time.monotonic()
        while len(self._ended) < self.jobs and time.monotonic() - since < 60:
            if len(self._ended) != ended:
                ended, since = len(self._ended), time.monotonic()
            await asyncio.sleep(0.5)

    async def _all_heard(self) -> None:
        """Wait until every client has received the end of its job, or until the timeout."""
        _, unheard = await asyncio.wait(self._following, timeout=_HEARD)
        for task in unheard:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _judge(self) -> None:
        report, upstream = self.report, self.gateway.upstream
        report.strikes = Counter(strike.fault.name for strike in self._strikes.all)
        report.states = Counter(self._ended.values())
        report.errors = {row["code"]: row["jobs"] for row in await self.gateway.stores.rows(_ERRORS)}
        ends = {str(row["id"]): (row["status"], row["at"]) for row in await self.gateway.stores.rows(_ENDS)}
        self._followers.judge(ends)
        report.followers = self._followers.report
        report.lost = report.accepted - len(self._ended)
        report.doubled = sum(count > 1 for count in upstream.created.values())
        report.invented = sum(not self._was_struck(row["sent_at"]) for row in await self.gateway.stores.rows(_UNKNOWN))
        report.untrue = sum(self._is_untrue(name, self._ended.get(UUID(job))) for name, job in self._creates.items())

    def _was_struck(self, sent_at: str | None) -> bool:
        """Whether something was struck during a write, or before its response was stored."""
        if sent_at is None:
            return False
        sent = datetime.fromisoformat(sent_at).timestamp()
        return any(strike.began - IN_FLIGHT <= sent <= strike.over + 0.1 for strike in self._strikes.all)

    def _is_untrue(self, name: str, status: str | None) -> bool:
        was_seen = self.gateway.upstream.created[name] > 0
        return (status == "succeeded" and not was_seen) or (status == "failed" and was_seen)


async def storm(jobs: int, faults: int, seed: int = 1) -> Report:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=2) as gateway:
        gateway.upstream.slowest = 0.3
        return await Storm(gateway, jobs, faults, seed).run()
