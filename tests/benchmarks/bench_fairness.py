"""Fairness: a hostile organization with a hundred times as much of one resource, beside one polite caller.

    python -m tests.benchmarks.bench_fairness [--quick]

Requests: 100 connections of the hostile organization send as fast as they are answered, and one of the polite one does
too. Its 99th percentile is measured alone and beside them, in turns, without the time for which its process and the
front end wait for a processor: that depends on the machine. Work of workers: the hostile organization's is due
first, and the figure is how much of it starts before the polite organization's; other load does not change it.
"""

import asyncio
import contextlib
import hmac
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from urllib.parse import urlsplit
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
from tests.benchmarks.crowd import crowd
from tests.benchmarks.pressure import LIST, number_in
from tests.benchmarks.processes import application, beside_the_server, on_core, waited_for_processor
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.harness.caller import Api, ConnectorApi
from tests.harness.deployment import Deployment, deployed
from tests.harness.sandbox import sandbox
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
    report.notes.append(
        f"the baseline of a 99th percentile is 1.5 × that of the polite caller alone in the same round, and 50 ms; of "
        f"{rounds} rounds, the one with the median ratio"
    )
    report.notes.append(
        "the front end has a core, which load and application do not use; the first 99th percentile of each resource "
        "leaves out the time for which the front end and the polite caller waited for a processor, because other work "
        "on the machine takes it; PostgreSQL may use all cores"
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


@dataclass(frozen=True)
class Caller:
    """An organization's caller, with a connector of each kind that is used."""

    api: Api
    desk: ConnectorApi
    chat_hook: str
    drive: ConnectorApi
    tracker: ConnectorApi
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
    """The polite caller uploads to an application that the hostile ones do not use, and which they would make slow."""
    if count > 1:
        path = f"{caller.drive.path}/upload/files_upload?filename=film.bin&file_mime_type=video/mp4"
        return [caller.request("POST", path, b"x" * (LARGE // 4), **{"Content-Type": "video/mp4"})] * count
    path = f"{caller.tracker.path}/upload/issue_attachments?filename=film.bin&issueIdOrKey=ACME-7"
    return [caller.request("POST", path, b"x" * SMALL, **{"Content-Type": "video/mp4"})]


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


@dataclass(frozen=True)
class Asked:
    """What the polite caller got in a part of a round."""

    #: by status; "application" if the application's own limit refused them
    answers: Counter[str]
    #: milliseconds of the accepted requests
    latencies: Sequence[float]
    #: the same, without the time for which the front end and this process waited for a processor
    own: Sequence[float]


async def _ask(deployment: Deployment, request: bytes, seconds: float) -> Asked:
    """Send the request again as soon as it is answered, and after a refusal when that says, for so many seconds."""
    asked, address = Asked(Counter(), [], []), urlsplit(deployment.base_url)
    pids = (deployment.front_ends[0].pid, os.getpid())
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    ends_at = time.perf_counter() + seconds
    while (began := time.perf_counter()) < ends_at:
        waited = sum(map(waited_for_processor, pids))
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = await reader.readexactly(number_in(head, b"content-length"))
        waited = sum(map(waited_for_processor, pids)) - waited
        passed, status = time.perf_counter() - began, int(head[9:12])
        asked.answers["application" if b'"code":"upstream_rate_limited"' in body else str(status)] += 1
        if status == 200:
            asked.latencies.append(passed * 1000)
            asked.own.append(max(0.0, passed - waited) * 1000)
        await asyncio.sleep(number_in(head, b"retry-after"))
    writer.close()
    return asked


async def _measured(
    deployment: Deployment,
    name: str,
    requests_of: Callable[[Caller, int], list[bytes]],
    hostile: Caller,
    polite: Caller,
    seconds: float,
    rounds: int,
) -> list[Figure]:
    of_rounds: list[tuple[Asked, Asked]] = []
    refused = answered = others = 0
    for _ in range(rounds):
        [request] = requests_of(polite, 1)
        await _ask(deployment, request, _SETTLE)
        alone = await _ask(deployment, request, seconds)
        async with crowd(deployment.base_url, requests_of(hostile, TIMES)) as many:
            await _ask(deployment, request, _SETTLE)
            beside = await _ask(deployment, request, seconds)
        await asyncio.sleep(_SETTLE)  # what has begun for the hostile one ends
        of_rounds.append((alone, beside))
        answered, others = answered + beside.answers["200"], others + many.answers.get("200", 0)
        refused += beside.answers.total() - beside.answers["200"] - beside.answers["application"]
    own, bound = _median([(_p99(beside.own), _bound(alone.own)) for alone, beside in of_rounds])
    wall, bound_of_wall = _median([(_p99(beside.latencies), _bound(alone.latencies)) for alone, beside in of_rounds])
    return [
        Figure(f"{name}: p99 of the polite caller, beside its bound", own, bound, "ms", at_most=1),
        Figure(f"{name}: the same with waits for a processor", wall, bound_of_wall, "ms"),
        Figure(f"{name}: the others' answers to one of the polite caller's", others / max(1, answered), TIMES, ""),
        Figure(f"{name}: answers of the polite caller that are refusals", refused, refused + answered, "", at_most=0),
    ]


def _bound(alone: Sequence[float]) -> float:
    return FACTOR * _p99(alone) + MORE


def _median(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    """The round with the median ratio."""
    return sorted(rounds, key=lambda pair: pair[0] / pair[1])[len(rounds) // 2]


def _p99(latencies: Sequence[float]) -> float:
    """Infinite if nothing was answered."""
    return sorted(latencies)[int(len(latencies) * 0.99)] if latencies else inf


@asynccontextmanager
async def _gateway() -> AsyncIterator[tuple[Deployment, Caller, Caller]]:
    async with contextlib.AsyncExitStack() as stack:
        stores = await stack.enter_async_context(own_stores())
        canned = await stack.enter_async_context(application())
        (apart := stores.directory / "apart").mkdir()
        other = await stack.enter_async_context(sandbox(apart))
        deployment = await stack.enter_async_context(
            deployed(
                stores.directory, stores.postgres.url, stores.redis.url, workers=0,
                GATEWAY_UPSTREAM_SUPPORT_DESK=canned.url, GATEWAY_UPSTREAM_JIRA=other, GATEWAY_SYNCHRONIZE="false",
            )
        )  # fmt: skip
        on_core(deployment.front_ends[0].pid, 0)
        stack.enter_context(beside_the_server())
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
    login = {"username": "ada@example.com", "password": "token"}
    tracker = await api.connector("jira", login, environment={"subdomain": "acme"}, validate=False)
    rows = await owner.fetch(_JOBS, UUID(desk.record["id"]), PAGE)
    return Caller(api, desk, "/hooks/" + hook["url"].rpartition("/hooks/")[2], drive, tracker, str(rows[0]["id"]))


if __name__ == "__main__":
    measured_alone(run, __doc__)
