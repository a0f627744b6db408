"""`gateway audit list` and `gateway logs`: the audit log, and the log of HTTP requests to applications."""

from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from gateway.cli.client_session import connector_option, shows
from gateway.cli.failures import EXIT_CODES
from gateway.client import Gateway
from gateway.contract.gateway_state import AuditEntryView, RequestView

_AUDIT = ("at", "what", "target", "outcome", "actor", "changed", "application")
_REQUESTS = ("at", "status", "method", "path", "duration_ms", "operation", "attempt", "error")


def read_time(ctx: click.Context, param: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time such as 2026-01-31T09:00:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _audit_row(entry: AuditEntryView) -> dict[str, Any]:
    """An entry with the client's name, and the changed members as text."""
    actor = entry.actor and (entry.actor.name or entry.actor.id)
    return {**msgspec.to_builtins(entry), "actor": actor, "changed": ", ".join(entry.changed)}


def _line(request: RequestView) -> str:
    status = str(request.status) if request.status else request.error or "-"
    is_failed = request.status is None or request.status >= 400
    attempt = "" if request.attempt == 1 else f" attempt {request.attempt}"
    line = f"{request.method:6} {request.path} {request.duration_ms} ms{attempt}  {request.operation or ''}"
    return f"{request.at:%H:%M:%S} {click.style(f'{status:>4}', fg='red' if is_failed else 'green')} {line}"


@click.command("list", epilog=EXIT_CODES)
@connector_option("Only actions on this connector.")
@click.option("--actor", metavar="CLIENT", help="Only actions of this client: its id or its name.")
@click.option("--operation", metavar="NAME", help="Only this operation or action, such as tickets.update.")
@click.option("--target", metavar="ID", help="Only actions on this record, job, workspace or client.")
@click.option("--outcome", metavar="OUTCOME", help="Only succeeded, accepted, or an error code.")
@click.option("--since", metavar="TIME", callback=read_time, help="From this time on, such as 2026-01-31T09:00:00Z.")
@click.option("--until", metavar="TIME", callback=read_time, help="Before this time.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of entries.")
@shows(*_AUDIT, row=_audit_row)
async def list_audit(
    gateway: Gateway,
    connector: str | None,
    actor: str | None,
    operation: str | None,
    target: str | None,
    outcome: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> Any:
    """List who did what, when and with which outcome, newest first. Needs the scope admin."""
    return gateway.logs.audit(
        connector_id=await _id_of(gateway, connector),
        actor=actor,
        operation=operation,
        target=target,
        outcome=outcome,
        since=since,
        until=until,
        limit=limit,
    )


@click.command(epilog=EXIT_CODES)
@connector_option("Only requests of this connector.")
@click.option("--job", "job_id", metavar="ID", help="Only requests of this job.")
@click.option("--request-id", metavar="ID", help="Only requests that were sent for this request to the gateway.")
@click.option("--status", metavar="STATUS", help="Only this status: 404, 5xx, or failed.")
@click.option("--since", metavar="TIME", callback=read_time, help="From this time on, such as 2026-01-31T09:00:00Z.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of requests.")
@click.option("-f", "--follow", is_flag=True, help="Print requests as they end, until Ctrl-C.")
@shows(*_REQUESTS, tail=_line)
async def logs(
    gateway: Gateway,
    connector: str | None,
    job_id: str | None,
    request_id: str | None,
    status: str | None,
    since: datetime | None,
    limit: int,
    follow: bool,
) -> Any:
    """List the HTTP requests to applications, newest first. They are kept for a day.

    \b
    gateway logs --status failed
    gateway logs --follow --connector support-desk
    """
    connector_id = await _id_of(gateway, connector)
    if follow:
        return gateway.logs.follow_requests(connector_id=connector_id, job_id=job_id, status=status)
    return gateway.logs.requests(
        connector_id=connector_id,
        job_id=job_id,
        request_id=request_id,
        status=status,
        since=since,
        limit=limit,
    )


async def _id_of(gateway: Gateway, connector: str | None) -> str | None:
    return None if connector is None else (await gateway.connectors.resolve(connector)).id
