"""`gateway connectors`: the connectors of a workspace."""

from typing import Any

import click
import msgspec

from gateway.cli.client_session import calls_gateway, interruptible, shows
from gateway.cli.failures import EXIT_CODES, Exit, complain, note
from gateway.cli.output import output_option, write
from gateway.cli.progress import follow
from gateway.cli.shell_completion import complete_connector, complete_kind
from gateway.cli.words import printable
from gateway.client import Gateway

_COLUMNS = ("id", "name", "application", "kind", "status", "created_at")


@click.group(epilog=EXIT_CODES)
def connectors() -> None:
    """Connectors of the workspace. Name one by its id, its name, or its kind if it is the only one of that kind."""


@connectors.command("list")
@click.option("--kind", metavar="KIND", shell_complete=complete_kind, help="Only connectors of this kind.")
@shows(*_COLUMNS)
async def list_connectors(gateway: Gateway, kind: str | None) -> Any:
    """List the connectors of the workspace."""
    return await gateway.connectors.list(kind)


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@output_option
@calls_gateway
async def show(gateway: Gateway, connector: str) -> None:
    """Show a connector, its operations and the state of its copy."""
    inspected = await gateway.connectors.inspect(connector)
    write(msgspec.to_builtins(inspected))
    if inspected.status == "needs_reauth":
        note(f"connect it again: gateway connect {inspected.kind} --renew {inspected.id}")


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@calls_gateway
async def check(gateway: Gateway, connector: str) -> None:
    """Check that the application accepts the credentials.

    The exit code is 3 if it does not.
    """
    health = await gateway.connectors.check(connector)
    click.echo(health.status)
    if not health.is_healthy:
        complain(printable(health.message or "the application refused the credentials"))
        raise SystemExit(Exit.UNAUTHORIZED)


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@click.argument("entities", nargs=-1)
@click.option("--full", is_flag=True, help="Discard the copy and load everything again.")
@calls_gateway
async def sync(gateway: Gateway, connector: str, entities: tuple[str, ...], full: bool) -> None:
    """Synchronize the copy of a connector now. Without ENTITIES, all entities are synchronized."""
    job = await gateway.connectors.sync(connector, list(entities) or None, full=full)
    await (await follow(job)).result()
    note(f"the copy of {connector} is up to date")


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@calls_gateway
async def delete(gateway: Gateway, connector: str, yes: bool) -> None:
    """Delete a connector with its copy, results and credentials. Its OAuth tokens are revoked if possible."""
    found = await gateway.connectors.resolve(connector)
    if not yes:
        with interruptible():
            click.confirm(f"Delete {printable(found.name)} ({found.kind}, {found.id})?", abort=True, err=True)
    await follow(await gateway.connectors.delete(found))
    note(f"deleted {found.name} ({found.id})")
