"""`gateway hooks`: the URLs to which applications send their notices of changes."""

from typing import Any

import click
import msgspec

from gateway.cli.arguments import value_or_file
from gateway.cli.client_session import gateway_options, open_gateway, run
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import format_of, output_option, write
from gateway.cli.shell_completion import complete_connector
from gateway.contract.hooks import HookView


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
@output_option
@gateway_options
def create(connector: str, secret: str | None, output_format: str | None, **where: Any) -> None:
    """Create the hook of a CONNECTOR and print its URL.

    Enter the URL at the application. If the connector has a hook already, --secret adds a secret to it. Asana and
    Notion send a secret themselves; the hook accepts that secret for an hour after this command.

    \b
    gateway hooks create team-chat
    gateway hooks create team-chat --secret @signing-secret.txt
    """
    given = None if secret is None else value_or_file(secret)

    async def work() -> HookView:
        async with open_gateway(**where) as gateway:
            return await gateway.hooks.create(connector, given)

    write(msgspec.to_builtins(run(work())), format_of(output_format))


@hooks.command()
@click.argument("connector", shell_complete=complete_connector)
@output_option
@gateway_options
def show(connector: str, output_format: str | None, **where: Any) -> None:
    """Show the URL of a CONNECTOR's hook, whether it has a secret, and when the last notice arrived."""

    async def work() -> HookView:
        async with open_gateway(**where) as gateway:
            return await gateway.hooks.get(connector)

    write(msgspec.to_builtins(run(work())), format_of(output_format))


@hooks.command()
@click.argument("connector", shell_complete=complete_connector)
@gateway_options
def delete(connector: str, **where: Any) -> None:
    """Delete the hook of a CONNECTOR with its secrets. Its URL accepts no more notices."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            await gateway.hooks.delete(connector)

    run(work())
    note(f"deleted the hook of {connector}")
