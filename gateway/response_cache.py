"""Answers of applications, remembered for callers who accept one of some age (RFC 9111's request directives)."""

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

import msgspec

from gateway.connectors.prepared import PreparedCall
from gateway.connectors.responses import OperationResult
from gateway.db.pool import Database
from gateway.errors import Unavailable

log = logging.getLogger(__name__)

#: the topic of notifications that a write went through the gateway
TOPIC = "written"
_NOTIFY = "SELECT pg_notify('gateway', $1)"
#: what an entry takes beside its answer, and the part of the memory that one answer may take
_OVERHEAD, _LARGEST_SHARE = 1024, 8
_DIRECTIVE = re.compile(r"([a-z-]+)(?:=\"?([0-9]{1,9})\"?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old an answer may be that a caller accepts."""

    #: seconds; None where any age will do
    max_age: float | None = None
    may_store: bool = True
    only_if_cached: bool = False

    @classmethod
    def of(cls, lines: Iterable[str]) -> "Freshness | None":
        """What `Cache-Control` lines of a request say; None where they accept no remembered answer."""
        matches = (_DIRECTIVE.fullmatch(part.strip()) for line in lines for part in line.split(","))
        directives = {match[1].lower(): match[2] for match in matches if match is not None}
        age, only_if_cached = directives.get("max-age"), "only-if-cached" in directives
        if "no-cache" in directives or (age is None and not only_if_cached):
            return None
        return cls(None if age is None else float(age), "no-store" not in directives, only_if_cached)


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer and its age in seconds."""

    answer: OperationResult
    age: float


@dataclass(frozen=True, slots=True)
class _Entry:
    answer: OperationResult
    received_at: float
    size: int


#: the connector, and a digest of the operation with its params
Key = tuple[UUID, bytes]


def key_of(connector_id: UUID, call: PreparedCall) -> Key:
    """What makes two calls of a connector the same."""
    operation = call.operation
    document = msgspec.json.encode([operation.entity_id, operation.action_id, call.params], order="deterministic")
    return connector_id, hashlib.sha256(document).digest()


class ResponseCache:
    """The answers that a process remembers, the least used forgotten first; equal calls in flight are asked once.

    A write forgets every answer of its connector, in every process: what else a write changes (counts, parents, other
    lists) only the application knows.
    """

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._in_flight: dict[Key, asyncio.Task[OperationResult]] = {}
        #: by connector, what is remembered of it or under way
        self._keys: dict[UUID, set[Key]] = {}

    def find(self, key: Key, max_age: float | None) -> CachedAnswer | None:
        """The answer to the same call, if there is one that is no older."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        age = time.monotonic() - entry.received_at
        if max_age is not None and age > max_age:
            return None
        self._entries.move_to_end(key)
        return CachedAnswer(entry.answer, age)

    async def fetch(
        self, key: Key, fetch: Callable[[], Awaitable[OperationResult]], freshness: Freshness
    ) -> OperationResult:
        """The application's answer, shared by all who ask for the same meanwhile; raises what asking raises."""
        task = self._in_flight.get(key)
        if task is None:
            # It may have come since the caller looked.
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
            # Another task, or none, means that a write came in between.
            if may_store and self._in_flight.get(key) is task:
                self._store(key, answer)
        finally:
            if self._in_flight.get(key) is task:
                del self._in_flight[key]
                self._drop_key(key)
        return answer

    def _store(self, key: Key, answer: OperationResult) -> None:
        size = len(bytes(answer.result)) + _OVERHEAD
        if size > self._max_bytes // _LARGEST_SHARE:
            return
        self._remove(key)
        self._entries[key] = _Entry(answer, time.monotonic(), size)
        self._bytes += size
        self._keys.setdefault(key[0], set()).add(key)
        while self._bytes > self._max_bytes:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size
            self._drop_key(key)

    def _drop_key(self, key: Key) -> None:
        if key in self._entries or key in self._in_flight:
            return
        keys = self._keys.get(key[0], set())
        keys.discard(key)
        if not keys:
            self._keys.pop(key[0], None)

    async def publish_write(self, connector_id: UUID) -> None:
        """Forget what is remembered of the connector, here and in every other process."""
        self.invalidate(connector_id)
        try:
            async with self._database.system() as connection:
                await connection.execute(_NOTIFY, f"{TOPIC}:{connector_id}")
        except Unavailable:
            # Whoever listens has lost its connection too, and forgets everything.
            log.warning("a write was not announced", extra={"connector_id": str(connector_id)})

    def invalidate(self, connector_id: UUID) -> None:
        """Forget what this process remembers of the connector, and share no call that began before."""
        for key in self._keys.pop(connector_id, ()):
            self._in_flight.pop(key, None)
            entry = self._entries.pop(key, None)
            self._bytes -= entry.size if entry is not None else 0

    def on_notify(self, connector_id: str) -> None:
        """A write through another process, or another state of the connector."""
        self.invalidate(UUID(connector_id))

    def invalidate_all(self) -> None:
        """Notifications may have been missed."""
        for connector_id in list(self._keys):
            self.invalidate(connector_id)


def _retrieved(task: "asyncio.Task[OperationResult]") -> None:
    """Also when everybody who asked has gone away."""
    if not task.cancelled():
        task.exception()
