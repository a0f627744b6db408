"""Fairness: a hostile organization with a hundred times as much of one resource, beside one polite caller.

    python -m tests.benchmarks.bench_fairness [--quick]

Requests: 100 connections of the hostile organization send as fast as they are answered, and one of the polite one does
too. Its 99th percentile is measured alone and beside them, in turns. Work of workers: the hostile organization's is due
first, and the figure is how much of it starts before the polite organization's; other load does not change it.
"""

import asyncio
import contextlib
import hmac
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from uuid import UUID, uuid4

import asyncpg

from gateway.access.identity.store import IdentityStore
from gateway.contract.events import NewWebhook
from gateway.contract.schedules import CatchUp, Overlap, ScheduleDefinition
from gateway.events.model import event_types
from gateway.events.service import stored_members
from gateway.events.signing import new_secret
from gateway.events.store import WebhookStore
from gateway.jobs.claims import Claims
from gateway.operations.schedules.model import Schedule
from gateway.operations.schedules.store import ScheduleStore
from tests.benchmarks.bench_events import SHARES, VAULT, Bench, bench
from tests.benchmarks.pressure import LIST, Callers
from tests.benchmarks.processes import application
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.caller import Api, ConnectorApi
from tests.harness.deployment import Deployment, deployed
from tests.harness.stores import own_stores
from tests.jobs.conftest import UNSEALED

TIMES = 100
#: seconds until a load is steady, and until what was begun has ended
_SETTLE = 1.0
#: what the polite caller's 99th percentile may be: so many times that of alone, and milliseconds more
FACTOR, MORE = 1.5, 50.0
#: bytes of the hostile bodies and files, and of the polite ones
LARGE, SMALL = 1 << 20, 16 << 10
_CHAT_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
#: jobs of each organization, and of the hostile one's pages
PAGE = 1000
_JOBS = """
    INSERT INTO jobs (id, organization_id, connector_id, kind, entity, action)
    SELECT gen_random_uuid(), organization_id, id, kind, 'tickets', 'list'
    FROM connectors, generate_series(1, $2::integer) WHERE id = $1 RETURNING jobs.id
"""
_FLOOD = """
    INSERT INTO jobs (id, organization_id, task, is_background, created_at)
    SELECT gen_random_uuid(), $1, 'operation', $3, now() - interval '1 hour' + number * interval '1 ms'
    FROM generate_series(1, $2::integer) AS number
"""


async def run(quick: bool = False) -> Report:
    """The polite caller's figures for each resource."""
    report = Report("Fairness: a hostile organization at 100 × beside one polite caller")
    async with bench() as opened:
        for name, starts in _STARTS.items():
            before = await starts(opened)
            report.figures.append(
                Figure(f"{name}: the others' starts before the polite one's", before, 1, "", at_most=1)
            )
    seconds, rounds = (2.0, 2) if quick else (3.0, 4)
    async with _gateway() as (deployment, hostile, polite):
        for name, requests_of in _REQUESTS.items():
            report.figures += await _measured(deployment, name, requests_of, hostile, polite, seconds, rounds)
    report.notes.append("the baseline of a 99th percentile is 1.5 × that of the polite caller alone, and 50 ms")
    report.notes.append(
        "load, gateway, stores and application share the cores of one machine: other work on it changes the 99th "
        "percentiles, and neither starts nor refusals"
    )
    return report


# Work of workers -----------------------------------------------------------------------------------------------------


async def _two(opened: Bench) -> tuple[UUID, UUID]:
    identity = IdentityStore(opened.database)
    hostile, polite = [(await identity.create_organization(f"o-{uuid4().hex}")).id for _ in range(2)]
    return hostile, polite


async def _jobs(opened: Bench, *, is_background: bool = False) -> int:
    hostile, polite = await _two(opened)
    await opened.owner.execute(_FLOOD, hostile, 10_000, is_background)
    await opened.owner.execute(_FLOOD, polite, 1, is_background)
    await opened.owner.execute("UPDATE jobs SET created_at = now() WHERE organization_id = $1", polite)
    claims, before = Claims(opened.database, UNSEALED), 0
    while True:
        (job,) = await claims.claim("bench", 1, SHARES, is_background=is_background)
        if job.organization_id == polite:
            await opened.owner.execute("TRUNCATE jobs CASCADE")
            return before
        before += 1


async def _copies(opened: Bench) -> int:
    """Synchronizations are background jobs."""
    return await _jobs(opened, is_background=True)


async def _deliveries(opened: Bench) -> int:
    hostile, polite = await _two(opened)
    store = WebhookStore(opened.database, VAULT)
    for organization_id in (*[hostile] * TIMES, polite):
        request = NewWebhook(url="https://a.example/", types=event_types(["record.*"]))
        await store.create(stored_members(organization_id, uuid4(), request, None), new_secret())
    await opened.owner.execute("UPDATE webhooks SET retry_at = created_at, turn_at = created_at")
    busy: Counter[UUID] = Counter()
    while True:
        (claimed,) = await store.claim("bench", 60, 1 + sum(busy.values()), busy)
        if claimed.webhook.organization_id == polite:
            return sum(busy.values())
        busy[claimed.webhook.organization_id] += 1


async def _schedules(opened: Bench) -> int:
    hostile, polite = await _two(opened)
    store, slots = ScheduleStore(opened.database, VAULT), 10 * TIMES
    for number, organization_id in enumerate([*[hostile] * slots, polite]):
        definition = ScheduleDefinition(
            name=str(number), connector_id=uuid4(), entity="tickets", action="list", cron="* * * * *",
            overlap=Overlap.SKIP, catch_up=CatchUp.ONE,
        )  # fmt: skip
        await store.insert(
            Schedule(
                id=uuid4(), organization_id=organization_id, client_id=uuid4(), workspace_name="bench",
                kind="support-desk", definition=definition, next_run_at=None,
            )
        )  # fmt: skip
    await opened.owner.execute("UPDATE schedules SET next_run_at = created_at")
    async with opened.database.system() as connection, connection.transaction():
        due, _ = await store.lock_due_within(connection, slots + 1)
    return [row["organization_id"] for row in due].index(polite)


_STARTS: Mapping[str, Callable[[Bench], Awaitable[int]]] = {
    "queue of 10,000 jobs": _jobs,
    "copies, 10,000 synchronizations due": _copies,
    "deliveries, 100 webhooks due": _deliveries,
    "schedules, 1,000 slots due": _schedules,
}


# Requests ------------------------------------------------------------------------------------------------------------


class Prepared(Callers):
    """Callers whose connections send prepared requests."""

    def __init__(self, url: str, requests: Sequence[bytes]) -> None:
        super().__init__(url, ["/"], {})
        self._requests = list(requests)


@dataclass(frozen=True)
class Caller:
    """An organization's caller, with a connector of each kind that is used."""

    api: Api
    desk: ConnectorApi
    chat_hook: str
    drive: ConnectorApi
    #: a job that waits for a person's word or has not begun, so that waits for it last
    job: str

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        fields = {"Host": "a", "Content-Length": str(len(body)), **self.api.headers, **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        return "\r\n".join(lines).encode() + body


_JSON = {"Content-Type": "application/json"}


def _calls(caller: Caller, count: int) -> list[bytes]:
    return [caller.request("POST", f"{caller.desk.path}/execute", json.dumps(LIST).encode(), **_JSON)] * count


def _pages(caller: Caller, count: int) -> list[bytes]:
    """Pages of jobs, which are read from PostgreSQL."""
    return [caller.request("GET", f"/api/v1/jobs?limit={PAGE if count > 1 else 20}")] * count


def _bodies(caller: Caller, count: int) -> list[bytes]:
    size = LARGE - 1000 if count > 1 else SMALL
    body = json.dumps({**LIST, "intent": "x" * 10, "labels": {"a": "b"}}).encode()
    return [caller.request("POST", f"{caller.desk.path}/execute", body + b" " * size, **_JSON)] * count


def _notices(caller: Caller, count: int) -> list[bytes]:
    requests = []
    for number in range(count):
        body, at = (
            json.dumps({"event_id": f"Ev{number}", "event": {"type": "message", "channel": "C"}}),
            int(time.time()),
        )
        signature = hmac.new(_CHAT_SECRET.encode(), f"v0:{at}:{body}".encode(), "sha256").hexdigest()
        signed = {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={signature}"}
        requests.append(caller.request("POST", caller.chat_hook, body.encode(), **_JSON, **signed))
    return requests


def _uploads(caller: Caller, count: int) -> list[bytes]:
    path = f"{caller.drive.path}/upload/files_upload?filename=film.bin&file_mime_type=video/mp4"
    size = LARGE // 4 if count > 1 else SMALL
    return [caller.request("POST", path, b"x" * size, **{"Content-Type": "video/mp4"})] * count


def _waits(caller: Caller, count: int) -> list[bytes]:
    """The hostile ones wait for a job that does not end; the polite one reads its own."""
    wait = "?wait=60" if count > 1 else ""
    return [caller.request("GET", f"/api/v1/jobs/{caller.job}{wait}")] * count


_REQUESTS: Mapping[str, Callable[[Caller, int], list[bytes]]] = {
    "slots, calls": _calls,
    "pool, pages of 1,000 jobs": _pages,
    "bodies of 1 MiB": _bodies,
    "notices": _notices,
    "uploads": _uploads,
    "waits for jobs": _waits,
}


async def _measured(
    deployment: Deployment,
    name: str,
    requests_of: Callable[[Caller, int], list[bytes]],
    hostile: Caller,
    polite: Caller,
    seconds: float,
    rounds: int,
) -> list[Figure]:
    alone: list[float] = []
    beside: list[float] = []
    answers: Counter[int] = Counter()
    answers_of_others = 0
    for _ in range(rounds):
        one = Prepared(deployment.base_url, requests_of(polite, 1))
        await one.connect(1)
        one.begin()
        await asyncio.sleep(_SETTLE)
        alone += (await one.counted(seconds)).latencies
        many = Prepared(deployment.base_url, requests_of(hostile, TIMES))
        await many.connect(TIMES)
        many.begin()
        await asyncio.sleep(_SETTLE)
        outcome, others = await asyncio.gather(one.counted(seconds), many.counted(seconds))
        answers_of_others += others.answers.get(200, 0)
        beside += outcome.latencies
        answers.update(outcome.answers)
        many.close()
        one.close()
        await asyncio.sleep(_SETTLE)  # what has begun for the hostile one ends
    bound, others_to_one = FACTOR * _p99(alone) + MORE, answers_of_others / max(1, answers[200])
    return [
        Figure(f"{name}: p99 of the polite caller, beside its bound", _p99(beside), bound, "ms", at_most=1),
        Figure(f"{name}: the others' answers to one of the polite caller's", others_to_one, TIMES, ""),
        Figure(
            f"{name}: answers of the polite caller that are refusals", answers.total() - answers[200],
            answers.total(), "", at_most=0,
        ),
    ]  # fmt: skip


def _p99(latencies: Sequence[float]) -> float:
    """Infinite if nothing was answered."""
    return sorted(latencies)[int(len(latencies) * 0.99)] if latencies else inf


@asynccontextmanager
async def _gateway() -> AsyncIterator[tuple[Deployment, Caller, Caller]]:
    async with contextlib.AsyncExitStack() as stack:
        stores = await stack.enter_async_context(own_stores())
        canned = await stack.enter_async_context(application(core=None))
        deployment = await stack.enter_async_context(
            deployed(
                stores.directory, stores.postgres.url, stores.redis.url, workers=0,
                GATEWAY_UPSTREAM_SUPPORT_DESK=canned.url, GATEWAY_SYNCHRONIZE="false",
            )
        )  # fmt: skip
        owner = await asyncpg.connect(stores.postgres.url)
        stack.push_async_callback(owner.close)
        yield deployment, await _caller(stack, deployment, owner), await _caller(stack, deployment, owner)


async def _caller(stack: contextlib.AsyncExitStack, deployment: Deployment, owner: asyncpg.Connection) -> Caller:
    """A caller of a new organization that has a thousand jobs, which no worker runs."""
    client = await deployment.client()
    api = await stack.enter_async_context(Api.of(deployment.base_url, client.id, client.secret))
    desk = await api.connector("support-desk", validate=False)
    chat = await api.connector("Team-Chat", {"access_token": "token"}, validate=False)
    hook = (await api.post(f"{chat.path}/hook", {"secret": _CHAT_SECRET})).document()
    drive = await api.connector("google-drive", {"access_token": "token", "refresh_token": "refresh"}, validate=False)
    rows = await owner.fetch(_JOBS, UUID(desk.record["id"]), PAGE)
    return Caller(api, desk, "/hooks/" + hook["url"].rpartition("/hooks/")[2], drive, str(rows[0]["id"]))


if __name__ == "__main__":
    measured_alone(run, __doc__)
