"""`gateway connectors`: the connectors of a workspace."""

from typing import Any

import click
import msgspec

from gateway.cli.client_session import gateway_options, interruptible, open_gateway, run
from gateway.cli.failures import EXIT_CODES, Exit, complain, note
from gateway.cli.output import format_of, output_option, write
from gateway.cli.progress import follow
from gateway.cli.shell_completion import complete_connector, complete_kind
from gateway.cli.words import printable
from gateway.client import Health

_COLUMNS = ("id", "name", "application", "kind", "status", "created_at")


@click.group(epilog=EXIT_CODES)
def connectors() -> None:
    """Connectors of the workspace. Name one by its id, its name, or its kind if it is the only one of that kind."""


@connectors.command("list")
@click.option("--kind", metavar="KIND", shell_complete=complete_kind, help="Only connectors of this kind.")
@output_option
@gateway_options
def list_connectors(kind: str | None, output_format: str | None, **where: Any) -> None:
    """List the connectors of the workspace."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            write(msgspec.to_builtins(await gateway.connectors.list(kind)), format_of(output_format), _COLUMNS)

    run(work())


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@output_option
@gateway_options
def show(connector: str, output_format: str | None, **where: Any) -> None:
    """Show a connector, its operations and the state of its copy."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            inspected = await gateway.connectors.inspect(connector)
            write(msgspec.to_builtins(inspected), format_of(output_format))
            if inspected.status == "needs_reauth":
                note(f"connect it again: gateway connect {inspected.kind} --renew {inspected.id}")

    run(work())


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@gateway_options
def check(connector: str, **where: Any) -> None:
    """Check that the application accepts the credentials.

    The exit code is 3 if it does not.
    """

    async def work() -> Health:
        async with open_gateway(**where) as gateway:
            return await gateway.connectors.check(connector)

    health = run(work())
    click.echo(health.status)
    if not health.is_healthy:
        complain(printable(health.message or "the application refused the credentials"))
        raise SystemExit(Exit.UNAUTHORIZED)


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@click.argument("entities", nargs=-1)
@click.option("--full", is_flag=True, help="Discard the copy and load everything again.")
@gateway_options
def sync(connector: str, entities: tuple[str, ...], full: bool, **where: Any) -> None:
    """Synchronize the copy of a connector now. Without ENTITIES, all entities are synchronized."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            job = await gateway.connectors.sync(connector, list(entities) or None, full=full)
            await (await follow(job)).result()
            note(f"the copy of {connector} is up to date")

    run(work())


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@gateway_options
def delete(connector: str, yes: bool, **where: Any) -> None:
    """Delete a connector with its copy, results and credentials. Its OAuth tokens are revoked if possible."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            found = await gateway.connectors.resolve(connector)
            if not yes:
                with interruptible():
                    click.confirm(f"Delete {printable(found.name)} ({found.kind}, {found.id})?", abort=True, err=True)
            await follow(await gateway.connectors.delete(found))
            note(f"deleted {found.name} ({found.id})")

    run(work())
