"""Notifications: what a listener is called with, and when it must expect to have missed some."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.foundation.db.notifications import NOTIFY, NotificationListener
from tests.harness.postgres_relay import PostgresRelay, postgres_relay
from tests.harness.waiting import eventually, eventually_without_loop

#: seconds in which a lost or silent connection is noticed
NOTICED = 5.0


@pytest.fixture
async def relay(database_url: str) -> AsyncIterator[PostgresRelay]:
    async with postgres_relay(database_url) as opened:
        yield opened


class Listening:
    """A listener through the relay, and its gaps."""

    def __init__(self, url: str) -> None:
        self.listener = NotificationListener(url)
        self.received: asyncio.Queue[str] = asyncio.Queue()
        self.gaps = 0
        self.listener.subscribe({"topic": self.received.put_nowait}, self._on_gap)

    def _on_gap(self) -> None:
        self.gaps += 1


@pytest.fixture
async def listening(relay: PostgresRelay) -> AsyncIterator[Listening]:
    opened = Listening(relay.url)
    async with opened.listener.listening():
        await eventually(opened.listener.is_current)
        yield opened


async def test_a_process_is_not_current_before_it_listens(relay):
    assert not NotificationListener(relay.url).is_current()


async def test_a_process_without_a_direct_connection_is_current_until_it_is_frozen():
    listener = NotificationListener(None)

    assert not listener.is_current()
    async with listener.listening():
        await eventually(listener.is_current)
        eventually_without_loop(lambda: not listener.is_current(), within=NOTICED)
        await eventually(listener.is_current)


async def test_a_notification_reaches_its_listener(listening, database):
    async with database.system() as connection:
        await connection.execute(NOTIFY, "topic:subject")

    assert await listening.received.get() == "subject"


async def test_a_process_is_not_current_once_its_connection_is_lost(listening, relay):
    relay.is_open = False
    relay.cut()

    await eventually(lambda: not listening.listener.is_current(), within=NOTICED)


async def test_a_process_is_not_current_within_seconds_of_a_silent_connection(listening, relay):
    relay.flows.clear()

    await eventually(lambda: not listening.listener.is_current(), within=NOTICED)


async def test_a_process_is_current_again_after_a_gap(listening, relay):
    relay.is_open = False
    relay.cut()
    await eventually(lambda: not listening.listener.is_current())
    lost = listening.gaps

    relay.is_open = True
    await eventually(listening.listener.is_current)

    assert listening.gaps > lost
