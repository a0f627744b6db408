"""Imports an organization from its sealed file, in one transaction: an interrupted import leaves nothing."""

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import msgspec

from gateway.errors import Conflict, InvalidParams
from gateway.foundation.db.migrate import applied_migrations
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.vault.vault import Vault
from gateway.run.moving.document import SEALED, AuditKey, Line, Manifest, binding_row, columns_of, quoted
from gateway.run.moving.tables import AUDIT, MOVED, MovedTable

#: bytes of rows of one statement
_MAX_BYTES = 4 << 20

_EXISTS = "SELECT id FROM organizations WHERE id = $1 OR name = $2 ORDER BY id <> $1"
_INSERT = """
    INSERT INTO {table} ({columns})
    SELECT {values} FROM json_populate_recordset(NULL::{table}, $1::json) AS given {kept}
"""
# Rows are numbered in the order in which they are inserted, so that those of the chain find their entries. The chain
# keeps the ids under which its entries were hashed.
_INSERT_AUDIT = """
    WITH given AS (
        SELECT place, value ->> 'id' AS id, value -> 'chain' AS chain, (value ->> 'is_waiting')::boolean AS is_waiting,
               (value -> 'entry') || jsonb_build_object('organization_id', $2::uuid) AS entry
        FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS each (value, place)
    ), entered AS (
        INSERT INTO audit ({columns}, xact)
        SELECT {values}, CASE WHEN is_waiting THEN pg_current_xact_id() END
        FROM given CROSS JOIN LATERAL jsonb_populate_record(NULL::audit, given.entry) AS entry ORDER BY place
        RETURNING id
    ), numbered AS (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM entered
    )
    INSERT INTO audit_chain (organization_id, seq, audit_id, hash, previous, names)
    SELECT $2, (chain ->> 'seq')::bigint, numbered.id, chain ->> 'hash', chain ->> 'previous',
           (jsonb_build_object('id', given.id) || (chain ->> 'names')::jsonb)::text
    FROM numbered JOIN given USING (place) WHERE jsonb_typeof(chain) = 'object'
"""
_OTHER_KIND = """
    SELECT given.kind FROM json_populate_recordset(NULL::imported_kinds, $1::json) AS given
    JOIN imported_kinds AS own USING (kind, version) WHERE own.document IS DISTINCT FROM given.document
"""
_CLIENTS_HERE = """
    SELECT given.id::text FROM json_populate_recordset(NULL::clients, $1::json) AS given JOIN clients USING (id)
"""
_SERVED_KINDS = """
    SELECT DISTINCT ON (kind) kind, document FROM imported_kinds WHERE served_at IS NOT NULL
    ORDER BY kind, served_at DESC
"""
_ADD_KEYS = """
    INSERT INTO audit_former_keys (organization_id, key_id, public_key)
    SELECT $1, * FROM unnest($2::text[], $3::text[]) ON CONFLICT DO NOTHING
"""

_DECODER = msgspec.json.Decoder(Line)


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """Imports organizations into a database, and seals their secrets with its keys."""

    database: Database
    vault: Vault

    async def read(self, lines: Iterable[bytes], name: str | None = None) -> tuple[Manifest, dict[str, int]]:
        """Import the lines of a file, under another name if one is given; returns the number of rows by table.

        Raises Conflict if the database has the organization, its name, or something else of it, and InvalidParams for
        lines that are no whole export.
        """
        decoded = map(_decoded, lines)
        manifest = next(decoded, Line()).begin
        if manifest is None:
            raise InvalidParams("the file does not begin with a manifest")
        async with self.database.system() as connection, connection.transaction():
            await _require_room(connection, manifest, name or manifest.name)
            counts = await _Import(connection, self.vault, manifest, name or manifest.name).run(decoded)
        return manifest, counts


async def _require_room(connection: Connection, manifest: Manifest, name: str) -> None:
    found = await connection.fetchval(_EXISTS, manifest.organization_id, name)
    if found == manifest.organization_id:
        raise Conflict(f"this database has the organization {found} already; it cannot be imported twice")
    if found is not None:
        raise Conflict(f"this database has another organization named {name!r}; choose another name with --name")
    own = {each.number for each in await applied_migrations(connection)}
    if missing := [number for number in manifest.migrations if number not in own]:
        raise Conflict(
            f"the file is of version {manifest.version}, and this database lacks its migration {missing[0]:04d}; "
            "install that version or a later one, and run `gateway migrate`"
        )


class _Import:
    """One import, within its transaction."""

    def __init__(self, connection: Connection, vault: Vault, manifest: Manifest, name: str) -> None:
        self._connection = connection
        self._vault = vault
        self._manifest = manifest
        self._name = name
        self._counts: Counter[str] = Counter()
        #: ids of clients that this gateway has, of which the file is not believed that it has their tokens
        self._known_clients: set[str] = set()
        #: ids of what tokens may belong to, by the table
        self._owners: dict[str, set[str]] = {"agent_grants": set(), "person_sessions": set()}

    async def run(self, lines: Iterable[Line]) -> dict[str, int]:
        """Insert the rows of all tables, in their order."""
        tables = iter(MOVED)
        table = next(tables)
        rows: list[bytes] = []
        size, ended = 0, None
        served = await self._connection.fetch(_SERVED_KINDS)
        await self._begin(table)
        for line in lines:
            if ended is not None:
                raise InvalidParams("the file has lines after its end")
            while table.name != line.table:
                await self._insert(table, rows)
                rows, size = [], 0
                following = next(tables, None)
                if following is None:
                    break
                table = following
                await self._begin(table)
            if line.table is None:
                ended = line.end
                continue
            if line.table != table.name:
                raise InvalidParams(f"the file has rows of the table {line.table!r} in another order")
            rows.append(self._row(table, line))
            size += len(rows[-1])
            if len(rows) >= table.batch or size >= _MAX_BYTES:
                await self._insert(table, rows)
                rows, size = [], 0
        counts = {each.name: self._counts[each.name] for each in MOVED}
        if ended is None or counts != {**dict.fromkeys(counts, 0), **ended}:
            raise InvalidParams("the file is not whole: it does not have all rows")
        await self._require_kinds(served)
        await self._finish(self._manifest.audit_keys)
        return counts

    async def _begin(self, table: MovedTable) -> None:
        if table.before is not None:
            await self._connection.execute(table.before, self._manifest.organization_id)

    async def _finish(self, keys: Sequence[AuditKey]) -> None:
        organization_id = self._manifest.organization_id
        for table in MOVED:
            if table.after is not None:
                await self._connection.execute(table.after, organization_id)
        columns = [each.key_id for each in keys], [each.public_key for each in keys]
        await self._connection.execute(_ADD_KEYS, organization_id, *columns)

    def _row(self, table: MovedTable, line: Line) -> bytes:
        """The row for this database: its data key is wrapped by the vault's newest key."""
        if line.key is None and table.name != "organizations":
            return bytes(line.row)
        row: dict[str, Any] = msgspec.json.decode(line.row)
        if table.name == "organizations":
            row["name"] = self._name
        if line.key is not None:
            sealing = SEALED[table.name]
            values = binding_row(self._manifest.organization_id, row[sealing.owner], line.context)
            wrapped = self._vault.wrap(base64.b64decode(line.key), sealing.binding_of(values))
            row["key_id"], row["wrapped_key"] = self._vault.newest, f"\\x{wrapped.hex()}"
        return msgspec.json.encode(row)

    async def _require_kinds(self, served: Sequence[Any]) -> None:
        """Raise Conflict if a kind that this gateway served would become that of the file, for all organizations."""
        now = {row["kind"]: row["document"] for row in await self._connection.fetch(_SERVED_KINDS)}
        if changed := [row["kind"] for row in served if now.get(row["kind"]) != row["document"]]:
            raise Conflict(
                f"the kind {changed[0]} of this gateway differs from that of the organization; import it first"
            )

    def _trusted(self, row: bytes) -> bool:
        """Whether a token is one of the organization: of a client, and a session or grant, that the file brings."""
        token = msgspec.json.decode(row)
        return token["client_id"] not in self._known_clients and all(
            token[column] is None or token[column] in self._owners[table]
            for column, table in (("grant_id", "agent_grants"), ("session_id", "person_sessions"))
        )

    async def _insert(self, table: MovedTable, rows: Sequence[bytes]) -> None:
        if not rows:
            return
        self._counts[table.name] += len(rows)
        if table.name == "tokens":
            rows = [row for row in rows if self._trusted(row)]
        document = f"[{b','.join(rows).decode()}]"
        if table.name == "clients":
            self._known_clients |= {row["id"] for row in await self._connection.fetch(_CLIENTS_HERE, document)}
        if table.name in self._owners:
            self._owners[table.name] |= {msgspec.json.decode(row)["id"] for row in rows}
        columns = [name for name in self._manifest.columns[table.name] if (table.name, name) != (AUDIT, "xact")]
        if set(columns) - set(await columns_of(self._connection, table.name)):
            raise InvalidParams(f"the file has columns of {table.name} that this database does not have")
        try:
            if table.name == AUDIT:
                statement = _INSERT_AUDIT.format(columns=quoted(columns), values=quoted(columns, "entry."))
                await self._connection.execute(statement, document, self._manifest.organization_id)
            else:
                await self._insert_plainly(table, columns, document)
        except asyncpg.UniqueViolationError as error:
            raise Conflict(
                f"this database has a row of {error.table_name} that the organization has too ({error.constraint_name})"
            ) from error

    async def _insert_plainly(self, table: MovedTable, columns: Sequence[str], document: str) -> None:
        if table.name == "imported_kinds" and (kind := await self._connection.fetchval(_OTHER_KIND, document)):
            raise Conflict(f"the kind {kind} of this gateway differs from that of the organization; import it first")
        # A row never belongs to another organization than the file's.
        is_owned = "organization_id" in columns
        values = quoted(columns, "given.").replace('given."organization_id"', "$2::uuid")
        kept = f"ON CONFLICT ({table.kept}) DO NOTHING" if table.kept else ""
        statement = _INSERT.format(table=table.name, columns=quoted(columns), values=values, kept=kept)
        arguments = (document, self._manifest.organization_id) if is_owned else (document,)
        await self._connection.execute(statement, *arguments)


def _decoded(line: bytes) -> Line:
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise InvalidParams("the file has a line that is no part of an export") from error
