"""`gateway approvals`: see what waits for an approval, and decide about it."""

from typing import Any

import click

from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import output_option, write
from gateway.client import Gateway
from gateway.contract.approvals import ApprovalStatus

_COLUMNS = ("id", "status", "operation", "items", "reason", "expires_at")
_CHANGES = ("record", "member", "old", "new")
_reason = click.option("--reason", metavar="TEXT", help="Why.")


@click.group(epilog=EXIT_CODES)
def approvals() -> None:
    """Approvals: calls that wait until a person decides; needs the scope `approve`."""


@approvals.command("list")
@click.option("--status", type=click.Choice([each.value for each in ApprovalStatus]), help="Only this status.")
@shows(*_COLUMNS)
async def list_approvals(gateway: Gateway, status: str | None) -> Any:
    """List the approvals, the newest first."""
    return await gateway.approvals.list(status)


@approvals.command()
@click.argument("approval_id")
@output_option
@calls_gateway
async def show(gateway: Gateway, approval_id: str) -> None:
    """Show the requests of an approval and what they change."""
    approval = await gateway.approvals.get(approval_id)
    note(f"{approval.operation}, {approval.items} requests, {approval.status}: {approval.reason}")
    for request in approval.requests:
        note(f"  {request.method} {request.url}")
    if approval.redacted:
        note(f"policies leave out changes of {', '.join(approval.redacted)}")
    write(approval.changes, _CHANGES)


@approvals.command()
@click.argument("approval_id")
@_reason
@calls_gateway
async def approve(gateway: Gateway, approval_id: str, reason: str | None) -> None:
    """Approve what the approval shows now; its job then goes on by itself."""
    found = await gateway.approvals.get(approval_id)
    decided = await gateway.approvals.approve(approval_id, found.digest, reason=reason)
    note(f"{decided.operation} is {decided.status}")


@approvals.command()
@click.argument("approval_id")
@_reason
@calls_gateway
async def deny(gateway: Gateway, approval_id: str, reason: str | None) -> None:
    """Deny the call; its job ends canceled."""
    found = await gateway.approvals.get(approval_id)
    decided = await gateway.approvals.deny(approval_id, found.digest, reason=reason)
    note(f"{decided.operation} is {decided.status}")
