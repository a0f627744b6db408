"""Notifications of other processes: one LISTEN connection for a process (PostgreSQL `NOTIFY`, channel `gateway`).

A pooler in transaction mode passes none on. Where there is no way around it, whatever may have changed is taken for
changed every second.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import asyncpg

from gateway.aio.loops import every, running
from gateway.errors import Unavailable

CHANNEL = "gateway"
#: seconds until the connection is tried again, and between proofs that it is alive
_RECONNECT, _PROOF = 0.5, 2.0
#: seconds between looks where nothing can be listened to
_POLL_INTERVAL = 1.0

#: called with the id of what changed, by topic
Listeners = Mapping[str, Callable[[str], None]]
#: called when notifications may have been missed: what was remembered must be forgotten or looked up again
OnGap = Callable[[], None]


class NotificationListener:
    """Tells listeners what changed; after a lost connection tells them that they may have missed something."""

    def __init__(self, url: str | None) -> None:
        #: of PostgreSQL itself; None where there is a pooler in between
        self._url = url
        self._listeners: defaultdict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._on_gap: list[OnGap] = []

    def subscribe(self, listeners: Listeners, on_gap: OnGap | None) -> None:
        """Tell of these topics from now on; no `on_gap` is for who learns in another way what it may have missed."""
        for topic, listener in listeners.items():
            self._listeners[topic].append(listener)
        if on_gap is not None:
            self._on_gap.append(on_gap)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["NotificationListener"]:
        """Listens for as long as the block lasts, whatever happens to the connection."""
        duty = (_POLL_INTERVAL, self._poll) if self._url is None else (_RECONNECT, partial(self._listen, self._url))
        async with running(every(*duty, name="notifications")):
            yield self

    async def _poll(self) -> None:
        self._report_gap()

    async def _listen(self, url: str) -> None:
        """Until the connection is lost; raises Unavailable."""
        try:
            await self._listen_once(url)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            raise Unavailable("the connection for notifications is lost") from None

    async def _listen_once(self, url: str) -> None:
        connection = await asyncpg.connect(url, timeout=3, command_timeout=3)
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(CHANNEL, self._on_notify)
            self._report_gap()
            while not connection.is_closed():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PROOF):
                        await lost.wait()
                    return
                await connection.execute("SELECT 1")
        finally:
            connection.terminate()

    def _on_notify(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        topic, _, subject = str(payload).partition(":")
        for listener in self._listeners.get(topic, ()):
            listener(subject)

    def _report_gap(self) -> None:
        for on_gap in self._on_gap:
            on_gap()
