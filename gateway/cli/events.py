"""`gateway events`: events of jobs, connectors and records, listed or followed."""

from typing import Any

import click
import msgspec

from gateway.cli.client_session import connector_option, shows
from gateway.cli.failures import EXIT_CODES
from gateway.client import Gateway
from gateway.contract.events import EventView

_COLUMNS = ("id", "at", "type", "connector_id", "subject")

types_option = click.option(
    "--type", "types", metavar="TYPE", multiple=True, help="Only this type or group, such as 'job.*'; repeatable."
)


def subject_of(event: EventView) -> str:
    """The record, job, connector or URL that the event is about."""
    data = event.data
    if "record_id" in data:
        return f"{data['entity']} {data['record_id']}"
    return str(data.get("job_id") or data.get("name") or data.get("url") or "")


def _line(event: EventView) -> str:
    return f"{event.at:%H:%M:%S} {event.id:>6} {click.style(event.type, bold=True)}  {subject_of(event)}"


@click.command(epilog=EXIT_CODES)
@click.option("-f", "--follow", is_flag=True, help="Print events as they happen, until Ctrl-C.")
@click.option("--after", type=click.IntRange(min=0), metavar="ID", help="Only events after this id.")
@types_option
@connector_option("Only events of this connector.")
@shows(*_COLUMNS, row=lambda event: {**msgspec.to_builtins(event), "subject": subject_of(event)}, tail=_line)
async def events(
    gateway: Gateway,
    follow: bool,
    after: int | None,
    types: tuple[str, ...],
    connector: str | None,
) -> Any:
    """List events, oldest first. Events are kept for a week. --follow begins with new events, unless --after is given.

    \b
    gateway events --type 'job.*'
    gateway events --follow -o ndjson
    """
    begin = await gateway.latest_event() if follow and after is None else after
    return gateway.events(begin, types=types or None, connector=connector, follow=follow)
