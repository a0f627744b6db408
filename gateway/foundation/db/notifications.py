"""Notifications of other processes: one LISTEN connection for a process (PostgreSQL `NOTIFY`, channel `gateway`).

A pooler in transaction mode does not forward them. Without a direct connection, `on_gap` is called once a second.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import asyncpg

from gateway.errors import Unavailable
from gateway.foundation.aio.clock import steady
from gateway.foundation.aio.loops import every, running
from gateway.foundation.db.pool import Database
from gateway.foundation.db.servers import DatabaseServers

CHANNEL = "gateway"
#: one notification: `topic:subject`
NOTIFY = f"SELECT pg_notify('{CHANNEL}', $1)"
#: several notifications in one statement
NOTIFY_ALL = f"SELECT pg_notify('{CHANNEL}', change) FROM unnest($1::text[]) AS change"
#: the topic of a write that ended, perhaps without effect; the subject begins with the connector's id
WRITTEN = "written"
#: the topic of a worker that starts or stops; the subject is its name
RESTARTING = "restarting"
#: seconds until the connection is tried again
_RECONNECT = 0.5
#: seconds between queries that check the connection
_CHECK_INTERVAL = 1.0
#: timeout of such a query in seconds, after which the connection counts as lost
_CHECK_TIMEOUT = 2.0
#: timeout of connecting in seconds
_CONNECT_TIMEOUT = 3.0
#: seconds between calls of `on_gap` without a direct connection
_POLL_INTERVAL = 1.0

#: topic → called with the subject of a notification
Listeners = Mapping[str, Callable[[str], None]]
#: called if notifications may have been missed: the listener clears or reloads what it has cached
OnGap = Callable[[], None]


async def notify(database: Database, topic: str, subject: str) -> None:
    """Call the listeners of the topic in every process; raises Unavailable."""
    async with database.system() as connection:
        await connection.execute(NOTIFY, f"{topic}:{subject}")


class NotificationListener:
    """Calls listeners with notifications, and `on_gap` whenever it begins to listen, also after a lost connection."""

    def __init__(self, url: str | None, application_name: str = "gateway") -> None:
        #: a direct URL of PostgreSQL; None if there is only a pooler
        self._url = url
        #: the name of the session, of which PostgreSQL stores 63 bytes
        self._application_name = application_name[-63:]
        #: until when the last check of the connection, or the last `on_gap` without one, counts, by the steady clock
        self._checked_until = float("-inf")
        self._listeners: defaultdict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._on_gap: list[OnGap] = []

    def subscribe(self, listeners: Listeners, on_gap: OnGap | None) -> None:
        """Call the listeners for these topics from now on.

        `on_gap` is None if the listener does not depend on every notification.
        """
        for topic, listener in listeners.items():
            self._listeners[topic].append(listener)
        if on_gap is not None:
            self._on_gap.append(on_gap)

    def deliver(self, topic: str, subject: str) -> None:
        """Call the listeners of this process now, for a change that it has committed: its notification follows."""
        for listener in self._listeners.get(topic, ()):
            listener(subject)

    def is_current(self) -> bool:
        """Whether every notification sent until a few seconds ago has been received, or `on_gap` called instead.

        False before the process listens, after its connection is lost, and after the process was frozen.
        """
        return steady() < self._checked_until

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["NotificationListener"]:
        """Listen within the block, and reconnect whenever the connection is lost."""
        loop = (
            (_POLL_INTERVAL, self._poll)
            if self._url is None
            else (_RECONNECT, partial(self._listen, DatabaseServers(self._url)))
        )
        async with running(every(*loop, name="notifications")):
            yield self

    async def _poll(self) -> None:
        self._report_gap()
        self._checked_until = steady() + _POLL_INTERVAL + _CHECK_TIMEOUT

    async def _listen(self, servers: DatabaseServers) -> None:
        """Listen until the connection is lost; raises Unavailable."""
        try:
            await self._listen_once(servers)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            raise Unavailable("the connection for notifications is lost") from None

    async def _listen_once(self, servers: DatabaseServers) -> None:
        connection = await servers.connect(
            timeout=_CONNECT_TIMEOUT,
            command_timeout=_CHECK_TIMEOUT,
            server_settings={"application_name": self._application_name},
        )
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._on_notify)
            self._report_gap()
            while not lost.is_set():
                await self._check(connection)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_INTERVAL):
                        await lost.wait()
        finally:
            connection.terminate()
            self._checked_until = float("-inf")

    async def _check(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """Check that PostgreSQL answers; raises TimeoutError."""
        sent_at = steady()
        await connection.execute("SELECT 1")
        self._checked_until = sent_at + _CHECK_INTERVAL + _CHECK_TIMEOUT

    def _on_notify(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        topic, _, subject = str(payload).partition(":")
        self.deliver(topic, subject)

    def _report_gap(self) -> None:
        for on_gap in self._on_gap:
            on_gap()
