"""`gateway backup` and `gateway restore`: dumps of the embedded PostgreSQL."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import click

from gateway.embedded import StartupError
from gateway.settings import settings_of

_DATA_DIR = click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Data directory of `gateway up`.  [default: .gateway]"
)


@click.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@_DATA_DIR
def backup(target: Path, data_dir: Path | None) -> None:
    """Back up the embedded PostgreSQL to TARGET while the gateway runs. An existing TARGET is replaced.

    The dump does not contain the encryption keys. Keep encryption.keys of the data directory in another place: without
    it the credentials in the dump cannot be decrypted. For your own PostgreSQL server, use pg_dump.
    """
    from gateway.embedded.backup import backup as write

    _in_directory(lambda directory: write(directory, target.absolute()), data_dir)
    click.echo(f"wrote {target}; keep the encryption keys in another place", err=True)


@click.command()
@click.argument("dump", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_DATA_DIR
@click.confirmation_option(prompt="This replaces the database in the data directory. Continue?")
def restore(dump: Path, data_dir: Path | None) -> None:
    """Replace the embedded PostgreSQL's data with DUMP. Stop `gateway up` first."""
    from gateway.embedded.backup import restore as replace_database

    _in_directory(lambda directory: asyncio.run(replace_database(directory, dump.absolute())), data_dir)
    click.echo("restored; the next `gateway up` applies missing migrations", err=True)


def _in_directory(work: Callable[[Path], None], data_dir: Path | None) -> None:
    directory = (data_dir or settings_of().data_dir).expanduser().absolute()
    try:
        work(directory)
    except StartupError as error:
        raise click.ClickException(str(error)) from error
