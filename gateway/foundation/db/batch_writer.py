"""Writes rows in batches, in the background, so that the calls that they describe do not wait.

If PostgreSQL is unavailable when the process ends, the last batch goes to a file, which the next process inserts. Rows
with an id are in a file before, so that a process that is killed leaves them to the others.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

import asyncpg
import msgspec

from gateway.errors import Unavailable
from gateway.foundation.aio.loops import every, running
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.db.pool import Database
from gateway.foundation.db.row_journal import RowJournal, Segment, left_rows

log = logging.getLogger(__name__)

#: seconds between batches
_INTERVAL = 0.5
#: seconds between looks for what killed processes have left
_LOOK_INTERVAL = 5.0
#: maximum rows buffered while PostgreSQL is unavailable; an organization may have half of what the others leave
_MAX_BUFFERED = 100_000

_ENCODER = msgspec.json.Encoder()
_ROWS = msgspec.json.Decoder(list[msgspec.Raw])


class Batch:
    """Rows as one JSON text.

    It costs less than one array for each column, of which the driver checks every value. Rows are encoded when they are
    added, so that a batch is one buffer and not thousands of objects.
    """

    __slots__ = ("_text", "held", "segments", "size")

    def __init__(self) -> None:
        self._text = bytearray(b"[")
        self.size = 0
        #: organization → its rows, once there are many; None has those of no organization
        self.held: dict[Hashable, int] = {}
        #: the files that have rows of the batch, to be deleted when it is stored
        self.segments: list[Segment] = []

    def add(self, row: msgspec.Struct) -> None:
        _ENCODER.encode_into(row, self._text, -1)
        self._text += b","
        self.size += 1

    def takes(self, organization: Hashable, most: int) -> bool:
        """Whether the organization may add one of at most so many rows; then it is counted.

        Of all but a quarter, which is not counted, an organization has half of what the others leave.
        """
        if self.size < most // 4:
            return True
        held = self.held.get(organization, 0)
        if held >= most - self.size:
            return False
        self.held[organization] = held + 1
        return True

    def last(self, start: int) -> bytes:
        """The text of the row that begins there."""
        return bytes(self._text[start:-1])

    @property
    def end(self) -> int:
        """Where the next row begins."""
        return len(self._text)

    def extend(self, later: "Batch") -> None:
        """Append the rows of a later batch."""
        self._text += later._text[1:]
        self.size += later.size
        for organization, rows in later.held.items():
            self.held[organization] = self.held.get(organization, 0) + rows
        self.segments += later.segments

    def document(self) -> bytes:
        """The JSON array of the rows, of which there is at least one."""
        return _storable(bytes(self._text[:-1]) + b"]")


def rows_of(rows: Iterable[msgspec.Struct]) -> str:
    """The JSON array of rows for the statement that inserts them; it may be empty."""
    batch = Batch()
    for row in rows:
        batch.add(row)
    return batch.document().decode() if batch.size else "[]"


def _storable(text: bytes) -> bytes:
    """The JSON array of rows with NUL replaced: PostgreSQL cannot store it, and would refuse the whole batch."""
    if b"\\u0000" not in text:
        return text
    rows: list[dict[str, Any]] = msgspec.json.decode(text)
    return _ENCODER.encode([{name: _without_nul(value) for name, value in row.items()} for row in rows])


def _without_nul(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Spool:
    """A folder with batches that PostgreSQL did not take before their process ended."""

    folder: Path
    #: adds to a row what identifies it, so that it is stored once even if its file is inserted twice
    identify: Callable[[dict[str, Any]], dict[str, Any]]

    def save(self, rows: bytes) -> Path:
        """Write a batch to a new file; raises OSError."""
        identified = [self.identify(row) for row in msgspec.json.decode(rows, type=list[dict[str, Any]])]
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.folder / f"{uuid4().hex}.json"
        partial = path.with_suffix(".partial")
        with partial.open("xb") as file:
            partial.chmod(0o600)
            file.write(_ENCODER.encode(identified))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
        return path

    def files(self) -> list[Path]:
        """The batches, or none if the folder cannot be read."""
        with contextlib.suppress(OSError):
            return sorted(self.folder.glob("*.json"))
        return []


class BatchWriter:
    """Writes rows to one table; `insert` is the statement, `$1` the JSON array of a batch."""

    def __init__(
        self,
        database: Database,
        insert: str,
        name: str,
        spool: Spool | None = None,
        *,
        max_buffered: int = _MAX_BUFFERED,
    ) -> None:
        self._database = database
        self._max_buffered = max_buffered
        self._insert_statement = insert
        #: the name of the rows in the log
        self._name = name
        self._pending = Batch()
        self._inserting: set[asyncio.Task[None]] = set()
        #: set once a row was added that does not wait for the interval
        self._is_urgent = asyncio.Event()
        self._spool = spool
        self._journal = None if spool is None else RowJournal(spool.folder)
        #: files of earlier processes that are still to be inserted
        self._spooled = [] if spool is None else spool.files()

    def begin(self, row: msgspec.Struct, id_: UUID, instead_of: UUID | None = None) -> None:
        """Keep a row that is stored if this process is killed before another one with its id is added.

        It may replace one that was begun under another id.
        """
        if self._journal is not None:
            self._journal.begin(id_, _ENCODER.encode(row), instead_of)

    def drop(self, id_: UUID) -> None:
        """Forget a row that was begun."""
        if self._journal is not None:
            self._journal.drop(id_)

    def add(self, row: msgspec.Struct, *, is_urgent: bool = False, id_: UUID | None = None) -> None:
        """Add a row to the next batch, written at once if it is urgent.

        Rows beyond the share of the task's organization are dropped, and logged. A row with an id, by which it is
        stored once, outlives this process.
        """
        if not self._pending.takes(computing_for(), self._max_buffered):
            log.error("rows are dropped: PostgreSQL has been unavailable for too long", extra={"rows": self._name})
            if id_ is not None:
                self.drop(id_)
            return
        start = self._pending.end
        self._pending.add(row)
        if self._journal is not None and id_ is not None:
            self._journal.end(id_, self._pending.last(start))
        if is_urgent:
            self._is_urgent.set()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Self]:
        """Write batches within the block; leaving it writes the last one."""
        name = f"{self._name} writer"
        try:
            async with running(
                every(_INTERVAL, self._write, name=name),
                every(0, self._write_if_urgent, name=name),
                *(() if self._spool is None else (every(_LOOK_INTERVAL, self._take_over, name=name),)),
            ):
                yield self
        finally:
            await asyncio.gather(*self._inserting, return_exceptions=True)
            try:
                await self._write()
            except Exception as error:
                self._keep(error)
            if self._journal is not None:
                self._journal.close()

    def _keep(self, error: Exception) -> None:
        """Save the last batch, because it cannot be written before the process ends."""
        count, extra = self._pending.size, {"rows": self._name, "count": self._pending.size}
        if self._spool is None or not count:
            if not isinstance(error, Unavailable):
                raise error
            return
        try:
            path = self._spool.save(self._pending.document())
        except OSError:
            log.exception("%d rows are lost: PostgreSQL is unavailable and no file can be written", count, extra=extra)
            return
        _delete([*self._pending.segments, *([] if self._journal is None else self._journal.cut())])
        log.warning(
            "PostgreSQL is unavailable: %d rows are saved in %s and stored at the next start", count, path, extra=extra
        )

    async def _take_up(self) -> None:
        """Insert the batches that earlier processes left in files."""
        while self._spooled:
            path = self._spooled.pop(0)
            try:
                await self._insert(path.read_bytes())
                path.unlink()
                log.info("stored the rows of an earlier process", extra={"rows": self._name})
            except FileNotFoundError:
                continue  # another process was faster
            except ValueError:
                log.exception("the file %s has no rows; it is set aside", path, extra={"rows": self._name})
                with contextlib.suppress(OSError):
                    path.rename(path.with_suffix(".unreadable"))
            except OSError:
                # The rows of this process do not wait for it. Its rows are stored once, even if it stays.
                log.exception("the file %s cannot be read or deleted", path, extra={"rows": self._name})
            except BaseException:
                self._spooled.append(path)
                raise

    async def _take_over(self) -> None:
        """Insert the rows that killed processes have left."""
        if self._spool is None:
            return
        with left_rows(self._spool.folder) as left:
            if left is None:
                return
            if left.rows:
                await self._insert(_storable(_ENCODER.encode(left.rows)))
                log.info("stored the rows of a killed process", extra={"rows": self._name, "count": len(left.rows)})
            left.delete()

    async def _write_if_urgent(self) -> None:
        await self._is_urgent.wait()
        self._is_urgent.clear()
        await self._write()

    async def _write(self) -> None:
        await self._take_up()
        batch = self._pending
        if not batch.size:
            return
        self._pending = Batch()
        if self._journal is not None:
            batch.segments += self._journal.cut()
        inserting = asyncio.create_task(self._insert_or_keep(batch))
        self._inserting.add(inserting)
        inserting.add_done_callback(self._inserting.discard)
        # If the loop is canceled, the statement goes on: otherwise its rows may be stored, and be inserted again.
        await asyncio.shield(inserting)

    async def _insert_or_keep(self, batch: Batch) -> None:
        try:
            await self._insert(batch.document())
        except BaseException:
            batch.extend(self._pending)
            self._pending = batch
            raise
        _delete(batch.segments)

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


def _delete(segments: Iterable[Segment]) -> None:
    for segment in segments:
        segment.delete()
