"""`gateway export-organization` and `gateway import-organization`: an organization moves to another gateway."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import click

from gateway.access.audit.chain import signers_of
from gateway.cli.local_settings import local_settings
from gateway.cli.operator import run
from gateway.cli.output import output_option, write
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.sealed_file import Lock, SealedFileError, recipients_of, sealed_lines
from gateway.foundation.vault.vault import KeyList, KeyListError, Vault, read_keys
from gateway.run.moving.arrival import Arrival
from gateway.run.moving.departure import Departure
from gateway.run.moving.freeze import PATIENCE, Freeze
from gateway.settings import Settings

T = TypeVar("T")

_PASSPHRASE = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File whose first line is the passphrase that seals FILE.",
)


@click.command()
@click.argument("organization_id", type=click.UUID)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--recipient", metavar="KEY", help="Key of the gateway that imports FILE: `gateway keys recipient` there."
)
@_PASSPHRASE
@click.option(
    "--copy", "is_copy", is_flag=True, help="Go on serving writes: a rehearsal. Later changes are not in FILE."
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
    organization_id: UUID, file: Path, recipient: str | None, passphrase_file: Path | None, is_copy: bool, wait: float
) -> None:
    """Export an organization to FILE, which only the recipient or the passphrase opens.

    From then on its writes are refused (503), and its queued jobs wait for the import. `gateway admin organization
    resume` serves them again. Prints the number of rows by table.
    """
    if (recipient is None) == (passphrase_file is None):
        raise click.UsageError("give either --recipient or --passphrase-file")
    if file.exists():
        raise click.ClickException(f"{file} exists already; choose another file")
    settings, keys = _settings_and_keys()
    with _sealed_file_errors():
        lock = Lock.for_recipient(recipient) if recipient else Lock.by_passphrase(_passphrase(passphrase_file) or "")

    async def export(database: Database) -> dict[str, int]:
        departure = Departure(database=database, vault=Vault(keys), signers=signers_of(keys))
        if is_copy:
            return await _exported(departure, organization_id, file, lock)
        freeze = Freeze(database, organization_id)
        await freeze.begin(wait)
        try:
            return await _exported(departure, organization_id, file, lock)
        except BaseException:
            await freeze.end()
            raise

    _report(organization_id, _with_database(settings, export))


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_PASSPHRASE
@click.option("--name", help="Name of the organization here.  [default: the name that it had]")
@output_option
def import_organization(file: Path, passphrase_file: Path | None, name: str | None) -> None:
    """Import an organization from FILE; its secrets are sealed with the encryption keys of this gateway.

    It is one transaction: an import that is interrupted leaves nothing. Prints the number of rows by table.
    """
    settings, keys = _settings_and_keys()
    passphrase = _passphrase(passphrase_file)

    async def arrive(database: Database) -> tuple[UUID, dict[str, int]]:
        with file.open("rb") as opened:
            lines = sealed_lines(opened, recipients_of(keys), passphrase)
            manifest, counts = await Arrival(database=database, vault=Vault(keys)).read(lines, name)
        return manifest.organization_id, counts

    with _sealed_file_errors():
        _report(*_with_database(settings, arrive))


async def _exported(departure: Departure, organization_id: UUID, file: Path, lock: Lock) -> dict[str, int]:
    """Write the file; it gets its name when it is complete."""
    counts: dict[str, int] = {}
    partial = file.with_name(f".{file.name}.partial")
    try:
        with partial.open("wb") as opened:
            partial.chmod(0o600)
            async for chunk in departure.chunks(organization_id, lock, counts):
                opened.write(chunk)
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)
    return counts


def _with_database(settings: Settings, use: Callable[[Database], Awaitable[T]]) -> T:
    async def main() -> T:
        async with Database.open(
            settings.database_url, size=2, command_timeout=300, has_pooler=settings.has_pooler
        ) as database:
            return await use(database)

    return run(main)


def _settings_and_keys() -> tuple[Settings, KeyList]:
    settings = local_settings()
    try:
        return settings, read_keys(settings.encryption_keys, settings.encryption_keys_file)
    except KeyListError as error:
        raise click.ClickException(str(error)) from error


def _passphrase(file: Path | None) -> str | None:
    if file is None:
        return None
    first = file.read_text("utf-8").partition("\n")[0].strip()
    if not first:
        raise click.ClickException(f"the first line of {file} is empty; write the passphrase there")
    return first


def _report(organization_id: UUID, counts: Mapping[str, int]) -> None:
    rows: dict[str, Any] = {name: count for name, count in counts.items() if count}
    write({"organization_id": str(organization_id), "rows": rows})


@contextmanager
def _sealed_file_errors() -> Iterator[None]:
    try:
        yield
    except SealedFileError as error:
        raise click.ClickException(str(error)) from error
