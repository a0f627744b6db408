"""`gateway approvals`: see what waits for an approval, and decide about it."""

from typing import Any

import click

from gateway.cli.arguments import PARAMS_HELP, read_params
from gateway.cli.client_session import calls_gateway, connector_option, find, schema_of, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.cli.output import output_option, write
from gateway.cli.shell_completion import complete_action, complete_entity, complete_kind, complete_param
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
    for question in approval.questions:
        note(f"whoever approves says with --reason: {question}")
    if approval.redacted:
        note(f"policies leave out changes of {', '.join(approval.redacted)}")
    write(approval.changes, _CHANGES)


@approvals.group()
def notice() -> None:
    """The message that tells people of each approval; for administrators."""


@notice.command("set", epilog=f"{PARAMS_HELP}\n\n{EXIT_CODES}")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("entity", shell_complete=complete_entity)
@click.argument("action", shell_complete=complete_action)
@click.argument("params", nargs=-1, shell_complete=complete_param)
@connector_option()
@shows()
async def set_notice(
    gateway: Gateway, kind: str, entity: str, action: str, params: tuple[str, ...], connector: str | None
) -> Any:
    """Send a message when a call begins to wait; texts may have placeholders.

    \b
    gateway approvals notice set team-chat messages create channel=C024BE91L text={{url}}
    """
    found = await find(gateway, kind, connector)
    call_params = read_params(params, await schema_of(gateway, found.kind, entity, action))
    return await gateway.approvals.set_notice(found, entity, action, call_params)


@notice.command("show")
@shows()
async def show_notice(gateway: Gateway) -> Any:
    """Show the message and what became of the last one."""
    return await gateway.approvals.notice()


@notice.command("delete")
@calls_gateway
async def delete_notice(gateway: Gateway) -> None:
    """Send no message any longer."""
    await gateway.approvals.delete_notice()
    note("no notice of approvals is sent")


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
