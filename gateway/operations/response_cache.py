"""Answers of applications, cached for callers that accept one of a certain age (RFC 9111's request directives)."""

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import msgspec

from gateway.access.audit.entry import INSERT_ENTRIES, Entry, inserting
from gateway.errors import Unavailable
from gateway.foundation.aio.batching import Batcher
from gateway.foundation.aio.retries import retry_until_available
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.db.batch_writer import rows_of
from gateway.foundation.db.notifications import NOTIFY_ALL, WRITTEN
from gateway.foundation.db.pool import Database
from gateway.foundation.least_used import LeastUsed
from gateway.upstream.prepared import PreparedCall
from gateway.upstream.responses import OperationResult

#: the topic before a write is sent; the payload, as that after the write, is `connector:write`
WRITING = "writing"
#: seconds after which an announced write counts as ended: its process may have been killed
_LONGEST_WRITE = 120.0
#: seconds for announcing the last writes before the process ends
_CLOSING = 1.0
#: bytes of an entry without its answer
_OVERHEAD = 1024
#: the maximum share of the memory for one answer, as a divisor
_LARGEST_SHARE = 8
_DIRECTIVE = re.compile(r"([a-z-]+)(?:=\"?([0-9]+)\"?)?", re.IGNORECASE)
#: the age in seconds for which a larger one counts (RFC 9111 §1.2.2)
_MAX_AGE = 2.0**31
#: an age that no answer has
_NO_AGE = -1.0


#: notifications, and the audit entries of the writes that they are about, in one transaction
_ANNOUNCE = f"WITH noted AS ({inserting('$2')}) {NOTIFY_ALL}"


@dataclass(slots=True)
class AuditedWrite:
    """The audit entries of a write: the intent, committed before it is sent, and the settlement, set when it ends."""

    intent: Entry
    #: stores the settlement later if PostgreSQL is unavailable
    note: Callable[[Entry], None]
    settlement: Entry | None = None


@dataclass(frozen=True, slots=True)
class _Announcement:
    """A notification, if responses are cached, and the audit entry that is committed with it."""

    notice: str | None
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old an answer a caller accepts."""

    #: seconds; None for any age
    max_age: float | None = None
    may_store: bool = True
    only_if_cached: bool = False

    @classmethod
    def of(cls, lines: Iterable[str]) -> "Freshness | None":
        """The `Cache-Control` lines of a request, parsed; None if they accept no cached answer."""
        matches = (_DIRECTIVE.fullmatch(part.strip()) for line in lines for part in line.split(","))
        directives = {match[1].lower(): match[2] for match in matches if match is not None}
        text, only_if_cached = directives.get("max-age"), "only-if-cached" in directives
        age = None if text is None else min(float(text), _MAX_AGE)
        if "no-cache" in directives:
            age = _NO_AGE if only_if_cached else None
        if age is None and not only_if_cached:
            return None
        return cls(age, "no-store" not in directives, only_if_cached)


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer and its age in seconds."""

    answer: OperationResult
    age: float


@dataclass(frozen=True, slots=True)
class _Entry:
    answer: OperationResult
    received_at: float


#: the connector, and a digest of the operation with its params
Key = tuple[UUID, bytes]


def key_of(connector_id: UUID, call: PreparedCall) -> Key:
    """The key that equal calls of a connector share."""
    operation = call.operation
    document = msgspec.json.encode([operation.entity_id, operation.action_id, call.params], order="deterministic")
    return connector_id, hashlib.sha256(document).digest()


class ResponseCache:
    """The answers that a process caches, least recently used dropped first; equal calls in flight share one request.

    A write removes every answer of its connector in every process, because only the application knows what else it
    changes (counts, parents, other lists). While the write is in progress, and while `is_current` is false because
    notifications of other processes' writes do not arrive, nothing is cached. Without memory, calls share nothing and
    writes send no notification.
    """

    def __init__(self, database: Database, max_bytes: int, is_current: Callable[[], bool]) -> None:
        self._database = database
        #: concurrent announcements are committed by one statement
        self._announce: Batcher[_Announcement, None] = Batcher(self._announce_all)
        self._max_bytes = max_bytes
        self._is_current = is_current
        #: connector → the writes in progress in all processes, and until when each counts as such
        self._writes: dict[UUID, dict[str, float]] = {}
        #: announcements of writes that PostgreSQL has not accepted yet
        self._announcing: set[asyncio.Task[None]] = set()
        self._entries: dict[Key, _Entry] = {}
        self._used: LeastUsed[Key] = LeastUsed(max_bytes)
        self._in_flight: dict[Key, asyncio.Task[OperationResult]] = {}
        #: connector → its keys that are cached or in flight
        self._keys: dict[UUID, set[Key]] = {}

    def find(self, key: Key, max_age: float | None) -> CachedAnswer | None:
        """The cached answer to the same call, if it is at most `max_age` seconds old."""
        entry = self._entries.get(key)
        if entry is None or not self._may_remember(key[0]):
            return None
        age = time.monotonic() - entry.received_at
        if max_age is not None and age > max_age:
            return None
        self._used.use(key)
        return CachedAnswer(entry.answer, age)

    async def fetch(
        self, key: Key, fetch: Callable[[], Awaitable[OperationResult]], freshness: Freshness
    ) -> OperationResult:
        """The application's answer, shared by concurrent callers with the same key; raises the errors of `fetch`."""
        if not self._max_bytes:
            return await fetch()
        task = self._in_flight.get(key)
        if task is None:
            # It may have been stored since the caller looked it up.
            cached = self.find(key, freshness.max_age)
            if cached is not None:
                return cached.answer
            task = asyncio.ensure_future(self._fetch(key, fetch, freshness.may_store))
            self._in_flight[key] = task
            self._keys.setdefault(key[0], set()).add(key)
            task.add_done_callback(_retrieved)
        return await asyncio.shield(task)

    async def _fetch(
        self, key: Key, fetch: Callable[[], Awaitable[OperationResult]], may_store: bool
    ) -> OperationResult:
        task = asyncio.current_task()
        try:
            answer = await fetch()
            # Another task, or none, means that a write invalidated the key meanwhile.
            if may_store and self._in_flight.get(key) is task and self._may_remember(key[0]):
                self._store(key, answer)
        finally:
            if self._in_flight.get(key) is task:
                del self._in_flight[key]
                self._drop_key(key)
        return answer

    def _store(self, key: Key, answer: OperationResult) -> None:
        size = len(memoryview(answer.result)) + _OVERHEAD
        if size > self._max_bytes // _LARGEST_SHARE:
            return
        self._remove(key)
        self._entries[key] = _Entry(answer, time.monotonic())
        self._keys.setdefault(key[0], set()).add(key)
        for dropped in self._used.add(key, computing_for(), size):
            self._remove(dropped)

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._used.discard(key)
            self._drop_key(key)

    def _drop_key(self, key: Key) -> None:
        if key in self._entries or key in self._in_flight:
            return
        keys = self._keys.get(key[0], set())
        keys.discard(key)
        if not keys:
            self._keys.pop(key[0], None)

    def _may_remember(self, connector_id: UUID) -> bool:
        return self._is_current() and not self._is_written(connector_id)

    def _is_written(self, connector_id: UUID) -> bool:
        """Whether a write of the connector is in progress; drops those that count as ended."""
        writes = self._writes.get(connector_id)
        if writes is None:
            return False
        now = time.monotonic()
        for write in [write for write, until in writes.items() if until <= now]:
            self._end_write(connector_id, write)
        return bool(writes)

    def _end_write(self, connector_id: UUID, write: str) -> None:
        writes = self._writes.get(connector_id, {})
        writes.pop(write, None)
        if not writes:
            self._writes.pop(connector_id, None)

    @asynccontextmanager
    async def writing(self, connector_id: UUID, audited: AuditedWrite | None = None) -> AsyncIterator[None]:
        """Within the block, a write: no process caches an answer of the connector that the write may change.

        The intent is committed with the announcement of the write, and the settlement with that of its end. Raises
        Unavailable before the write if PostgreSQL cannot announce it. The end is announced as soon as PostgreSQL is
        available; until then the write counts as in progress.
        """
        subject = f"{connector_id}:{uuid4().hex}"
        intent = self._announcement(WRITING, subject, None if audited is None else audited.intent)
        if intent is not None:
            await self._announce(intent)
        self.on_writing(subject)
        try:
            yield
        finally:
            self.on_notify(subject)
            await self._announce_end(subject, audited)

    def _announcement(self, topic: str, subject: str, entry: Entry | None = None) -> _Announcement | None:
        """What PostgreSQL commits at the beginning or the end of a write; None if there is nothing."""
        notice = f"{topic}:{subject}" if self._max_bytes else None
        return None if notice is None and entry is None else _Announcement(notice, entry)

    async def _announce_all(self, changes: Sequence[_Announcement]) -> Sequence[None]:
        notices = [change.notice for change in changes if change.notice is not None]
        entries = [change.entry for change in changes if change.entry is not None]
        async with self._database.system() as connection:
            if not notices:
                await connection.execute(INSERT_ENTRIES, rows_of(entries))
            elif entries:
                await connection.execute(_ANNOUNCE, notices, rows_of(entries))
            else:
                await connection.execute(NOTIFY_ALL, notices)
        return [None] * len(changes)

    async def _announce_end(self, subject: str, audited: AuditedWrite | None) -> None:
        settlement = None if audited is None else audited.settlement
        end, notice = self._announcement(WRITTEN, subject, settlement), self._announcement(WRITTEN, subject)
        if end is None:
            return
        try:
            await self._announce(end)
        except Unavailable:
            if audited is not None and settlement is not None:
                audited.note(settlement)
            if notice is None:
                return
            announce = partial(self._announce, notice)
            announcing = asyncio.create_task(retry_until_available(announce))
            self._announcing.add(announcing)
            announcing.add_done_callback(self._announcing.discard)
            announcing.add_done_callback(_retrieved)

    async def close(self) -> None:
        """Wait a moment for announcements that PostgreSQL did not take yet."""
        if self._announcing:
            _, left = await asyncio.wait(self._announcing, timeout=_CLOSING)
            for announcing in left:
                announcing.cancel()

    def invalidate(self, connector_id: UUID) -> None:
        """Drop what this process caches of the connector, and share no call that began before."""
        for key in self._keys.pop(connector_id, ()):
            self._in_flight.pop(key, None)
            self._entries.pop(key, None)
            self._used.discard(key)

    def on_writing(self, subject: str) -> None:
        """A write is about to be sent, perhaps by another process."""
        connector_id, _, write = subject.partition(":")
        self._writes.setdefault(UUID(connector_id), {})[write] = time.monotonic() + _LONGEST_WRITE
        self.invalidate(UUID(connector_id))

    def on_notify(self, subject: str) -> None:
        """A write ended, perhaps in another process, or the connector was changed."""
        connector_id, _, write = subject.partition(":")
        self._end_write(UUID(connector_id), write)
        self.invalidate(UUID(connector_id))

    def invalidate_all(self) -> None:
        """Notifications may have been missed, also of the ends of writes."""
        for connector_id in list(self._keys):
            self.invalidate(connector_id)
        for connector_id in list(self._writes):
            self._is_written(connector_id)


def _retrieved(task: "asyncio.Task[Any]") -> None:
    """Mark its error as retrieved, also if every caller was canceled."""
    if not task.cancelled():
        task.exception()
