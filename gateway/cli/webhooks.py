"""`gateway webhooks`: subscriptions to events, their deliveries, and forwarding to a local URL during development."""

from typing import Any

import aiohttp
import click
import msgspec

from gateway.cli.client_session import calls_gateway, connector_option, shows
from gateway.cli.events import subject_of, types_option
from gateway.cli.failures import EXIT_CODES, Exit, note
from gateway.cli.output import output_option, write
from gateway.client import Gateway
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
@shows()
async def create(
    gateway: Gateway,
    receiver: str,
    types: tuple[str, ...],
    connector: str | None,
    entity: str | None,
    include_record: bool,
    description: str | None,
) -> Any:
    """Create a webhook that delivers to RECEIVER, an https URL. Its secret is printed once."""
    connector_id = None if connector is None else (await gateway.connectors.resolve(connector)).id
    return await gateway.webhooks.create(
        receiver,
        types or ("job.*", "connector.*", "record.*"),
        connector_id=connector_id,
        entity=entity,
        include_record=include_record,
        description=description,
    )


@webhooks.command("list")
@shows(*_COLUMNS)
async def list_webhooks(gateway: Gateway) -> Any:
    """List webhooks, newest first."""
    rows = [msgspec.to_builtins(each) async for each in gateway.webhooks.list()]
    return [{**row, "types": ", ".join(row["types"])} for row in rows]


@webhooks.command()
@click.argument("webhook_id")
@calls_gateway
async def delete(gateway: Gateway, webhook_id: str) -> None:
    """Delete a webhook with its deliveries."""
    await gateway.webhooks.delete(webhook_id)
    note(f"deleted {webhook_id}")


@webhooks.command()
@click.argument("webhook_id")
@calls_gateway
async def enable(gateway: Gateway, webhook_id: str) -> None:
    """Enable a disabled webhook. Deliveries continue after the last event that the receiver accepted."""
    await gateway.webhooks.change(webhook_id, status="active")
    note(f"enabled {webhook_id}")


@webhooks.command()
@click.argument("webhook_id")
@output_option
@calls_gateway
async def test(gateway: Gateway, webhook_id: str) -> None:
    """Send a test event now. The exit code is 1 unless the receiver answers 2xx."""

    tried = await gateway.webhooks.test(webhook_id)
    write(msgspec.to_builtins(tried))
    if not tried.delivered:
        raise SystemExit(Exit.REFUSED)


@webhooks.command()
@click.argument("webhook_id")
@shows()
async def rotate(gateway: Gateway, webhook_id: str) -> Any:
    """Create a new secret and print it. For a day, deliveries are signed with the previous secret too."""
    return await gateway.webhooks.rotate(webhook_id)


@webhooks.command()
@click.argument("webhook_id")
@click.option(
    "--status", type=click.Choice(["pending", "succeeded", "failed"]), help="Only deliveries with this status."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of deliveries."
)
@shows(*_DELIVERIES, row=lambda view: {**msgspec.to_builtins(view), "event": view.event.id, "type": view.event.type})
async def deliveries(gateway: Gateway, webhook_id: str, status: str | None, limit: int) -> Any:
    """List a webhook's deliveries, newest event first."""
    return gateway.webhooks.deliveries(webhook_id, status=status, limit=limit)


@webhooks.command()
@click.argument("webhook_id")
@click.option(
    "--after", type=click.IntRange(min=0), required=True, metavar="ID", help="Deliver the events after this id."
)
@calls_gateway
async def replay(gateway: Gateway, webhook_id: str, after: int) -> None:
    """Deliver past events again. The header webhook-id of each delivery is the same as before."""
    await gateway.webhooks.replay(webhook_id, after)
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
@calls_gateway
async def listen(
    gateway: Gateway,
    receiver: str,
    types: tuple[str, ...],
    connector: str | None,
    secret: str | None,
    after: int | None,
) -> None:
    """Forward events to RECEIVER, a local URL, until Ctrl-C.

    For development. Deliveries are signed like those of a webhook, but not retried.

    \b
    gateway webhooks listen http://localhost:8000/webhooks --type 'job.*'
    """
    signing_secret = secret or new_secret()
    if secret is None:
        note(f"signing with {signing_secret}")
    async with aiohttp.ClientSession() as session:
        begin = await gateway.latest_event() if after is None else after
        note(f"forwarding events to {receiver}; Ctrl-C stops")
        async for event in gateway.events(begin, types=types or None, connector=connector):
            click.echo(f"{event.at:%H:%M:%S} {event.id:>6} {event.type}  {subject_of(event)}", nl=False)
            click.echo(f"  {await _forward(session, receiver, event, signing_secret)}")


async def _forward(session: aiohttp.ClientSession, url: str, event: EventView, secret: str) -> str:
    """The receiver's response, or the error of the request."""
    body = msgspec.json.encode(event)
    headers = signed_headers(f"msg_local_{event.id}", CLOCK.now(), [secret], body)
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
