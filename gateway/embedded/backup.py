"""Dumps of the embedded PostgreSQL. A backup needs a running server, a restore one that is stopped."""

import os
import subprocess
from pathlib import Path

from gateway.embedded import StartupError
from gateway.embedded.postgres import DATABASE, EmbeddedPostgres
from gateway.embedded.server import SERVER_ENVIRONMENT
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.pool import Database
from gateway.foundation.saving.special_files import is_special
from gateway.jobs.restored import end_unfinished_writes

#: the database into which a dump is restored, before it replaces the current one
_DRAFT = "restored"
_REPLACE = (
    f"DROP DATABASE {DATABASE} WITH (FORCE)",
    f"ALTER DATABASE {_DRAFT} RENAME TO {DATABASE}",
)


def backup(data_dir: Path, target: Path) -> None:
    """Write a dump of the committed data to the file `target`, mode 0600, or raise StartupError and write nothing.

    A FIFO or a device is written to, and not replaced.
    """
    server = EmbeddedPostgres(data_dir / "postgres")
    if not (server.directory / "run").exists():
        raise StartupError(f"There is no embedded PostgreSQL in {data_dir}. Name its data directory with --data-dir.")
    server.sockets = (server.directory / "run").resolve()
    if is_special(target):
        _dump(server, target, "--no-sync")
        return
    partial = target.with_name(f".{target.name}.part")
    _create(partial)
    try:
        _dump(server, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _dump(server: EmbeddedPostgres, file: Path, *options: str) -> None:
    _run(server, "pg_dump", "--format=custom", *options, f"--file={file}", f"--dbname={server.url}")


def _create(partial: Path) -> None:
    """Create an empty file with mode 0600. An existing file, or another user's link, is never written to."""
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError as error:
        raise StartupError(
            f"{partial} exists already: another backup to the same file is running, or was interrupted. Remove it, "
            "then back up again."
        ) from error


async def restore(data_dir: Path, dump: Path, retention: int | None = None) -> int:
    """Replace the database of the data directory with a dump, or raise StartupError and change nothing.

    With `retention`, the dump's unfinished writes end as `unknown` and expire after so many seconds; returns their
    number. Otherwise the next workers run them.
    """
    server = EmbeddedPostgres(data_dir / "postgres")
    url = server.start()  # raises StartupError while a `gateway up` runs in the directory
    try:
        await migrate(url)  # a dump has no roles; the migrations create them
        _sql(server, f"DROP DATABASE IF EXISTS {_DRAFT}", f"CREATE DATABASE {_DRAFT}")
        draft = url.replace(f"/{DATABASE}?", f"/{_DRAFT}?")
        _run(server, "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={draft}", str(dump))
        await migrate(draft)  # the dump may be of an earlier version
        ended = 0 if retention is None else await _end_writes(draft, retention)
        _sql(server, *_REPLACE)
    finally:
        server.stop()
    return ended


async def _end_writes(url: str, retention: int) -> int:
    async with Database.open(url, size=1) as database:
        return await end_unfinished_writes(database, retention)


def _sql(server: EmbeddedPostgres, *statements: str) -> None:
    """Run statements on a connection to another database, because they drop and rename databases."""
    other_database = server.url.replace(f"/{DATABASE}?", "/postgres?")
    _run(
        server,
        "psql",
        "--quiet",
        "--set=ON_ERROR_STOP=1",
        f"--dbname={other_database}",
        *(f"--command={statement}" for statement in statements),
    )


def _run(server: EmbeddedPostgres, program: str, *arguments: str) -> None:
    done = subprocess.run(  # noqa: S603  our own binary
        [server.binary(program), *arguments], env=SERVER_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise StartupError(f"{program} failed: {done.stderr.strip()}")
