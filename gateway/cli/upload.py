"""`gateway upload`: a file to an application."""

from pathlib import Path

import click

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.client_session import calls_gateway, connector_option, find, schema_of
from gateway.cli.failures import EXIT_CODES
from gateway.cli.output import format_option, write
from gateway.cli.shell_completion import complete_entity, complete_kind, complete_param
from gateway.client import Gateway


@click.command(epilog=f"{PARAMS_HELP}\n\n{EXIT_CODES}")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("params", nargs=-1, shell_complete=complete_param)
@connector_option()
@click.option("--filename", metavar="NAME", help="Name of the file at the application.  [default: that of FILE]")
@click.option("--content-type", metavar="TYPE", help="Type of the file, such as image/png.  [default: by its name]")
@format_option
@calls_gateway
async def upload(
    gateway: Gateway,
    kind: str,
    entity: str,
    file: Path,
    params: tuple[str, ...],
    connector: str | None,
    filename: str | None,
    content_type: str | None,
) -> None:
    """Send a file to an application with the action create of ENTITY, and print the result.

    If the connection breaks, the command resumes the upload of a large file, if the application supports that.

    \b
    gateway upload jira issue_attachments report.pdf issueIdOrKey=ACME-7
    """
    found = await find(gateway, kind, connector)
    call_params = read_params(params, await schema_of(gateway, found.kind, entity, "create"))
    answer = await gateway.upload(found, entity, file, call_params, filename=filename, content_type=content_type)
    write(answer.result)
