"""Imports an organization from its sealed file, in one transaction: an interrupted import leaves nothing."""

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from gateway.errors import Conflict, InvalidParams
from gateway.foundation.db.migrate import applied_migrations
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.vault.vault import Vault
from gateway.jobs.stored_files.store import StoredFiles
from gateway.kinds.catalog import Catalog
from gateway.run.moving.document import (
    SEALED,
    AuditKey,
    Contents,
    Line,
    Manifest,
    binding_row,
    columns_of,
    part_of,
    quoted,
)
from gateway.run.moving.files import ArrivingFiles, FileLimits, arriving_files
from gateway.run.moving.kinds import KindAcceptance
from gateway.run.moving.ownership import Ownership
from gateway.run.moving.rows import RULES, believed, is_checked, refused
from gateway.run.moving.tables import AUDIT, MOVED, MovedTable

#: bytes of rows of one statement
_MAX_BYTES = 4 << 20
#: bytes and lines of the file that are read at a time
_READ_SIZE = 512 << 10
_READ_LINES = 500

# Files that come first, perhaps as they are exported, may take longer than other transactions may be idle.
_BE_PATIENT = "SET LOCAL idle_in_transaction_session_timeout = '1h'"
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
# Clients that the database has; `is_shared` if they act for another organization.
_CLIENTS_HERE = """
    SELECT clients.id, EXISTS (SELECT FROM client_organizations WHERE client_id = clients.id) AS is_shared
    FROM json_populate_recordset(NULL::clients, $1::json) AS given JOIN clients USING (id)
"""
# Its holder acts for every organization of the client.
_DROP_TOKENS = "DELETE FROM tokens WHERE client_id = ANY ($1::uuid[]) AND xmin = pg_current_xact_id()::xid"
_OTHER_KEY = "SELECT {owner}::text FROM {table} WHERE organization_id = $1 AND key_id <> $2 LIMIT 1"
_ADD_KEYS = """
    INSERT INTO audit_former_keys (organization_id, key_id, public_key)
    SELECT $1, * FROM unnest($2::text[], $3::text[]) ON CONFLICT DO NOTHING
"""

_DECODER = msgspec.json.Decoder(Line)
_KINDS = "imported_kinds"
#: what PostgreSQL and the decoder raise for a row that is not one of its table
_ROW_ERRORS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.PLPGSQLError,
    msgspec.DecodeError,
    RecursionError,
    UnicodeDecodeError,
)


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What the operator says of a file that the database cannot know."""

    #: names of the imported kinds of the file that all organizations may be served
    accepted_kinds: Collection[str] = ()
    #: clients of other organizations of this gateway that may act for the one of the file too
    shared_clients: Collection[UUID] = ()


_NO_TRUST = Trust()
_ALL_FILES = FileLimits()


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """Imports organizations into a database, and seals their secrets with its keys."""

    database: Database
    vault: Vault
    catalog: Catalog
    files: StoredFiles

    async def read(
        self,
        lines: Iterable[bytes],
        name: str | None = None,
        trust: Trust = _NO_TRUST,
        limits: FileLimits = _ALL_FILES,
    ) -> tuple[UUID, Contents]:
        """Import the lines of a file, under another name if one is given; returns the organization and what it has.

        Raises Conflict if the database has the organization, its name, or something else of it, or no room for its
        files, and InvalidParams for lines that are no whole export, or that name or bring what is not its own.
        """
        decoded = _decoded(lines)
        first = _manifest_of(await anext(decoded, Line()))
        async with self.database.system() as connection, connection.transaction():
            await connection.execute(_BE_PATIENT)
            async with arriving_files(self.files, connection, first.organization_id, limits) as files:
                # Now, because another import may have ended meanwhile, whose jobs need the files of these names. Until
                # the rows come, the transaction has no lock of a table for which a migration would wait.
                async with self.database.system() as other:
                    await _require_room(other, first, name or first.name)
                contents = await self._rows(connection, first, files, files.other_lines(decoded), name, trust)
        return first.organization_id, contents if limits.is_wanted else Contents(rows=contents.rows)

    async def _rows(
        self,
        connection: Connection,
        first: Manifest,
        files: ArrivingFiles,
        lines: AsyncIterator[Line],
        name: str | None,
        trust: Trust,
    ) -> Contents:
        """Import the rows, while the files among them are stored; returns what the file states that it has."""
        manifest = _manifest_of(await anext(lines, Line()))
        if manifest.organization_id != first.organization_id:
            raise InvalidParams("the file has manifests of two organizations")
        name = name or manifest.name
        await _require_room(connection, manifest, name)
        kinds = KindAcceptance(connection, manifest.organization_id, self.catalog, trust.accepted_kinds)
        run = _Import(connection, self.vault, manifest, name, kinds, trust.shared_clients)
        contents = await run.run(lines)
        if (contents.files, contents.file_bytes) != (files.contents.files, files.contents.file_bytes):
            raise InvalidParams("the file is not whole: it does not have all stored files")
        await files.discard_unneeded(connection)
        return contents


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

    def __init__(
        self,
        connection: Connection,
        vault: Vault,
        manifest: Manifest,
        name: str,
        kinds: KindAcceptance,
        shared_clients: Collection[UUID],
    ) -> None:
        self._connection = connection
        self._vault = vault
        self._manifest = manifest
        self._name = name
        self._kinds = kinds
        self._shared_clients = shared_clients
        self._counts: Counter[str] = Counter()
        #: clients that this gateway has, of which the file is not believed that it has their tokens
        self._known_clients: set[UUID] = set()

    async def run(self, lines: AsyncIterator[Line]) -> Contents:
        """Insert the rows of all tables, in their order, and check what they refer to; returns what the file states."""
        tables = iter(MOVED)
        table = next(tables)
        rows: list[bytes] = []
        size, ended = 0, None
        served = await self._kinds.served()
        await self._begin(table)
        async for line in lines:
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
            rows.append(await self._row(table, line))
            size += len(rows[-1])
            if len(rows) >= table.batch or size >= _MAX_BYTES:
                await self._insert(table, rows)
                rows, size = [], 0
        counts = {each.name: self._counts[each.name] for each in MOVED}
        if ended is None or counts != {**dict.fromkeys(counts, 0), **ended.rows}:
            raise InvalidParams("the file is not whole: it does not have all rows")
        await self._require_own()
        await self._kinds.require_accepted(served)
        await self._finish(self._manifest.audit_keys)
        return ended

    async def _begin(self, table: MovedTable) -> None:
        if table.before is not None:
            await self._connection.execute(table.before, self._manifest.organization_id)

    async def _require_own(self) -> None:
        """Raise InvalidParams if a row of the file is, or names, what is not its organization's, or cannot be read."""
        organization_id = self._manifest.organization_id
        await self._connection.execute(_DROP_TOKENS, list(self._known_clients))
        with _row_errors("rows that refer to each other"):
            await self._connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for rule in RULES:
            if (row := await self._connection.fetchval(rule.statement, organization_id)) is not None:
                raise refused(rule.table, row, rule.text)
        for name, sealing in SEALED.items():
            other = _OTHER_KEY.format(table=name, owner=sealing.owner)
            if (row := await self._connection.fetchval(other, organization_id, self._vault.newest)) is not None:
                raise refused(name, row, "the file has its data key")
        ownership = await Ownership.read(self._connection, [table.name for table in MOVED])
        async for fault in ownership.faults(self._connection, organization_id, self._known_clients):
            raise refused(fault.table, fault.row, fault.rule)
        async for unfit in ownership.unfit_values(self._connection, organization_id):
            raise refused(unfit.table, unfit.row, unfit.rule)

    async def _finish(self, keys: Sequence[AuditKey]) -> None:
        organization_id = self._manifest.organization_id
        for table in MOVED:
            if table.after is not None:
                await self._connection.execute(table.after, organization_id)
        columns = [each.key_id for each in keys], [each.public_key for each in keys]
        await self._connection.execute(_ADD_KEYS, organization_id, *columns)

    async def _row(self, table: MovedTable, line: Line) -> bytes:
        """The row for this database: its data key is wrapped by the vault's newest key."""
        if line.key is None and not is_checked(table.name) and table.name != _KINDS:
            return bytes(line.row)
        with _row_errors(table.name):
            row: Any = msgspec.json.decode(line.row)
        if not isinstance(row, dict):
            raise refused(table.name, "", "a row is an object")
        row = believed(table.name, row, self._manifest, self._name)
        if table.name == _KINDS:
            row = await self._kinds.checked(row)
        if line.key is not None:
            row |= self._wrapped(table, row, line.key, line.context)
        return msgspec.json.encode(row)

    def _wrapped(self, table: MovedTable, row: Mapping[str, Any], key: str, context: str | None) -> dict[str, str]:
        """The members of a sealed row that hold its data key."""
        try:
            sealing = SEALED[table.name]
            values = binding_row(self._manifest.organization_id, row[sealing.owner], context)
            wrapped = self._vault.wrap(base64.b64decode(key, validate=True), sealing.binding_of(values))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise refused(table.name, row.get("id", ""), "its data key is not valid") from error
        return {"key_id": self._vault.newest, "wrapped_key": f"\\x{wrapped.hex()}"}

    async def _insert(self, table: MovedTable, rows: Sequence[bytes]) -> None:
        if not rows:
            return
        self._counts[table.name] += len(rows)
        document = f"[{b','.join(rows).decode()}]"
        columns = [name for name in self._manifest.columns.get(table.name, ()) if (table.name, name) != (AUDIT, "xact")]
        known = set(await columns_of(self._connection, table.name))
        if not columns or set(columns) - known or len(set(columns)) < len(columns):
            raise InvalidParams(f"the file has columns of {table.name} that this database does not have, or one twice")
        with _row_errors(table.name):
            if table.name == "clients":
                await self._know(document)
            if table.name == AUDIT:
                statement = _INSERT_AUDIT.format(columns=quoted(columns), values=quoted(columns, "entry."))
                await self._connection.execute(statement, document, self._manifest.organization_id)
            else:
                await self._insert_plainly(table, columns, document)

    async def _know(self, document: str) -> None:
        """Note the clients that this gateway has; raises Conflict for one of another organization."""
        for row in await self._connection.fetch(_CLIENTS_HERE, document):
            if row["is_shared"] and row["id"] not in self._shared_clients:
                raise Conflict(
                    f"clients {row['id']}: the client acts for other organizations of this gateway; if it may act for "
                    f"the one of the file too, import with --shared-client {row['id']}"
                )
            self._known_clients.add(row["id"])

    async def _insert_plainly(self, table: MovedTable, columns: Sequence[str], document: str) -> None:
        # A row never belongs to another organization than the file's.
        is_owned = "organization_id" in columns
        values = quoted(columns, "given.").replace('given."organization_id"', "$2::uuid")
        kept = f"ON CONFLICT ({table.kept}) DO NOTHING" if table.kept else ""
        statement = _INSERT.format(table=table.name, columns=quoted(columns), values=values, kept=kept)
        arguments = (document, self._manifest.organization_id) if is_owned else (document,)
        await self._connection.execute(statement, *arguments)


@contextmanager
def _row_errors(table: str) -> Iterator[None]:
    """Rows that this database refuses are faults of the file."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise Conflict(
            f"this database has a row of {error.table_name} that the organization has too ({error.constraint_name})"
        ) from error
    except _ROW_ERRORS as error:
        raise InvalidParams(f"the file is not imported: {table}: a row is not valid: {error}") from error


def _manifest_of(line: Line | bytes) -> Manifest:
    if isinstance(line, bytes) or line.begin is None:
        raise InvalidParams("the file does not begin with a manifest")
    return line.begin


async def _decoded(lines: Iterable[bytes]) -> AsyncIterator[Line | bytes]:
    """The lines, and the parts of files; they are read in a thread, because the file may be a pipe."""
    left = iter(lines)
    while batch := await asyncio.to_thread(_batch, left):
        for line in batch:
            yield line


def _batch(lines: Iterator[bytes]) -> list[Line | bytes]:
    batch: list[Line | bytes] = []
    size = 0
    for line in lines:
        part = part_of(line)
        batch.append(_line_of(line) if part is None else part)
        size += len(line)
        if size >= _READ_SIZE or len(batch) >= _READ_LINES:
            break
    return batch


def _line_of(line: bytes) -> Line:
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidParams("the file has a line that is no part of an export") from error
