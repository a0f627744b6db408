"""`gateway hooks`: the URLs to which applications send their notices of changes."""

from typing import Any

import click

from gateway.cli.arguments import value_or_file
from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.shell_completion import complete_connector
from gateway.client import Gateway


@click.group(epilog=EXIT_CODES)
def hooks() -> None:
    """Hooks: URLs for applications' notices of changes. After a notice the connector is synchronized."""


@hooks.command()
@click.argument("connector", shell_complete=complete_connector)
@click.option(
    "--secret",
    metavar="SECRET|@FILE",
    help="Secret with which the application signs its notices; @- reads it from stdin.",
)
@shows()
async def create(gateway: Gateway, connector: str, secret: str | None) -> Any:
    """Create the hook of a CONNECTOR and print its URL.

    Enter the URL at the application. If the connector has a hook already, --secret adds a secret to it. Asana and
    Notion send a secret themselves; the hook accepts that secret for an hour after this command.

    \b
    gateway hooks create team-chat
    gateway hooks create team-chat --secret @signing-secret.txt
    """
    given = None if secret is None else value_or_file(secret)

    return await gateway.hooks.create(connector, given)


@hooks.command()
@click.argument("connector", shell_complete=complete_connector)
@shows()
async def show(gateway: Gateway, connector: str) -> Any:
    """Show the URL of a CONNECTOR's hook, whether it has a secret, and when the last notice arrived."""
    return await gateway.hooks.get(connector)


@hooks.command()
@click.argument("connector", shell_complete=complete_connector)
@calls_gateway
async def delete(gateway: Gateway, connector: str) -> None:
    """Delete the hook of a CONNECTOR with its secrets. Its URL accepts no more notices."""
    await gateway.hooks.delete(connector)
    note(f"deleted the hook of {connector}")
