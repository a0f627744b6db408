"""`gateway apps`: your own OAuth apps, used for consent instead of the platform's."""

from typing import Any

import click
import msgspec

from gateway.cli.arguments import value_or_file
from gateway.cli.client_session import gateway_options, open_gateway, run
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import format_of, output_option, write
from gateway.cli.shell_completion import complete_kind


@click.group(epilog=EXIT_CODES)
def apps() -> None:
    """Your own OAuth apps. Consent screens show the name of your app."""


@apps.command("list")
@output_option
@gateway_options
def list_apps(output_format: str | None, **where: Any) -> None:
    """List your OAuth apps by kind."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            write(
                msgspec.to_builtins(await gateway.apps.list()),
                format_of(output_format),
                ("connector_type", "updated_at"),
            )

    run(work())


@apps.command("set")
@click.argument("kind", shell_complete=complete_kind)
@click.option("--client-id", required=True, metavar="ID", help="The app's client id.")
@click.option("--client-secret", metavar="SECRET|@FILE", help="The app's secret; prompted for if omitted.")
@gateway_options
def set_app(kind: str, client_id: str, client_secret: str | None, **where: Any) -> None:
    """Use your own OAuth app for a KIND."""
    if client_secret is None:
        secret = click.prompt("client secret", hide_input=True, err=True)
    else:
        secret = value_or_file(client_secret)

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            app = await gateway.apps.set(kind, client_id, secret)
            note(f"consent for {app.connector_type} now uses your OAuth app {client_id}")

    run(work())


@apps.command()
@click.argument("kind", shell_complete=complete_kind)
@gateway_options
def delete(kind: str, **where: Any) -> None:
    """Use the platform's OAuth app for a KIND again."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            await gateway.apps.delete(kind)
            note(f"consent for {kind} now uses the platform's OAuth app")

    run(work())
