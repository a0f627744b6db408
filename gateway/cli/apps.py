"""`gateway apps`: your own OAuth apps, used for consent instead of the platform's."""

from typing import Any

import click

from gateway.cli.arguments import value_or_file
from gateway.cli.client_session import calls_gateway, interruptible, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.shell_completion import complete_kind
from gateway.client import Gateway


@click.group(epilog=EXIT_CODES)
def apps() -> None:
    """Your own OAuth apps. Consent screens show the name of your app."""


@apps.command("list")
@shows("connector_type", "updated_at")
async def list_apps(gateway: Gateway) -> Any:
    """List your OAuth apps by kind."""
    return await gateway.apps.list()


@apps.command("set")
@click.argument("kind", shell_complete=complete_kind)
@click.option("--client-id", required=True, metavar="ID", help="The app's client id.")
@click.option("--client-secret", metavar="SECRET|@FILE", help="The app's secret; prompted for if omitted.")
@calls_gateway
async def set_app(gateway: Gateway, kind: str, client_id: str, client_secret: str | None) -> None:
    """Use your own OAuth app for a KIND."""
    if client_secret is None:
        with interruptible():
            secret = click.prompt("client secret", hide_input=True, err=True)
    else:
        secret = value_or_file(client_secret)
    app = await gateway.apps.set(kind, client_id, secret)
    note(f"consent for {app.connector_type} now uses your OAuth app {client_id}")


@apps.command()
@click.argument("kind", shell_complete=complete_kind)
@calls_gateway
async def delete(gateway: Gateway, kind: str) -> None:
    """Use the platform's OAuth app for a KIND again."""
    await gateway.apps.delete(kind)
    note(f"consent for {kind} now uses the platform's OAuth app")
