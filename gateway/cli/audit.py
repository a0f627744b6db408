"""`gateway audit`: list the audit log, export it with its proof, and verify an exported file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, Exit, note
from gateway.cli.logs import list_audit, read_time
from gateway.client import Gateway

#: the command for arguments that name none
_DEFAULT = "list"
_FILE = click.Path(dir_okay=False, path_type=Path)


class _Audit(click.Group):
    """Lists the log if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Audit, epilog=EXIT_CODES)
def audit() -> None:
    """The audit log: who did what, when, with which outcome; without a command it is listed."""


audit.add_command(list_audit)


@audit.command()
@click.option("--since", metavar="TIME", callback=read_time, help="From this time on, such as 2026-01-31T09:00:00Z.")
@click.option("--until", metavar="TIME", callback=read_time, help="Before this time.")
@click.option("--output", type=_FILE, help="File to write; by default stdout.")
@calls_gateway
async def export(gateway: Gateway, since: datetime | None, until: datetime | None, output: Path | None) -> None:
    """Export the log as NDJSON with its hash chain and signed checkpoints. Needs the scope admin."""
    with _opened(output) as file:
        async for piece in gateway.logs.export_audit(since, until):
            file.write(piece)
    if output is not None:
        note(f"{output} is written; check it with: gateway audit verify {output} --key KEY")


@audit.command()
@shows("key_id", "public_key")
async def keys(gateway: Gateway) -> Any:
    """List the public keys that sign checkpoints. Keep them in another place than the files."""
    return await gateway.logs.audit_keys()


@audit.command()
@click.argument("file", type=_FILE)
@click.option("--key", "public_keys", multiple=True, required=True, metavar="KEY", help="Public key; repeatable.")
def verify(file: Path, public_keys: tuple[str, ...]) -> None:
    """Check that FILE is whole and unaltered, without a gateway; exit code 1 if it is not.

    Names the first entry that was altered, left out or put in, and the writes whose outcome is not recorded.
    """
    from gateway.foundation.proof import verified  # its libraries are needed only here

    try:
        with file.open(encoding="utf-8") as lines:
            found = verified(lines, public_keys)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise click.UsageError(f"{file} or a key cannot be read: {error}") from error
    if found.fault is not None:
        note(f"{file}: {found.fault}")
        sys.exit(Exit.REFUSED)
    checkpoints = f"{found.checkpoints} checkpoints"
    note(f"{file}: {found.entries} entries from number {found.first} on, {checkpoints}: whole and unaltered")
    for call_id in found.unknown:
        note(f"  the write {call_id} has no settlement: its outcome is unknown")


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    try:
        file = output.open("wb")
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from error
    with file:
        yield file
