"""The lines of an exported organization.

A manifest, the stored files of jobs that had ended, the manifest again, the rows of each table as of that moment, the
files of jobs that ended in between, and how much of each there is. A line of a file's bytes begins with `_PART`.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias
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


#: how the bytes of a file end: all are there, they are not there, or they differ from those that were stored
FileEnd: TypeAlias = Literal["whole", "missing", "changed"]

_ENCODER = msgspec.json.Encoder()
_PART = b"\0"
#: in a line of bytes, what stands for the byte that begins such a sequence, and for the end of a line
_ESCAPES = ((b"\1", b"\1\2"), (b"\n", b"\1\3"))
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


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


class MovedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The stored file of a job's run: lines with its bytes follow, and one with their end."""

    job_id: UUID
    fence: _Number
    size: _Number
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class LostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A stored file whose job is moved without it."""

    job_id: UUID
    reason: FileEnd


class Contents(msgspec.Struct, kw_only=True):
    """How much an export has."""

    #: the number of rows by table
    rows: dict[str, int] = {}
    #: the number of whole files, and of their bytes
    files: int = 0
    file_bytes: int = 0
    lost_files: list[LostFile] = []

    def add(self, file: MovedFile, end: FileEnd) -> None:
        """Count a file."""
        if end == "whole":
            self.files += 1
            self.file_bytes += file.size
        else:
            self.lost_files.append(LostFile(job_id=file.job_id, reason=end))


class Line(msgspec.Struct, omit_defaults=True):
    """Any line but those of bytes."""

    begin: Manifest | None = None
    table: str | None = None
    row: msgspec.Raw = msgspec.Raw()
    #: of a sealed row: its data key in base64, and the context to which the row is bound
    key: str | None = None
    context: str | None = None
    file: MovedFile | None = None
    file_end: FileEnd | None = None
    #: the last line
    end: Contents | None = None


def line_of(line: Line) -> bytes:
    """The line as it is written."""
    return _ENCODER.encode(line) + b"\n"


def part_line(part: bytes) -> bytes:
    """The line of a part of a file."""
    for plain, escaped in _ESCAPES:
        part = part.replace(plain, escaped)
    return _PART + part + b"\n"


def part_of(line: bytes) -> bytes | None:
    """The part of a file in a line; None for any other line."""
    if not line.startswith(_PART):
        return None
    part = line[len(_PART) :]
    for plain, escaped in reversed(_ESCAPES):
        part = part.replace(escaped, plain)
    return part


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
