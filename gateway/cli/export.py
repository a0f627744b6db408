"""`gateway export`: all pages of a list or search in one file."""

from pathlib import Path
from typing import Any

import click

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.client_session import connector_option, find, gateway_options, names, open_gateway, run, schema_of
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.jobs import require_success
from gateway.cli.progress import download_bar, follow
from gateway.cli.shell_completion import complete_entity, complete_field, complete_kind, complete_param
from gateway.cli.words import size_of
from gateway.contract.exports import FileFormat

_FORMATS = [each.value for each in FileFormat]


@click.command(epilog=f"{PARAMS_HELP}\n\n{EXIT_CODES}")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("params", nargs=-1, shell_complete=complete_param)
@connector_option()
@click.option("--action", default="list", show_default=True, help="Action: list, api_search or context_store_search.")
@click.option(
    "-o",
    "--output",
    "to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write to.  [default: ENTITY.ndjson or ENTITY.csv]",
)
@click.option(
    "--format",
    "file",
    type=click.Choice(_FORMATS),
    help="Format of the file; csv-bom for Excel.  [default: by its name, or ndjson]",
)
@click.option(
    "--select",
    "selected",
    multiple=True,
    metavar="FIELDS",
    shell_complete=complete_field,
    help="Only these fields, such as id,user.name; the columns of a CSV file.",
)
@gateway_options
def export(
    kind: str,
    entity: str,
    params: tuple[str, ...],
    connector: str | None,
    action: str,
    to: Path | None,
    file: str | None,
    selected: tuple[str, ...],
    **where: Any,
) -> None:
    """Collect all pages of a list or search into a file. The export is a job, which continues after Ctrl-C.

    \b
    gateway export support-desk tickets -o tickets.csv --select id,subject,status
    """
    chosen = file or _format_of(to)
    path = to or Path(f"{entity}.{FileFormat(chosen).extension}")

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            found = await find(gateway, kind, connector)
            call_params = read_params(params, await schema_of(gateway, found.kind, entity, action))
            job = await gateway.export(found, entity, action, call_params, file=chosen, select=names(selected))
            require_success(await follow(job))
            with download_bar(path.name) as bar:
                saved = await job.download(path, on_progress=bar)
            note(f"saved {job.view.progress} records to {saved.path} ({size_of(saved.size)}, sha256 {saved.sha256})")

    run(work())


def _format_of(to: Path | None) -> str:
    """The format for the suffix of the file's name; ndjson by default."""
    return FileFormat.CSV if to is not None and to.suffix == ".csv" else FileFormat.NDJSON
