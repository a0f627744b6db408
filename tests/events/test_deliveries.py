"""Webhooks deliver every event at least once and in order, whatever receivers answer and whichever worker is lost."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Client
from gateway.access.identity.store import IdentityStore
from gateway.context_store.entities import register
from gateway.context_store.layout import Layout
from gateway.context_store.records import documents, upsert
from gateway.contract.events import DeliveryStatus, EventType, NewWebhook, WebhookStatus
from gateway.errors import InvalidParams, NotFound
from gateway.events.deliverer import Deliverer
from gateway.events.feed import Feed
from gateway.events.model import EventFilter, event_types
from gateway.events.recording import add_event, add_record_events
from gateway.events.sender import Sender
from gateway.events.service import WebhookService, stored_members
from gateway.events.signing import new_secret
from gateway.events.store import MAX_PENDING, WebhookStore
from gateway.events.subscription_store import SubscriptionStore
from gateway.foundation.aio.loops import every, running
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.transport import Transport
from tests.events.receiver import Receiver, receiving
from tests.harness.databases import refusing, waits_for_lock
from tests.harness.waiting import eventually

CONNECTOR = UUID(int=7)
RETRY_SECONDS = 3600
soon = partial(eventually, within=20)
VAULT = Vault([("k1", bytes(32))])


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as opened:
        yield opened


@pytest.fixture(autouse=True)
async def no_webhooks_left(sql):
    yield
    await sql("DELETE FROM webhooks")


@pytest.fixture
def caller(organization_id):
    return Caller(
        Client(
            id=uuid4(), name="c", organization_ids=frozenset({organization_id}), scopes=frozenset({"read", "write"})
        ),
        organization_id,
    )


@pytest.fixture
async def sender(receiver) -> AsyncIterator[Sender]:
    async with Transport(EgressPolicy.of([URL(receiver.url)])) as transport:
        yield Sender(transport)


@pytest.fixture
def store(database) -> WebhookStore:
    return WebhookStore(database, VAULT)


@pytest.fixture
def webhooks(database, store, feed, sender, receiver) -> WebhookService:
    return WebhookService(Audit(database), store, feed, sender, [URL(receiver.url)])


@pytest.fixture
def subscribed(webhooks, store, caller, receiver):
    """`await subscribed("/path", "record.*")`: a new webhook, whose deliveries the receiver verifies."""

    async def subscribe(path: str = "/", *types: str, url: str | None = None, **members):
        request = NewWebhook(url=url or receiver.url + path, types=types or ("record.*",), **members)
        created = await webhooks.create(caller, request)
        receiver.secrets[path] = created.secret
        return await store.get(caller.organization_id, UUID(created.id), None)

    return subscribe


async def no_person(client_id: UUID) -> None:
    """Programs create the webhooks of these tests."""


@pytest.fixture
def deliverer(database, store, feed, sender):
    def new(name: str = "here") -> Deliverer:
        return Deliverer(
            store=store,
            subscriptions=SubscriptionStore(database, VAULT),
            feed=feed,
            sender=sender,
            worker=name,
            read_records=partial(documents, database),
            rights_of=no_person,
            retry_seconds=RETRY_SECONDS,
        )

    return new


@pytest.fixture
def working(deliverer, database_url):
    """`async with working():` a worker delivers for as long as the block lasts."""

    @asynccontextmanager
    async def work(name: str = "here"):
        opened, notifications = deliverer(name), NotificationListener(database_url)
        notifications.subscribe({"events": opened.on_event, "webhook": opened.on_webhook}, opened.forget)
        async with notifications.listening(), running(every(0, opened.deliver, name="deliveries")):
            yield opened
        await opened.close()

    return work


@pytest.fixture
def changed(database, organization_id):
    """`await changed("1", "2")`: these records were updated."""

    async def change(*ids: str, entity: str = "tickets") -> None:
        async with database.tenant(organization_id) as connection:
            await add_record_events(connection, organization_id, CONNECTOR, entity, updated=ids)

    return change


@pytest.fixture
def hurry(sql, organization_id):
    """`await hurry()`: everything that waits to be retried is due."""

    async def make_due() -> None:
        await sql(
            "UPDATE webhook_deliveries SET next_attempt_at = now() "
            "WHERE organization_id = $1 AND next_attempt_at IS NOT NULL", organization_id,
        )  # fmt: skip
        await sql(
            "UPDATE webhooks SET retry_at = now(), held_until = '-infinity', updated_at = clock_timestamp() "
            "WHERE organization_id = $1", organization_id,
        )  # fmt: skip

    return make_due


def ids_of(receiver, path="/"):
    return [event["data"]["record_id"] for event in receiver.received[path]]


async def test_each_event_is_delivered_once_to_a_receiver_that_takes_it(receiver, subscribed, working, changed):
    await changed("before")
    webhook = await subscribed()
    async with working():
        await changed("1", "2", "3")
        await soon(lambda: len(receiver.received["/"]) == 3)

    assert sorted(ids_of(receiver)) == ["1", "2", "3"]
    event = receiver.received["/"][0]
    assert event["type"] == "record.updated"
    assert event["connector_id"] == str(CONNECTOR)
    assert event["data"]["entity"] == "tickets"
    assert receiver.ids["/"] == [f"msg_{webhook.id.hex}_{event['id']}" for event in receiver.received["/"]]


async def test_events_of_one_record_arrive_in_their_order_and_others_do_not_wait_for_a_failing_one(
    receiver, subscribed, working, changed, hurry
):
    await subscribed()
    is_poisoned = True
    receiver.answers["/"] = lambda event: 500 if is_poisoned and event["data"]["record_id"] == "bad" else 204
    async with working():
        await changed("bad")
        await changed("bad", "good")
        await changed("good", "bad")
        await soon(lambda: ids_of(receiver) == ["good", "good"])
        is_poisoned = False
        await hurry()
        await soon(lambda: len(receiver.received["/"]) == 5)

    bad = [event["id"] for event in receiver.received["/"] if event["data"]["record_id"] == "bad"]
    assert bad == sorted(bad)
    assert len(set(receiver.ids["/"])) == 5


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500, 503])
async def test_a_delivery_that_is_not_answered_2xx_is_sent_again_with_the_same_id(
    status, receiver, subscribed, working, changed, hurry, webhooks, caller
):
    webhook = await subscribed()
    answers = iter([status, 204])
    receiver.answers["/"] = lambda _: web.Response(
        status=next(answers), text="no" * 2000, headers={"Location": "/else"}
    )
    async with working():
        await changed("1")
        await soon(lambda: len(receiver.ids["/"]) == 1)
        (failed,) = await delivered_as(DeliveryStatus.PENDING, webhooks, caller, webhook)
        await hurry()
        (done,) = await delivered_as(DeliveryStatus.SUCCEEDED, webhooks, caller, webhook)

    assert len(receiver.ids["/"]) == 2
    assert len(set(receiver.ids["/"])) == 1
    assert receiver.ids["/else"] == []
    assert (failed.response_status, failed.attempts, len(failed.response_body)) == (status, 1, 1024)
    assert failed.next_attempt_at > failed.attempted_at
    assert (done.response_status, done.attempts, done.error) == (204, 2, None)


async def test_a_retry_has_a_timestamp_and_a_signature_of_its_own(receiver, subscribed, working, changed, hurry):
    await subscribed()
    answers = iter([503, 204])

    receiver.answers["/"] = lambda _: next(answers)
    async with working():
        await changed("1")
        await soon(lambda: len(receiver.ids["/"]) == 1)
        sent_at = int(receiver.headers["/"][0]["webhook-timestamp"])
        await soon(lambda: time.time() >= sent_at + 1)  # timestamps have whole seconds
        await hurry()
        await soon(lambda: len(receiver.ids["/"]) == 2)

    first, second = receiver.headers["/"]
    assert first["webhook-id"] == second["webhook-id"]
    assert int(first["webhook-timestamp"]) < int(second["webhook-timestamp"])
    assert first["webhook-signature"] != second["webhook-signature"]


async def delivered_as(status, webhooks, caller, webhook):
    """The deliveries of a webhook, once one has that status."""
    found = []

    async def look():
        found[:] = (await webhooks.deliveries(caller, webhook.id, status, None, 100)).data
        return bool(found)

    await soon(look)
    return list(found)


async def test_retry_after_holds_the_receiver_s_other_events_too(receiver, subscribed, working, changed, sql, hurry):
    webhook = await subscribed()
    receiver.answers["/"] = lambda _: web.Response(status=429, headers={"Retry-After": "120"})
    async with working():
        await changed("1")
        await soon(lambda: bool(receiver.ids["/"]))

        async def is_held():
            rows = await sql(
                "SELECT held_until > now() + interval '100 seconds' FROM webhooks WHERE id = $1", webhook.id
            )
            return rows[0][0]

        await soon(is_held)
        await changed("2")
        receiver.answers["/"] = lambda _: 204
        assert len(receiver.ids["/"]) == 1
        await hurry()
        await soon(lambda: ids_of(receiver) == ["1", "2"])


async def test_a_receiver_that_is_gone_disables_its_webhook_with_an_event(
    receiver, subscribed, working, changed, webhooks, caller, feed, organization_id
):
    webhook = await subscribed()
    receiver.answers["/"] = lambda _: 410
    async with working():
        await changed("1")
        await disabled(webhooks, caller, webhook)

    found = await webhooks.get(caller, webhook.id)
    assert found.status_reason == "the receiver answered 410 Gone"
    page = await feed.read(organization_id, EventFilter(types=[EventType.WEBHOOK_DISABLED]), None, 10)
    assert page.events[0].data["webhook_id"] == str(webhook.id)


async def disabled(webhooks, caller, webhook):
    async def is_disabled():
        return (await webhooks.get(caller, webhook.id)).status is WebhookStatus.DISABLED

    await soon(is_disabled)


async def test_a_webhook_without_a_success_for_too_long_is_disabled_and_continues_when_it_is_enabled(
    receiver, subscribed, working, changed, webhooks, caller, sql, hurry
):
    webhook = await subscribed()
    receiver.answers["/"] = lambda _: 500
    async with working():
        await changed("1")
        await delivered_as(DeliveryStatus.PENDING, webhooks, caller, webhook)
        await sql("UPDATE webhooks SET failing_since = now() - interval '2 hours' WHERE id = $1", webhook.id)
        await hurry()
        await disabled(webhooks, caller, webhook)
        await changed("2")
        receiver.answers["/"] = lambda _: 204
        await webhooks.change(caller, webhook.id, {"status": WebhookStatus.ACTIVE})
        await hurry()
        await soon(lambda: sorted(ids_of(receiver)) == ["1", "2"])


async def test_a_delivery_to_a_subscription_is_retried_for_a_quarter_of_an_hour(subscribed):
    webhook = await subscribed()

    subscription = msgspec.structs.replace(webhook, subscription_id="sub_1")

    assert (webhook.rules(RETRY_SECONDS).retry_seconds, subscription.rules(RETRY_SECONDS).retry_seconds) == (3600, 900)


async def test_a_delivery_is_given_up_after_the_time_for_retries(
    receiver, subscribed, working, changed, webhooks, caller, sql, hurry
):
    webhook = await subscribed()
    receiver.answers["/"] = lambda event: 500 if event["data"]["record_id"] == "bad" else 204
    async with working():
        await changed("bad")
        await delivered_as(DeliveryStatus.PENDING, webhooks, caller, webhook)
        await changed("bad", "good")
        await soon(lambda: ids_of(receiver) == ["good"])
        await sql("UPDATE webhook_deliveries SET first_attempt_at = now() - interval '2 hours'")
        await hurry()
        (failed,) = await delivered_as(DeliveryStatus.FAILED, webhooks, caller, webhook)
        receiver.answers["/"] = lambda _: 204
        await hurry()
        await soon(lambda: len(receiver.received["/"]) == 2)

    assert failed.error == "the receiver answered 500"
    assert ids_of(receiver) == ["good", "bad"]


async def test_a_worker_has_two_hundred_turns_at_most(store, deliverer, database, receiver, sql):
    identity, request = IdentityStore(database), NewWebhook(url=receiver.url, types=event_types(["record.*"]))
    for _ in range(210):
        organization_id = (await identity.create_organization(f"o-{uuid4().hex}")).id
        await store.create(stored_members(organization_id, uuid4(), request, None), new_secret())
    await sql("UPDATE webhooks SET retry_at = now()")
    worker = deliverer()

    await worker.deliver()

    [leased] = await sql("SELECT count(*) FROM webhooks WHERE fence > 0")
    assert leased["count"] == 200
    await worker.close()


async def test_a_claim_takes_no_more_webhooks_than_there_are_turns_by_whichever_plan(database_url, receiver):
    """PostgreSQL runs a subquery again for each row of a nested loop, and each run locks further rows."""
    plan = "&".join(
        f"enable_{each}=off" for each in ("hashjoin", "mergejoin", "material", "hashagg", "sort", "indexscan")
    )
    url = f"{database_url}{'&' if '?' in database_url else '?'}{plan}&enable_bitmapscan=off"
    async with Database.open(url, command_timeout=10) as database:
        identity, store = IdentityStore(database), WebhookStore(database, VAULT)
        request = NewWebhook(url=receiver.url, types=event_types(["record.*"]))
        for _ in range(30):
            organization_id = (await identity.create_organization(f"o-{uuid4().hex}")).id
            await store.create(stored_members(organization_id, uuid4(), request, None), new_secret())
        async with database.system() as connection:
            await connection.execute("UPDATE webhooks SET retry_at = now()")

        assert len(await store.claim("here", 8, 20, {})) == 20


def test_an_attempt_has_fifteen_seconds(sender):
    assert sender._timeout == 15


@pytest.mark.parametrize("status", [200, 201, 500])
async def test_a_slow_body_does_not_outlive_the_deadline_and_the_status_counts(status):
    """A delivery that outlived its lease was sent again, and never recorded."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"1\r\nx\r\n")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Transport(EgressPolicy.of([URL(url)])) as transport:
            attempt = await Sender(transport, timeout=0.5).send(uuid4(), url, "m", b"{}", ["whsec_MA=="])

    assert attempt.duration_ms < 5000
    assert (attempt.status, attempt.is_success) == (status, status < 300)


async def test_a_signature_that_the_receiver_echoes_is_not_stored():
    async def echo(request: web.Request) -> web.Response:
        return web.Response(text=f"{'x' * 900} {request.headers['webhook-signature']} {'x' * 200}", status=400)

    application = web.Application()
    application.router.add_post("/", echo)
    async with TestServer(application) as server:
        url = server.make_url("/")
        async with Transport(EgressPolicy.of([url.origin()])) as transport:
            attempt = await Sender(transport).send(uuid4(), str(url), "m", b"{}", ["whsec_MA=="])

    assert attempt.body == f"{'x' * 900} *** {'x' * 200}"[:1024]


async def test_a_late_head_ends_the_attempt():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Transport(EgressPolicy.of([URL(url)])) as transport:
            attempt = await Sender(transport, timeout=0.2).send(uuid4(), url, "m", b"{}", ["whsec_MA=="])

    assert (attempt.status, attempt.error) == (None, "no response within 0 seconds")


async def test_organizations_take_turns_and_one_has_half_of_those_that_the_others_leave(
    webhooks, store, caller, receiver, database, feed, sql
):
    other = (await IdentityStore(database).create_organization(f"o-{uuid4().hex}")).id
    neighbour = Caller(
        Client(id=uuid4(), name="n", organization_ids=frozenset({other}), scopes=frozenset({"read", "write"})), other
    )
    for number in range(8):
        await webhooks.create(caller, NewWebhook(url=f"{receiver.url}/{number}", types=("record.*",)))
    await webhooks.create(neighbour, NewWebhook(url=f"{receiver.url}/polite", types=("record.*",)))
    await sql("UPDATE webhooks SET retry_at = now()")

    first = await store.claim("w", 60, 8, {})
    again = await store.claim("w", 60, 8, Counter(each.webhook.organization_id for each in first))

    assert [each.webhook.organization_id for each in first].count(other) == 1
    assert len(first) == 1 + 4
    assert again == []
    assert await store.claim("w", 60, 8, {other: 1, uuid4(): 2}) != []


async def test_the_webhook_of_one_organization_is_claimed_before_the_second_of_another(store, database, receiver, sql):
    identity, request = IdentityStore(database), NewWebhook(url=receiver.url, types=event_types(["record.*"]))
    ids = [(await identity.create_organization(f"o-{uuid4().hex}")).id for _ in range(4)]
    for organization_id in (*[ids[0]] * 4, *ids[1:]):
        await store.create(stored_members(organization_id, uuid4(), request, None), new_secret())
    await sql("UPDATE webhooks SET retry_at = now(), turn_at = created_at")

    claimed = await store.claim("w", 60, 8, {uuid4(): 4})

    assert len(claimed) == 4
    assert {each.webhook.organization_id for each in claimed} == set(ids)


async def test_a_private_address_is_never_connected_to(subscribed, webhooks, caller, database, store, feed, receiver):
    async with Transport(EgressPolicy()) as transport:
        strict = WebhookService(Audit(database), store, feed, Sender(transport), [URL(receiver.url)])
        webhook = await subscribed()

        attempt = await strict.test(caller, webhook.id)

    assert not attempt.delivered
    assert attempt.error == "127.0.0.1 cannot be reached: its address is not on the public Internet"
    assert receiver.ids["/"] == []


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example.com/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://localhost/",
        "https://user:pass@app.example.com/", "https://app.example.com/#x", "ftp://app.example.com/", "app", "",
        "https://app.example.com/ x", "https://app.example.com:99999/", "https://" + "a" * 2000 + ".com/",
        "https://service.internal/",
    ],
)  # fmt: skip
async def test_a_url_that_is_not_https_at_a_public_address_is_refused(url, webhooks, caller):
    with pytest.raises(InvalidParams, match=r"^url "):
        await webhooks.create(caller, NewWebhook(url=url, types=["job.*"]))


async def test_a_lost_worker_s_deliveries_are_made_by_another(receiver, subscribed, deliverer, working, changed, sql):
    await subscribed()
    await changed("1")
    async with asyncio.timeout(10):
        lost = deliverer("lost")
        receiver.answers["/"] = lambda _: next(iter(lost._turns)).cancel() or 500
        await lost.deliver()
        await asyncio.gather(*lost._turns, return_exceptions=True)
    receiver.answers["/"] = lambda _: 204
    await sql("UPDATE webhooks SET lease_until = now()")

    async with working("another"):
        await soon(lambda: ids_of(receiver) == ["1"])

    assert len(receiver.ids["/"]) == 2
    assert len(set(receiver.ids["/"])) == 1


async def test_deliveries_go_on_if_webhooks_cannot_be_skipped(subscribed, receiver, sender, changed, database_url):
    """A worker with many webhooks lets those pass by that select nothing; here another transaction keeps one."""
    await subscribed("/passing", "job.*")
    for number in range(50):
        await subscribed(f"/{number}")
    async with Database.open(database_url, size=3, command_timeout=1.0) as impatient:
        worker = Deliverer(
            store=WebhookStore(impatient, VAULT),
            subscriptions=SubscriptionStore(impatient, VAULT),
            feed=Feed(impatient),
            sender=sender,
            worker="here",
            read_records=partial(documents, impatient),
            rights_of=no_person,
            retry_seconds=RETRY_SECONDS,
        )
        await changed("1")
        async with running(every(0, worker.deliver, name="deliveries")):
            await soon(lambda: len(receiver.received["/49"]) == len(receiver.received["/0"]) == 1)
            holder = await asyncpg.connect(database_url)
            async with holder.transaction():
                await holder.execute("SELECT FROM webhooks WHERE url LIKE '%/passing' FOR UPDATE")
                await changed("2")
                await soon(lambda: len(receiver.received["/49"]) == len(receiver.received["/0"]) == 2)
            await holder.close()
        await worker.close()


async def test_a_turn_that_lasts_longer_than_its_lease_keeps_it_while_its_worker_lives(
    receiver, subscribed, deliverer, changed, sql
):
    await subscribed()
    await changed("1")
    async with asyncio.timeout(10):
        slow, another = deliverer("slow"), deliverer("another")
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def answer(_):
            asked.set()
            await may_answer.wait()
            return 204

        receiver.answers["/"] = answer
        await slow.deliver()
        await asked.wait()
        await sql("UPDATE webhooks SET lease_until = now() + interval '1 second'")
        await slow.renew()
        is_renewed = await sql("SELECT lease_until > now() + interval '5 seconds' FROM webhooks")
        await another.deliver()
        (turn,) = slow._turns
        may_answer.set()
        await asyncio.wait([turn])

    assert is_renewed
    assert ids_of(receiver) == ["1"]
    assert not another._turns


async def test_a_turn_that_finds_postgresql_unavailable_is_no_error(
    receiver, subscribed, deliverer, changed, database_url, caplog
):
    await subscribed()
    await changed("1")
    async with asyncio.timeout(10), refusing(database_url, "UPDATE ON webhooks", "53100", when="NEW.fence = OLD.fence"):
        opened = deliverer("here")
        await opened.deliver()
        await soon(lambda: not opened._turns)

    said = [record for record in caplog.records if "turn of deliveries" in record.message]
    assert [(record.levelname, record.exc_info) for record in said] == [("WARNING", None)]


async def test_only_events_that_pass_the_filter_are_delivered(
    receiver, subscribed, working, changed, database, organization_id
):
    await subscribed("/tickets", "record.updated", entity="tickets")
    await subscribed("/elsewhere", connector_id=UUID(int=8))
    await subscribed("/other", workspace_name="other")
    await subscribed("/schedules", "schedule.*")
    async with working():
        await changed("1", entity="tickets")
        await changed("2", entity="users")
        async with database.tenant(organization_id) as connection:
            await add_event(connection, organization_id, EventType.SCHEDULE_MISSED, {"schedule_id": "3"})
        await changed("4", entity="tickets")
        await soon(lambda: len(receiver.received["/tickets"]) == 2 and len(receiver.received["/schedules"]) == 1)

    assert ids_of(receiver, "/tickets") == ["1", "4"]
    assert (receiver.ids["/elsewhere"], receiver.ids["/other"]) == ([], [])


async def test_a_replay_delivers_again_with_the_ids_of_the_first_time(
    receiver, subscribed, working, changed, webhooks, caller
):
    webhook = await subscribed()
    async with working():
        await changed("1", "2")
        await soon(lambda: len(receiver.received["/"]) == 2)
        first = receiver.received["/"][0]["id"]
        await webhooks.replay(caller, webhook.id, first - 1)
        await soon(lambda: len(receiver.received["/"]) == 4)
        await delivered_as(DeliveryStatus.SUCCEEDED, webhooks, caller, webhook)
        await webhooks.resend(caller, webhook.id, first)
        # If the replay's turn has not ended yet, its events come again as well.
        await soon(lambda: len(receiver.received["/"]) >= 5)

    assert len(set(receiver.ids["/"])) == 2
    with pytest.raises(InvalidParams):
        await webhooks.replay(caller, webhook.id, 99)
    with pytest.raises(NotFound):
        await webhooks.resend(caller, webhook.id, 99)


#: as a turn that ends does
LOCK = "SELECT FROM webhooks WHERE id = $1 FOR NO KEY UPDATE"


async def test_a_replay_at_the_moment_at_which_events_are_skipped_is_kept(
    subscribed, changed, store, feed, sql, database, organization_id
):
    webhook = await subscribed()
    await changed("1", "2")
    delivered = (await feed.read(organization_id, EventFilter(), 0, 10)).next_after
    await sql("UPDATE webhooks SET position = $2 WHERE id = $1", webhook.id, delivered)
    async with database.tenant(organization_id) as connection:
        await add_event(connection, organization_id, EventType.SCHEDULE_MISSED, {"schedule_id": "3"})
    assert (await feed.read(organization_id, EventFilter(), delivered, 10)).events
    async with database.system() as connection, connection.transaction():
        await connection.execute(LOCK, webhook.id)
        replaying = asyncio.create_task(store.replay(organization_id, webhook.id, None, 0))
        await soon(lambda: waits_for_lock(database))
        skipping = asyncio.create_task(store.skip())
        await soon(lambda: waits_for_lock(database, 2))
    await asyncio.gather(replaying, skipping)

    assert (await store.get(organization_id, webhook.id, None)).position == 0


async def test_a_delivery_is_sent_again_that_a_turn_stores_at_the_same_moment(
    subscribed, store, sql, database, organization_id
):
    webhook = await subscribed()
    await sql(
        """
        INSERT INTO webhook_deliveries (webhook_id, organization_id, event_id, subject, event, status)
        VALUES ($1, $2, 1, 's', '{}', 'failed')
        """,
        webhook.id,
        organization_id,
    )
    async with database.system() as connection, connection.transaction():
        await connection.execute(LOCK, webhook.id)
        resending = asyncio.create_task(store.resend(organization_id, webhook.id, None, 1))
        await soon(lambda: waits_for_lock(database))
        await connection.execute("UPDATE webhook_deliveries SET attempts = 9 WHERE webhook_id = $1", webhook.id)
    await resending

    [row] = await sql("SELECT status, attempts FROM webhook_deliveries WHERE webhook_id = $1", webhook.id)
    assert tuple(row) == ("pending", 0)


async def test_of_two_rotations_at_the_same_moment_the_later_one_keeps_the_secret_of_the_earlier_one(
    subscribed, store, webhooks, caller, database
):
    webhook = await subscribed()
    async with database.system() as connection, connection.transaction():
        await connection.execute(LOCK, webhook.id)
        rotations = [asyncio.create_task(webhooks.rotate(caller, webhook.id)) for _ in range(2)]
        await soon(lambda: waits_for_lock(database, 2))
    given = {(await each).secret for each in rotations}

    assert set(await store.secrets(await store.get(caller.organization_id, webhook.id, None))) == given


async def test_a_rotated_secret_and_the_one_before_it_both_verify(
    receiver, subscribed, working, changed, webhooks, caller, sql
):
    webhook = await subscribed()
    old = receiver.secrets["/"]
    new = (await webhooks.rotate(caller, webhook.id)).secret
    async with working():
        await changed("1")
        await soon(lambda: len(receiver.received["/"]) == 1)
        receiver.secrets["/"] = new
        await changed("2")
        await soon(lambda: len(receiver.received["/"]) == 2)
        await sql("UPDATE webhooks SET previous_until = now() WHERE id = $1", webhook.id)
        await changed("3")
        await soon(lambda: len(receiver.received["/"]) == 3)

    assert old != new
    assert [len(headers["webhook-signature"].split()) for headers in receiver.headers["/"]] == [2, 2, 1]


async def test_a_delivery_may_hold_the_record_as_the_copy_has_it(
    receiver, subscribed, working, database, sql, organization_id
):
    workspace = uuid4()
    await sql("INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, 'acme')", workspace, organization_id)
    connector = uuid4()
    await sql(
        "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status) "
        "VALUES ($1, $2, $3, 'support-desk', 'c', 'active')", connector, organization_id, workspace,
    )  # fmt: skip
    await subscribed("/", "record.*", include_record=True, workspace_name="acme")
    async with working(), database.tenant(organization_id) as connection:
        entity = await register(connection, connector, organization_id, "tickets", Layout())
        await upsert(connection, entity, [("1", b'{"id":"1","subject":"printer"}')])
        await soon(lambda: bool(receiver.received["/"]))

    assert receiver.received["/"][0]["type"] == "record.created"
    assert receiver.received["/"][0]["data"] == {
        "entity": "tickets", "record_id": "1", "record": {"id": "1", "subject": "printer"},
    }  # fmt: skip


async def test_a_large_record_is_left_out_and_a_turn_has_few_records_in_memory(
    receiver, subscribed, deliverer, working, database, sql, organization_id
):
    workspace, connector = uuid4(), uuid4()
    await sql("INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, 'acme')", workspace, organization_id)
    await sql(
        "INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status) "
        "VALUES ($1, $2, $3, 'support-desk', 'c', 'active')", connector, organization_id, workspace,
    )  # fmt: skip
    await subscribed("/", "record.*", include_record=True)
    sizes = [300, *[100] * 12]
    async with database.tenant(organization_id) as connection:
        entity = await register(connection, connector, organization_id, "tickets", Layout())
        records = [(str(number), b'{"text":"%s"}' % (b"x" * (kib << 10))) for number, kib in enumerate(sizes)]
        await upsert(connection, entity, records)
    once = deliverer("once")
    await once.deliver()
    (turn,) = once._turns
    await turn
    in_one_turn = len(receiver.received["/"])
    async with working():
        await soon(lambda: len(receiver.received["/"]) == len(sizes))

    lengths = {event["data"]["record_id"]: len(event["data"].get("record", "")) for event in receiver.received["/"]}
    assert in_one_turn == 1 + 512 // 101
    assert lengths == {"0": 0, **dict.fromkeys(map(str, range(1, 13)), 1)}


async def test_a_dead_receiver_s_backlog_stays_in_the_feed(receiver, subscribed, working, changed, sql):
    webhook = await subscribed()
    receiver.answers["/"] = lambda _: 500
    await changed(*(str(number) for number in range(700)))
    async with working():

        async def is_full():
            held = "UPDATE webhooks SET held_until = '-infinity', updated_at = clock_timestamp() WHERE id = $1"
            return (await sql(f"{held} RETURNING is_full", webhook.id))[0]["is_full"]

        await soon(is_full)

    (row,) = await sql("SELECT count(*) AS kept FROM webhook_deliveries WHERE webhook_id = $1", webhook.id)
    assert row["kept"] == MAX_PENDING
    (row,) = await sql("SELECT position FROM webhooks WHERE id = $1", webhook.id)
    assert row["position"] == MAX_PENDING


async def test_clients_limited_to_workspaces_see_their_own_webhooks(webhooks, store, caller, receiver, subscribed):
    everyone = await subscribed()
    client = Client(
        id=uuid4(),
        name="limited",
        organization_ids=caller.client.organization_ids,
        scopes=caller.client.scopes,
        workspaces=frozenset({"acme"}),
    )
    limited = Caller(client, caller.organization_id)
    own = await webhooks.create(limited, NewWebhook(url=receiver.url, types=["job.*"]))

    assert [each.id for each in (await webhooks.find(limited, None, 10)).data] == [own.id]
    assert {each.id for each in (await webhooks.find(caller, None, 10)).data} == {own.id, str(everyone.id)}
    assert (await store.get(caller.organization_id, UUID(own.id), None)).filter.workspaces == ["acme"]
    with pytest.raises(NotFound):
        await webhooks.get(limited, everyone.id)
    with pytest.raises(NotFound):
        await webhooks.delete(limited, everyone.id)


async def test_a_client_that_does_not_see_a_webhook_cannot_drop_its_pending_deliveries(
    webhooks, caller, receiver, subscribed, working, changed
):
    webhook = await subscribed()
    receiver.answers["/"] = lambda _: 500
    async with working():
        await changed("1")
        await delivered_as(DeliveryStatus.PENDING, webhooks, caller, webhook)
    scopes, organizations = caller.client.scopes, caller.client.organization_ids
    limited = Caller(
        Client(
            id=uuid4(), name="limited", organization_ids=organizations, scopes=scopes, workspaces=frozenset({"acme"})
        ),
        caller.organization_id,
    )

    with pytest.raises(NotFound):
        await webhooks.replay(limited, webhook.id, 0)

    (pending,) = (await webhooks.deliveries(caller, webhook.id, None, None, 10)).data
    assert pending.status == DeliveryStatus.PENDING
