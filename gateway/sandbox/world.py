"""The records of one application: the ready-made ones, their relations and their changes."""

import re
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from gateway.kinds.catalog import Kind
from gateway.sandbox import records
from gateway.sandbox.calls import Refusal, innermost
from gateway.sandbox.store import Row, Store

#: the members of a record that hold the time of its creation
_CREATED = ("created_at", "createdAt")


class World:
    """Tables of ready-made records with consistent relations, the same for the same seed."""

    #: table → the number of its ready-made records
    counts: ClassVar[Mapping[str, int]] = {}
    #: the number of ready-made records of other tables
    usual_count: ClassVar[int] = 40
    #: field → the table that it refers to
    references: ClassVar[Mapping[str, str]] = {}
    #: entity → the table of another entity that has its records
    shared_tables: ClassVar[Mapping[str, str]] = {}
    #: tables whose rows belong to rows of another table: table → (relation, table of the parents)
    parents: ClassVar[Mapping[str, tuple[str, str]]] = {}
    #: the member with a record's id
    id_member: ClassVar[str] = "id"
    #: the member with the time of a record's last change
    changed_member: ClassVar[str] = "updated_at"

    def __init__(self, kind: Kind, seed: int, scale: float) -> None:
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

        The example of `get` takes precedence over those of `delete` and `update`.
        """
        found: dict[str, int | str] = {}
        for action_id in ("update", "delete", "get"):
            for (entity_id, each), operation in self.kind.operations.items():
                in_headers = {placed.name for placed in operation.placements if placed.where == "header"}
                required = [name for name in operation.action.required if each == "get" and name not in in_headers]
                names = re.findall(r"{(\w+)}", operation.action.request) or required
                if each == action_id and names and names[-1] in operation.action.example:
                    found[self.table_for(entity_id)] = innermost(operation.action.example[names[-1]])
        return found

    def table_for(self, entity_id: str) -> str:
        """The table with an entity's records."""
        return self.shared_tables.get(entity_id, entity_id)

    def count_of(self, table: str) -> int:
        return max(1, round(self.counts.get(table, self.usual_count) * self.scale))

    def id_of(self, table: str, number: int) -> int | str:
        """The id of a table's n-th record; the last ready-made one has the id of the spec's example."""
        if number == self.count_of(table) and table in self._example_ids:
            return self._example_ids[table]
        return self.usual_id(table, number)

    def usual_id(self, table: str, number: int) -> int | str:
        """The id of a table's n-th record in the kind's format; ids of different tables differ."""
        return (zlib.crc32(table.encode()) % 9000 + 1000) * 100_000 + number

    def id_member_of(self, table: str) -> str:
        """The member with the id in a table's records."""
        return self.id_member

    def time(self, moment: float) -> str:
        return records.iso_time(moment)

    def fields_of(self, table: str) -> Mapping[str, records.FieldType]:
        entity = self.kind.spec.entities.get(table)
        return entity.fields if entity else {}

    def rows_of(self, table: str) -> Iterable[Row]:
        return [self.ready_made_row(table, number) for number in range(1, self.count_of(table) + 1)]

    def maker_of(self, table: str, number: int) -> records.RecordMaker:
        return records.RecordMaker(self.style, f"{self.seed}/{self.kind.name}", table, number)

    def ready_made_row(self, table: str, number: int) -> Row:
        """The n-th ready-made record of a table."""
        maker = self.maker_of(table, number)
        record = records.filled(maker, self.fields_of(table))
        record[self.id_member_of(table)] = maker.id
        refs: dict[str, Any] = {}
        if table in self.parents:
            relation, parent = self.parents[table]
            refs[relation] = self.id_of(parent, 1 + (number - 1) % self.count_of(parent))
            if relation in record:
                record[relation] = refs[relation]
        return Row(str(maker.id), record, refs, maker.updated)

    def add_row(self, table: str, members: Mapping[str, Any], now: float) -> Row:
        """Add a new record with these members to its table."""
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
        """The time for each of these members that the record has; a Unix time if the member is a number."""
        return {name: int(now) if isinstance(record[name], int) else self.time(now) for name in names if name in record}

    def require_row(self, table: str, row_id: object) -> Row:
        """The row with this id; raises Refusal with 404."""
        row = self.store.table(table).get(row_id)
        if row is None:
            raise Refusal(404, message=f"there is no {row_id} among the {table.replace('_', ' ')}")
        return row
