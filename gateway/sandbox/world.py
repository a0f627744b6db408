"""The records of one application: which there are at first, how they belong together and how they change."""

import re
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from gateway.kinds.catalog import Kind
from gateway.sandbox import records
from gateway.sandbox.calls import Refusal
from gateway.sandbox.store import Row, Store

#: the members of a record that hold the time of its creation
_CREATED = ("created_at", "createdAt")


class World:
    """Tables of made-up records that agree with one another, the same for the same seed."""

    #: how many records a table starts with
    counts: ClassVar[Mapping[str, int]] = {}
    usual_count: ClassVar[int] = 40
    #: field → the table whose records it points to
    references: ClassVar[Mapping[str, str]] = {}
    #: entities whose records are those of another: entity → table
    shared_tables: ClassVar[Mapping[str, str]] = {}
    #: tables whose rows belong to a row of another: table → (relation, table of the parents)
    parents: ClassVar[Mapping[str, tuple[str, str]]] = {}
    #: the members that hold a record's id and the time of its last change
    id_member: ClassVar[str] = "id"
    changed_member: ClassVar[str] = "updated_at"

    def __init__(self, kind: Kind, seed: int, scale: int) -> None:
        self.kind = kind
        self.seed, self.scale = seed, scale
        self.style = records.Style(self.id_of, self.time, self.references, self.count_of)
        self.store = Store(self.rows_of)

    @property
    def _changed_members(self) -> tuple[str, ...]:
        return (self.changed_member, "updatedAt")

    @cached_property
    def _example_ids(self) -> dict[str, int | str]:
        """The ids in the examples by table, so that each example finds its record.

        That of `get` counts; an entity without one has that of its `delete` or `update`.
        """
        found: dict[str, int | str] = {}
        for action_id in ("update", "delete", "get"):
            for (entity_id, each), operation in self.kind.operations.items():
                required = operation.action.required if each == "get" else ()
                names = re.findall(r"{(\w+)}", operation.action.request) or required
                if each == action_id and names and names[-1] in operation.action.example:
                    found[self.table_for(entity_id)] = operation.action.example[names[-1]]
        return found

    def table_for(self, entity_id: str) -> str:
        """The table that holds an entity's records."""
        return self.shared_tables.get(entity_id, entity_id)

    def count_of(self, table: str) -> int:
        return self.counts.get(table, self.usual_count) * self.scale

    def id_of(self, table: str, number: int) -> int | str:
        """The id of a table's n-th record; the last ready-made one has the id that the spec's example names."""
        if number == self.count_of(table) and table in self._example_ids:
            return self._example_ids[table]
        return self.usual_id(table, number)

    def usual_id(self, table: str, number: int) -> int | str:
        """An id of the kind's form; every table has ids of its own."""
        return (zlib.crc32(table.encode()) % 9000 + 1000) * 100_000 + number

    def id_member_of(self, table: str) -> str:
        """The member of a table's records that holds their id."""
        return self.id_member

    def time(self, moment: float) -> str:
        return records.iso_time(moment)

    def fields_of(self, table: str) -> Mapping[str, records.FieldType]:
        entity = self.kind.spec.entities.get(table)
        return entity.fields if entity else {}

    def rows_of(self, table: str) -> Iterable[Row]:
        return [self.made(table, number) for number in range(1, self.count_of(table) + 1)]

    def made(self, table: str, number: int) -> Row:
        """The n-th ready-made record of a table."""
        making = records.Making(self.style, f"{self.seed}/{self.kind.name}", table, number)
        record = records.made(making, self.fields_of(table))
        record[self.id_member_of(table)] = making.id
        refs: dict[str, Any] = {}
        if table in self.parents:
            relation, parent = self.parents[table]
            refs[relation] = self.id_of(parent, 1 + (number - 1) % self.count_of(parent))
            if relation in record:
                record[relation] = refs[relation]
        return Row(str(making.id), record, refs, making.updated)

    def born(self, table: str, members: Mapping[str, Any], now: float) -> Row:
        """A new record with these members, put into its table."""
        number = self.store.next_number(table, self.count_of(table))
        record = records.blank(self.fields_of(table))
        row_id = self.id_of(table, number)
        stamps = self._stamps(record, (*_CREATED, *self._changed_members), now)
        record.update({self.id_member_of(table): row_id, **stamps, **members})
        return self.store.table(table).put(Row(str(row_id), record, {}, now))

    def change(self, row: Row, members: Mapping[str, Any], now: float) -> None:
        row.record.update(members)
        row.changed = now
        row.record.update(self._stamps(row.record, self._changed_members, now))
        self.store.changed(row)

    def _stamps(self, record: Mapping[str, Any], names: Iterable[str], now: float) -> dict[str, str | int]:
        """The members of a record that take the time, as Unix time where they are numbers."""
        return {name: int(now) if isinstance(record[name], int) else self.time(now) for name in names if name in record}

    def require_row(self, table: str, row_id: object) -> Row:
        """The row, or the application's 404."""
        row = self.store.table(table).get(row_id)
        if row is None:
            raise Refusal(404, message=f"there is no {row_id} among the {table.replace('_', ' ')}")
        return row
