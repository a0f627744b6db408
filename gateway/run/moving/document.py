"""The lines of an exported organization: a manifest, the rows of each table, and their number."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.connectors.key_rotation.rotation import SealedTable
from gateway.foundation.db.pool import Connection
from gateway.run.sealed_tables import SEALED_TABLES

SEALED: Mapping[str, SealedTable] = {table.name: table for table in SEALED_TABLES}

# Columns that PostgreSQL computes or numbers are not moved.
_COLUMNS = """
    SELECT attname::text AS name FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
    ORDER BY attnum
"""


class AuditKey(msgspec.Struct, frozen=True):
    """A key with which checkpoints of the audit log are signed."""

    key_id: str
    public_key: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    organization_id: UUID
    name: str
    exported_at: datetime
    #: the version of the gateway that exported it
    version: str
    #: the numbers of the migrations of its database
    migrations: Sequence[int]
    #: the columns of each table
    columns: Mapping[str, Sequence[str]]
    audit_keys: Sequence[AuditKey]


class Line(msgspec.Struct, omit_defaults=True):
    """Any line."""

    begin: Manifest | None = None
    table: str | None = None
    row: msgspec.Raw = msgspec.Raw()
    #: of a sealed row: its data key in base64, and the context to which the row is bound
    key: str | None = None
    context: str | None = None
    #: the last line: the number of rows by table
    end: Mapping[str, int] | None = None


def quoted(names: Iterable[str], prefix: str = "") -> str:
    """The columns in a statement."""
    return ", ".join(f'{prefix}"{name}"' for name in names)


async def columns_of(connection: Connection, table: str) -> list[str]:
    """The columns of a table that are moved, in their order."""
    names = [str(row["name"]) for row in await connection.fetch(_COLUMNS, table)]
    return [name for name in names if table != "organizations" or not name.startswith("moving_")]


def binding_row(organization_id: UUID, owner: Any, context: str | None) -> dict[str, Any]:
    """The values by which `SealedTable.binding_of` finds the binding of a row."""
    return {"organization_id": organization_id, "owner": owner, "context": context}
