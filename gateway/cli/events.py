"""`gateway events`: events of jobs, connectors and records, listed or followed."""

from collections.abc import AsyncIterator
from typing import Any

import click
import msgspec

from gateway.cli.client_session import connector_option, gateway_options, open_gateway, run
from gateway.cli.failures import EXIT_CODES
from gateway.cli.output import Format, format_of, output_option, write_stream
from gateway.contract.events import EventView

_COLUMNS = ("id", "at", "type", "connector_id", "subject")

types_option = click.option(
    "--type", "types", metavar="TYPE", multiple=True, help="Only this type or group, such as 'job.*'; repeatable."
)


@click.command(epilog=EXIT_CODES)
@click.option("-f", "--follow", is_flag=True, help="Print events as they happen, until Ctrl-C.")
@click.option("--after", type=click.IntRange(min=0), metavar="ID", help="Only events after this id.")
@types_option
@connector_option("Only events of this connector.")
@output_option
@gateway_options
def events(
    follow: bool,
    after: int | None,
    types: tuple[str, ...],
    connector: str | None,
    output_format: str | None,
    **where: Any,
) -> None:
    """List events, oldest first. Events are kept for a week. --follow begins with new events, unless --after is given.

    \b
    gateway events --type 'job.*'
    gateway events --follow -o ndjson
    """

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            begin = await gateway.latest_event() if follow and after is None else after
            found = gateway.events(begin, types=types or None, connector=connector, follow=follow)
            if follow:
                async for event in found:
                    click.echo(_line(event) if format_of(output_format) is Format.TABLE else _json(event))
                return
            chosen = format_of(output_format)
            await write_stream(_facts(found, is_table=chosen is Format.TABLE), chosen, _COLUMNS)

    run(work())


def subject_of(event: EventView) -> str:
    """The record, job, connector or URL that the event is about."""
    data = event.data
    if "record_id" in data:
        return f"{data['entity']} {data['record_id']}"
    return str(data.get("job_id") or data.get("name") or data.get("url") or "")


async def _facts(events: AsyncIterator[EventView], *, is_table: bool) -> AsyncIterator[dict[str, Any]]:
    async for event in events:
        facts: dict[str, Any] = msgspec.to_builtins(event)
        yield {**facts, "subject": subject_of(event)} if is_table else facts


def _line(event: EventView) -> str:
    return f"{event.at:%H:%M:%S} {event.id:>6} {click.style(event.type, bold=True)}  {subject_of(event)}"


def _json(event: EventView) -> str:
    return msgspec.json.encode(event).decode()
