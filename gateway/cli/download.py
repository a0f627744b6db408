"""`gateway download`: a file to the disk or to stdout."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.client_session import calls_gateway, connector_option, find, schema_of
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.progress import download_bar
from gateway.cli.shell_completion import complete_entity, complete_kind, complete_param
from gateway.cli.words import size_of
from gateway.client import Connector, Gateway


@click.command(epilog=f"{PARAMS_HELP}\n\n{EXIT_CODES}")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("params", nargs=-1, shell_complete=complete_param)
@connector_option()
@click.option(
    "-o", "--output", "to", default=".", metavar="FILE", help="File or directory; - writes to stdout.  [default: .]"
)
@click.option("--sha256", metavar="HEX", help="Fail unless the file has this SHA-256.")
@calls_gateway
async def download(
    gateway: Gateway,
    kind: str,
    entity: str,
    params: tuple[str, ...],
    connector: str | None,
    to: str,
    sha256: str | None,
) -> None:
    """Download a file. Run the same command again to resume an interrupted download.

    \b
    gateway download support-desk attachments attachment_id=498483 -o report.pdf
    """
    found = await find(gateway, kind, connector)
    call_params = read_params(params, await schema_of(gateway, found.kind, entity, "download"))
    if to == "-":
        async for chunk in gateway.chunks(found, entity, call_params):
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    else:
        await _save(gateway, found, entity=entity, params=call_params, to=Path(to), sha256=sha256)


async def _save(
    gateway: Gateway, connector: Connector, entity: str, params: dict[str, Any], to: Path, sha256: str | None
) -> None:
    with download_bar(to.name or entity) as bar:
        try:
            saved = await gateway.download(connector, entity, params, to, sha256=sha256, on_progress=bar)
        except asyncio.CancelledError:
            note(f"{size_of(bar.at)} are kept; the same command continues from there")
            raise
    resumed = f", resumed after {size_of(saved.resumed_from)}" if saved.resumed_from else ""
    note(f"saved {saved.path} ({size_of(saved.size)}{resumed}, sha256 {saved.sha256})")
    if not sys.stdout.isatty():
        click.echo(saved.path)
