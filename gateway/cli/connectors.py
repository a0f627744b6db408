"""`gateway connectors`: the accounts of a workspace."""

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

_COLUMNS = ("id", "name", "kind", "status", "created_at")


@click.group(epilog=EXIT_CODES)
def connectors() -> None:
    """The accounts bound to a workspace; each is named by its id, its name, or its kind where there is one."""


@connectors.command("list")
@click.option("--kind", metavar="KIND", shell_complete=complete_kind, help="Only those of this kind.")
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
    """Show one connector, and what can be done with it now."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            inspected = await gateway.connectors.inspect(connector)
            write(msgspec.to_builtins(inspected), format_of(output_format))

    run(work())


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@gateway_options
def check(connector: str, **where: Any) -> None:
    """Ask the application whether it accepts the credentials; exit code 3 when it does not."""

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
@click.option("--full", is_flag=True, help="From scratch.")
@gateway_options
def sync(connector: str, entities: tuple[str, ...], full: bool, **where: Any) -> None:
    """Bring the searchable copy of a connector's records up to date now: all of it, or these ENTITIES."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            job = await gateway.connectors.sync(connector, list(entities) or None, full=full)
            await (await follow(job)).result()
            note(f"the copy of {connector} is up to date")

    run(work())


@connectors.command()
@click.argument("connector", shell_complete=complete_connector)
@click.option("--yes", is_flag=True, help="Do not ask.")
@gateway_options
def delete(connector: str, yes: bool, **where: Any) -> None:
    """Revoke a connector's grant and drop everything that belongs to it."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            found = await gateway.connectors.resolve(connector)
            if not yes:
                with interruptible():
                    click.confirm(f"Delete {printable(found.name)} ({found.kind}, {found.id})?", abort=True, err=True)
            await follow(await gateway.connectors.delete(found))
            note(f"deleted {found.name} ({found.id})")

    run(work())
