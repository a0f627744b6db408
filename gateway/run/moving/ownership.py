"""Checks that the rows of an import name nothing of another organization, that Python can read their times, and that
their numbers can be counted up. What is checked is read from the catalog of PostgreSQL, so that a new table or column
is checked without being listed.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from gateway.foundation.db.pool import Connection
from gateway.run.moving.document import quoted

_TABLES = """
    SELECT relname::text AS name,
           EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'organization_id') AS is_owned,
           ARRAY(SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
                 WHERE indrelid = pg_class.oid AND indisprimary) AS key
    FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
"""
_FOREIGN_KEYS = """
    SELECT source.relname::text AS source, target.relname::text AS target,
           ARRAY(SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS each (number, place)
                 JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place) AS columns,
           ARRAY(SELECT attname::text FROM unnest(confkey) WITH ORDINALITY AS each (number, place)
                 JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place) AS target_columns
    FROM pg_constraint
    JOIN pg_class AS source ON source.oid = conrelid JOIN pg_class AS target ON target.oid = confrelid
    WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace
    ORDER BY conname
"""
# Uuids by which rows of an organization are found: the first column of a unique index, unless it refers to another row.
_IDENTITIES = """
    SELECT DISTINCT relname::text AS source, attname::text AS name
    FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indisunique AND relnamespace = current_schema()::regnamespace
      AND atttypid = 'uuid'::regtype AND attname <> 'organization_id'
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = indrelid AND attnum = ANY (conkey))
    ORDER BY 1, 2
"""
# Other columns that may hold such a uuid. Those of foreign keys are checked with them.
_REFERENCES = """
    SELECT relname::text AS source, attname::text AS name, atttypid = 'uuid[]'::regtype AS is_list
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
      AND atttypid IN ('uuid'::regtype, 'uuid[]'::regtype) AND attname <> 'organization_id' AND attgenerated = ''
      AND NOT EXISTS (
          SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = pg_class.oid AND attnum = ANY (conkey))
      AND NOT EXISTS (
          SELECT FROM pg_index
          WHERE indrelid = pg_class.oid AND indisprimary AND indnkeyatts = 1 AND attnum = indkey[0])
    ORDER BY 1, attnum
"""
# Infinite times are those that code writes: the column has them by default.
_TIMES = """
    SELECT relname::text AS source, attname::text AS name,
           (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
            WHERE adrelid = attrelid AND adnum = attnum AND pg_get_expr(adbin, adrelid) LIKE '%infinity%') AS infinite
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace AND attgenerated = ''
      AND atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype)
    ORDER BY 1, attnum
"""
# Half of what the type has: no counter gets there.
_NUMBERS = """
    SELECT relname::text AS source, attname::text AS name, own.typcategory = 'A' AS is_list,
           (2::numeric ^ (8 * number.typlen - 2))::bigint AS most
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
    JOIN pg_type AS own ON own.oid = atttypid
    JOIN pg_type AS number ON number.oid = CASE own.typcategory WHEN 'A' THEN own.typelem ELSE own.oid END
    WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace
      AND attgenerated = '' AND attidentity = ''
      AND number.oid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
    ORDER BY 1, attnum
"""
# A client that the gateway had already may be named where it acts for the organization of the file alone.
_OF_KNOWN_CLIENTS = " OR target.id = ANY ($2::uuid[])"
_FOREIGN_TARGET = """
    SELECT {key} AS row, '{names}' AS names, {value} AS value, '{target}' AS holder
    FROM {source} AS own JOIN {target} AS target ON {matching}
    WHERE {is_own} AND NOT ({is_own_target}) AND $2::uuid[] IS NOT NULL LIMIT 1
"""
_FOREIGN_ID = """
    SELECT DISTINCT ON (own.names) own.row, own.names, own.value::text AS value, others.holder
    FROM ({references}) AS own JOIN ({identities}) AS others ON others.id = own.value
    WHERE $2::uuid[] IS NOT NULL ORDER BY own.names
"""
_REFERENCE = """
    SELECT {key} AS row, '{name}' AS names, {value} AS value FROM {source} AS own WHERE {is_own}
"""
_IDENTITY = "SELECT '{source}' AS holder, other.{name} AS id FROM {source} AS other WHERE NOT ({is_own})"
# The driver decodes times before any code of the gateway sees the row, and raises for those that Python does not have;
# PostgreSQL raises for a number that would exceed its type. One of them would end each statement of all organizations
# that reads it, or counts it up.
_UNFIT_VALUES = """
    SELECT {key} AS row, each.name AS names, each.value, each.words
    FROM {source} AS own CROSS JOIN LATERAL (VALUES {values}) AS each (name, is_unfit, value, words)
    WHERE {is_own} AND each.is_unfit
"""
_TIME = """(
    '{name}', (own."{name}" < '0001-01-01T00:00:00Z' OR own."{name}" > '9999-12-31T23:59:59.999999Z')
              AND own."{name}" IS DISTINCT FROM {infinite}, own."{name}"::text,
    'a time is finite and within the years 1 to 9999'
)"""
_NUMBER = """(
    '{name}', EXISTS (SELECT FROM {numbers} AS each (number) WHERE number NOT BETWEEN -{most} AND {most}),
    left(own."{name}"::text, 100), 'a number is at most {most}'
)"""


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    #: whether its rows have the column organization_id
    is_owned: bool
    key: Sequence[str]

    def is_own(self, alias: str) -> str:
        """The condition that a row is of the organization `$1`; in a table of all, that this transaction added it."""
        if self.name == "organizations":
            return f"{alias}.id = $1"
        if self.is_owned:
            return f"{alias}.organization_id = $1"
        return f"{alias}.xmin = pg_current_xact_id()::xid AND $1::uuid IS NOT NULL"

    def key_of(self, alias: str) -> str:
        """The text that identifies a row in an error."""
        names = [name for name in self.key if name != "organization_id"] or list(self.key)
        return f"concat_ws(' ', {quoted(names, f'{alias}.')})" if names else "'without a key'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A row that names what is not the organization's own."""

    table: str
    row: str
    #: its columns
    names: str
    value: str
    #: the table of what it names
    holder: str

    @property
    def rule(self) -> str:
        return (
            f"{self.names} is {self.value}, a row of {self.holder} that is not the organization's; rows may name only "
            "what the file brings"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFault:
    """A row with a value that work for all organizations stumbles over."""

    table: str
    row: str
    #: the column
    names: str
    value: str
    #: what it must be
    words: str

    @property
    def rule(self) -> str:
        return f"{self.names} is {self.value}; {self.words}"


class Ownership:
    """The references, the times and the numbers of the tables that are moved."""

    def __init__(self, catalog: Mapping[str, Sequence[Any]], moved: Collection[str]) -> None:
        self._tables = {row["name"]: _Table(**row) for row in catalog["tables"]}
        self._foreign_keys = [row for row in catalog["foreign_keys"] if row["source"] in moved]
        self._references: dict[str, list[Any]] = defaultdict(list)
        for row in catalog["references"]:
            if row["source"] in moved:
                self._references[row["source"]].append(row)
        #: by table, the times and the numbers as `_UNFIT_VALUES` has them
        self._values: dict[str, list[str]] = defaultdict(list)
        for row in catalog["times"]:
            if row["source"] in moved:
                self._values[row["source"]].append(_TIME.format(name=row["name"], infinite=row["infinite"] or "NULL"))
        for row in catalog["numbers"]:
            if row["source"] in moved:
                self._values[row["source"]].append(_number(row))
        owners = {name for name, table in self._tables.items() if table.is_owned} | {"organizations"}
        self._identities = " UNION ALL ".join(
            _IDENTITY.format(**row, is_own=self._tables[row["source"]].is_own("other"))
            for row in catalog["identities"]
            if row["source"] in owners
        )

    @classmethod
    async def read(cls, connection: Connection, moved: Collection[str]) -> "Ownership":
        """The references, times and numbers that the database has."""
        statements = {
            "tables": _TABLES,
            "foreign_keys": _FOREIGN_KEYS,
            "identities": _IDENTITIES,
            "references": _REFERENCES,
            "times": _TIMES,
            "numbers": _NUMBERS,
        }
        return cls({name: await connection.fetch(sql) for name, sql in statements.items()}, moved)

    async def faults(
        self, connection: Connection, organization_id: UUID, known_clients: Collection[UUID]
    ) -> AsyncIterator[Fault]:
        """The columns that refer to another organization, with a row of each.

        `known_clients` were in the database before, and may act for the organization.
        """
        for table, sql in self._statements():
            for found in await connection.fetch(sql, organization_id, list(known_clients)):
                yield Fault(table=table, **found)

    async def unfit_values(self, connection: Connection, organization_id: UUID) -> AsyncIterator[ValueFault]:
        """The times of the organization's rows that Python cannot read, and the numbers near the end of their types."""
        for name, values in self._values.items():
            table = self._tables[name]
            statement = _UNFIT_VALUES.format(
                key=table.key_of("own"), source=name, values=", ".join(values), is_own=table.is_own("own")
            )
            for found in await connection.fetch(statement, organization_id):
                yield ValueFault(table=name, **found)

    def _statements(self) -> Iterator[tuple[str, str]]:
        """The statements that find faults, by table."""
        yield from ((each["source"], self._foreign_target(each)) for each in self._foreign_keys)
        for name, columns in self._references.items():
            yield name, self._foreign_ids(self._tables[name], columns)

    def _foreign_target(self, foreign_key: Any) -> str:
        source, target = self._tables[foreign_key["source"]], self._tables[foreign_key["target"]]
        pairs = zip(foreign_key["columns"], foreign_key["target_columns"], strict=True)
        is_own_target = target.is_own("target")
        if target.name == "clients" and source.is_owned:
            is_own_target += _OF_KNOWN_CLIENTS
        return _FOREIGN_TARGET.format(
            key=source.key_of("own"),
            names=", ".join(foreign_key["columns"]),
            value=f"concat_ws(' ', {quoted(foreign_key['columns'], 'own.')})",
            source=source.name,
            target=target.name,
            matching=" AND ".join(f'own."{column}" = target."{other}"' for column, other in pairs),
            is_own=source.is_own("own"),
            is_own_target=is_own_target,
        )

    def _foreign_ids(self, table: _Table, columns: Sequence[Any]) -> str:
        references = " UNION ALL ".join(
            _REFERENCE.format(
                key=table.key_of("own"),
                name=column["name"],
                value=f'unnest(own."{column["name"]}")' if column["is_list"] else f'own."{column["name"]}"',
                source=table.name,
                is_own=table.is_own("own"),
            )
            for column in columns
        )
        return _FOREIGN_ID.format(references=references, identities=self._identities)


def _number(column: Any) -> str:
    """The value of a column with a number, or with several of them."""
    name = column["name"]
    numbers = f'unnest(own."{name}")' if column["is_list"] else f'(VALUES (own."{name}"))'
    return _NUMBER.format(name=name, numbers=numbers, most=column["most"])
