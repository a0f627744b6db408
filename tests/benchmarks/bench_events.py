"""The cost of events for jobs and records, and their latency.

    python -m tests.benchmarks.bench_events [--quick]

Jobs and records beside the same without events, in turns; deliveries by one worker in this process.
"""

import asyncio
import os
import random
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch
from uuid import UUID, uuid4

import aiohttp
import asyncpg
import msgspec
from yarl import URL

from gateway.access.identity.model import Client
from gateway.access.identity.store import IdentityStore
from gateway.context_store import entities, records
from gateway.context_store.layout import Layout
from gateway.contract.events import EventType, NewWebhook
from gateway.contract.jobs import JobStatus
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.events.deliverer import Deliverer, RecordsOfDeliveries
from gateway.events.feed import Feed
from gateway.events.model import EventFilter, event_types
from gateway.events.recording import add_record_events
from gateway.events.sender import Sender
from gateway.events.service import stored_members
from gateway.events.signing import new_secret
from gateway.events.store import WebhookStore
from gateway.events.subscription import NewSubscription
from gateway.events.subscription_store import SubscriptionStore
from gateway.foundation.aio.loops import every, running
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.jobs.claims import Claims, Shares
from gateway.jobs.leases import JobOutcome, Leases
from gateway.jobs.model import NewJob
from gateway.jobs.store import JobStore
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.transport import Transport
from tests.benchmarks.report import Figure, Report, measured_alone
from tests.events.receiver import Receiver, receiving
from tests.faults.notice_storm import hook, is_loaded
from tests.harness.deployment import deployed
from tests.harness.stores import own_stores
from tests.harness.waiting import eventually
from tests.jobs.conftest import UNSEALED

VAULT = Vault([("k1", os.urandom(32))])
SHARES = Shares(organization=1000, connector=1000)
CALLERS = 16
_TELL = "SELECT pg_get_functiondef('gateway_tell_job'::regproc)"
#: the part of the function that adds the event
_EVENT = re.compile(r"-- The event of the feed.*?END IF;", re.DOTALL)


@dataclass(frozen=True)
class Bench:
    """A database, and the connection of its owner."""

    url: str
    database: Database
    owner: asyncpg.Connection
    organization_id: UUID


async def run(quick: bool) -> Report:
    """All figures."""
    report = Report("Events: their cost to jobs and records, and their way to receivers")
    rounds, jobs, rows = (5, 300, 2000) if quick else (21, 400, 5000)
    async with bench() as opened:
        report.figures.append(await _jobs(opened, rounds, jobs))
        report.figures.append(await _records(opened, rounds, rows))
        async with receiving() as receiver:
            report.figures.append(await _one_by_one(opened, receiver, 50))
            report.figures.append(await _notices(receiver, 10 if quick else 40))
            report.figures.append(await _among_many(opened, receiver, *((1000, 20) if quick else (10_000, 50))))
            report.figures.append(await _beside_dead_ones(opened, receiver, *((200, 10) if quick else (1000, 50))))
    return report


async def _in_turns(
    rounds: int, with_events: Callable[[], Awaitable[float]], without: Callable[[], Awaitable[float]]
) -> tuple[float, float]:
    """The medians of both, which are measured in turns."""
    ours, theirs = [], []
    for number in range(2 * rounds):
        (ours if number % 2 else theirs).append(await (with_events if number % 2 else without)())
    return statistics.median(ours), statistics.median(theirs)


async def _jobs(opened: Bench, rounds: int, jobs: int) -> Figure:
    """Jobs a second from their acceptance to their end, all in PostgreSQL."""
    store, claims = JobStore(opened.database, 3600, UNSEALED), Claims(opened.database, UNSEALED)
    leases = Leases(opened.database, 3600, UNSEALED)

    async def worked_off() -> float:
        await opened.owner.execute("TRUNCATE jobs CASCADE")
        await opened.owner.execute("TRUNCATE events")
        numbers = iter(range(jobs))
        started = time.perf_counter()

        async def caller() -> None:
            for _ in numbers:
                await store.accept(NewJob(id=uuid4(), organization_id=opened.organization_id, client_id=UUID(int=1)))
                for job in await claims.claim("bench", 4, SHARES):
                    await leases.finish(
                        job, JobOutcome(status=JobStatus.SUCCEEDED, result={"result": None, "parts": 0})
                    )

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        while left := await claims.claim("bench", 100, SHARES):
            for job in left:
                await leases.finish(job, JobOutcome(status=JobStatus.SUCCEEDED, result={"result": None, "parts": 0}))
        return jobs / (time.perf_counter() - started)

    tell_job = await opened.owner.fetchval(_TELL)
    tell_job_only, removed = _EVENT.subn("", tell_job)
    assert removed == 1

    async def without() -> float:
        await opened.owner.execute(tell_job_only)
        try:
            return await worked_off()
        finally:
            await opened.owner.execute(tell_job)

    ours, theirs = await _in_turns(rounds, worked_off, without)
    return Figure("jobs accepted, claimed and ended, with their events", ours, theirs, "jobs/s", at_least=0.95)


async def _records(opened: Bench, rounds: int, rows: int) -> Figure:
    """New records a second into the copy."""
    connector = await _connector(opened)
    numbers = iter(range(1000))

    async def loaded() -> float:
        async with opened.database.tenant(opened.organization_id) as connection:
            name = f"e{next(numbers)}"
            entity = await entities.register(connection, connector, opened.organization_id, name, Layout())
            documents = [
                (str(number), msgspec.json.encode({"id": number, "subject": f"ticket {number}", "body": "text " * 40}))
                for number in range(rows)
            ]
            started = time.perf_counter()
            await records.upsert(connection, entity, documents)
            return rows / (time.perf_counter() - started)

    async def nothing(*_: object, **__: object) -> None:
        return

    async def without() -> float:
        with patch.object(records, "add_record_events", nothing):
            return await loaded()

    ours, theirs = await _in_turns(rounds, loaded, without)
    return Figure("records written into the copy, with their events", ours, theirs, "records/s", at_least=0.95)


async def _connector(opened: Bench) -> UUID:
    workspace, connector = uuid4(), uuid4()
    await opened.owner.execute(
        "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, $3)",
        workspace, opened.organization_id, str(workspace),
    )  # fmt: skip
    await opened.owner.execute(
        "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status) "
        "VALUES ($1, $2, $3, 'support-desk', 'c', 'active')", connector, opened.organization_id, workspace,
    )  # fmt: skip
    return connector


@asynccontextmanager
async def _delivering(opened: Bench, receiver: Receiver) -> AsyncIterator[WebhookStore]:
    store = WebhookStore(opened.database, VAULT)
    await opened.owner.execute("TRUNCATE webhooks CASCADE")
    async with Transport(EgressPolicy.of([URL(receiver.url), URL("http://127.0.0.1:1")]), idle=15) as transport:

        async def no_records(*_: object) -> RecordsOfDeliveries:
            return RecordsOfDeliveries({}, ())

        async def no_person(client_id: UUID) -> None:
            pass

        deliverer = Deliverer(
            store=store,
            subscriptions=SubscriptionStore(opened.database, VAULT),
            feed=Feed(opened.database),
            sender=Sender(transport),
            worker="bench",
            read_records=no_records,
            rights_of=no_person,
            retry_seconds=86_400,
        )
        notifications = NotificationListener(opened.url)
        notifications.subscribe({"events": deliverer.on_event, "webhook": deliverer.on_webhook}, deliverer.forget)
        async with notifications.listening(), running(every(0, deliverer.deliver, name="deliveries")):
            yield store
        await deliverer.close()


async def _subscribe(opened: Bench, store: WebhookStore, url: str) -> None:
    await Feed(opened.database).read(opened.organization_id, EventFilter(), None, 1)
    request = NewWebhook(url=url, types=event_types(["record.*"]))
    await store.create(stored_members(opened.organization_id, uuid4(), request, None), new_secret())


async def _change(opened: Bench) -> None:
    async with opened.database.tenant(opened.organization_id) as connection:
        await add_record_events(connection, opened.organization_id, uuid4(), "tickets", updated=[str(uuid4())])


async def _one_by_one(opened: Bench, receiver: Receiver, events: int) -> Figure:
    """One change after the other on a quiet gateway: until it is with the receiver."""
    took = []
    async with _delivering(opened, receiver) as store:
        await _subscribe(opened, store, f"{receiver.url}/one")
        for number in range(events):
            started = time.perf_counter()
            await _change(opened)
            await eventually(lambda number=number: len(receiver.received["/one"]) > number, within=60)
            took.append(time.perf_counter() - started)
            await asyncio.sleep(0.05)
    return Figure("change → receiver, p50 (beside its bound)", statistics.median(took) * 1000, 1000, "ms", at_most=1)


async def _notices(receiver: Receiver, changes: int) -> Figure:
    """One change after the other in an application that sends notices: until its event is with the receiver."""
    took, path = [], "/notices"
    with tempfile.TemporaryDirectory() as folder:
        async with (
            own_stores() as stores,
            deployed(
                Path(folder), stores.postgres.url, stores.redis.url, GATEWAY_WEBHOOK_ORIGINS=receiver.url
            ) as deployment,
            deployment.api() as api,
            aiohttp.ClientSession(deployment.upstream_url) as application,
        ):
            connector = await api.connector()
            await eventually(lambda: is_loaded(connector))
            await hook(deployment, connector, application)
            webhook = {"url": receiver.url + path, "types": ["record.updated"], "entity": "tickets"}
            (await api.post("/api/v1/webhooks", webhook)).document(201)
            for number in range(1, changes + 1):
                started = time.perf_counter()
                change = {"subject": f"change {number}"}
                async with application.put(f"/_sandbox/records/support-desk/tickets/{number}", json=change):
                    pass
                await eventually(lambda number=number: len(receiver.received[path]) >= number, within=60)
                took.append(time.perf_counter() - started)
    return Figure(
        "notice → record read → receiver, p50 (beside its bound)", statistics.median(took) * 1000, 1000, "ms", at_most=1
    )


async def _among_many(opened: Bench, receiver: Receiver, subscriptions: int, changes: int) -> Figure:
    """One change after the other, which one of many subscriptions of hosts selects, until its receiver has it."""
    caller = Client(
        id=uuid4(), name="c", organization_ids=frozenset({opened.organization_id}), scopes=frozenset({"read"})
    )
    await opened.owner.execute("INSERT INTO clients (id, name, secret_hashes) VALUES ($1, 'c', '{}')", caller.id)
    await opened.owner.execute("INSERT INTO client_organizations VALUES ($1, $2)", caller.id, opened.organization_id)
    store, connectors, took = SubscriptionStore(opened.database, VAULT), [uuid4() for _ in range(subscriptions)], []
    workspace_id = await IdentityStore(opened.database).workspace_named(opened.organization_id, "bench")
    await opened.owner.execute(
        "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status) "
        "SELECT id, $2, $3, 'support-desk', 'c', 'active' FROM unnest($1::uuid[]) AS id",
        connectors, opened.organization_id, workspace_id,
    )  # fmt: skip
    async with _delivering(opened, receiver):
        position = (await Feed(opened.database).read(opened.organization_id, EventFilter(), None, 1)).latest_id
        for part in (connectors[at : at + 50] for at in range(0, subscriptions, 50)):
            await asyncio.gather(
                *(
                    store.create(
                        caller.caller(None),
                        f"sub_{each.hex}",
                        NewSubscription(
                            type=EventType.RECORD_UPDATED,
                            arguments={},
                            connector_id=each,
                            entity=None,
                            url=f"{receiver.url}/among-many",
                            secret=new_secret(),
                            after=None,
                            max_age=None,
                            lifetime=None,
                        ),
                        position,
                    )
                    for each in part
                )
            )
        for number, each in enumerate(random.Random(7).sample(connectors, changes)):
            started = time.perf_counter()
            async with opened.database.tenant(opened.organization_id) as connection:
                await add_record_events(connection, opened.organization_id, each, "tickets", updated=["1"])
            await eventually(lambda number=number: len(receiver.received["/among-many"]) > number, within=120)
            took.append(time.perf_counter() - started)
    name = f"change → receiver among {subscriptions:,} subscriptions of agents' hosts, p50 (beside its bound)"
    return Figure(name, statistics.median(took) * 1000, 1000, "ms", at_most=1)


async def _beside_dead_ones(opened: Bench, receiver: Receiver, subscriptions: int, dead: int) -> Figure:
    """The 99th percentile of deliveries of five changes to all that live, with dead receivers and without."""

    async def p99(name: str, dead: int) -> float:
        arrived: list[float] = []
        started = 0.0

        def note(_: object) -> int:
            arrived.append(time.perf_counter() - started)
            return 204

        paths = [f"/{name}{number}" for number in range(subscriptions - dead)]
        async with _delivering(opened, receiver) as store:
            for path in paths:
                receiver.answers[path] = note
                await _subscribe(opened, store, receiver.url + path)
            for number in range(dead):
                await _subscribe(opened, store, f"http://127.0.0.1:1/{number}")
            took: list[float] = []
            for _ in range(5):
                arrived.clear()
                started = time.perf_counter()
                await _change(opened)
                await eventually(lambda: len(arrived) == len(paths), within=120)
                took += arrived
        return statistics.quantiles(took, n=100)[98]

    theirs, ours = await p99("alone", 0), await p99("beside", dead)
    name = f"{subscriptions:,} subscriptions, {dead} of them dead: the others' p99 beside the same without"
    return Figure(name, ours * 1000, theirs * 1000, "ms", at_most=2)


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """A server of its own, which flushes its log to disk."""
    directory = Path(tempfile.mkdtemp(prefix="gwb-"))
    postgres = EmbeddedPostgres(directory / "p")
    try:
        url = postgres.start()
        await migrate(url)
        async with Database.open(url, size=10) as database:
            organization = await IdentityStore(database).create_organization("bench")
            owner = await asyncpg.connect(url)
            yield Bench(url, database, owner, organization.id)
            await owner.close()
    finally:
        postgres.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    measured_alone(run, __doc__)
