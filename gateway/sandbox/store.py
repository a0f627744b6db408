"""The state of one application: tables of records, made when first asked for and kept until a reset."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

from gateway.sandbox.calls import Record


@dataclass(slots=True)
class Row:
    """A record as the application shows it, and what it knows of it besides."""

    id: str
    record: Record
    #: relations that the record itself does not show, such as a comment's ticket
    refs: dict[str, Any] = field(default_factory=dict)
    #: Unix time of the last change, seconds
    changed: float = 0.0

    def value(self, name: str) -> Any:
        """A member of the record, or a relation of that name."""
        return self.record[name] if name in self.record else self.refs.get(name)


class What(StrEnum):
    """What happened to a row."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A row that is not as it was."""

    table: str
    row: Row
    what: What


class Table:
    """Rows by id, in the order they were made; `note` hears of every change."""

    def __init__(self, rows: Iterable[Row], note: Callable[[Row, What], None]) -> None:
        self._rows = {row.id: row for row in rows}
        self._note = note

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, row_id: object) -> Row | None:
        return self._rows.get(str(row_id))

    def put(self, row: Row) -> Row:
        self._note(row, What.UPDATED if row.id in self._rows else What.CREATED)
        self._rows[row.id] = row
        return row

    def remove(self, row_id: object) -> None:
        row = self._rows.pop(str(row_id), None)
        if row is not None:
            self._note(row, What.DELETED)


class Store:
    """All tables of an application."""

    def __init__(self, rows_of: Callable[[str], Iterable[Row]]) -> None:
        self._rows_of = rows_of
        self._tables: dict[str, Table] = {}
        self._last_numbers: dict[str, int] = {}
        self._changes: dict[tuple[str, str], RecordChange] = {}

    def table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = Table(self._rows_of(name), partial(self._note, name))
        return self._tables[name]

    def changed(self, row: Row) -> None:
        """The members of a row are not what they were."""
        for name, table in self._tables.items():
            if table.get(row.id) is row:
                self._note(name, row, What.UPDATED)

    def take_changes(self) -> list[RecordChange]:
        """The rows that changed since the last call, each once, in the order of their first change."""
        taken = list(self._changes.values())
        self._changes.clear()
        return taken

    def _note(self, table: str, row: Row, what: What) -> None:
        before = self._changes.get((table, row.id))
        is_new = before is not None and before.what is What.CREATED and what is What.UPDATED
        self._changes[table, row.id] = RecordChange(table, row, What.CREATED if is_new else what)

    def next_number(self, name: str, ready_made: int) -> int:
        """The number of a new row: one more than any that the table ever had."""
        self._last_numbers[name] = self._last_numbers.get(name, ready_made) + 1
        return self._last_numbers[name]

    def reset(self) -> None:
        """Back to the ready-made records."""
        self._tables.clear()
        self._last_numbers.clear()
        self._changes.clear()
