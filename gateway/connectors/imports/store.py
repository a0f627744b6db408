"""Versions of imported kinds in PostgreSQL. The whole gateway serves them, so that no organization owns a row."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from gateway.connectors.imports.model import ImportedKind
from gateway.errors import Conflict, NotFound
from gateway.foundation.db.notifications import NOTIFY
from gateway.foundation.db.pool import Database
from gateway.foundation.db.rows import decoded

#: the topic of a change of the served kinds; the subject is the kind
TOPIC = "imported-kind"
_COLUMNS = "kind, version, source, document::text AS document, report, created_at, served_at"
_SERVED = f"""
    SELECT DISTINCT ON (kind) {_COLUMNS} FROM imported_kinds WHERE served_at IS NOT NULL
    ORDER BY kind, served_at DESC
"""
# The documents may have many MiB, so the list leaves them out.
_ALL = """
    SELECT kind, version, source, '{}' AS document, '' AS report, created_at, served_at FROM imported_kinds
    ORDER BY kind, version DESC LIMIT 500
"""
_ONE = f"SELECT {_COLUMNS} FROM imported_kinds WHERE kind = $1 AND version = $2"
_INSERT = """
    INSERT INTO imported_kinds
        (kind, version, source, document, report, importing_organization, importing_client)
    SELECT $1, COALESCE(max(version), 0) + 1, $2, $3, $4, $5, $6 FROM imported_kinds WHERE kind = $1
    RETURNING version
"""
_CORRECT = """
    UPDATE imported_kinds SET document = $3, served_at = now() WHERE kind = $1 AND version = $2 RETURNING version
"""
# Until the transaction ends, no other process numbers or serves versions of the kind.
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('imported_kinds'), hashtext($1))"
_IS_SERVED = "SELECT EXISTS (SELECT FROM imported_kinds WHERE kind = $1 AND served_at IS NOT NULL)"
_DELETE = "DELETE FROM imported_kinds WHERE kind = $1 RETURNING version"


class ImportedKindStore:
    """Versions by kind and number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def served(self) -> Sequence[ImportedKind]:
        """The version of each kind that was served last."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_SERVED)
        return (await decoded(rows, _kind, "an imported kind", key="kind")).values

    async def all(self) -> Sequence[ImportedKind]:
        """All versions without their documents, the newest of each kind first."""
        async with self._database.system() as connection:
            rows = await connection.fetch(_ALL)
        return (await decoded(rows, _kind, "an imported kind", key="kind")).values

    async def get(self, kind: str, version: int) -> ImportedKind:
        """One version; raises NotFound."""
        async with self._database.system() as connection:
            row = await connection.fetchrow(_ONE, kind, version)
        if row is None:
            raise NotFound("there is no such version of an imported kind")
        return _kind(row)

    async def add(
        self, document: Mapping[str, Any], source: str, report: str, *, organization_id: UUID, client_id: UUID
    ) -> int:
        """Store a draft; returns its version."""
        kind, encoded = document["connector"]["kind"], msgspec.json.encode(document).decode()
        async with self._database.system() as connection, connection.transaction():
            await connection.execute(_LOCK, kind)
            version: int = await connection.fetchval(_INSERT, kind, source, encoded, report, organization_id, client_id)
        return version

    async def serve(self, kind: str, version: int, document: Mapping[str, Any], *, is_first: bool = False) -> None:
        """Serve a version with a corrected document, and tell every process.

        Raises NotFound, and Conflict if it should be the first version but another one is served meanwhile.
        """
        encoded = msgspec.json.encode(document).decode()
        async with self._database.system() as connection, connection.transaction():
            await connection.execute(_LOCK, kind)
            if is_first and await connection.fetchval(_IS_SERVED, kind):
                raise Conflict(f"{kind} was accepted by somebody else meanwhile; try again")
            if await connection.fetchval(_CORRECT, kind, version, encoded) is None:
                raise NotFound("there is no such version of an imported kind")
            await connection.execute(NOTIFY, f"{TOPIC}:{kind}")

    async def delete(self, kind: str) -> None:
        """Delete all versions, and tell every process; raises NotFound."""
        async with self._database.system() as connection, connection.transaction():
            if await connection.fetchval(_DELETE, kind) is None:
                raise NotFound("there is no such imported kind")
            await connection.execute(NOTIFY, f"{TOPIC}:{kind}")


def _kind(row: asyncpg.Record) -> ImportedKind:
    return ImportedKind(**{**row, "document": msgspec.json.decode(row["document"])})
