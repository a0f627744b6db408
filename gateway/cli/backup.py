"""`gateway backup`, `gateway restore` and `gateway end-writes`: dumps of PostgreSQL, and what follows their restore."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gateway.cli.local_settings import local_settings
from gateway.embedded import StartupError
from gateway.settings import settings_of

Result = TypeVar("Result")

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
@click.option(
    "--resume-jobs",
    is_flag=True,
    help="Let workers run the unfinished writes of DUMP. What they did after the backup is then done twice.",
)
@click.confirmation_option(prompt="This replaces the database in the data directory. Continue?")
def restore(dump: Path, data_dir: Path | None, resume_jobs: bool) -> None:
    """Replace the embedded PostgreSQL's data with DUMP. Stop `gateway up` first.

    Unfinished writes of DUMP end as `unknown`, because they may have been done after the backup.
    """
    from gateway.embedded.backup import restore as replace_database

    retention = None if resume_jobs else settings_of().job_retention
    ended = _in_directory(
        lambda directory: asyncio.run(replace_database(directory, dump.absolute(), retention)), data_dir
    )
    click.echo("restored, with the migrations of this version", err=True)
    _report(ended)


@click.command()
@click.confirmation_option(prompt="This ends every job that has not finished writing. Continue?")
def end_writes() -> None:
    """End unfinished writes as `unknown`, after PostgreSQL was restored from a backup.

    They may have been done after the backup, and workers would do them again. Run it after `gateway migrate`, before
    front ends and workers start. Reads run again.
    """
    from gateway.foundation.db.pool import Database
    from gateway.jobs.restored import end_unfinished_writes

    settings = local_settings()

    async def end() -> int:
        url = settings.session_url or settings.database_url
        async with Database.open(url, size=1) as database:
            return await end_unfinished_writes(database, settings.job_retention)

    _report(asyncio.run(end()))


def _report(ended: int) -> None:
    click.echo(f"{ended} unfinished writes ended as unknown", err=True)


def _in_directory(work: Callable[[Path], Result], data_dir: Path | None) -> Result:
    directory = (data_dir or settings_of().data_dir).expanduser().absolute()
    try:
        return work(directory)
    except StartupError as error:
        raise click.ClickException(str(error)) from error
