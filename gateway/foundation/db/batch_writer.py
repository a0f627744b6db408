"""Writes rows in batches, in the background, so that the calls that they describe do not wait."""

import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import asyncpg
import msgspec

from gateway.errors import Unavailable
from gateway.foundation.aio.loops import every, running
from gateway.foundation.db.pool import Database

log = logging.getLogger(__name__)

#: seconds between batches
_INTERVAL = 0.5
#: maximum rows buffered while PostgreSQL is unavailable
_MAX_BUFFERED = 50_000

_ENCODER = msgspec.json.Encoder()
_ROWS = msgspec.json.Decoder(list[msgspec.Raw])


class Batch:
    """Rows as one JSON text.

    It costs less than one array for each column, of which the driver checks every value. Rows are encoded when they are
    added, so that a batch is one buffer and not thousands of objects.
    """

    __slots__ = ("_text", "size")

    def __init__(self) -> None:
        self._text = bytearray(b"[")
        self.size = 0

    def add(self, row: msgspec.Struct) -> None:
        _ENCODER.encode_into(row, self._text, -1)
        self._text += b","
        self.size += 1

    def extend(self, later: "Batch") -> None:
        """Append the rows of a later batch."""
        self._text += later._text[1:]
        self.size += later.size

    def document(self) -> bytes:
        """The JSON array of the rows, of which there is at least one.

        NUL is replaced: PostgreSQL cannot store it, and would refuse the whole batch.
        """
        text = bytes(self._text[:-1]) + b"]"
        if b"\\u0000" not in text:
            return text
        rows: list[dict[str, Any]] = msgspec.json.decode(text)
        return _ENCODER.encode([{name: _without_nul(value) for name, value in row.items()} for row in rows])


def _without_nul(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


class BatchWriter:
    """Writes rows to one table; `insert` is the statement, `$1` the JSON array of a batch."""

    def __init__(self, database: Database, insert: str, name: str) -> None:
        self._database = database
        self._insert_statement = insert
        #: the name of the rows in the log
        self._name = name
        self._pending = Batch()

    def add(self, row: msgspec.Struct) -> None:
        """Add a row to the next batch. Rows beyond 50,000 are dropped, and logged."""
        if self._pending.size >= _MAX_BUFFERED:
            log.error("rows are dropped: PostgreSQL has been unavailable for too long", extra={"rows": self._name})
            return
        self._pending.add(row)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Self]:
        """Write batches within the block; leaving it writes the last one."""
        try:
            async with running(every(_INTERVAL, self._write, name=f"{self._name} writer")):
                yield self
        finally:
            with contextlib.suppress(Unavailable):
                await self._write()

    async def _write(self) -> None:
        batch = self._pending
        if not batch.size:
            return
        self._pending = Batch()
        try:
            await self._insert(batch.document())
        except BaseException:  # also if it is canceled: the last batch is written after the loop has ended
            batch.extend(self._pending)
            self._pending = batch
            raise

    async def _insert(self, rows: bytes) -> None:
        """Insert the rows by one statement. If PostgreSQL refuses a value, insert them singly and drop that row."""
        try:
            async with self._database.system() as connection:
                await connection.execute(self._insert_statement, rows.decode())
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
            each = _ROWS.decode(rows)
            if len(each) == 1:
                request_id = msgspec.json.decode(each[0]).get("request_id")
                log.error("a row cannot be stored; it is dropped", extra={"rows": self._name, "request_id": request_id})
                return
            for row in each:
                await self._insert(b"[%b]" % bytes(row))
