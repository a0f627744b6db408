"""The feed: every event once and in order, whatever the order in which transactions commit."""

import asyncio
import random
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

import pytest

from gateway.contract.events import EventType
from gateway.errors import CursorExpired, InvalidParams, NotFound
from gateway.events.feed import Feed
from gateway.events.model import EventFilter, event_types
from gateway.events.pruning import prune_events
from gateway.events.recording import add_event, add_record_events
from gateway.foundation.db.notifications import NotificationListener

ALL = EventFilter()
CONNECTOR = UUID(int=7)


@pytest.fixture
def added(database, organization_id):
    """`await added(name)`: an event of that name, committed."""

    async def add(name: str, type_: EventType = EventType.SCHEDULE_MISSED) -> None:
        async with database.tenant(organization_id) as connection:
            await add_event(connection, organization_id, type_, {"name": name})

    return add


def names(page):
    return [event.data["name"] for event in page.events]


async def test_an_event_that_commits_late_comes_after_those_that_were_read_before_it(
    database, feed, added, organization_id
):
    async with database.tenant(organization_id) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await add_event(connection, organization_id, EventType.SCHEDULE_MISSED, {"name": "late"})
        await added("early")

        first = await feed.read(organization_id, ALL, None, 10)
        await transaction.commit()
    second = await feed.read(organization_id, ALL, first.next_after, 10)

    assert names(first) == ["early"]
    assert names(second) == ["late"]
    assert second.events[0].id > first.events[0].id


async def test_a_reader_misses_nothing_while_transactions_overlap_in_every_order(database, feed, organization_id):
    order = random.Random(1)
    read: list[str] = []
    after = 0
    open_transactions = []

    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(database.system()) for _ in range(5)]
        written = 0
        for _ in range(300):
            if connections and (not open_transactions or order.random() < 0.5):
                connection = connections.pop()
                transaction = connection.transaction()
                await transaction.start()
                await add_event(connection, organization_id, EventType.SCHEDULE_MISSED, {"name": str(written)})
                written += 1
                open_transactions.append((connection, transaction))
            else:
                connection, transaction = open_transactions.pop(order.randrange(len(open_transactions)))
                await transaction.commit()
                connections.append(connection)
            if order.random() < 0.5:
                page = await feed.read(organization_id, ALL, after, 3)
                read += names(page)
                assert [event.id for event in page.events] == sorted(event.id for event in page.events)
                after = page.next_after
        for _, transaction in open_transactions:
            await transaction.commit()
    while (page := await feed.read(organization_id, ALL, after, 3)).events:
        read += names(page)
        after = page.next_after

    assert sorted(map(int, read)) == list(range(written))


async def test_events_of_a_transaction_that_is_rolled_back_never_appear(database, feed, added, organization_id):
    async with database.tenant(organization_id) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await add_event(connection, organization_id, EventType.SCHEDULE_MISSED, {"name": "undone"})
        await transaction.rollback()
    await added("done")

    assert names(await feed.read(organization_id, ALL, None, 10)) == ["done"]


async def test_many_readers_at_once_see_the_same_ids(feed, added, organization_id):
    for number in range(20):
        await added(str(number))

    pages = await asyncio.gather(*(feed.read(organization_id, ALL, None, 100) for _ in range(8)))

    assert {tuple((event.id, event.data["name"]) for event in page.events) for page in pages} == {
        tuple((number + 1, str(number)) for number in range(20))
    }


async def test_a_cursor_may_stand_between_the_records_of_one_write(database, feed, organization_id):
    async with database.tenant(organization_id) as connection:
        await add_record_events(
            connection, organization_id, CONNECTOR, "tickets", created=["1", "2", "3"], deleted=["4"]
        )

    first = await feed.read(organization_id, ALL, None, 2)
    second = await feed.read(organization_id, ALL, first.next_after, 2)

    assert [(event.id, event.data) for event in first.events] == [
        (1, {"entity": "tickets", "record_id": "1"}),
        (2, {"entity": "tickets", "record_id": "2"}),
    ]
    assert [(event.type, event.data["record_id"]) for event in second.events] == [
        (EventType.RECORD_CREATED, "3"),
        (EventType.RECORD_DELETED, "4"),
    ]


async def test_a_filter_that_nothing_passes_moves_the_cursor_all_the_same(feed, added, organization_id):
    await added("missed")

    page = await feed.read(organization_id, EventFilter(types=[EventType.JOB_FAILED]), None, 10)

    assert (page.events, page.next_after) == ([], page.latest_id)


async def test_another_organization_has_another_feed(feed, added, database, organization_id):
    await added("ours")
    async with database.system() as connection:
        other = uuid4()
        await connection.execute("INSERT INTO organizations (id, name) VALUES ($1, $2)", other, str(other))

    assert (await feed.read(other, ALL, None, 10)).events == []


async def test_a_disabled_organization_has_none(feed, added, sql, organization_id):
    await added("ours")
    await sql("UPDATE organizations SET disabled_at = now() WHERE id = $1", organization_id)

    with pytest.raises(NotFound):
        await feed.read(organization_id, ALL, None, 10)


async def test_callers_limited_to_workspaces_see_the_events_of_these(feed, added, sql, organization_id):
    for name in ("acme", "other", None):
        await sql(
            "INSERT INTO events (organization_id, type, workspace_name, data) VALUES ($1, 'job.failed', $2, $3)",
            organization_id, name, f'{{"name":"{name}"}}',
        )  # fmt: skip

    assert names(await feed.read(organization_id, EventFilter(workspaces=["acme"]), None, 10)) == ["acme"]


async def test_a_reader_that_waits_is_woken_by_an_event(database_url, database, added, organization_id):
    feed, notifications = Feed(database), NotificationListener(database_url)
    is_listening = asyncio.Event()
    notifications.subscribe({"events": feed.on_notify}, is_listening.set)
    async with notifications.listening():
        await is_listening.wait()
        waiting = asyncio.create_task(feed.wait(organization_id, ALL, None, 10, 4))
        await added("news")

        assert names(await asyncio.wait_for(waiting, 3)) == ["news"]


async def test_old_events_are_pruned_and_their_cursors_are_refused(feed, added, sql, database, organization_id):
    await added("old")
    first = await feed.read(organization_id, ALL, None, 10)
    await added("unread")
    await sql("UPDATE events SET at = now() - interval '8 days' WHERE organization_id = $1", organization_id)
    await added("young")

    await prune_events(database, 7 * 86400, 1_000)

    with pytest.raises(CursorExpired) as refusal:
        await feed.read(organization_id, ALL, first.next_after, 10)
    begins_after = refusal.value.extra["begins_after"]
    assert names(await feed.read(organization_id, ALL, begins_after, 10)) == ["young"]
    assert names(await feed.read(organization_id, ALL, None, 10)) == ["young"]


async def test_an_organization_keeps_no_more_events_than_it_may(feed, added, database, organization_id):
    for number in range(10):
        await added(str(number))

    await prune_events(database, 86400, 4)

    assert names(await feed.read(organization_id, ALL, None, 10)) == ["6", "7", "8", "9"]


async def test_a_cursor_that_the_feed_has_not_reached_is_refused(feed, added, organization_id):
    await added("only")

    with pytest.raises(InvalidParams, match="newest event is 1"):
        await feed.read(organization_id, ALL, 99, 10)


@pytest.mark.parametrize(
    ("given", "types"),
    [
        (["job.failed"], [EventType.JOB_FAILED]),
        (["record.*"], [EventType.RECORD_CREATED, EventType.RECORD_UPDATED, EventType.RECORD_DELETED]),
        (
            ["record.*", "record.deleted"],
            [EventType.RECORD_CREATED, EventType.RECORD_UPDATED, EventType.RECORD_DELETED],
        ),
    ],
)
def test_types_are_named_one_by_one_or_by_group(given, types):
    assert event_types(given) == types


@pytest.mark.parametrize("given", ["job", "jobs.*", "*", "", ".*"])
def test_an_unknown_type_is_refused(given):
    with pytest.raises(InvalidParams, match=r"job\.succeeded"):
        event_types([given])
