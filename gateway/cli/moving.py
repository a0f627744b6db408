"""`gateway export-organization` and `gateway import-organization`: an organization moves to another gateway."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import UUID

import click
import msgspec

from gateway.access.audit.chain import signers_of
from gateway.cli.encryption_keys import unwrapped_keys
from gateway.cli.failures import note
from gateway.cli.local_settings import local_settings
from gateway.cli.operator import run
from gateway.cli.output import output_option, write
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.sealed_file import Lock, SealedFileError, recipients_of, sealed_lines
from gateway.foundation.vault.vault import KeyList, Vault
from gateway.jobs.sealing import JobSealing
from gateway.jobs.services import open_blobs
from gateway.jobs.stored_files.store import StoredFiles
from gateway.kinds.loading import serving_catalog
from gateway.run.moving.arrival import Arrival, Trust
from gateway.run.moving.departure import Departure
from gateway.run.moving.document import Contents
from gateway.run.moving.files import MAX_BYTES, DepartingFiles, FileLimits
from gateway.run.moving.freeze import PATIENCE, Freeze
from gateway.settings import Settings

T = TypeVar("T")

#: FILE for stdin or stdout
_PIPE = Path("-")

_PASSPHRASE = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File whose first line is the passphrase that seals FILE.",
)


@click.command()
@click.argument("organization_id", type=click.UUID)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--recipient", metavar="KEY", help="Key of the gateway that imports FILE: `gateway keys recipient` there."
)
@_PASSPHRASE
@click.option(
    "--copy", "is_copy", is_flag=True, help="Go on serving writes: a rehearsal. Later changes are not in FILE."
)
@click.option(
    "--without-files", is_flag=True, help="Leave out the stored files of jobs: results of downloads and exports."
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0, max=3600),
    default=PATIENCE,
    show_default=True,
    help="Seconds that running jobs get to finish. If they do not, nothing is exported.",
)
@output_option
def export_organization(
    organization_id: UUID,
    file: Path,
    recipient: str | None,
    passphrase_file: Path | None,
    is_copy: bool,
    without_files: bool,
    wait: float,
) -> None:
    """Export an organization to FILE, or with `-` to stdout, which only the recipient or the passphrase opens.

    The stored files of jobs are copied first. From then on its writes are refused (503), and its queued jobs wait for
    the import. `gateway admin organization resume` serves them again. Prints the number of rows by table, and the
    stored files that are missing; with `-` on stderr.
    """
    if (recipient is None) == (passphrase_file is None):
        raise click.UsageError("give either --recipient or --passphrase-file")
    if file.exists():
        raise click.ClickException(f"{file} exists already; choose another file")
    settings, keys = _settings_and_keys()
    with _sealed_file_errors():
        lock = Lock.for_recipient(recipient) if recipient else Lock.by_passphrase(_passphrase(passphrase_file) or "")

    async def export(database: Database) -> Contents:
        vault, freeze, contents = Vault(keys), Freeze(database, organization_id), Contents()
        files = DepartingFiles(database=database, sealing=JobSealing(vault), files=_stored_files(settings, database))
        departure = Departure(database=database, vault=vault, signers=signers_of(keys), files=files)
        begin = {} if is_copy else {"freeze": partial(freeze.begin, wait)}
        try:
            await _written(
                departure.chunks(organization_id, lock, contents, with_files=not without_files, **begin), file
            )
        except BaseException:
            await freeze.abandon()
            raise
        return contents

    contents = _with_database(settings, export)
    if file == _PIPE:
        note(msgspec.json.encode(_report(organization_id, contents)).decode())
    else:
        write(_report(organization_id, contents))
    if contents.lost_files:
        note(f"stored files that are not in FILE: {len(contents.lost_files)}; their jobs are, without a result")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@_PASSPHRASE
@click.option("--name", help="Name of the organization here.  [default: the name that it had]")
@click.option(
    "--accept-kind",
    "accepted_kinds",
    metavar="KIND",
    multiple=True,
    help="Imported kind of FILE that all organizations of this gateway are served. Repeatable.",
)
@click.option(
    "--shared-client",
    "shared_clients",
    metavar="ID",
    type=click.UUID,
    multiple=True,
    help="Client of other organizations here that may act for the one of FILE too. Repeatable.",
)
@click.option(
    "--files-limit",
    type=click.IntRange(min=0),
    default=MAX_BYTES,
    show_default=True,
    help="Bytes that the stored files of FILE may have together; each counts 65,536 at least.",
)
@click.option("--without-files", is_flag=True, help="Import no stored files; results that are files have expired then.")
@output_option
def import_organization(
    file: Path,
    passphrase_file: Path | None,
    name: str | None,
    accepted_kinds: tuple[str, ...],
    shared_clients: tuple[UUID, ...],
    files_limit: int,
    without_files: bool,
) -> None:
    """Import an organization from FILE, or with `-` from stdin; its secrets are sealed with the keys of this gateway.

    FILE is not believed: rows that name what is not the organization's own are refused. Stored files are stored where
    GATEWAY_FILES_URL says. It is one transaction: an import that is refused or interrupted leaves nothing. Prints the
    number of rows by table.
    """
    trust = Trust(accepted_kinds=accepted_kinds, shared_clients=shared_clients)
    limits = FileLimits(is_wanted=not without_files, max_bytes=files_limit)
    settings, keys = _settings_and_keys()
    passphrase = _passphrase(passphrase_file)

    async def arrive(database: Database) -> tuple[UUID, Contents]:
        with _opened(file) as opened:
            lines = sealed_lines(opened, recipients_of(keys), passphrase)
            arrival = Arrival(
                database=database,
                vault=Vault(keys),
                catalog=serving_catalog(settings.specs),
                files=_stored_files(settings, database),
            )
            return await arrival.read(lines, name, trust, limits)

    with _sealed_file_errors():
        organization_id, contents = _with_database(settings, arrive)
    write(_report(organization_id, contents))


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if file == _PIPE:
        yield sys.stdin.buffer
    else:
        with file.open("rb") as opened:
            yield opened


async def _written(chunks: AsyncIterator[bytes], file: Path) -> None:
    """Write the file; it gets its name when it is complete. The reader of a pipe may be slow."""
    if file == _PIPE:
        async for chunk in chunks:
            await asyncio.to_thread(sys.stdout.buffer.write, chunk)
        sys.stdout.buffer.flush()
        return
    partial_file = file.with_name(f".{file.name}.partial")
    try:
        with partial_file.open("wb") as opened:
            partial_file.chmod(0o600)
            async for chunk in chunks:
                await asyncio.to_thread(opened.write, chunk)
            opened.flush()
            await asyncio.to_thread(os.fsync, opened.fileno())
        partial_file.rename(file)
    finally:
        partial_file.unlink(missing_ok=True)


def _stored_files(settings: Settings, database: Database) -> StoredFiles:
    return StoredFiles(open_blobs(settings), database, settings.max_file_bytes)


def _with_database(settings: Settings, use: Callable[[Database], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Database.open(
            settings.database_url, size=2, command_timeout=300, has_pooler=settings.has_pooler
        ) as database:
            return await use(database)

    return run(main)


def _settings_and_keys() -> tuple[Settings, KeyList]:
    settings = local_settings()
    return settings, unwrapped_keys(settings)


def _passphrase(file: Path | None) -> str | None:
    if file is None:
        return None
    first = file.read_text("utf-8").partition("\n")[0].strip()
    if not first:
        raise click.ClickException(f"the first line of {file} is empty; write the passphrase there")
    return first


def _report(organization_id: UUID, contents: Contents) -> dict[str, Any]:
    return {
        "organization_id": str(organization_id),
        "rows": {name: count for name, count in contents.rows.items() if count},
        "files": {
            "stored": contents.files,
            "bytes": contents.file_bytes,
            "lost": msgspec.to_builtins(contents.lost_files),
        },
    }


@contextmanager
def _sealed_file_errors() -> Iterator[None]:
    try:
        yield
    except SealedFileError as error:
        raise click.ClickException(str(error)) from error
