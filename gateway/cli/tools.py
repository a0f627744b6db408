"""`gateway tools`: operations as tool definitions for agent frameworks."""

from typing import Any

import click

from gateway.cli.client_session import connector_option, gateway_options, names, open_gateway, run
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import Format, write
from gateway.cli.shell_completion import complete_kind
from gateway.errors import Unauthorized, Unavailable
from gateway.kinds.find.formats import FORMATS

Definitions = list[dict[str, Any]]


@click.command(epilog=EXIT_CODES)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="mcp",
    show_default=True,
    help="Format of the tool definitions.",
)
@click.option("--kind", metavar="KIND", shell_complete=complete_kind, help="Only operations of this kind.")
@click.option("--effect", type=click.Choice(["read", "idempotent", "write"]), help="Only operations of this effect.")
@connector_option("Only operations of this connector.")
@click.option("--operations", multiple=True, metavar="NAMES", help="Only these operations: kind.entity.action,…")
@click.option("--offline", is_flag=True, help="Use the shipped specs instead of the gateway.")
@gateway_options
def tools(
    form: str,
    kind: str | None,
    effect: str | None,
    connector: str | None,
    operations: tuple[str, ...],
    offline: bool,
    **where: Any,
) -> None:
    """Print tool definitions as a JSON array for a model's API.

    \b
    gateway tools --format openai --kind support-desk --effect read
    """
    named = names(operations)
    if offline:
        definitions = _shipped(form, kind, effect, named)
    else:
        definitions = run(_request(form, kind, effect, connector, named, **where))
    write(definitions, Format.JSON)


async def _request(
    form: str, kind: str | None, effect: str | None, connector: str | None, named: list[str] | None, **where: Any
) -> Definitions:
    """Tool definitions from the gateway; from the shipped specs if the gateway cannot be reached."""
    try:
        async with open_gateway(**where) as gateway:
            tools = await gateway.tools(kind=kind, effect=effect, connector=connector, operations=named)
            return [tool.definition(form) for tool in tools]
    except (Unauthorized, Unavailable) as error:
        if connector is not None:
            raise
        note(f"{error.detail}; showing the shipped specs instead")
        return _shipped(form, kind, effect, named)


def _shipped(form: str, kind: str | None, effect: str | None, named: list[str] | None) -> Definitions:
    from gateway.kinds.find.entries import entries_of, entry_of, passes
    from gateway.kinds.find.tools import tool_of
    from gateway.kinds.loading import load_catalog, own_folders

    catalog = load_catalog(own_folders())
    kind_name = catalog.kind(kind).name if kind else None
    entries = entries_of(catalog) if named is None else [entry_of(catalog, name) for name in named]
    return [FORMATS[form](tool_of(entry)) for entry in entries if passes(entry, kind_name, effect, None)]
