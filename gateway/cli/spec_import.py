"""`gateway specs import` and `gateway specs diff`: kinds of documents and MCP servers, and how they differ."""

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click
import msgspec
from rich.console import Console

from gateway.cli.arguments import read_pairs
from gateway.cli.words import printable
from gateway.errors import GatewayError
from gateway.kinds.catalog import Kind
from gateway.kinds.importing.changes import Change, changes_between, with_confirmed_effects
from gateway.kinds.importing.importing import imported_from, kind_of, kind_of_documents
from gateway.kinds.importing.mapping import Imported, Options
from gateway.kinds.importing.model import ImportFailed
from gateway.kinds.importing.report import SHOWN, report_lines
from gateway.kinds.importing.sources import is_url
from gateway.kinds.importing.writing import REPORT, files_of, write_kind
from gateway.kinds.loading import load_catalog, load_kind
from gateway.kinds.sources import SpecError
from gateway.kinds.spec import KIND_NAME
from gateway.settings import settings_of, upstream_overrides
from gateway.upstream.documents import fetching
from gateway.upstream.egress import EgressPolicy
from gateway.upstream.mcp_servers import McpAddress, described
from gateway.upstream.transport import Transport
from gateway.upstream.upstreams import Upstreams

#: the credential of an MCP server
_TOKEN = "access_token"
#: maximum number of changes that an import prints; `gateway specs diff` prints all
_SHOWN_CHANGES = 20

EXAMPLES = """\b
Examples:
  gateway specs import openapi.json --into specs
  gateway specs import https://example.com/openapi.yaml --kind parcels --include '/v2/shipments*'
  gateway specs import openapi.json --into specs --overlay parcels.overlay.yaml
  gateway specs import --mcp https://mcp.tracker.example/mcp --kind tracker --credential access_token=@token
"""

into_option = click.option(
    "--into",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="here",
    help="Folder in which the kind's folder is created; add it to GATEWAY_SPECS.",
)


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(mark and name for name, mark, _ in pairs):
        raise click.BadParameter("write NAME=VALUE")
    return {name: value for name, _, value in pairs}


variables_option = click.option(
    "--variable",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pairs,
    help="Value of a variable in the document's URLs; variables without one become variables of each connector.",
)


mcp_option = click.option("--mcp", "mcp_url", metavar="URL", help="Read the tools of this MCP server, not a document.")
header_option = click.option(
    "--header", metavar="NAME", help="With --mcp: the header of the access token, if it is no bearer token."
)
credential_option = click.option(
    "--credential",
    "credentials",
    metavar="access_token=VALUE",
    multiple=True,
    help="With --mcp: the access token, or access_token=@FILE.",
)


@click.command("import", epilog=EXAMPLES)
@click.argument("source", metavar="[FILE|URL]", required=False)
@click.option("--kind", metavar="NAME", help="Name of the kind; by default made from the document's title.")
@click.option("--include", metavar="GLOB", multiple=True, help="Only operations whose path, id or tag matches.")
@click.option(
    "--overlay",
    "overlays",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="OpenAPI Overlay with your corrections, applied before the document is read.",
)
@click.option(
    "--server",
    metavar="URL",
    help="URL that every request begins with, in place of the document's; '{origin}' if each account has a host.",
)
@variables_option
@mcp_option
@header_option
@credential_option
@into_option
@click.option("--force", is_flag=True, help="Overwrite files that were changed by hand.")
def import_spec(
    source: str | None,
    kind: str | None,
    include: Sequence[str],
    overlays: Sequence[Path],
    server: str | None,
    variables: Mapping[str, str],
    mcp_url: str | None,
    header: str | None,
    credentials: Sequence[str],
    root: Path,
    force: bool,
) -> None:
    """Make a kind from an OpenAPI 3 or Swagger 2 document, or from the tools of an MCP server.

    Writes the specs and import-report.txt into a folder with the name of the kind. The report lists what was mapped,
    what was guessed and why, and what you have to check. Keep your corrections in an overlay: the import of a newer
    document applies them again and shows what changed. Every tool is a write until you confirm another effect; an
    unchanged tool keeps the confirmed one.
    """
    address = _address(source, mcp_url, header, credentials, kind)
    if kind is not None and not re.fullmatch(KIND_NAME, kind):
        raise click.BadParameter("write lower-case letters, digits and hyphens, such as parcels", param_hint="--kind")
    try:
        with Console(stderr=True).status(f"Reading {printable(str(address))}"):
            options = Options(kind=kind, include=include, server=server, variables=variables)
            imported = asyncio.run(_import(address, options, overlays))
        folder = root / imported.connector["kind"]
        before = load_kind(folder) if (folder / "connector.yaml").is_file() else None
        if before is not None:
            imported.entities = dict(with_confirmed_effects(imported.connector, imported.entities, before))
        named = str(address) if isinstance(address, McpAddress) or is_url(address) else Path(address).name
        report = "\n".join(report_lines(imported)) + "\n"
        write_kind(folder, files_of(imported, named), report, force=force)
    except (ImportFailed, SpecError) as error:
        raise click.ClickException(printable(str(error))) from error
    _print(imported, folder, before)


def _address(
    source: str | None, mcp_url: str | None, header: str | None, credentials: Sequence[str], kind: str | None
) -> McpAddress | str:
    """What is read: the path or the URL of a document, or an MCP server."""
    given = read_pairs(credentials, "--credential")
    if given.keys() - {_TOKEN}:
        raise click.BadParameter(f"an MCP server has one credential; write {_TOKEN}=VALUE", param_hint="--credential")
    if (source is None) == (mcp_url is None):
        raise click.UsageError("name a document, or an MCP server by --mcp URL")
    if source is not None:
        if given or header:
            raise click.UsageError("--credential and --header belong to --mcp URL")
        return source
    if mcp_url is None or not is_url(mcp_url):
        raise click.BadParameter("write the https URL of the server", param_hint="--mcp")
    return McpAddress(url=mcp_url, token=given.get(_TOKEN), header=header, kind=kind)


async def _import(address: McpAddress | str, options: Options, overlays: Sequence[Path]) -> Imported:
    if isinstance(address, McpAddress):
        return await imported_from(address.url, options, overlays, fetch=partial(_described, address))
    async with fetching() as fetch:
        return await imported_from(address, options, overlays, fetch=fetch)


async def _described(address: McpAddress, url: str, host: str) -> bytes:
    """The document of an MCP server; raises ImportFailed for any other document of its host."""
    if url != address.url:
        raise ImportFailed(f"a tool of {host} refers to {url.partition('?')[0]}, which is no part of its schema")
    overrides = upstream_overrides()
    async with Transport(EgressPolicy.of(overrides.values())) as transport:
        try:
            return msgspec.json.encode(await described(Upstreams(transport, overrides), address))
        except GatewayError as error:
            raise ImportFailed(error.detail) from error


def _print(imported: Imported, folder: Path, before: Kind | None) -> None:
    for line in report_lines(imported, SHOWN):
        click.echo(printable(line))
    if before is not None:
        changes = list(changes_between(before, kind_of(imported)))
        click.echo(f"\nChanged since the last import: {len(changes)}")
        _print_changes(changes[:_SHOWN_CHANGES])
        if len(changes) > _SHOWN_CHANGES:
            click.echo(f"  and {len(changes) - _SHOWN_CHANGES} more")
    click.echo(f"\nwrote {folder}; all findings are in {folder / REPORT}", err=True)
    click.echo(f"next: gateway specs lint {folder}", err=True)


@click.command("diff")
@click.argument("old")
@click.argument("new", required=False)
@click.option(
    "--overlay",
    "overlays",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="If NEW is a document: OpenAPI Overlay to apply.",
)
@click.option("--include", metavar="GLOB", multiple=True, help="If NEW is a document: as for import.")
@click.option("--server", metavar="URL", help="If NEW is a document: as for import.")
@variables_option
@mcp_option
@header_option
@credential_option
@click.option("--exit-code", is_flag=True, help="Exit code 1 if working calls may fail.")
def diff_specs(
    old: str,
    new: str | None,
    overlays: Sequence[Path],
    include: Sequence[str],
    server: str | None,
    variables: Mapping[str, str],
    mcp_url: str | None,
    header: str | None,
    credentials: Sequence[str],
    exit_code: bool,
) -> None:
    """Show the differences between two versions of a kind.

    `!` marks differences that may make working calls fail.

    OLD and NEW are folders of kinds or names of loaded kinds; NEW may be an OpenAPI document, which is compared as an
    import would write it. With --mcp the tools of a server are compared with those of OLD, as models read them.
    """
    try:
        before = kind_or_folder(old)
        address = _address(new, mcp_url, header, credentials, before.name)
        options = Options(kind=before.name, include=include, server=server, variables=variables)
        after = _kind_or_document(address, options, overlays, before)
    except (ImportFailed, SpecError) as error:
        raise click.ClickException(printable(str(error))) from error
    changes = list(changes_between(before, after))
    _print_changes(changes)
    breaking = sum(change.is_breaking for change in changes)
    click.echo(f"{len(changes)} changes, {breaking} of them may make calls fail", err=True)
    sys.exit(1 if exit_code and breaking else 0)


def _print_changes(changes: Sequence[Change]) -> None:
    for change in changes:
        click.echo(printable(str(change)))


def kind_or_folder(name: str) -> Kind:
    """The loaded kind with this name, or the kind in this folder.

    Raises SpecError, UnknownConnectorType and, if the folder has no kind, ClickException.
    """
    if Path(name, "connector.yaml").is_file():
        return load_kind(Path(name))
    if "/" in name:
        raise click.ClickException(f"{printable(name)} is not the folder of a kind: it has no connector.yaml")
    return load_catalog(settings_of().specs).kind(name)


def _kind_or_document(address: McpAddress | str, options: Options, overlays: Sequence[Path], before: Kind) -> Kind:
    if isinstance(address, str) and not (is_url(address) or Path(address).is_file()):
        return kind_or_folder(address)
    imported = asyncio.run(_import(address, options, overlays))
    return kind_of_documents(imported.connector, with_confirmed_effects(imported.connector, imported.entities, before))
