"""`gateway find`: operations that match a task in plain words."""

from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from gateway.cli.client_session import connector_option, gateway_options, open_gateway, run
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import Format, format_of, output_option, write
from gateway.cli.shell_completion import complete_kind
from gateway.cli.words import printable
from gateway.errors import Unauthorized, Unavailable

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
    output_format: str | None,
    **where: Any,
) -> None:
    """Find the operations for TASK, best first, each with its params.

    If no operation matches, a message says what is missing, and the closest operations follow.

    \b
    gateway find close a zendesk ticket
    gateway find who is on call --effect read
    """
    text = " ".join(task)
    if offline:
        found = _shipped(text, kind, effect, limit)
    else:
        found = run(_request(text, kind, effect, connector, limit, **where))
    form = format_of(output_format)
    if form is Format.TABLE:
        _print(found)
    else:
        write(found, form)


async def _request(
    text: str, kind: str | None, effect: str | None, connector: str | None, limit: int, **where: Any
) -> Found:
    """Matches from the gateway; from the shipped specs if the gateway cannot be reached."""
    try:
        async with open_gateway(**where) as gateway:
            found = await gateway.find_operations(text, kind=kind, effect=effect, connector=connector, limit=limit)
            builtins: Found = msgspec.to_builtins(found)
            return builtins
    except (Unauthorized, Unavailable) as error:
        if connector is not None:
            raise
        note(f"{error.detail}; searching the shipped specs instead")
        return _shipped(text, kind, effect, limit)


def _shipped(text: str, kind: str | None, effect: str | None, limit: int) -> Found:
    from gateway.kinds.find.descriptions import summary
    from gateway.kinds.find.index import OperationIndex
    from gateway.kinds.loading import load_catalog, own_folders

    catalog = load_catalog(own_folders())
    named = catalog.kind(kind).name if kind else None
    found = OperationIndex(catalog).search(text, named, effect, limit)
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
