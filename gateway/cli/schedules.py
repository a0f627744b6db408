"""`gateway schedules`: create, list, change, delete and run schedules."""

from typing import Any

import click
import msgspec

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.client_session import connector_option, find, gateway_options, names, open_gateway, run, schema_of
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.jobs import require_success
from gateway.cli.output import format_of, output_option, write, write_stream
from gateway.cli.progress import follow
from gateway.cli.shell_completion import complete_action, complete_entity, complete_kind, complete_param
from gateway.contract.exports import FileFormat
from gateway.contract.schedules import ScheduleView

_COLUMNS = ("id", "name", "cron", "timezone", "next_runs", "enabled", "paused_reason", "entity", "action")


@click.group(epilog=EXIT_CODES)
def schedules() -> None:
    """Schedules: operations that run as jobs at the times of a cron expression."""


@schedules.command("list")
@connector_option("Only schedules of this connector.")
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of schedules.")
@output_option
@gateway_options
def list_schedules(connector: str | None, limit: int | None, output_format: str | None, **where: Any) -> None:
    """List schedules, oldest first."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            found = gateway.schedules.list(connector, limit=limit)
            await write_stream((msgspec.to_builtins(view) async for view in found), format_of(output_format), _COLUMNS)

    run(work())


@schedules.command()
@click.argument("schedule_id")
@output_option
@gateway_options
def show(schedule_id: str, output_format: str | None, **where: Any) -> None:
    """Show a schedule with its next slots and the jobs of its last runs."""

    async def work() -> ScheduleView:
        async with open_gateway(**where) as gateway:
            return await gateway.schedules.get(schedule_id)

    write(msgspec.to_builtins(run(work())), format_of(output_format))


@schedules.command(epilog=f"{PARAMS_HELP}\n\n{EXIT_CODES}")
@click.argument("name")
@click.argument("cron")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("action", shell_complete=complete_action)
@click.argument("params", nargs=-1, shell_complete=complete_param)
@connector_option()
@click.option("--timezone", default="UTC", show_default=True, metavar="NAME", help="Time zone, such as Europe/Berlin.")
@click.option(
    "--file",
    type=click.Choice([each.value for each in FileFormat]),
    help="Collect all pages into a file at each run; csv-bom for Excel.",
)
@click.option("--select", "selected", multiple=True, metavar="FIELDS", help="Only these fields, such as id,user.name.")
@click.option(
    "--overlap",
    type=click.Choice(["skip", "queue"]),
    default="skip",
    show_default=True,
    help="Skip or queue a slot if the previous run has not ended.",
)
@click.option(
    "--catch-up",
    type=click.Choice(["one", "none"]),
    default="one",
    show_default=True,
    help="Of the slots missed while no worker ran, run one or none.",
)
@output_option
@gateway_options
def create(
    name: str,
    cron: str,
    kind: str,
    entity: str,
    action: str,
    params: tuple[str, ...],
    connector: str | None,
    timezone: str,
    file: str | None,
    selected: tuple[str, ...],
    overlap: str,
    catch_up: str,
    output_format: str | None,
    **where: Any,
) -> None:
    """Run an operation at the times of a cron expression. CRON is: minute hour day-of-month month day-of-week.

    \b
    gateway schedules create Mornings "30 6 * * 1-5" support-desk tickets list --timezone Europe/Berlin
    """

    async def work() -> ScheduleView:
        async with open_gateway(**where) as gateway:
            found = await find(gateway, kind, connector)
            call_params = read_params(params, await schema_of(gateway, found.kind, entity, action))
            return await gateway.schedules.create(
                name,
                cron,
                found,
                entity,
                action,
                call_params,
                timezone=timezone,
                file=file,
                select=names(selected),
                overlap=overlap,
                catch_up=catch_up,
            )

    write(msgspec.to_builtins(run(work())), format_of(output_format))


@schedules.command()
@click.argument("schedule_id")
@click.option("--name", metavar="TEXT", help="New name.")
@click.option("--cron", metavar="CRON", help="New cron expression.")
@click.option("--timezone", metavar="NAME", help="New time zone.")
@click.option("--enable/--disable", "enabled", default=None, help="Enable or disable the schedule.")
@output_option
@gateway_options
def update(
    schedule_id: str,
    name: str | None,
    cron: str | None,
    timezone: str | None,
    enabled: bool | None,
    output_format: str | None,
    **where: Any,
) -> None:
    """Change a schedule. Only the given options change."""
    members = {"name": name, "cron": cron, "timezone": timezone, "enabled": enabled}
    change = {member: value for member, value in members.items() if value is not None}
    if not change:
        raise click.UsageError("nothing to change: give --name, --cron, --timezone, --enable or --disable")

    async def work() -> ScheduleView:
        async with open_gateway(**where) as gateway:
            return await gateway.schedules.update(schedule_id, **change)

    write(msgspec.to_builtins(run(work())), format_of(output_format))


@schedules.command()
@click.argument("schedule_id")
@gateway_options
def delete(schedule_id: str, **where: Any) -> None:
    """Delete a schedule. A run that has begun continues."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            await gateway.schedules.delete(schedule_id)

    run(work())
    note("the schedule is deleted")


@schedules.command("run")
@click.argument("schedule_id")
@click.option("--watch", "wants_watch", is_flag=True, help="Wait until the job ends.")
@gateway_options
def run_now(schedule_id: str, wants_watch: bool, **where: Any) -> None:
    """Run a schedule's operation now and print the job's id."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            job = await gateway.schedules.run(schedule_id)
            click.echo(job.id)
            if wants_watch:
                require_success(await follow(job))

    run(work())
