"""`gateway find`: operations that match a task in plain words."""

from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from gateway.cli.client_session import connector_option, from_gateway_or_specs, gateway_options
from gateway.cli.failures import EXIT_CODES
from gateway.cli.output import is_table, output_option, write
from gateway.cli.shell_completion import complete_kind
from gateway.cli.words import printable

#: `{data, closest, message}`, as in the HTTP response
Found = dict[str, Any]


@click.command(epilog=EXIT_CODES)
@click.argument("task", nargs=-1, required=True)
@click.option(
    "--kind", metavar="KIND", shell_complete=complete_kind, help="Only operations of this kind or application."
)
@click.option("--effect", type=click.Choice(["read", "idempotent", "write"]), help="Only operations of this effect.")
@connector_option("Only operations of this connector.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1, max=1000),
    default=6,
    show_default=True,
    help="Maximum number of results.",
)
@click.option("--offline", is_flag=True, help="Use the shipped specs instead of the gateway.")
@output_option
@gateway_options
def find(
    task: tuple[str, ...],
    kind: str | None,
    effect: str | None,
    connector: str | None,
    limit: int,
    offline: bool,
) -> None:
    """Find the operations for TASK, best first, each with its params.

    If no operation matches, a message says what is missing, and the closest operations follow.

    \b
    gateway find close a zendesk ticket
    gateway find who is on call --effect read
    """
    text = " ".join(task)
    found = from_gateway_or_specs(
        lambda gateway: gateway.find_operations(text, kind=kind, effect=effect, connector=connector, limit=limit),
        lambda: _shipped(text, kind, effect, limit),
        is_offline=offline,
        instead="searching",
        needs_gateway=connector is not None,
    )
    shown = msgspec.to_builtins(found)
    if is_table():
        _print(shown)
    else:
        write(shown)


def _shipped(text: str, kind: str | None, effect: str | None, limit: int) -> Found:
    from gateway.kinds.find.descriptions import summary
    from gateway.kinds.find.index import index_of
    from gateway.kinds.loading import load_catalog, own_folders

    catalog = load_catalog(own_folders())
    named = catalog.kind(kind).name if kind else None
    found = index_of(catalog).search(text, named, effect, limit)
    data, closest = (
        [{**summary(match.entry), "score": match.score, "connectors": []} for match in matches]
        for matches in (found.data, found.closest)
    )
    return {"data": data, "closest": closest, "message": found.message}


def _print(found: Found) -> None:
    """Print two lines for each operation: its signature, and its description with its connectors."""
    console = Console(soft_wrap=True, highlight=False)
    if found["message"]:
        ending = "\nClosest:" if found["closest"] else ""
        Console(stderr=True, soft_wrap=True, highlight=False).print(Text(printable(found["message"]) + ending))
    for each in found["data"] or found["closest"]:
        effect = "" if each["effect"] == "read" else f"  {each['effect']}"
        application = Text.assemble((printable(each["application"]), "bold"), f" {each['kind']} ")
        console.print(Text.assemble(application, printable(each["signature"]), (effect, "yellow")))
        names = ", ".join(connector["name"] for connector in each["connectors"])
        console.print(
            Text(f"  {printable(each['description'])}{f' [{printable(names)}]' if names else ''}", style="dim")
        )
