"""`gateway search`: searches the synchronized copy of an entity's records."""

import click

from gateway.cli.client_session import calls_gateway, connector_option, find, names
from gateway.cli.failures import EXIT_CODES
from gateway.cli.filter_arguments import CONDITIONS_HELP, read_filter, read_sort
from gateway.cli.output import format_option, write_stream
from gateway.cli.shell_completion import complete_entity, complete_field, complete_kind
from gateway.client import Gateway


@click.command(epilog=f"{CONDITIONS_HELP}\n\n{EXIT_CODES}")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("conditions", nargs=-1, shell_complete=complete_field)
@connector_option()
@click.option(
    "--filter", "filter_json", metavar="JSON", help="A filter in the query language, combined with the conditions."
)
@click.option("--sort", multiple=True, metavar="FIELD[:desc]", help="Sort order; repeatable.")
@click.option(
    "--fields",
    multiple=True,
    metavar="FIELDS",
    shell_complete=complete_field,
    help="Only these fields, such as id,user.name.",
)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of records.")
@click.option("--all", "wants_all", is_flag=True, help="Fetch all matching records.")
@format_option
@calls_gateway
async def search(
    gateway: Gateway,
    kind: str,
    entity: str,
    conditions: tuple[str, ...],
    connector: str | None,
    filter_json: str | None,
    sort: tuple[str, ...],
    fields: tuple[str, ...],
    limit: int,
    wants_all: bool,
) -> None:
    """Search the synchronized records of an entity. KIND may be a connector's name or id.

    \b
    gateway search support-desk tickets status=open 'subject~printer' --sort updated_at:desc
    """
    order, picked = read_sort(sort), names(fields)
    found = await find(gateway, kind, connector)
    search_fields = (await gateway.type(found.kind))["entities"].get(entity, {}).get("search_fields", {})
    condition = read_filter(conditions, search_fields, filter_json)
    max_records = None if wants_all else limit
    records = gateway.search(found, entity, condition, sort=order, fields=picked, limit=max_records)
    await write_stream(records, picked or ())
