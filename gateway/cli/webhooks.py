"""`gateway webhooks`: subscriptions to events, their deliveries, and forwarding to a local URL during development."""

from typing import Any

import aiohttp
import click
import msgspec

from gateway.cli.client_session import connector_option, gateway_options, open_gateway, run
from gateway.cli.events import subject_of, types_option
from gateway.cli.failures import EXIT_CODES, Exit, note
from gateway.cli.output import format_of, output_option, write
from gateway.contract.events import EventView
from gateway.events.signing import new_secret, signed_headers
from gateway.foundation.aio.clock import CLOCK

_COLUMNS = ("id", "status", "url", "types", "description", "status_reason")
_DELIVERIES = ("event", "type", "status", "attempts", "response_status", "duration_ms", "error")
#: seconds for one delivery to a local URL
_TIMEOUT = 15.0


@click.group(epilog=EXIT_CODES)
def webhooks() -> None:
    """Webhooks: events delivered to your service as defined by Standard Webhooks."""


@webhooks.command()
@click.argument("receiver")
@types_option
@connector_option("Only events of this connector.")
@click.option("--entity", metavar="ENTITY", help="Only records of this entity.")
@click.option("--include-record", is_flag=True, help="Include the record from the synchronized copy.")
@click.option("--description", metavar="TEXT", help="Description of the webhook.")
@output_option
@gateway_options
def create(
    receiver: str,
    types: tuple[str, ...],
    connector: str | None,
    entity: str | None,
    include_record: bool,
    description: str | None,
    output_format: str | None,
    **where: Any,
) -> None:
    """Create a webhook that delivers to RECEIVER, an https URL. Its secret is printed once."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            connector_id = None if connector is None else (await gateway.connectors.resolve(connector)).id
            created = await gateway.webhooks.create(
                receiver,
                types or ("job.*", "connector.*", "record.*"),
                connector_id=connector_id,
                entity=entity,
                include_record=include_record,
                description=description,
            )
            write(msgspec.to_builtins(created), format_of(output_format))

    run(work())


@webhooks.command("list")
@output_option
@gateway_options
def list_webhooks(output_format: str | None, **where: Any) -> None:
    """List webhooks, newest first."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            rows = [msgspec.to_builtins(each) async for each in gateway.webhooks.list()]
            write([{**row, "types": ", ".join(row["types"])} for row in rows], format_of(output_format), _COLUMNS)

    run(work())


@webhooks.command()
@click.argument("webhook_id")
@gateway_options
def delete(webhook_id: str, **where: Any) -> None:
    """Delete a webhook with its deliveries."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            await gateway.webhooks.delete(webhook_id)

    run(work())
    note(f"deleted {webhook_id}")


@webhooks.command()
@click.argument("webhook_id")
@gateway_options
def enable(webhook_id: str, **where: Any) -> None:
    """Enable a disabled webhook. Deliveries continue after the last event that the receiver accepted."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            await gateway.webhooks.change(webhook_id, status="active")

    run(work())
    note(f"enabled {webhook_id}")


@webhooks.command()
@click.argument("webhook_id")
@output_option
@gateway_options
def test(webhook_id: str, output_format: str | None, **where: Any) -> None:
    """Send a test event now. The exit code is 1 unless the receiver answers 2xx."""

    async def work() -> bool:
        async with open_gateway(**where) as gateway:
            tried = await gateway.webhooks.test(webhook_id)
            write(msgspec.to_builtins(tried), format_of(output_format))
            return tried.delivered

    if not run(work()):
        raise SystemExit(Exit.REFUSED)


@webhooks.command()
@click.argument("webhook_id")
@output_option
@gateway_options
def rotate(webhook_id: str, output_format: str | None, **where: Any) -> None:
    """Create a new secret and print it. For a day, deliveries are signed with the previous secret too."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            write(msgspec.to_builtins(await gateway.webhooks.rotate(webhook_id)), format_of(output_format))

    run(work())


@webhooks.command()
@click.argument("webhook_id")
@click.option(
    "--status", type=click.Choice(["pending", "succeeded", "failed"]), help="Only deliveries with this status."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of deliveries."
)
@output_option
@gateway_options
def deliveries(webhook_id: str, status: str | None, limit: int, output_format: str | None, **where: Any) -> None:
    """List a webhook's deliveries, newest event first."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            found = gateway.webhooks.deliveries(webhook_id, status=status, limit=limit)
            rows = [msgspec.to_builtins(each) async for each in found]
            shown = [{**row, "event": row["event"]["id"], "type": row["event"]["type"]} for row in rows]
            chosen = format_of(output_format)
            write(shown if chosen == "table" else rows, chosen, _DELIVERIES)

    run(work())


@webhooks.command()
@click.argument("webhook_id")
@click.option(
    "--after", type=click.IntRange(min=0), required=True, metavar="ID", help="Deliver the events after this id."
)
@gateway_options
def replay(webhook_id: str, after: int, **where: Any) -> None:
    """Deliver past events again. The header webhook-id of each delivery is the same as before."""

    async def work() -> None:
        async with open_gateway(**where) as gateway:
            await gateway.webhooks.replay(webhook_id, after)

    run(work())
    note(f"delivering the events after {after} again")


@webhooks.command()
@click.argument("receiver")
@types_option
@connector_option("Only events of this connector.")
@click.option(
    "--secret", metavar="whsec_…", help="Secret that signs the deliveries; by default a new one, which is printed."
)
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="ID",
    help="Begin after the event with this id.  [default: the latest]",
)
@gateway_options
def listen(
    receiver: str, types: tuple[str, ...], connector: str | None, secret: str | None, after: int | None, **where: Any
) -> None:
    """Forward events to RECEIVER, a local URL, until Ctrl-C.

    For development. Deliveries are signed like those of a webhook, but not retried.

    \b
    gateway webhooks listen http://localhost:8000/webhooks --type 'job.*'
    """
    signing_secret = secret or new_secret()
    if secret is None:
        note(f"signing with {signing_secret}")

    async def work() -> None:
        async with open_gateway(**where) as gateway, aiohttp.ClientSession() as session:
            begin = await gateway.latest_event() if after is None else after
            note(f"forwarding events to {receiver}; Ctrl-C stops")
            async for event in gateway.events(begin, types=types or None, connector=connector):
                click.echo(f"{event.at:%H:%M:%S} {event.id:>6} {event.type}  {subject_of(event)}", nl=False)
                click.echo(f"  {await _forwarded(session, receiver, event, signing_secret)}")

    run(work())


async def _forwarded(session: aiohttp.ClientSession, url: str, event: EventView, secret: str) -> str:
    """The receiver's response, or the error of the request."""
    body = msgspec.json.encode(event)
    headers = signed_headers(f"msg_local_{event.id}", body.decode(), CLOCK.now(), [secret])
    try:
        async with session.post(
            url,
            data=body,
            headers={"Content-Type": "application/json", **headers},
            timeout=aiohttp.ClientTimeout(total=_TIMEOUT),
            allow_redirects=False,
        ) as response:
            return str(response.status)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return f"failed: {str(error) or type(error).__name__}"
