"""A storm over metered calls: usage is what the audit log has, and the audit log has what the application received.

python -m tests.faults.metering [--seed 1] [--calls 1000] [--faults 40]
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp

from gateway.access.audit.metering import Metering
from gateway.foundation.db.pool import Database
from tests.faults.arena import Arena, arena, ticket
from tests.faults.insistent import InsistentClient
from tests.faults.long_work import LongWorkReport, run_alone
from tests.faults.strikes import KILL_FRONT_END, KILL_WORKER, PATIENCE, Strike, Strikes
from tests.harness.caller import Answer, Api, UnexpectedStatus
from tests.harness.waiting import eventually

CALLS, FAULTS = 1000, 40
#: calls under way at a time, and operations of a batch
_CONCURRENT, _LINES = 32, 5
#: seconds in which the whole log is read
_EXPORTED = 300.0
#: answers of an idempotency key after which the same request is sent again
_AGAIN = ("unauthorized", "idempotency_in_flight", "rate_limited", "unavailable")
#: the ids of tickets that are read by jobs, and by callers that wait
_BY_JOB, _AT_ONCE = 1_000_000, 2_000_000
_COME = "UPDATE schedules SET next_run_at = now() WHERE next_run_at > now() AND last_run_at IS NULL"
_OPEN = "SELECT count(*) FROM jobs WHERE finished_at IS NULL"
#: ways to call, and how often each is chosen
_WAYS = {"inline": 3, "keyed": 3, "job": 3, "batch": 1, "schedule": 1, "read by a job": 2, "read": 2}


@dataclass
class MeteringStorm:
    """One run. The id of each request to the gateway is the name of the call, which is in its audit entry."""

    gateway: Arena
    calls: int
    faults: int
    seed: int
    report: LongWorkReport = field(init=False)
    #: a caller at each front end
    apis: Sequence[Api] = ()
    #: calls that have ended, and when the last one did, by the monotonic clock
    called: int = 0
    called_at: float = field(default_factory=time.monotonic)
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT))

    def __post_init__(self) -> None:
        self.report = LongWorkReport(f"{self.calls} calls")

    async def run(self) -> LongWorkReport:
        started = time.monotonic()
        strikes = Strikes(self.gateway, self.seed, (KILL_WORKER, KILL_FRONT_END))
        chosen = random.Random(self.seed).choices(list(_WAYS), list(_WAYS.values()), k=self.calls)
        async with self.gateway.desk() as desk, AsyncExitStack() as stack:
            path = desk.path
            self.apis = [await stack.enter_async_context(self.gateway.api(each)) for each in self.gateway.front_ends]
            async with asyncio.TaskGroup() as storming:
                storming.create_task(self._strike(strikes))
                for number, way in enumerate(chosen):
                    storming.create_task(self._call(path, number, way))
        self.report.counts["calls a second"] = round(self.calls / (self.called_at - started))
        await eventually(self._are_due, within=300)
        await eventually(self._are_ended, within=300)
        await self.gateway.swept()
        await eventually(self._are_taken_over, within=60)
        await self._judge(strikes)
        return self.report.finish(strikes, time.monotonic() - started)

    async def _strike(self, strikes: Strikes) -> None:
        """Strike whenever a further part of the calls has ended."""
        for number in range(self.faults):
            part = number * self.calls // (self.faults + 1)
            await eventually(lambda part=part: self.called >= part, within=PATIENCE)
            await strikes.some(1)

    async def _are_due(self) -> bool:
        await self.gateway.stores.value(_COME)
        return bool(await self.gateway.stores.value("SELECT count(*) = 0 FROM schedules WHERE last_run_at IS NULL"))

    async def _are_ended(self) -> bool:
        return bool(await self.gateway.stores.value(_OPEN) == 0)

    def _are_taken_over(self) -> bool:
        """Whether the entries that killed front ends have left are stored."""
        return not list((Path(self.gateway.environment["GATEWAY_DATA_DIR"]) / "audit").glob("*.journal"))

    async def _call(self, path: str, number: int, way: str) -> None:
        name = f"{way.replace(' ', '-')}.{number}"
        client = InsistentClient(self.gateway, random.Random(f"{self.seed} {name}"), shared=self.apis)
        async with self.room:
            match way:
                case "inline":
                    await self._once(client, path, name, "create", ticket(name))
                case "keyed":
                    await self._insist(client, f"{path}/execute", name, _body("create", ticket(name)))
                case "job":
                    await self._insist(client, f"{path}/execute", name, _body("create", ticket(name)), is_job=True)
                case "batch":
                    lines = [_body("create", ticket(f"{name}.{line}")) for line in range(_LINES)]
                    await self._insist(client, f"{path}/batch", name, {"operations": lines}, is_job=True)
                case "schedule":
                    await self._schedule(client, path, name)
                case "read by a job":
                    body = _body("get", {"ticket_id": _BY_JOB + number})
                    await self._insist(client, f"{path}/execute", name, body, is_job=True)
                case _:
                    await self._once(client, path, name, "get", {"ticket_id": _AT_ONCE + number})
        self.called, self.called_at = self.called + 1, time.monotonic()

    async def _once(self, client: InsistentClient, path: str, name: str, action: str, params: Any) -> None:
        """One request without a key, which nobody repeats."""
        try:
            async with asyncio.timeout(20), client.api() as api:
                await api.post(f"{path}/execute", _body(action, params), headers={"X-Request-Id": name})
        except (aiohttp.ClientError, UnexpectedStatus, TimeoutError):
            self.report.counts["requests without an answer"] += 1

    async def _insist(self, client: InsistentClient, path: str, name: str, body: Any, *, is_job: bool = False) -> None:
        """The same request until there is an answer to its key."""
        headers = {"Idempotency-Key": name, "X-Request-Id": name, **({"Prefer": "respond-async"} if is_job else {})}

        async def answered(api: Api) -> Answer:
            answer = await api.post(path, body, headers=headers)
            if answer.status >= 400 and answer.json()["code"] in _AGAIN:
                raise UnexpectedStatus(answer.status, answer.body)
            return answer

        await client.insist(answered)

    async def _schedule(self, client: InsistentClient, path: str, name: str) -> None:
        """A schedule that runs once; a repeated creation may make another one, of another name."""
        attempts = iter(range(1000))

        async def created(api: Api) -> None:
            body = {
                **_body("create", ticket(f"{name}.{next(attempts)}")),
                "name": name,
                "connector_id": path.rpartition("/")[2],
                "cron": "0 0 1 1 *",
            }
            (await api.post("/api/v1/schedules", body)).document(201)

        await client.insist(created)

    async def _judge(self, strikes: Strikes) -> None:
        client = InsistentClient(self.gateway, random.Random(self.seed))
        lines = [json.loads(line) for line in (await client.insist(_export, timeout=_EXPORTED)).splitlines()]
        ends = ended_calls([line for line in lines if "effect" in line])
        async with Database.open(self.gateway.stores.postgres.url, size=1) as database:
            await Metering(database).publish(datetime.now(UTC) + timedelta(days=3))
        usage = await client.insist(_usage)
        in_log = Counter(_kind_of(each) for each in ends)
        self.report.ended = {"calls in usage": usage, "calls in the audit log": in_log}
        self.report.untrue += sum(abs(usage[kind] - in_log[kind]) for kind in ("succeeded", "failed", "unknown"))
        self._judge_writes([each for each in ends if each["effect"] != "read"])
        self._judge_reads([each for each in ends if each["effect"] == "read"], strikes.all)

    def _judge_writes(self, ends: list[Mapping[str, Any]]) -> None:
        """Compare the writes of the log with those that the application received."""
        upstream, report = self.gateway.upstream, self.report
        unknown = Counter(str(each["request_id"]) for each in ends if _kind_of(each) == "unknown")
        done = [upstream.made[int(each["target"])] for each in ends if _kind_of(each) == "succeeded"]
        report.doubled += sum(count > 1 for count in (*upstream.created.values(), *Counter(done).values()))
        # What the application did and no answer told is one of the calls of its request that are unknown.
        untold = Counter(_request_of(name) for name in upstream.created if name not in set(done))
        report.counts["writes received"] = upstream.created.total()
        report.counts["of them unknown"] = untold.total()
        lost = untold - unknown
        report.lost += lost.total()
        report.details += [f"{count} writes of {name} are in no entry" for name, count in lost.items()]

    def _judge_reads(self, ends: list[Mapping[str, Any]], strikes: Sequence[Strike]) -> None:
        """Compare the reads of the log with those that the application received."""
        upstream, report = self.gateway.upstream, self.report
        metered = Counter(str(each["request_id"]) for each in ends)
        report.doubled += sum(count > 1 for count in metered.values())
        report.untrue += sum(_kind_of(each) == "succeeded" and _read(each) not in upstream.read_at for each in ends)
        report.counts["reads received"] = len(upstream.read_at)
        report.counts["of them interrupted"] = sum(each["outcome"] == "interrupted" for each in ends)
        for number, at in upstream.read_at.items():
            name = f"read-by-a-job.{number - _BY_JOB}" if number < _AT_ONCE else f"read.{number - _AT_ONCE}"
            if not metered[name]:
                report.lost += 1
                report.details.append(f"{name} was received {_beside(at, strikes)} and is in no entry")


def _beside(at: float, strikes: Sequence[Strike]) -> str:
    """The time beside that of the nearest strike."""
    nearest = min(strikes, key=lambda each: abs(each.began - at), default=None)
    return "and nothing was struck" if nearest is None else f"{at - nearest.began:+.3f} s from: {nearest.fault.name}"


def ended_calls(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each call that ended, and for each write without settlement."""
    settled = {each["call_id"] for each in entries if each["kind"] == "settlement"}
    ends = [each for each in entries if each["kind"] != "intent" and each["outcome"] != "accepted"]
    open_ = [each for each in entries if each["kind"] == "intent" and each["outcome"] is None]
    return ends + [{**each, "outcome": "unknown"} for each in open_ if each["call_id"] not in settled]


def _kind_of(entry: Mapping[str, Any]) -> str:
    if entry["outcome"] in ("unknown", "interrupted") and entry["effect"] != "read":
        return "unknown"
    return "succeeded" if entry["outcome"] == "succeeded" else "failed"


def _request_of(name: str) -> str:
    """The request of a ticket: the operations of a batch share one, and runs of schedules have none."""
    return {"batch": name.rpartition(".")[0], "schedule": "None"}.get(name.partition(".")[0], name)


def _read(entry: Mapping[str, Any]) -> int:
    return int(entry["target"])


def _body(action: str, params: Any) -> dict[str, Any]:
    return {"entity": "tickets", "action": action, "params": params}


async def _export(api: Api) -> str:
    answer = await api.get("/api/v1/audit/export")
    if answer.status != 200:
        raise UnexpectedStatus(answer.status, answer.body)
    return answer.body.decode()


async def _usage(api: Api) -> Counter[str]:
    """The sum of all events."""
    total: Counter[str] = Counter()
    after, ids = "0", set[str]()
    while True:
        page = (await api.get(f"/api/v1/usage/events?limit=100&after={after}")).document()
        if not page["data"]:
            return total
        for event in page["data"]:
            if event["id"] not in ids:
                total.update({kind: event["data"][kind] for kind in ("succeeded", "failed", "unknown")})
            ids.add(event["id"])
        after = page["next_cursor"]


async def metering_storm(calls: int, faults: int, seed: int = 1) -> LongWorkReport:
    """Run the storm; returns its report."""
    async with arena(front_ends=2, workers=2) as gateway:
        return await MeteringStorm(gateway, calls, faults, seed).run()


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, metering_storm, calls=CALLS, faults=FAULTS))
