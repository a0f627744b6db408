"""Exports an organization: all its rows, as of one moment, and the stored files of its jobs, to a sealed file."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import UUID

import msgspec

from gateway.errors import NotFound
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import in_thread
from gateway.foundation.db.migrate import applied_migrations, installed_version
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.proof import Signer
from gateway.foundation.vault.sealed_file import Lock, SealedWriter
from gateway.foundation.vault.vault import Sealed, Vault
from gateway.run.moving.document import SEALED, AuditKey, Contents, Line, Manifest, columns_of, line_of, quoted
from gateway.run.moving.files import DepartingFiles
from gateway.run.moving.tables import AUDIT, MOVED, MovedTable

#: bytes of the sealed file that are held at most
_CHUNK = 256 << 10
#: bytes of a line that is compressed in a thread
_LONG = 64 << 10
#: how often the files of jobs that have ended meanwhile are copied before writes are refused
_ROUNDS = 3

_NAME = "SELECT name FROM organizations WHERE id = $1 AND deletion_job IS NULL"
_FORMER_KEYS = "SELECT key_id, public_key FROM audit_former_keys WHERE organization_id = $1"
_ROWS = """
    SELECT to_json(moved)::text AS row{sealing}
    FROM (SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}) AS moved
"""
_SEALING = ", moved.organization_id, moved.{owner} AS owner, {context} AS context, moved.key_id, moved.wrapped_key"
# Entries that are not in the chain yet get into that of the target: `xact` says that they wait for it.
_AUDIT_ROWS = """
    SELECT jsonb_build_object(
        'id', audit.id::text,
        'entry', to_jsonb(audit) - 'id' - 'xact',
        'is_waiting', audit.xact IS NOT NULL AND chain.seq IS NULL,
        'chain', to_jsonb(chain) - 'organization_id' - 'audit_id')::text AS row
    FROM audit LEFT JOIN audit_chain AS chain ON chain.audit_id = audit.id
    WHERE audit.organization_id = $1 ORDER BY audit.id
"""


async def _never() -> None:
    """Refuse no writes."""


@dataclass(frozen=True, kw_only=True)
class Departure:
    """Exports organizations of a database."""

    database: Database
    vault: Vault
    #: the keys that sign the audit log
    signers: Sequence[Signer]
    files: DepartingFiles

    async def lines(
        self,
        organization_id: UUID,
        contents: Contents,
        *,
        freeze: Callable[[], Awaitable[None]] = _never,
        with_files: bool = True,
    ) -> AsyncIterator[bytes]:
        """The lines of the file; counts what it has. Raises NotFound.

        `freeze` is called once the files of the jobs that have ended are copied, which takes as long as they are large.
        """
        async with self.database.system() as connection:
            yield line_of(Line(begin=await self._manifest(connection, organization_id)))
        copied: set[UUID] = set()
        for _ in range(_ROUNDS if with_files else 0):
            async with self.database.tenant(organization_id) as connection:
                jobs = await self._jobs(connection, organization_id, copied)
            async for line in self.files.lines(organization_id, jobs, contents):
                yield line
        await freeze()
        async with (
            self.database.system() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            manifest = await self._manifest(connection, organization_id)
            yield line_of(Line(begin=manifest))
            for table in MOVED:
                contents.rows[table.name] = 0
                async for line in self._lines(connection, organization_id, table, manifest.columns[table.name]):
                    yield line
                    contents.rows[table.name] += 1
            jobs = await self._jobs(connection, organization_id, copied) if with_files else []
        async for line in self.files.lines(organization_id, jobs, contents):
            yield line
        yield line_of(Line(end=contents))

    async def chunks(
        self,
        organization_id: UUID,
        lock: Lock,
        contents: Contents,
        *,
        freeze: Callable[[], Awaitable[None]] = _never,
        with_files: bool = True,
    ) -> AsyncIterator[bytes]:
        """The bytes of the sealed file."""
        file = BytesIO()
        writer = SealedWriter(file, lock)
        async for line in self.lines(organization_id, contents, freeze=freeze, with_files=with_files):
            if len(line) > _LONG:
                await in_thread(writer.write, line)
            else:
                writer.write(line)
            if file.tell() >= _CHUNK:
                yield _taken(file)
        writer.close()
        yield _taken(file)

    async def _jobs(self, connection: Connection, organization_id: UUID, copied: set[UUID]) -> list[UUID]:
        """The jobs whose files are not copied yet, which are then."""
        jobs = [each for each in await self.files.jobs(connection, organization_id) if each not in copied]
        copied.update(jobs)
        return jobs

    async def _manifest(self, connection: Connection, organization_id: UUID) -> Manifest:
        name = await connection.fetchval(_NAME, organization_id)
        if name is None:
            raise NotFound(f"there is no organization {organization_id}")
        former = [AuditKey(**row) for row in await connection.fetch(_FORMER_KEYS, organization_id)]
        return Manifest(
            organization_id=organization_id,
            name=name,
            exported_at=CLOCK.now(),
            version=installed_version(),
            migrations=[each.number for each in await applied_migrations(connection)],
            columns={table.name: await columns_of(connection, table.name) for table in MOVED},
            audit_keys=[*(AuditKey(each.key_id, each.public_key) for each in self.signers), *former],
        )

    async def _lines(
        self, connection: Connection, organization_id: UUID, table: MovedTable, columns: Sequence[str]
    ) -> AsyncIterator[bytes]:
        sealing = SEALED.get(table.name)
        statement = _AUDIT_ROWS
        if table.name != AUDIT:
            statement = _ROWS.format(
                sealing="" if sealing is None else _SEALING.format(owner=sealing.owner, context=sealing.context),
                columns=quoted(columns),
                table=table.name,
                where=table.where,
                order=table.order,
            )
        async for row in connection.cursor(statement, organization_id, prefetch=table.batch):
            line = Line(table=table.name, row=msgspec.Raw(row["row"].encode()))
            if sealing is not None and row["key_id"] is not None:
                line.key, line.context = self._data_key(table.name, row), row["context"]
            yield line_of(line)

    def _data_key(self, table: str, row: Any) -> str:
        """The unwrapped data key: the file as a whole is sealed."""
        sealed = Sealed(row["key_id"], row["wrapped_key"], b"")
        return base64.b64encode(self.vault.data_key(sealed, SEALED[table].binding_of(row))).decode()


def _taken(file: BytesIO) -> bytes:
    """What was written, which is forgotten."""
    written = file.getvalue()
    file.seek(0)
    file.truncate()
    return written
