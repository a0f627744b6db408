"""The state of one application: tables of records, created at first use and kept until a reset."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from gateway.sandbox.calls import Record


@dataclass(slots=True)
class Row:
    """A record as responses have it, with its id, relations and time of change."""

    id: str
    record: Record
    #: relations and values that the record itself does not have, such as a comment's ticket
    refs: dict[str, Any] = field(default_factory=dict)
    #: Unix time of the last change in seconds
    changed: float = 0.0

    def value(self, name: str) -> Any:
        """A member of the record, or a relation of that name."""
        return self.record[name] if name in self.record else self.refs.get(name)


class ChangeType(StrEnum):
    """The type of a change."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A created, updated or deleted row."""

    table: str
    row: Row
    type: ChangeType


class Table:
    """Rows by id, in the order of their creation; `note` is called for every change."""

    def __init__(self, rows: Iterable[Row], note: Callable[[Row, ChangeType], None]) -> None:
        self._rows = {row.id: row for row in rows}
        self._note = note

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, row_id: object) -> Row | None:
        return self._rows.get(str(row_id))

    def put(self, row: Row) -> Row:
        self._note(row, ChangeType.UPDATED if row.id in self._rows else ChangeType.CREATED)
        self._rows[row.id] = row
        return row

    def remove(self, row_id: object) -> None:
        row = self._rows.pop(str(row_id), None)
        if row is not None:
            self._note(row, ChangeType.DELETED)


class Store:
    """All tables of an application."""

    def __init__(self, rows_of: Callable[[str], Iterable[Row]]) -> None:
        self._rows_of = rows_of
        #: the pickled rows of tables that were used: it is quicker to read them than to make them again after a reset
        self._ready_made: dict[str, bytes] = {}
        self._tables: dict[str, Table] = {}
        self._last_numbers: dict[str, int] = {}
        self._changes: dict[tuple[str, str], RecordChange] = {}

    def table(self, name: str) -> Table:
        if name not in self._tables:
            if name not in self._ready_made:
                self._ready_made[name] = pickle.dumps(list(self._rows_of(name)))
            rows = pickle.loads(self._ready_made[name])  # noqa: S301  its own
            self._tables[name] = Table(rows, partial(self._note, name))
        return self._tables[name]

    def changed(self, row: Row) -> None:
        """Note that members of a row have changed."""
        for name, table in self._tables.items():
            if table.get(row.id) is row:
                self._note(name, row, ChangeType.UPDATED)

    def take_changes(self) -> list[RecordChange]:
        """The rows that changed since the last call, each once, in the order of their first change."""
        taken = list(self._changes.values())
        self._changes.clear()
        return taken

    def _note(self, table: str, row: Row, type_: ChangeType) -> None:
        before = self._changes.get((table, row.id))
        is_new = before is not None and before.type is ChangeType.CREATED and type_ is ChangeType.UPDATED
        self._changes[table, row.id] = RecordChange(table, row, ChangeType.CREATED if is_new else type_)

    def next_number(self, name: str, ready_made: int) -> int:
        """The number of a new row: one more than any row of the table ever had."""
        self._last_numbers[name] = self._last_numbers.get(name, ready_made) + 1
        return self._last_numbers[name]

    def reset(self) -> None:
        """Restore the ready-made records."""
        self._tables.clear()
        self._last_numbers.clear()
        self._changes.clear()
