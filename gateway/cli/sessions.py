"""`gateway sessions`: open a session for a person, list and end sessions."""

from typing import Any

import click

from gateway.cli.client_session import calls_gateway, shows
from gateway.cli.failures import EXIT_CODES, note
from gateway.client import Gateway
from gateway.contract.kinds import Effect

_COLUMNS = ("id", "person", "client", "scopes", "workspaces", "expires_at")


@click.group(epilog=EXIT_CODES)
def sessions() -> None:
    """Sessions: a client with the scope `delegate` acts for a person."""


@sessions.command("open")
@click.option("--subject", metavar="TEXT", help="Your own id of a user of your product.")
@click.option("--person", metavar="ID", help="A person of a group for which the client may act.")
@click.option("--name", metavar="TEXT", help="Of a new user: the name.")
@click.option("--email", metavar="ADDRESS", help="Of a new user: the email address.")
@click.option("--in-workspace", metavar="NAME", help="The only workspace.")
@click.option("--connector", "connectors", multiple=True, metavar="ID", help="The only connectors; repeatable.")
@click.option("--allow", multiple=True, metavar="PATTERN", help="The only operations: `zendesk.tickets.*`; repeatable.")
@click.option("--deny", multiple=True, metavar="PATTERN", help="Operations that are never run; repeatable.")
@click.option(
    "--effect",
    "effects",
    type=click.Choice([each.value for each in Effect]),
    multiple=True,
    help="The only effects; repeatable.",
)
@click.option("--expires-in", type=click.IntRange(1, 86_400), metavar="SECONDS", help="An hour by default.")
@shows("id", "token", "mcp_url", "connect_url", "expires_at")
async def open_session(
    gateway: Gateway,
    subject: str | None,
    person: str | None,
    name: str | None,
    email: str | None,
    in_workspace: str | None,
    connectors: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    effects: tuple[str, ...],
    expires_in: int | None,
) -> Any:
    """Open a session; the token is shown once."""
    return await gateway.sessions.open(
        subject=subject,
        person_id=person,
        name=name,
        email=email,
        workspace_name=in_workspace,
        connectors=connectors or None,
        allow=allow or None,
        deny=deny or None,
        effects=effects or None,
        expires_in=expires_in,
    )


@sessions.command("list")
@shows(*_COLUMNS)
async def list_sessions(gateway: Gateway) -> Any:
    """List the open sessions, the newest first."""
    return await gateway.sessions.list()


@sessions.command()
@click.argument("session_id")
@calls_gateway
async def end(gateway: Gateway, session_id: str) -> None:
    """End a session, those that were opened in it, and their unfinished jobs."""
    await gateway.sessions.end(session_id)
    note(f"{session_id} has ended")
